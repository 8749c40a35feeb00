// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// An inhibition of Alertmanager's configuration.
type inhibition struct {
	Source []string `yaml:"source_matchers"`
	Target []string `yaml:"target_matchers"`
	Equal  []string `yaml:"equal"`
}

var matcher = regexp.MustCompile(`^(\w+)(=~|!~|!=|=)"(.*)"$`)

// takes says whether the matchers can match alerts of a rule. A label whose value
// comes with the series may be anything.
func takes(t *testing.T, matchers []string, r *rule) bool {
	t.Helper()
	for _, text := range matchers {
		m := matcher.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("matcher %s", text)
		}
		value, fixed := r.Labels[m[1]]
		if m[1] == "alertname" {
			value, fixed = r.Alert, true
		}
		if !fixed {
			continue
		}
		whole := regexp.MustCompile("^(?:" + m[3] + ")$")
		if map[string]bool{"=": value == m[3], "!=": value != m[3], "=~": whole.MatchString(value), "!~": !whole.MatchString(value)}[m[2]] {
			continue
		}
		return false
	}
	return true
}

var severities = []string{"info", "warning", "critical"}

// inhibited finds what is wrong with inhibitions of the alerts.
func inhibited(t *testing.T, s *set, all []inhibition) []string {
	t.Helper()
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	alerts := s.alerts()
	for _, i := range all {
		for _, text := range slices.Concat(i.Source, i.Target) {
			if m := matcher.FindStringSubmatch(text); m[1] == "alertname" && m[3] != "RoCE.*" {
				for name := range strings.SplitSeq(m[3], "|") {
					if alerts[name] == nil {
						complain("there is no alert %s", name)
					}
				}
			}
		}
		for _, source := range s.rules {
			if source.Alert == "" || !takes(t, i.Source, source) {
				continue
			}
			for _, target := range s.rules {
				if target.Alert == "" || target == source || !takes(t, i.Target, target) {
					continue
				}
				pair := source.Alert + " mutes " + target.Alert
				if slices.Index(severities, source.Labels["severity"]) < slices.Index(severities, target.Labels["severity"]) {
					complain("%s: a %s hides a %s", pair, source.Labels["severity"], target.Labels["severity"])
				}
				if target.page() && slices.Equal(i.Equal, []string{"fabric"}) {
					complain("%s: a page, by the fabric alone", pair)
				}
				from, to := s.shape(source.expr, nil), s.shape(target.expr, nil)
				for _, l := range i.Equal {
					// Where both lack a label, it is equal: one of them must always have it.
					if !from.must[l] && !to.must[l] && !slices.Contains(slices.Concat(i.Source, i.Target), l+`!=""`) {
						complain("%s: both may lack the label %s, and then are equal", pair, l)
					}
					if wide := i.Target[0] == `alertname=~"RoCE.*"`; !wide && (!from.may[l] || !to.may[l]) {
						complain("%s: not both have the label %s, so it never does", pair, l)
					}
				}
			}
		}
	}
	slices.Sort(wrong)
	return slices.Compact(wrong)
}

func TestShippedInhibitions(t *testing.T) {
	data, err := os.ReadFile("../alertmanager.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		All []inhibition `yaml:"inhibit_rules"`
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	if len(config.All) < 10 {
		t.Fatalf("only %d inhibitions were found", len(config.All))
	}
	for _, c := range inhibited(t, shipped(t), config.All) {
		t.Error(c)
	}
}

func TestBadInhibitionsAreCaught(t *testing.T) {
	s := load(t, []byte(basis), []byte(`
groups:
- name: roce-test
  rules:
  - alert: Down
    expr: up == 0
    labels: {severity: warning}
  - alert: Drift
    expr: port:roce_port_oper_up == 0
    labels: {severity: critical}
  - alert: Lost
    expr: port:roce_port_oper_up == 0
    labels: {severity: critical}
`))
	one := func(name string) []string { return []string{`alertname="` + name + `"`} }
	for _, bad := range []struct {
		rule inhibition
		want string
	}{
		{inhibition{one("Gone"), one("Drift"), []string{"fabric"}}, "there is no alert Gone"},
		{inhibition{one("Down"), one("Drift"), []string{"fabric", "node"}}, "Down mutes Drift: a warning hides a critical"},
		{inhibition{one("Lost"), one("Drift"), []string{"fabric"}}, "Lost mutes Drift: a page, by the fabric alone"},
		{inhibition{one("Down"), one("Drift"), []string{"fabric", "node"}}, "Down mutes Drift: not both have the label node, so it never does"},
		{inhibition{one("Lost"), one("Drift"), []string{"fabric", "node", "port", "priority"}}, "Lost mutes Drift: both may lack the label priority, and then are equal"},
	} {
		if got := inhibited(t, s, []inhibition{bad.rule}); !slices.Contains(got, bad.want) {
			t.Errorf("not caught: %s; complaints: %q", bad.want, got)
		}
	}
	if got := inhibited(t, s, []inhibition{{one("Lost"), one("Drift"), []string{"fabric", "node", "port"}}}); got != nil {
		t.Errorf("a good one: %q", got)
	}
}
