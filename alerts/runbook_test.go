// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What changes something, of the commands that the runbook has.
var changing = regexp.MustCompile("^(sudo config |sudo counterpoll |sudo ecnconfig|ip (link|addr|neigh) (set|add|flush)|dcb \\w+ (set|add)|mlnx_qos .*--|" +
	"ethtool (-A|--set)|devlink dev reload|sysctl -w|mlxconfig .* set|rdma dev set|echo |systemctl (restart|reload)|show techsupport)")

// Each alert has a heading, and under it what somebody needs at night: whether it
// is real, three steps, what ends it. What is not only looking is marked.
func TestRunbook(t *testing.T) {
	data, err := os.ReadFile("RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	text, notBuilt, _ := strings.Cut(string(data), "\n# Catalogue, not built\n")
	var headings []string
	for _, section := range strings.Split(text, "\n## ")[1:] {
		section, _, _ = strings.Cut(section, "\n# ") // The next part.
		name, body, _ := strings.Cut(section, "\n")
		if !strings.HasPrefix(name, "RoCE") {
			continue
		}
		headings = append(headings, name)
		for _, want := range []string{"\nReal? ", "\n1. ", "\n2. ", "\n3. ", "\nEnds: "} {
			if strings.Count(body, want) != 1 {
				t.Errorf("%s: %q is not there once", name, want)
			}
		}
		if words := len(strings.Fields(body)); words > 180 {
			t.Errorf("%s: %d words are too many at three in the morning", name, words)
		}
	}
	slices.Sort(headings)
	var names []string
	for _, a := range readAlerts(t) {
		names = append(names, a.Alert)
	}
	slices.Sort(names)
	if names = slices.Compact(names); !slices.Equal(headings, names) {
		for _, n := range names {
			if !slices.Contains(headings, n) {
				t.Errorf("no heading for %s", n)
			}
		}
		for _, h := range headings {
			if !slices.Contains(names, h) {
				t.Errorf("there is no alert %s", h)
			}
		}
	}
	text = regexp.MustCompile("(?s)\n```\n.*?\n```\n").ReplaceAllString(text, "") // Blocks only read.
	for _, m := range regexp.MustCompile("(⚠ (?:[A-Za-z ]+ )?)?`([^`]+)`").FindAllStringSubmatch(text, -1) {
		if changing.MatchString(m[2]) && m[1] == "" {
			t.Errorf("`%s` changes something and has no ⚠", m[2])
		}
	}
	for _, m := range regexp.MustCompile(`\]\(#([a-z0-9-]+)\)`).FindAllStringSubmatch(text, -1) {
		if !slices.ContainsFunc(regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1), func(h []string) bool {
			return strings.ToLower(regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ReplaceAll(h[1], " ", "-"), "")) == m[1]
		}) {
			t.Errorf("#%s leads nowhere", m[1])
		}
	}
	if rows := strings.Count(notBuilt, "\n| ") - 1; rows < 1 || rows > 8 {
		t.Errorf("%d rows of what is not built", rows)
	}
}
