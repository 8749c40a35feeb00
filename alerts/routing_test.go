// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// tool finds one of Prometheus' programs; without it the test is skipped.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s: make deps installs it", name)
	}
	return path
}

func TestAlertmanagerConfigurationIsValid(t *testing.T) {
	if out, err := exec.Command(tool(t, "amtool"), "check-config", "alertmanager.yml").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// A route is a row of the README's table.
type route struct{ labels, receiver string }

// promised reads the table of routes of the README: what people rely on.
func promised(t *testing.T) []route {
	t.Helper()
	data, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "<!-- routes")
	text, _, found := strings.Cut(text, "<!-- end of routes -->")
	if !found {
		t.Fatal("the README has no table of routes")
	}
	var routes []route
	label := regexp.MustCompile("`([a-z]+)=\"([^\"]+)\"`")
	for _, row := range strings.Split(strings.TrimSpace(text), "\n")[3:] {
		cells := strings.Split(row, "|")
		var labels []string
		for _, m := range label.FindAllStringSubmatch(cells[1], -1) {
			labels = append(labels, m[1]+"="+m[2])
		}
		routes = append(routes, route{strings.Join(labels, " "), strings.Trim(cells[2], " `")})
	}
	return routes
}

// Each set of labels reaches whom the README says. A route by severity that
// stands in front takes the alerts of a team away: the first that matches wins.
func TestRoutes(t *testing.T) {
	amtool := tool(t, "amtool")
	want := map[string]string{
		"alertname=RoCEWatchdogHeartbeat severity=info team=network": "heartbeat",
		"severity=critical team=network":                             "network-pager",
		"severity=warning team=network":                              "network-queue",
		"severity=info team=network":                                 "none",
		"severity=critical":                                          "network-pager",
		"":                                                           "network-queue", // Somebody must see it.
	}
	for _, r := range promised(t) {
		t.Run("{"+r.labels+"}", func(t *testing.T) {
			if w, known := want[r.labels]; known && w != r.receiver {
				t.Errorf("the README promises %s, not %s", r.receiver, w)
			}
			args := append([]string{"config", "routes", "test", "--config.file=alertmanager.yml", "--verify.receivers=" + r.receiver}, strings.Fields(r.labels)...)
			if out, err := exec.Command(amtool, args...).CombinedOutput(); err != nil {
				t.Errorf("does not reach %s: %s", r.receiver, out)
			}
		})
		delete(want, r.labels)
	}
	for labels := range want {
		t.Errorf("the README does not say whom {%s} reaches", labels)
	}
}

// Receivers of the routes exist, are real but for none, and are all used.
func TestReceiversAreToBeFilledIn(t *testing.T) {
	data, err := os.ReadFile("alertmanager.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, receivers, _ := strings.Cut(string(data), "\nreceivers:\n")
	for _, name := range []string{"network-pager", "network-queue", "heartbeat"} {
		if !strings.Contains(receivers, "- name: "+name+"\n    webhook_configs:\n      - url: http://"+name+".example.com/\n") {
			t.Errorf("%s has no example to fill in", name)
		}
	}
	if !strings.HasSuffix(receivers, "- name: none\n") {
		t.Error("none must tell nobody")
	}
}
