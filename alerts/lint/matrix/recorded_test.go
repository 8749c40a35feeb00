// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// The rules of the review see traffic that swells and ebbs by a tenth within a
// minute and a half at the samples of five minutes, less one where Prometheus 3
// leaves the first one out.
const tolerance = 0.03

// TestRecordedHistory evaluates the rules of the review over what was scraped and
// compares what they record with what the demo says that they would.
func TestRecordedHistory(t *testing.T) {
	length, wanted := 3*time.Hour, 10_000
	if *all {
		length, wanted = 72*time.Hour, 200_000
	}
	incidents := []string{"--incident", "slow-receiver@40m+20m", "--incident", "pause-creep", "--incident", "mtu-host@80m", "--incident", "cnp-surge@100m+30m"}
	p := happened(t, length, 15*time.Second, used(t, filepath.Join(root, "alerts", "review.yml")), incidents...)
	binary, err := exporter()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	arguments := append([]string{
		"demo", "history", "--what", "recorded", "--out", dir, "--start", start.Format(time.RFC3339), "--end", start.Add(length).Format(time.RFC3339),
	}, incidents...)
	if out, err := exec.CommandContext(t.Context(), binary, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for at := start; at.Before(start.Add(length)); at = at.Add(5 * time.Minute) {
		for _, g := range p.groups {
			if file := filepath.Base(g.File()); file == "recording.yml" || file == "review.yml" {
				g.Eval(t.Context(), at)
			}
		}
	}
	recorded := p.all(t)
	files, err := filepath.Glob(filepath.Join(dir, "*.om"))
	if err != nil {
		t.Fatal(err)
	}
	metrics, compared, wrong := parser.NewParser(parser.Options{}), 0, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if line[0] == '#' {
				continue
			}
			series, s := parse(t, line)
			of, err := metrics.ParseMetric(series)
			if err != nil {
				t.Fatal(err)
			}
			at := time.UnixMilli(s.at)
			// What a reboot cuts off counts by parts of an interval.
			if since := at.Sub(start.Add(80 * time.Minute)); since >= 0 && since < 10*time.Minute {
				continue
			}
			if at.Sub(start) < 10*time.Minute {
				continue // Not a whole range yet.
			}
			got, ok := recorded[of.String()][s.at]
			compared++
			if !ok || math.Abs(got-s.value) > tolerance*math.Abs(s.value)+1e-9 {
				if wrong++; wrong < 10 {
					t.Errorf("%s after %s: %v is written, the rules recorded %v (%v)", series, at.Sub(start), s.value, got, ok)
				}
			}
			delete(recorded[of.String()], s.at)
		}
	}
	for series, left := range recorded {
		for at := range left {
			since := time.UnixMilli(at).Sub(start)
			if since >= 10*time.Minute && (since < 80*time.Minute || since >= 90*time.Minute) {
				t.Errorf("%s after %s is recorded and not written", series, since)
				break
			}
		}
	}
	t.Logf("%d samples compared, %d differ by more than %v", compared, wrong, tolerance)
	if compared < wanted {
		t.Errorf("only %d samples", compared)
	}
}

// all are the samples that the review's rules recorded, by series and time.
func (p *past) all(t *testing.T) map[string]map[int64]float64 {
	t.Helper()
	querier, err := p.db.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	defer querier.Close()
	var names []string
	for _, g := range p.groups {
		if filepath.Base(g.File()) == "review.yml" {
			for _, r := range g.Rules() {
				names = append(names, r.Name())
			}
		}
	}
	slices.Sort(names)
	found := map[string]map[int64]float64{}
	set := querier.Select(t.Context(), false, nil, labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, strings.Join(names, "|")))
	for set.Next() {
		samples := map[int64]float64{}
		it := set.At().Iterator(nil)
		for it.Next() != 0 {
			at, v := it.At()
			if !math.IsNaN(v) {
				samples[at] = v
			}
		}
		found[set.At().Labels().String()] = samples
	}
	if set.Err() != nil {
		t.Fatal(set.Err())
	}
	return found
}
