// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roce_exporter/collectors/host"
	"roce_exporter/collectors/host/hosttest"
)

func hostOptions() HostOptions {
	return HostOptions{
		Timeout: 10 * time.Second, SeriesLimit: 200_000, Policy: testPolicy(), Required: true,
		Now: func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) },
	}
}

func hosts(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/hosts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	return files
}

// capturedHost is a collector of a capture.
func capturedHost(t testing.TB, c *Catalog, capture fs.FS, options HostOptions) *Host {
	t.Helper()
	sources, err := host.ReadCapture(capture)
	if err != nil {
		t.Fatal(err)
	}
	return NewHost(c, sources, options)
}

func collectHost(t testing.TB, h *Host) (Reading, string) {
	t.Helper()
	reading, err := h.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return reading, text(t, h.catalog, reading)
}

// The whole output for each composed host.
func TestHosts(t *testing.T) {
	for _, file := range hosts(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			reading, got := collectHost(t, capturedHost(t, testCatalog(t), hosttest.Read(t, file), hostOptions()))
			if reading.Skipped != (Skipped{}) {
				t.Errorf("%+v, want nothing skipped: %+v", reading.Skipped, reading.Sources)
			}
			golden(t, strings.TrimSuffix(file, ".txt")+".prom", got)
		})
	}
}

// The budget of a NIC port with its RDMA device, at defaults with a policy.
func TestSeriesOfANIC(t *testing.T) {
	for _, name := range []string{"connectx", "ofed", "e810", "broadcom-nic"} {
		_, got := collectHost(t, capturedHost(t, testCatalog(t), hosttest.Read(t, "testdata/hosts/"+name+".txt"), hostOptions()))
		all, devices := parse(t, got), map[string]string{}
		for series := range all {
			if strings.HasPrefix(series, "roce_rdma_port_info{") {
				devices[label(series, "device")] = label(series, "port")
			}
		}
		of := map[string]int{}
		for series := range all {
			port := label(series, "port")
			if device := label(series, "device"); device != "" {
				port = devices[device]
			}
			of[port]++
		}
		delete(of, "") // Of the node.
		if len(of) == 0 {
			t.Errorf("%s: no ports", name)
		}
		for port, n := range of {
			t.Logf("%s %s: %d series", name, port, n)
			if n > 160 {
				t.Errorf("%s %s: %d series, at most 160", name, port, n)
			}
		}
	}
}

// label cuts a label value out of a series.
func label(series, name string) string {
	for _, before := range []string{"{", ","} {
		if _, rest, ok := strings.Cut(series, before+name+`="`); ok {
			value, _, _ := strings.Cut(rest, `"`)
			return value
		}
	}
	return ""
}
