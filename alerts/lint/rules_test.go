// SPDX-License-Identifier: Apache-2.0

// Package lint reads the shipped rules with Prometheus' own parser and finds in
// them what would be a false alarm, a silent rule or an error in the field.
package lint

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// A rule is one rule of a file, with the text of its query parsed.
type rule struct {
	rulefmt.Rule
	group    string
	interval time.Duration // 0: Prometheus' default.
	expr     parser.Expr
}

// name is what an operator calls the rule.
func (r *rule) name() string { return r.Alert + r.Record }

// page says whether somebody is woken.
func (r *rule) page() bool { return r.Labels["severity"] == "critical" }

// A set of rules knows what a query can refer to.
type set struct {
	rules    []*rule
	families map[string]family // What exporters and Prometheus itself give.
	recorded map[string]shape  // What the recording rules give.
	runbook  map[string]bool   // The anchors of the runbook.
}

// A family is a row of the exporter's table.
type family struct {
	kind   string // counter, gauge, info
	labels []string
}

// Series that Prometheus makes, of each target or of itself.
var builtin = map[string]family{
	"up":                         {"gauge", nil},
	"scrape_duration_seconds":    {"gauge", nil},
	"process_start_time_seconds": {"gauge", nil}, // Of the exporter.
	"scrape_samples_scraped":     {"gauge", nil},
	"scrape_timeout_seconds":     {"gauge", nil},
	"ALERTS":                     {"gauge", []string{"alertname", "alertstate", "severity", "fabric", "node"}},
	"prometheus_rule_evaluation_failures_total":     {"counter", []string{"rule_group"}},
	"prometheus_rule_group_last_duration_seconds":   {"gauge", []string{"rule_group"}},
	"prometheus_rule_group_interval_seconds":        {"gauge", []string{"rule_group"}},
	"prometheus_rule_group_iterations_missed_total": {"counter", []string{"rule_group"}},
}

// families reads the list that the exporter's own tests write.
func families(t *testing.T) map[string]family {
	t.Helper()
	data, err := os.ReadFile("testdata/families.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := maps.Clone(builtin)
	for line := range strings.Lines(string(data)) {
		if words := strings.Fields(line); words[0] != "#" {
			all[words[0]] = family{words[1], words[2:]}
		}
	}
	return all
}

// anchors reads the headings of the runbook as a browser finds them.
func anchors(t *testing.T) map[string]bool {
	t.Helper()
	data, err := os.ReadFile("../RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (RoCE\w+)$`).FindAllStringSubmatch(string(data), -1) {
		found[m[1]] = true
	}
	return found
}

// load parses files of rules in the order given: recordings come before those
// who use them.
func load(t *testing.T, files ...[]byte) *set {
	t.Helper()
	s := &set{families: families(t), recorded: map[string]shape{}, runbook: anchors(t)}
	p := parser.NewParser(parser.Options{})
	for _, file := range files {
		groups, errs := rulefmt.Parse(file, false, model.LegacyValidation, p, slog.New(slog.DiscardHandler))
		for _, err := range errs {
			t.Fatal(err)
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				expr, err := p.ParseExpr(r.Expr)
				if err != nil {
					t.Fatal(err) // Cannot be: rulefmt has parsed it.
				}
				s.rules = append(s.rules, &rule{r, g.Name, time.Duration(g.Interval), expr})
			}
		}
	}
	// A recording may read one of a later group or of itself: what a name means is
	// settled when another round finds nothing new.
	for range 10 {
		before := fmt.Sprint(s.recorded)
		for _, r := range s.rules {
			if r.Record != "" {
				found := s.shape(r.expr, nil).settled()
				for l := range r.Labels {
					found = found.with(l)
				}
				if old, twice := s.recorded[r.Record]; twice {
					found = either(old, found)
				}
				s.recorded[r.Record] = found
			}
		}
		if fmt.Sprint(s.recorded) == before {
			break
		}
	}
	return s
}

// shipped loads the rules as they are shipped.
func shipped(t *testing.T) *set {
	t.Helper()
	var files [][]byte
	for _, name := range []string{"thresholds.yml", "recording.yml", "alerts.yml", "review.yml"} {
		data, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, data)
	}
	return load(t, files...)
}

// alerts are the rules of alerts by name; one name may have several rules.
func (s *set) alerts() map[string][]*rule {
	all := map[string][]*rule{}
	for _, r := range s.rules {
		if r.Alert != "" {
			all[r.Alert] = append(all[r.Alert], r)
		}
	}
	return all
}

// reads are the names of all series that a query depends on, through recordings.
func (s *set) reads(expr parser.Expr) map[string]bool {
	found := map[string]bool{}
	var follow func(parser.Expr)
	follow = func(expr parser.Expr) {
		for _, v := range selectors(expr) {
			if found[v.Name] {
				continue
			}
			found[v.Name] = true
			for _, r := range s.rules {
				if r.Record == v.Name {
					follow(r.expr)
				}
			}
		}
	}
	follow(expr)
	return found
}

// selectors are all of a query, in its order.
func selectors(expr parser.Expr) []*parser.VectorSelector {
	var all []*parser.VectorSelector
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if v, is := n.(*parser.VectorSelector); is {
			all = append(all, v)
		}
		return nil
	})
	return all
}

// raw says whether a series comes from a scrape.
func raw(name string) bool { return !strings.Contains(name, ":") }

// sorted lists a set for people.
func sorted(of map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(of)), ", ")
}
