// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"roce_exporter/collectors/host"
	"roce_exporter/collectors/sonic"
)

// captureFormat is the version of the layout of a capture, which a replay asks
// for.
const captureFormat = 1

// A Recording is what was read once of a node, ready to be written as a
// capture.
type Recording struct {
	Switch *sonic.Recording // nil: the node is none.
	Host   *host.Recording  // nil: it has no NICs.
}

// A captureMeta is meta.json of a capture.
type captureMeta struct {
	Format   int       `json:"format"`
	Exporter string    `json:"exporter"`
	Read     time.Time `json:"read"`               // When it was made, by the clock of whoever made it.
	Clock    time.Time `json:"clock"`              // The clock of the node at that moment.
	LeftOut  []string  `json:"left_out,omitempty"` // What could not be read, and why.
}

// Write writes a capture into a directory that is new or empty. version is
// the exporter's.
func (r *Recording) Write(dir, version string, now time.Time) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: give a new directory", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	meta := captureMeta{Format: captureFormat, Exporter: version, Read: now.UTC(), LeftOut: r.LeftOut()}
	if r.Host != nil {
		if err := r.Host.Write(dir); err != nil {
			return err
		}
		meta.Clock = r.Host.Clock.UTC()
	}
	if r.Switch != nil {
		if err := r.Switch.Write(dir); err != nil {
			return err
		}
		meta.Clock = r.Switch.Clock.UTC()
	}
	data, err := json.MarshalIndent(meta, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "meta.json"), append(data, '\n'), 0o644)
}

// LeftOut says what could not be read when a capture was made, and why, of all
// its samples. What is not a capture lacks nothing: those who open it will say.
func LeftOut(capture fs.FS) []string {
	var leftOut []string
	samples, _ := fs.Glob(capture, "[0-9][0-9][0-9][0-9]/meta.json")
	for _, name := range append(samples, "meta.json") {
		var meta captureMeta
		if data, err := fs.ReadFile(capture, name); err == nil && json.Unmarshal(data, &meta) == nil {
			leftOut = append(leftOut, meta.LeftOut...)
		}
	}
	slices.Sort(leftOut)
	return slices.Compact(leftOut)
}

// LeftOut says what is missing in the recording, and why.
func (r *Recording) LeftOut() []string {
	var leftOut []string
	if r.Switch != nil {
		leftOut = append(leftOut, r.Switch.LeftOut...)
	}
	if r.Host != nil {
		leftOut = append(leftOut, r.Host.LeftOut...)
	}
	return leftOut
}
