// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"roce_exporter/collectors/sonic/sonictest"
)

var cost = flag.Bool("cost", false, "measure what the exporter costs (make bench)")

const (
	costRounds  = 3
	costScrapes = 30
	costWarm    = 3 // The first scrape walks CONFIG_DB, the second the FDB.
	costFDB     = 8000
	costRefresh = time.Minute // As by default: then comes the next walk.

	maxBinary = 25_000_000 // Bytes, on amd64.
	// What a scrape may cost, as a multiple of the floor.
	maxRedisCPU, maxWall, maxExporterCPU = 1.3, 2.5, 3.0
)

// A costCase is a switch and a way to export it.
type costCase struct {
	ports     int
	allQueues bool
	maxMiB    float64 // Memory of the process at its highest; 0: no limit.
}

func (c costCase) String() string {
	if c.allQueues {
		return fmt.Sprintf("%d ports, all queues", c.ports)
	}
	return fmt.Sprintf("%d ports", c.ports)
}

// config is the configuration file, empty for the defaults.
func (c costCase) config() string {
	if c.allQueues {
		return "switch: {queues: all}\n"
	}
	return ""
}

// TestCost compares what a scrape costs with the floor: the same client that
// reads the same keys in the same batches and drops the replies.
//
// Exporter and floor are processes of their own, started anew for each of
// several rounds, in which they take turns: what disturbs one disturbs the
// other. CPU times, of Redis too, are those of the kernel's clock of the
// process, read from outside; commands are Redis' own count, asked for by a
// second connection outside the passes. The round trips are the batches that
// the reader sends, one pipeline each, as recorded in this process; that the
// binary reads the same shows in the commands. Of the rounds the least counts,
// but for the memory, where it is the most.
func TestCost(t *testing.T) {
	if !*cost {
		t.Skip("make bench runs it")
	}
	binary := buildBinary(t)
	table := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', tabwriter.AlignRight)
	defer table.Flush()
	fmt.Fprintln(table, "\t\tseries\ttext\tcommands\tround trips\tRedis CPU\twall\texporter CPU\tpeak memory\t")
	for _, size := range []struct {
		ports  int
		limits []float64 // At defaults, and with all queues.
	}{{64, []float64{35, 0}}, {512, []float64{64, 130}}} {
		server := sonictest.Start(t)
		server.Load(t, sonictest.Synthetic(size.ports, costFDB))
		for i, limit := range size.limits {
			measureCase(t, table, server, binary, costCase{size.ports, i == 1, limit})
		}
		if n := newProbe(t, server).ask().calls["keys"]; n > 0 {
			t.Errorf("%d KEYS", n)
		}
	}
}

// measureCase measures one case and writes its lines of the table.
func measureCase(t *testing.T, table *tabwriter.Writer, server *sonictest.Server, binary string, c costCase) {
	recorded := record(t, server.Dir, c.config())
	settled := recorded[costWarm]
	probe := newProbe(t, server)
	var scrape, floor, first, second spending
	best := ratios{math.Inf(1), math.Inf(1), math.Inf(1)}
	for range costRounds {
		e := startExporter(t, binary, server.Dir, c.config())
		first.least(measure(t, probe, 1, e)[0])
		second.least(measure(t, probe, 1, e)[0])
		first.peak, second.peak = 0, 0
		e.warm(costWarm - 2)
		f := startFloor(t, server.Dir, settled)
		f.warm(costWarm)
		calls := [2]map[string]int{measure(t, probe, 1, e)[0].calls, measure(t, probe, 1, f)[0].calls}
		round := measure(t, probe, costScrapes, e, f)
		if since := time.Since(e.started); since > costRefresh {
			t.Errorf("%s: the round took %v, and another walk came within", c, since)
			return
		}
		e.stop()
		f.stop()
		if round[0].connections != 0 || round[0].scans != 0 {
			t.Errorf("%s: %d new connections and %d SCANs between two refreshes", c, round[0].connections, round[0].scans)
		}
		best.least(ratios{
			ratio(round[0].redisCPU, round[1].redisCPU), ratio(round[0].wall, round[1].wall), ratio(round[0].ownCPU, round[1].ownCPU),
		})
		round[0].calls, round[1].calls = calls[0], calls[1]
		scrape.least(round[0])
		floor.least(round[1])
	}
	if !maps.Equal(scrape.calls, floor.calls) {
		t.Errorf("%s: the exporter sends %v a scrape, its floor %v", c, scrape.calls, floor.calls)
	}

	scrape.trips, floor.trips = len(settled), len(settled)
	first.trips = first.scans + len(recorded[0])
	second.trips = second.scans + len(recorded[1])
	fmt.Fprintln(table, strings.Repeat("\t", 10))
	scrape.print(table, c.String(), "scrape")
	floor.print(table, "", "floor")
	best.print(table, c)
	first.print(table, "", "first scrape, walks CONFIG_DB")
	second.print(table, "", fmt.Sprintf("second, walks %d addresses", costFDB))

	for _, limit := range []struct {
		what     string
		got, max float64
	}{
		{"Redis CPU", best.redisCPU, maxRedisCPU},
		{"wall time", best.wall, maxWall},
		{"CPU time of the exporter", best.ownCPU, maxExporterCPU},
	} {
		if limit.got > limit.max {
			t.Errorf("%s: %s is %.2f times the floor's, more than %.1f", c, limit.what, limit.got, limit.max)
		}
	}
	if c.maxMiB > 0 && scrape.peak > c.maxMiB {
		t.Errorf("%s: %.1f MiB of memory, more than %.0f", c, scrape.peak, c.maxMiB)
	}
}

