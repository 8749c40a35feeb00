// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

// A file of rules as people write it; what the groups hold does not matter here.
type ruleFile struct {
	Groups []any `yaml:"groups"`
}

// groups reads a file of rules: the text of its groups, and what it means.
func groups(t *testing.T, name string) (string, []any) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut("\n"+string(data), "\ngroups:\n")
	if !found {
		t.Fatalf("%s has no groups", name)
	}
	return text, read[ruleFile](t, name).Groups
}

// The Prometheus operator takes the same rules as an object. The thresholds are
// one of their own, so that an upgrade of the rules leaves them.
func TestPrometheusRule(t *testing.T) {
	for path, from := range map[string]struct {
		name, remark string
		files        []string
	}{
		"../deploy/kubernetes/prometheusrule-thresholds.yaml": {
			"roce-thresholds", "# What the rules of prometheusrule.yaml compare with. This object is yours: an\n# upgrade of the rules does not touch it.\n", []string{"thresholds.yml"},
		},
		"../deploy/kubernetes/prometheusrule.yaml": {
			"roce-rules", "# The rules of alerts/ for the Prometheus operator. They need\n# prometheusrule-thresholds.yaml.\n", []string{"recording.yml", "alerts.yml", "review.yml"},
		},
	} {
		var b strings.Builder
		b.WriteString("# Rendered by go test ./alerts -update: change alerts/*.yml.\n" + from.remark)
		b.WriteString("apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: " + from.name + "\n  labels:\n")
		b.WriteString("    # What your Prometheus selects, its ruleSelector.\n    prometheus: k8s\n    role: alert-rules\nspec:\n  groups:\n")
		var want []any
		for _, name := range from.files {
			text, meant := groups(t, name)
			want = append(want, meant...)
			for line := range strings.Lines(text) {
				if line != "\n" {
					line = "  " + line
				}
				b.WriteString(line)
			}
		}
		golden(t, path, b.String())

		// And it means the same, whatever the indentation.
		var object struct{ Spec ruleFile }
		if err := yaml.Unmarshal([]byte(b.String()), &object); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if !cmp.Equal(want, object.Spec.Groups) {
			t.Errorf("%s has other rules than the plain files", path)
		}
		// kubectl apply keeps a copy of the object in an annotation, of 256 KiB at most.
		if b.Len() > 250<<10 {
			t.Errorf("%s has %d bytes", path, b.Len())
		}
	}
}
