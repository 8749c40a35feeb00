// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A progress is a bar on a terminal; elsewhere it is nothing.
type progress struct {
	bar  *progressbar.ProgressBar // nil: none.
	from time.Time
}

// newProgress begins a bar over a stretch of time.
func newProgress(w io.Writer, from, until time.Time) *progress {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return &progress{}
	}
	bar := progressbar.NewOptions64(int64(until.Sub(from).Seconds()), progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription("history"), progressbar.OptionShowElapsedTimeOnFinish(), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true))
	return &progress{bar, from}
}

// advance moves the bar to a time.
func (p *progress) advance(to time.Time) {
	if p.bar != nil {
		_ = p.bar.Set64(int64(to.Sub(p.from).Seconds())) // It is only a bar.
	}
}

func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