// spending is what one scrape costs.
type spending struct {
	calls            map[string]int // Commands by verb.
	trips, scans     int
	redisCPU, ownCPU time.Duration // Mean of the round.
	wall             time.Duration // Median of the round.
	series, text     int
	peak             float64 // MiB, since the process began.
	connections      int     // New ones in the whole round.
}

// least takes over what another round did for less.
func (s *spending) least(other spending) {
	if s.calls == nil {
		*s = other
		return
	}
	s.redisCPU, s.ownCPU, s.wall = min(s.redisCPU, other.redisCPU), min(s.ownCPU, other.ownCPU), min(s.wall, other.wall)
	s.peak = max(s.peak, other.peak)
}

func (s *spending) print(table *tabwriter.Writer, name, what string) {
	commands := 0
	for _, n := range s.calls {
		commands += n
	}
	cells := []string{name, what, "", "", fmt.Sprint(commands), fmt.Sprint(s.trips), ms(s.redisCPU), ms(s.wall), ms(s.ownCPU), ""}
	if s.series > 0 {
		cells[2], cells[3] = fmt.Sprint(s.series), fmt.Sprintf("%.1f MB", float64(s.text)/1e6)
	}
	if s.peak > 0 {
		cells[9] = fmt.Sprintf("%.1f MiB", s.peak)
	}
	fmt.Fprintln(table, strings.Join(cells, "\t")+"\t")
}

// ratios are what a scrape costs as multiples of the floor.
type ratios struct{ redisCPU, wall, ownCPU float64 }

func (r *ratios) least(other ratios) {
	r.redisCPU, r.wall, r.ownCPU = min(r.redisCPU, other.redisCPU), min(r.wall, other.wall), min(r.ownCPU, other.ownCPU)
}

func (r *ratios) print(table *tabwriter.Writer, c costCase) {
	memory := ""
	if c.maxMiB > 0 {
		memory = fmt.Sprintf("(limit %.0f MiB)", c.maxMiB)
	}
	of := func(got, limit float64) string { return fmt.Sprintf("%.2f (limit %.1f)", got, limit) }
	fmt.Fprintf(table, "\tratio, best round\t\t\t\t\t%s\t%s\t%s\t%s\t\n",
		of(r.redisCPU, maxRedisCPU), of(r.wall, maxWall), of(r.ownCPU, maxExporterCPU), memory)
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1e3) }

// measure makes n passes of each subject in turns. Connections and SCANs are
// those of all together, commands too, for which one pass of one is best.
func measure(t *testing.T, probe *probe, n int, subjects ...*subject) []spending {
	t.Helper()
	out := make([]spending, len(subjects))
	walls := make([][]time.Duration, len(subjects))
	before := probe.ask()
	for i, s := range subjects {
		out[i].ownCPU = -cpuClock(t, s.pid())
	}
	for range n {
		for i, s := range subjects {
			redisCPU := cpuClock(t, probe.pid)
			wall, body := s.pass()
			out[i].redisCPU += cpuClock(t, probe.pid) - redisCPU
			walls[i] = append(walls[i], wall)
			out[i].text, out[i].series = len(body), countSeries(body)
		}
	}
	for i, s := range subjects {
		out[i].ownCPU += cpuClock(t, s.pid()) // It may have collected garbage after its answer.
	}
	after := probe.ask()
	for i, s := range subjects {
		o := &out[i]
		slices.Sort(walls[i])
		o.wall, o.redisCPU, o.ownCPU = walls[i][n/2], o.redisCPU/time.Duration(n), o.ownCPU/time.Duration(n)
		o.peak = s.peak(t)
		o.connections = after.connections - before.connections
		o.calls = map[string]int{}
		for verb, calls := range after.calls {
			if each := calls - before.calls[verb]; each != 0 && verb != "info" {
				o.calls[verb] = each
			}
		}
		o.scans = o.calls["scan"]
	}
	return out
}

func countSeries(text []byte) (n int) {
	for line := range bytes.Lines(text) {
		if line[0] != '#' {
			n++
		}
	}
	return n
}

// buildBinary builds the exporter as a release is built.
func buildBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "roce_exporter")
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(t.Output(), "binary for %s: %.1f MB (limit on amd64 %.0f MB)\n", runtime.GOARCH, float64(info.Size())/1e6, maxBinary/1e6)
	if runtime.GOARCH == "amd64" && info.Size() > maxBinary {
		t.Errorf("the binary has %d bytes, more than %d", info.Size(), maxBinary)
	}
	return path
}
