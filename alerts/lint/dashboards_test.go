// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// What Grafana puts in for its variables, near enough to parse.
var filled = map[string]string{"__interval": "30s", "__rate_interval": "2m", "__range": "3h"}

// TestDashboards: Prometheus' own parser understands what the dashboards ask,
// and no join of theirs can find two rows where it needs one.
func TestDashboards(t *testing.T) {
	files, err := filepath.Glob("../../dashboards/*.json")
	if err != nil || len(files) != 7 {
		t.Fatalf("%v %v", files, err)
	}
	s := shipped(t)
	// Of an alert any label may be there; none has to.
	alert := []string{
		"alertname", "severity", "layer", "team", "fabric", "tier", "role", "node", "port", "priority", "queue", "pg", "pool", "device", "rdma_port",
		"pci_address", "dscp", "peer", "peer_port", "asic", "source", "collector", "group", "name", "instance", "job", "basis", "board_id",
	}
	delete(s.families, "ALERTS")
	s.recorded["ALERTS_FOR_STATE"] = shape{of(), of(alert...), of(alert...), nil}
	alert = append(alert, "alertstate")
	s.recorded["ALERTS"] = shape{of(), of(alert...), of(alert...), nil}
	build := of("instance", "job", "version", "revision", "branch", "goversion")
	s.recorded["roce_exporter_build_info"] = shape{build, build, build, nil}
	variable := regexp.MustCompile(`\$(\w+)`)
	prometheus := parser.NewParser(parser.Options{})
	asked := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			Panels []struct {
				Title   string
				Targets []struct{ RefID, Expr string }
			}
			Annotations struct{ List []struct{ Name, Expr string } }
		}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		check := func(where, expr string) {
			asked++
			expr = variable.ReplaceAllStringFunc(expr, func(v string) string {
				if value, found := filled[v[1:]]; found {
					return value
				}
				if v == "$1" || v == "$2" { // Of label_replace.
					return v
				}
				return "x"
			})
			parsed, err := prometheus.ParseExpr(expr)
			if err != nil {
				t.Errorf("%s: %s: %v: %s", filepath.Base(file), where, err, expr)
				return
			}
			s.shape(parsed, func(format string, args ...any) {
				t.Errorf("%s: %s: "+format, append([]any{filepath.Base(file), where}, args...)...)
			})
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				check(p.Title+" "+target.RefID, target.Expr)
			}
		}
		for _, a := range d.Annotations.List {
			check(a.Name, a.Expr)
		}
	}
	if asked < 150 {
		t.Errorf("only %d queries", asked)
	}
}
