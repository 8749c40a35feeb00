// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"fmt"
	"path/filepath"
	"testing"
	"text/tabwriter"
	"time"
)

// TestCostOfRules says how long a Prometheus needs for one evaluation of each
// group, of a fabric of a thousand nodes, and what part of the group's interval
// that is. The floor is the sum of as many series in one query.
func TestCostOfRules(t *testing.T) {
	if !*all {
		t.Skip("make test-full runs it")
	}
	const length = 12 * time.Minute
	p := happened(t, length, step, used(t, ruleFiles(t)...), "--spines", "20", "--leaves", "40", "--hosts", "940")
	// Who is who, and the rates that others read.
	for _, at := range []time.Duration{8 * time.Minute, 9 * time.Minute, 10 * time.Minute} {
		for _, g := range p.groups {
			g.Eval(t.Context(), start.Add(at))
		}
	}
	floor := p.time(t, `count({job="roce"})`, start.Add(11*time.Minute))
	series := p.count(t, `count({job="roce"})`, start.Add(11*time.Minute))
	table := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', tabwriter.AlignRight)
	defer table.Flush()
	fmt.Fprintf(table, "1000 nodes, %.0f series that rules read; counting them takes %.2f s\n", series, floor.Seconds())
	fmt.Fprintln(table, "file\tgroup\trules\tinterval\tan evaluation\tshare of the interval\ttimes the count\t")
	for _, g := range p.groups {
		began := time.Now()
		g.Eval(t.Context(), start.Add(11*time.Minute))
		took := time.Since(began)
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%.2f s\t%.0f %%\t%.1f\t\n", filepath.Base(g.File()), g.Name(), len(g.Rules()), g.Interval(),
			took.Seconds(), 100*took.Seconds()/g.Interval().Seconds(), took.Seconds()/floor.Seconds())
		for _, r := range g.Rules() {
			if err := r.LastError(); err != nil {
				t.Errorf("%s: %v", r.Name(), err)
			}
		}
	}
}

// count is the value of a query that has one.
func (p *past) count(t *testing.T, query string, at time.Time) float64 {
	t.Helper()
	q, err := p.engine.NewInstantQuery(t.Context(), p.db, nil, query, at)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	vector, err := q.Exec(t.Context()).Vector()
	if err != nil || len(vector) != 1 {
		t.Fatal(vector, err)
	}
	return vector[0].F
}

// time is how long a query takes.
func (p *past) time(t *testing.T, query string, at time.Time) time.Duration {
	t.Helper()
	began := time.Now()
	p.count(t, query, at)
	return time.Since(began)
}
