// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLabelValuesAreCleaned(t *testing.T) {
	for value, want := range map[string]string{
		"Ethernet0":                    "Ethernet0",
		"a\nb\x7f":                     "a\ufffdb\ufffd",
		"\xff\xfe":                     "\ufffd",
		"Zürich":                       "Zürich",
		strings.Repeat("x", 200):       strings.Repeat("x", 128),
		strings.Repeat("ü", 100):       strings.Repeat("ü", 64),
		"x" + strings.Repeat("ü", 100): "x" + strings.Repeat("ü", 63),
	} {
		got := Clean(value)
		if got != want || !utf8.ValidString(got) {
			t.Errorf("%q became %q, want %q", value, got, want)
		}
	}
}

func TestWhatTwoObjectsClaimIsNobodys(t *testing.T) {
	b := testCatalog(t).NewBuilder()
	b.Add("roce_port_oper_up", 1, "Ethernet0")
	b.Add("roce_port_oper_up", 0, "Ethernet4")
	b.Add("roce_port_oper_up", 0, "Ethernet0")
	b.Add("roce_port_admin_up", 1, "Ethernet0") // Another family: no conflict.
	b.Add("roce_port_admin_up", 1, "bad\x01")
	b.Add("roce_port_admin_up", 1, "bad\x02") // The same once cleaned.
	samples, duplicates, dropped := b.Samples(0)
	got := parse(t, text(t, b.catalog, Reading{Samples: samples}))
	if duplicates != 4 || dropped != 0 || len(got) != 2 {
		t.Errorf("%d duplicates, %d dropped, left %v", duplicates, dropped, got)
	}
	got.has(t, `roce_port_oper_up{port="Ethernet4"}`, 0)
	got.has(t, `roce_port_admin_up{port="Ethernet0"}`, 1)
}

func TestLosslessFamiliesAreTheLastToGo(t *testing.T) {
	whole, _ := read(t, capturedSwitch(t, "testdata/nvidia", testOptions()))
	lossless := len(whole.with("roce_pfc_"))
	options := testOptions()
	options.SeriesLimit = len(whole) - 100
	got, reading := read(t, capturedSwitch(t, "testdata/nvidia", options))
	if len(got) != options.SeriesLimit || reading.Dropped != 100 {
		t.Errorf("%d series and %d dropped, want %d and 100", len(got), reading.Dropped, options.SeriesLimit)
	}
	if n := len(got.with("roce_pfc_")); n != lossless {
		t.Errorf("%d PFC series of %d are left", n, lossless)
	}
	options.SeriesLimit = 50
	got, _ = read(t, capturedSwitch(t, "testdata/nvidia", options))
	if len(got) != 50 {
		t.Errorf("%d series, want 50", len(got))
	}
}

// With several ASICs the label is on every series of an ASIC, sorted in.
func TestTheASICLabelIsSortedIn(t *testing.T) {
	b := testCatalog(t).NewBuilder()
	b.ASIC("asic1")
	b.Add("roce_port_oper_up", 1, "Ethernet0")
	b.Add("roce_pfcwd_action_info", 1, "Ethernet0", "drop")
	b.Add("roce_pfcwd_big_red_switch", 0)
	b.Add("roce_node_time_seconds", 7)
	b.Add("roce_policy_port", 1, "Ethernet0")
	samples, _, _ := b.Samples(0)
	got := parse(t, text(t, b.catalog, Reading{Samples: samples}))
	got.has(t, `roce_port_oper_up{asic="asic1",port="Ethernet0"}`, 1)
	got.has(t, `roce_pfcwd_action_info{action="drop",asic="asic1",port="Ethernet0"}`, 1)
	got.has(t, `roce_pfcwd_big_red_switch{asic="asic1"}`, 0)
	got.has(t, `roce_node_time_seconds`, 7)
	got.has(t, `roce_policy_port{port="Ethernet0"}`, 1)
}

func TestATableWithAMistakeIsRefused(t *testing.T) {
	sources := []RawSource{{Name: "counters", Labels: []string{"port"}}}
	for want, families := range map[string][]Family{
		"listed twice":      {{Name: "a"}, {Name: "a"}},
		"unknown source":    {{Name: "a", From: []Origin{{Source: "nowhere", Raw: []string{"X"}}}}},
		"without a raw":     {{Name: "a", From: []Origin{{Source: "counters"}}}},
		"gives label queue": {{Name: "a", Labels: []string{"queue"}, From: []Origin{{Source: "counters", Raw: []string{"X"}}}}},
	} {
		if _, err := NewCatalog(families, sources); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
