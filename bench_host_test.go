// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"text/tabwriter"

	"roce_exporter/collectors/host/hosttest"
)

const (
	costRails, costStatistics = 8, 1500
	costHostScrapes           = 10
	maxHostMiB                = 35
)

// TestCostOfAHost replays a host of eight GPUs and looks at the memory of the
// process. What the kernel answers comes from files here.
func TestCostOfAHost(t *testing.T) {
	if !*cost {
		t.Skip("make bench runs it")
	}
	dir := t.TempDir()
	hosttest.Write(t, hosttest.Rails(t, "collectors/testdata/hosts/connectx.txt", costRails, costStatistics), dir)
	if err := os.WriteFile(filepath.Join(dir, "meta.json"), []byte(`{"format":1,"clock":"2026-01-01T00:00:00Z"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	e := startCollector(t, buildBinary(t), "host", "--replay="+dir)
	before := cpuClock(t, e.pid())
	var body []byte
	for range costHostScrapes {
		_, body = e.pass()
	}
	each := (cpuClock(t, e.pid()) - before) / costHostScrapes
	peak := e.peak(t)
	e.stop()
	if peak > maxHostMiB {
		t.Errorf("%.1f MiB of memory, more than %d", peak, maxHostMiB)
	}
	table := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', tabwriter.AlignRight)
	defer table.Flush()
	fmt.Fprintln(table, "\tseries\ttext\texporter CPU\tpeak memory\tlimit\t")
	fmt.Fprintf(table, "%d NICs of %d statistics, %d RDMA devices\t%d\t%.1f MB\t%s\t%.1f MiB\t%d MiB\t\n", costRails, costStatistics, costRails,
		countSeries(body), float64(len(body))/1e6, ms(each), peak, maxHostMiB)
}
