// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"roce_exporter/collectors/demo"
)

// history writes a past that begins at noon and returns its files.
func history(t *testing.T, args ...string) []string {
	t.Helper()
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	args = append([]string{"demo", "history", "--out", dir, "--start", noon.Format(time.RFC3339)}, args...)
	if code := runCommand(t.Context(), nil, args, &stdout, &stderr); code != 0 {
		t.Fatalf("%v: %d %s", args, code, &stderr)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.om"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return files
}

// lastChange is told from the second reading on only.
const lastChange = "roce_counters_last_change_timestamp_seconds"

// TestHistoryIsWhatAScrapeGives compares what is written with scrapes at the
// same moments, before, while and after things happen.
func TestHistoryIsWhatAScrapeGives(t *testing.T) {
	if !thorough {
		t.Skip("make test runs it without the race detector")
	}
	incidents := []string{"slow-receiver@2m+3m", "nic-storm@4m", "mask-lost@6m", "clock-skew@1m", "exporter-gone@3m+2m", "fdb-empty@7m", "pause-creep"}
	args := []string{"--end", noon.Add(10 * time.Minute).Format(time.RFC3339), "--step", "30s"}
	for _, i := range incidents {
		args = append(args, "--incident", i)
	}
	files := history(t, args...)
	written := map[string]map[string]string{} // By time and series.
	for line := range strings.SplitSeq(read(t, files[0]), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		parts := strings.Split(line, " ")
		at, series := parts[len(parts)-1], strings.Join(parts[:len(parts)-2], " ")
		if written[at] == nil {
			written[at] = map[string]string{}
		}
		written[at][series] = parts[len(parts)-2]
	}
	s := simulate(t, demo.Options{Variant: 1})
	happen(t, s.fabric, incidents...)
	compared := 0
	for s.now = noon.Add(30 * time.Second); s.now.Before(noon.Add(10 * time.Minute)); s.now = s.now.Add(90 * time.Second) {
		all := written[strconv.FormatFloat(seconds(s.now), 'f', 3, 64)]
		for _, n := range s.fabric.Nodes {
			of := 0
			for series := range all {
				if strings.Contains(series, `instance="`+n.Name+`"`) && strings.HasPrefix(series, "roce_") && !strings.HasPrefix(series, lastChange) {
					of++
				}
			}
			if s.look().Node(n).Gone {
				if of != 0 || all[`up{instance="`+n.Name+`",job="roce"}`] != "0" {
					t.Errorf("%s is gone and has %d series", n.Name, of)
				}
				continue
			}
			got := s.scrape(t, n)
			maps.DeleteFunc(got, func(series string, _ float64) bool { return strings.HasPrefix(series, lastChange) })
			if of != len(got) {
				t.Errorf("at %s, %s: %d series are written, %d scraped", s.now.Sub(noon), n.Name, of, len(got))
			}
			for series, value := range got {
				family, rest, _ := strings.Cut(series, "{")
				if _, ok := ofProcess[family]; ok {
					continue
				}
				if rest = strings.TrimSuffix(rest, "}"); rest != "" {
					rest += ","
				}
				text := all[family+"{"+rest+`instance="`+n.Name+`",job="roce"}`]
				if was, err := strconv.ParseFloat(text, 64); err != nil || was != value {
					t.Fatalf("at %s, %s: %s is written as %q, scraped as %v", s.now.Sub(noon), n.Name, series, text, value)
				}
				compared++
			}
		}
	}
	t.Logf("%d samples compared", compared)
	if compared < 50_000 {
		t.Error("too few")
	}
}

func read(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestHistoryHasAFileForEachDay(t *testing.T) {
	files := history(t, "--end", noon.Add(37*time.Hour).Format(time.RFC3339), "--step", "1h", "--families", "up|roce_node_.*")
	var names []string
	for _, file := range files {
		names = append(names, filepath.Base(file))
		text := read(t, file)
		if !strings.HasSuffix(text, "\n# EOF\n") || strings.Contains(text, "roce_port") || !strings.Contains(text, "roce_node_info{") {
			t.Errorf("%s: %.200s", file, text)
		}
	}
	if want := []string{"2026-03-01.raw.om", "2026-03-02.raw.om", "2026-03-03.raw.om"}; !slices.Equal(names, want) {
		t.Error(names)
	}
	if n := strings.Count(read(t, files[0]), "\nup{"); n != 12*22 {
		t.Errorf("%d samples of up on the first day", n)
	}
}

func TestHistoryRefuses(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"--start 2026-03-02T00:00:00Z --end 2026-03-01T00:00:00Z", "--start must be before --end"},
		{"--start yesterday", `"yesterday" is no time`},
		{"--step 1ms", "--step must be at least 1s"},
		{"--incident nonsense", `no incident is called "nonsense"`},
		{"--incident slow-receiver@-5m", "times go forward"},
		{"--incident deadlock@5m+1m --incident deadlock@5m30s", "incident deadlock happens already"},
		{"--hosts 5000", "5006 nodes: at most 1000"},
		{"--what recorded --families up", "--families chooses what is scraped"},
		{"--spines 0", "--spines, --leaves, --hosts and --rails must be at least 1"},
		{"--start 10m --incident deadlock@20m", "incident deadlock begins 20m0s after the start, and the history is 10m0s long"},
		{"--start 10m --incident deadlock@soon", `"deadlock@soon": time: invalid duration "soon"`},
		{"--start 1m --families nothing", "no family is called like nothing"},
	} {
		var stderr bytes.Buffer
		code := runCommand(t.Context(), nil, append([]string{"demo", "history", "--out", t.TempDir()}, strings.Fields(test.args)...), io.Discard, &stderr)
		if code == 0 || !strings.Contains(stderr.String(), test.want) {
			t.Errorf("%s: %d %s", test.args, code, &stderr)
		}
	}
}

// TestCostOfHistory says how many samples a second of CPU are written, beside
// the same bytes written and no more.
func TestCostOfHistory(t *testing.T) {
	if !*cost {
		t.Skip("make bench runs it")
	}
	cpu := func(do func()) time.Duration {
		before := cpuClock(t, os.Getpid())
		do()
		return cpuClock(t, os.Getpid()) - before
	}
	var files []string
	took := cpu(func() {
		files = history(t, "--end", noon.Add(2*time.Hour).Format(time.RFC3339), "--incident", "slow-receiver@30m+20m")
	})
	text := read(t, files[0])
	floor := cpu(func() {
		if err := os.WriteFile(filepath.Join(t.TempDir(), "copy"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	samples := float64(strings.Count(text, "\n"))
	table := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', tabwriter.AlignRight)
	defer table.Flush()
	fmt.Fprintln(table, "history\tsamples\ttext\twriting alone\thistory\tratio\tsamples a second of CPU\t")
	fmt.Fprintf(table, "2 h of 22 nodes\t%.0f\t%d MB\t%s\t%s\t%.1f\t%.2f million\t\n", samples, len(text)/1e6, floor.Round(time.Millisecond), took.Round(time.Millisecond),
		float64(took)/float64(floor), samples/took.Seconds()/1e6)
}
