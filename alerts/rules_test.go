// SPDX-License-Identifier: Apache-2.0

// Package alerts tests the rules and alerts of this directory.
package alerts

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// rules are the files that Prometheus loads.
var rules = []string{"thresholds.yml", "recording.yml", "alerts.yml", "review.yml"}

// A rule is an alert or a recording.
type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

// read reads a file of YAML.
func read[T any](t *testing.T, name string) (value T) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err == nil {
		err = yaml.Unmarshal(data, &value)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return value
}

// readAlerts reads the rules of alerts.yml.
func readAlerts(t *testing.T) (all []rule) {
	t.Helper()
	type file struct{ Groups []struct{ Rules []rule } }
	for _, g := range read[file](t, "alerts.yml").Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// promtool runs it, or skips the test where it is missing.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is missing: make deps installs it")
	}
	if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestRulesAreSound(t *testing.T) {
	promtool(t, append([]string{"check", "rules"}, rules...)...)
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	files, err := filepath.Glob("tests/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no tests of rules", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".yml"), func(t *testing.T) {
			t.Parallel()
			promtool(t, "test", "rules", name)
		})
	}
}

// Each alert has a situation in which it fires and one in which it does not.
func TestEachAlertIsTestedFromBothSides(t *testing.T) {
	type file struct {
		RuleFiles []string `yaml:"rule_files"`
		Tests     []struct {
			Name  string
			Cases []struct {
				Alert  string `yaml:"alertname"`
				Alerts []struct {
					Labels map[string]string `yaml:"exp_labels"`
				} `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	// Who is meant is a whole fabric, or Prometheus.
	fleet := []string{"RoCEPFCDeadlockCycle", "RoCECNPNotHandled", "RoCEFirmwareSkew", "RoCEPolicyMissing"}
	nowhere := []string{"RoCEExporterAbsent", "RoCERuleFailures", "RoCEThresholdsMissing", "RoCEIdentityAmbiguous", "RoCEWatchdogHeartbeat"}
	// It always fires.
	silentNever := []string{"RoCEWatchdogHeartbeat"}

	files, _ := filepath.Glob("tests/*.yml")
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, name := range files {
		for _, test := range read[file](t, name).Tests {
			for _, c := range test.Cases {
				if len(c.Alerts) == 0 {
					silent[c.Alert] = true
				}
				for _, a := range c.Alerts {
					fires[c.Alert] = true
					// The exporter of a target that never answered has no name.
					unnamed := slices.Contains(nowhere, c.Alert) || c.Alert == "RoCEExporterDown" && a.Labels["instance"] == "h9"
					if !unnamed && a.Labels["fabric"] == "" {
						t.Errorf("%s: %s: %s has no fabric", name, test.Name, c.Alert)
					}
					if !unnamed && !slices.Contains(fleet, c.Alert) && a.Labels["node"] == "" {
						t.Errorf("%s: %s: %s has no node", name, test.Name, c.Alert)
					}
				}
			}
		}
	}
	for _, r := range readAlerts(t) {
		if !fires[r.Alert] {
			t.Errorf("%s never fires in a test", r.Alert)
		}
		if !silent[r.Alert] && !slices.Contains(silentNever, r.Alert) {
			t.Errorf("%s has no test in which it is silent", r.Alert)
		}
	}
}

// Whoever is woken up learns who, what, how bad, and where to read on.
func TestAlertsSayWhatIsTheMatter(t *testing.T) {
	severities := []string{"critical", "warning", "info"}
	layers := []string{"pfc", "loss", "buffer", "ecn", "cnp", "config", "link", "inventory", "meta"}
	dashboard := regexp.MustCompile(`^/d/roce-(fabric|switch|port|nic|compliance|review|exporter|\{\{ if eq \$labels\.role "host" \}\}nic\{\{ else \}\}switch\{\{ end \}\})(\?var-fabric=\{\{ \$labels\.fabric \}\}(&var-node=\{\{ \$labels\.node \}\}(&var-port=\{\{ \$labels\.port \}\})?)?)?$`)
	const runbook = "https://github.com/roce-exporter/roce_exporter/blob/main/alerts/RUNBOOK.md#"
	for _, r := range readAlerts(t) {
		if !slices.Contains(severities, r.Labels["severity"]) || !slices.Contains(layers, r.Labels["layer"]) || r.Labels["team"] != "network" || len(r.Labels) != 3 {
			t.Errorf("%s has labels %v", r.Alert, r.Labels)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", r.Alert)
		}
		if want := runbook + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s has runbook_url %s, want %s", r.Alert, r.Annotations["runbook_url"], want)
		}
		if got := r.Annotations["dashboard_url"]; !dashboard.MatchString(got) {
			t.Errorf("%s has dashboard_url %s", r.Alert, got)
		}
	}
}
