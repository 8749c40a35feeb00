// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strconv"
	"strings"
	"time"
)

// ReadHost reads what is not of one device.
func (r *Reader) ReadHost() Host {
	if r.Proc == nil {
		return Host{}
	}
	hostname, _ := readText(r.Proc, "sys/kernel/hostname")
	release, _ := readText(r.Proc, "sys/kernel/osrelease")
	h := Host{Hostname: hostname, OSVersion: release}
	if stat, err := readText(r.Proc, "stat"); err == nil {
		for line := range strings.Lines(stat) {
			if text, ok := strings.CutPrefix(line, "btime "); ok {
				if seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil && seconds > 0 {
					h.Boot = time.Unix(seconds, 0)
				}
			}
		}
	}
	// A kernel without loadable modules has no such file: what it has built in
	// is unknown.
	if list, err := readText(r.Proc, "modules"); err == nil {
		loaded := map[string]bool{}
		for line := range strings.Lines(list) {
			name, _, _ := strings.Cut(line, " ")
			loaded[name] = true
		}
		h.Modules = map[string]bool{}
		for _, name := range Modules() {
			h.Modules[name] = loaded[name] || exists(r.Sys, "module/"+name) // The latter if it is built in.
		}
	}
	return h
}
