// SPDX-License-Identifier: Apache-2.0

// Package matrix lets every incident of the demo fabric happen, evaluates the
// shipped rules over it with Prometheus' own code, sends what fires to a real
// Alertmanager with the shipped routes and inhibitions, and compares whom it
// tells of what with a golden list.
package matrix

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

var (
	update = flag.Bool("update", false, "write the golden lists anew")
	all    = flag.Bool("all", false, "every incident, not only those that are quick")
)

const (
	root = "../../.."
	// step is the time between two scrapes and two evaluations: the slowest
	// that is supported.
	step = 30 * time.Second
	// before is how long all is quiet first.
	before = 20 * time.Minute
)

// start begins every history.
var start = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// exporter is built once.
var exporter = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "roce")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "roce_exporter")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// A past is a Prometheus that has scraped a fabric, and its rules.
type past struct {
	db     *tsdb.DB
	engine *promql.Engine
	groups []*rules.Group

	mu     sync.Mutex
	firing map[string]labels.Labels // What the last evaluation said, by the text of the labels.
	notes  map[string]labels.Labels // Annotations, the same.
}

// happened writes the past of a fabric to which incidents happened and loads
// it.
func happened(t *testing.T, length time.Duration, arguments ...string) *past {
	t.Helper()
	binary, err := exporter()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	arguments = append([]string{
		"demo", "history", "--out", filepath.Join(dir, "om"), "--start", start.Format(time.RFC3339), "--end", start.Add(length).Format(time.RFC3339), "--step", step.String(),
		"--families", used(t),
	}, arguments...)
	if out, err := exec.CommandContext(t.Context(), binary, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v %s", arguments, err, out)
	}
	options := tsdb.DefaultOptions()
	options.MinBlockDuration, options.MaxBlockDuration = int64(1000*time.Hour/time.Millisecond), int64(1000*time.Hour/time.Millisecond)
	p := &past{firing: map[string]labels.Labels{}, notes: map[string]labels.Labels{}}
	if p.db, err = tsdb.Open(filepath.Join(dir, "tsdb"), slog.New(slog.DiscardHandler), nil, options, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.db.Close() })
	files, err := filepath.Glob(filepath.Join(dir, "om", "*.om"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	p.load(t, files, start.Add(length))
	p.engine = promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true})
	p.loadRules(t)
	return p
}

// used are the families that the rules read.
func used(t *testing.T) string {
	t.Helper()
	names := map[string]bool{"up": true, "scrape_duration_seconds": true}
	for _, file := range ruleFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\broce_[a-z0-9_]+`).FindAllString(string(text), -1) {
			names[name] = true
		}
	}
	var list []string
	for name := range names {
		list = append(list, name)
	}
	slices.Sort(list)
	return strings.Join(list, "|")
}

func ruleFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, name := range []string{"thresholds.yml", "recording.yml", "alerts.yml"} {
		file := filepath.Join(root, "alerts", name)
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// load appends the samples of files, the day's in their order. A series that is
// not there at a scrape has ended: Prometheus marks that, a file cannot.
func (p *past) load(t *testing.T, files []string, end time.Time) {
	t.Helper()
	lines := map[string][]sample{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if line[0] == '#' {
				continue
			}
			series, s := parse(t, line)
			lines[series] = append(lines[series], s)
		}
	}
	metrics := parser.NewParser(parser.Options{})
	app, pending := p.db.Appender(t.Context()), 0
	add := func(ref storage.SeriesRef, of labels.Labels, s sample) storage.SeriesRef {
		ref, err := app.Append(ref, of, s.at, s.value)
		if err != nil {
			t.Fatalf("%s: %v", of, err)
		}
		if pending++; pending == 100_000 {
			if err := app.Commit(); err != nil {
				t.Fatal(err)
			}
			app, pending = p.db.Appender(t.Context()), 0
		}
		return ref
	}
	gap := step.Milliseconds()
	for series, samples := range lines {
		of, err := metrics.ParseMetric(series)
		if err != nil {
			t.Fatal(err)
		}
		var ref storage.SeriesRef
		for i, s := range samples {
			if i > 0 && s.at > samples[i-1].at+gap {
				ref = add(ref, of, sample{samples[i-1].at + gap, stale})
			}
			ref = add(ref, of, s)
		}
		if last := samples[len(samples)-1].at; last+gap < end.UnixMilli() {
			add(ref, of, sample{last + gap, stale})
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
}

type sample struct {
	at    int64 // Milliseconds.
	value float64
}

func (p *past) loadRules(t *testing.T) {
	t.Helper()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(p.engine, p.db), Appendable: p.db, Queryable: p.db, Context: t.Context(),
		Logger: slog.New(slog.DiscardHandler), ResendDelay: time.Nanosecond, NotifyFunc: p.notify,
	})
	groups, errs := manager.LoadGroups(step, labels.EmptyLabels(), "", nil, false, ruleFiles(t)...)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	// Recordings before the alerts that read them; Prometheus evaluates in any
	// order, one interval later at most.
	for _, file := range ruleFiles(t) {
		var of []*rules.Group
		for _, g := range groups {
			if g.File() == file {
				of = append(of, g)
			}
		}
		slices.SortFunc(of, func(a, b *rules.Group) int { return strings.Compare(b.Name(), a.Name()) }) // traffic, history, config.
		p.groups = append(p.groups, of...)
	}
}

// notify is told of the alerts that fire, by every rule that has some.
func (p *past) notify(_ context.Context, _ string, alerts ...*rules.Alert) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range alerts {
		if a.State == rules.StateFiring && a.ResolvedAt.IsZero() {
			p.firing[a.Labels.String()], p.notes[a.Labels.String()] = a.Labels, a.Annotations
		}
	}
}

// evaluate evaluates all groups at a moment and returns what fires.
func (p *past) evaluate(t *testing.T, at time.Time) map[string]labels.Labels {
	t.Helper()
	p.mu.Lock()
	p.firing = map[string]labels.Labels{}
	p.mu.Unlock()
	for _, g := range p.groups {
		if at.Sub(start)%g.Interval() == 0 || g.Interval() < step {
			g.Eval(t.Context(), at)
		}
		for _, r := range g.Rules() {
			if err := r.LastError(); err != nil {
				t.Fatalf("%s: %s: %v", at.Sub(start), r.Name(), err)
			}
			if alerting, ok := r.(*rules.AlertingRule); ok {
				for _, a := range alerting.ActiveAlerts() {
					if a.State == rules.StateFiring {
						p.firing[a.Labels.String()], p.notes[a.Labels.String()] = a.Labels, a.Annotations
					}
				}
			}
		}
	}
	return p.firing
}

var stale = stalemark()

func stalemark() float64 { return float64frombits(value.StaleNaN) }

var _ = runtime.NumCPU
