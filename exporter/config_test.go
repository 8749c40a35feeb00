// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

func readTestConfig(t *testing.T, name string) (Config, error) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return ReadConfig(f, "FILE")
}

func mustPattern(t *testing.T, text string) Pattern {
	t.Helper()
	p, err := newPattern(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestGoodConfig(t *testing.T) {
	got, err := readTestConfig(t, "testdata/good.yml")
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Node: NodeConfig{Name: "leaf1", Fabric: "gpu-a", Tier: "leaf", Names: "full"},
		Switch: SwitchConfig{
			Queues: "all", Priorities: "all", Windows: []string{"persistent"}, VOQ: "dropped", PauseDurationUnit: "quanta",
			Ports: PortsConfig{Include: mustPattern(t, "Ethernet[0-9]+"), Exclude: mustPattern(t, "Ethernet4|Ethernet8")},
			Redis: RedisConfig{Username: "reader", PasswordFile: "/etc/roce_exporter/redis-password"},
		},
		Host:    HostConfig{DeviceInclude: mustPattern(t, "mlx5_.*"), DeviceExclude: mustPattern(t, "mlx5_9"), Priorities: "all", RawStats: []string{"rx_discards_phy"}},
		Scrape:  ScrapeConfig{Timeout: Duration(2500 * time.Millisecond), MinInterval: Duration(5 * time.Second)},
		Refresh: RefreshConfig{Config: Duration(2 * time.Minute)},
		Policy: &PolicyConfig{
			LosslessPriorities: []int{3, 4},
			Ports: []PortPolicyConfig{
				{Match: mustPattern(t, "Ethernet0"), MTU: 9216, Speed: 2.5e9 / 8},
				{Match: mustPattern(t, ".*")},
			},
			RDMAMTU: 4096, DSCP: DSCPConfig{Data: []int{26, 0}, CNP: []int{48}}, CongestionControl: "other",
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !got.Switch.Ports.Exclude.Regexp.MatchString("Ethernet8") || got.Switch.Ports.Exclude.Regexp.MatchString("Ethernet80") {
		t.Error("a pattern must match the whole name and nothing else, alternatives included")
	}
	if speed := got.Intent().Ports[0].Speed; speed != 312.5e6 {
		t.Errorf("2.5G is %v bytes per second", speed)
	}
}

// What is shown must be what was read: the same file again, but for secrets.
func TestConfigIsShownAsItIsRead(t *testing.T) {
	for _, file := range []string{"testdata/good.yml", os.DevNull} {
		config, err := readTestConfig(t, file)
		if err != nil {
			t.Fatal(err)
		}
		shown, err := yaml.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ReadConfig(strings.NewReader(string(shown)), "shown")
		if err != nil {
			t.Fatal(err)
		}
		if config.Switch.Redis.PasswordFile != "" {
			if strings.Contains(string(shown), "redis-password") {
				t.Errorf("%s: a secret is shown:\n%s", file, shown)
			}
			again.Switch.Redis.PasswordFile = config.Switch.Redis.PasswordFile
		}
		if !reflect.DeepEqual(again, config) {
			t.Errorf("%s: got %+v\nwant %+v", file, again, config)
		}
	}
}

func TestNothingIsTheDefault(t *testing.T) {
	for _, text := range []string{"", "\n", "---\n", "# nothing but a comment\n", "{}", "node: {}\nlimits: {}\n"} {
		got, err := ReadConfig(strings.NewReader(text), "FILE")
		if err != nil || !reflect.DeepEqual(got, DefaultConfig()) {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
	if got, err := ReadConfig(strings.NewReader("policy: {}"), "FILE"); err != nil || got.Policy == nil || got.Policy.RDMAMTU != 0 {
		t.Errorf("a policy without keys intends nothing: got %+v, %v", got.Policy, err)
	}
}

// The contract of the defaults, apart from the code that makes them.
func TestDefaults(t *testing.T) {
	const defaults = `
node:    {name: "", fabric: "", tier: "", names: short}
switch:
  queues: lossless
  priorities: lossless
  windows: [periodic, user]
  voq: "off"
  pause_duration_unit: ""
  ports: {include: "", exclude: ""}
  attached_mac_limit: 4
  redis: {username: "", password_file: ""}
host:    {device_include: "", device_exclude: "", priorities: lossless, raw_stats: []}
scrape:  {timeout: 10s, min_interval: 0s}
refresh: {config: 60s, fdb: 300s}
limits:  {series: 200000}
`
	got, err := ReadConfig(strings.NewReader(defaults), "FILE")
	if err != nil || !reflect.DeepEqual(got, DefaultConfig()) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, DefaultConfig())
	}
}

func TestBadConfigs(t *testing.T) {
	messages := map[string]string{
		"bad-alias.yml":              "FILE:1: node.fabric: a reference (*n): write the value out",
		"bad-attached-macs.yml":      "FILE:2: switch.attached_mac_limit: must be an integer from 0 to 1024, not 5000",
		"bad-bool-for-list.yml":      "FILE:1: switch.windows: must be a list ([…]), not true or false",
		"bad-bool-for-text.yml":      "FILE:2: node.tier: must be text, not true or false: put it in quotes (\"…\")",
		"bad-congestion-control.yml": "FILE:2: policy.congestion_control: must be one of dcqcn, pfc_only, other, not \"dctcp\"",
		"bad-control-character.yml":  "FILE:1: node.fabric: must fit in a label: at most 128 bytes, no control characters",
		"bad-date-for-text.yml":      "FILE:1: node.fabric: must be text, not a date: put it in quotes (\"…\")",
		"bad-dscp.yml":               "FILE:4: policy.dscp.cnp[0]: must be an integer from 0 to 63, not 64",
		"bad-duplicate-key.yml":      "FILE:4: node.name: stands twice, first on line 2: leave one out",
		"bad-duplicate-priority.yml": "FILE:1: policy.lossless_priorities[2]: 3 stands twice: leave one out",
		"bad-duplicate-section.yml":  "FILE:3: limits: stands twice, first on line 1: leave one out",
		"bad-duration-negative.yml":  "FILE:1: refresh.config: must be at least 0s, not -60s",
		"bad-duration-number.yml":    "FILE:2: scrape.timeout: must be a duration with its unit (10s, 500ms, 5m), not an integer",
		"bad-duration-text.yml":      "FILE:1: scrape.timeout: must be a duration with its unit (10s, 500ms, 5m), not \"5\"",
		"bad-duration-unit.yml":      "FILE:1: scrape.timeout: must be a duration with its unit (10s, 500ms, 5m), not \"5parsecs\"",
		"bad-duration-zero.yml":      "FILE:1: scrape.timeout: must be at least 1ms, not 0s",
		"bad-fraction.yml":           "FILE:1: limits.series: must be an integer from 0 to 10000000, not a fraction",
		"bad-hexadecimal.yml":        "FILE:1: limits.series: must be an integer from 0 to 10000000, not 0x10",
		"bad-host-pattern.yml":       "FILE:1: host.device_include: not a regular expression (RE2): error parsing regexp: missing closing ): `mlx5_(`",
		"bad-host-priorities.yml":    "FILE:1: host.priorities: must be one of lossless, all, not \"some\"",
		"bad-list-for-object.yml":    "FILE:1: node: must be an object (key: value), not a list",
		"bad-list-item.yml":          "FILE:1: host.raw_stats[1]: must be text, not an integer: put it in quotes (\"…\")",
		"bad-long-label.yml":         "FILE:1: node.fabric: must fit in a label: at most 128 bytes, no control characters",
		"bad-many-faults.yml":        "FILE:1: node.names: must be one of short, full, not \"long\"\nFILE:3: switch.queues: must be one of lossless, all, not \"none\"\nFILE:4: switch.voq: must be one of off, dropped, all, not \"of\"\nFILE:5: limits.series: must be an integer from 0 to 10000000, not -1",
		"bad-match-empty.yml":        "FILE:3: policy.ports[0]: match is missing: say which ports are meant, match: \".*\" for all",
		"bad-match-missing.yml":      "FILE:4: policy.ports[1]: match is missing: say which ports are meant, match: \".*\" for all",
		"bad-mtu.yml":                "FILE:1: policy.ports[0].mtu: must be an integer from 68 to 65535, not 70000",
		"bad-names.yml":              "FILE:1: node.names: must be one of short, full, not \"Short\"",
		"bad-negative.yml":           "FILE:1: limits.series: must be an integer from 0 to 10000000, not -1",
		"bad-not-utf8.yml":           "FILE: not YAML: invalid leading UTF-8 octet",
		"bad-null-list.yml":          "FILE:1: policy.lossless_priorities: nothing stands here: give it a list ([…]), or leave the key out for its default",
		"bad-null-section.yml":       "FILE:1: policy: nothing stands here: give it an object (key: value), or leave the key out for its default",
		"bad-null-text.yml":          "FILE:1: node.name: nothing stands here: give it text, or leave the key out for its default",
		"bad-null.yml":               "FILE:2: limits.series: nothing stands here: give it an integer from 0 to 10000000, or leave the key out for its default",
		"bad-number-for-text.yml":    "FILE:1: node.name: must be text, not an integer: put it in quotes (\"…\")",
		"bad-octal.yml":              "FILE:1: limits.series: must be an integer from 0 to 10000000, not 010",
		"bad-pattern-lookahead.yml":  "FILE:1: switch.ports.exclude: not a regular expression (RE2): error parsing regexp: invalid or unsupported Perl syntax: `(?!`",
		"bad-pattern-unbalanced.yml": "FILE:1: policy.ports[0].match: not a regular expression (RE2): error parsing regexp: unexpected ): `a)|(?:b`",
		"bad-pattern.yml":            "FILE:3: switch.ports.include: not a regular expression (RE2): error parsing regexp: missing closing ]: `[0-9`",
		"bad-pause-unit.yml":         "FILE:1: switch.pause_duration_unit: must be one of microseconds, quanta or \"\", not \"ms\"",
		"bad-priority.yml":           "FILE:1: policy.lossless_priorities[0]: must be an integer from 0 to 7, not 8",
		"bad-quoted-number.yml":      "FILE:1: limits.series: must be an integer from 0 to 10000000, not text: take the quotes away",
		"bad-raw-stat-empty.yml":     "FILE:1: host.raw_stats[0]: is empty: give it a name or leave it out",
		"bad-raw-stat-pattern.yml":   "FILE:1: host.raw_stats[1]: syntax error in pattern: end each [ with a ], as in \"tx[0-9]_bytes\", or write \\[ for the character",
		"bad-rdma-mtu-between.yml":   "FILE:1: policy.rdma_mtu: must be one of 256, 512, 1024, 2048, 4096, not 1500",
		"bad-rdma-mtu.yml":           "FILE:1: policy.rdma_mtu: must be one of 256, 512, 1024, 2048, 4096, not 9000",
		"bad-scalar.yml":             "FILE:1: must be an object (key: value), not text",
		"bad-second-document.yml":    "FILE:2: a second document: put everything into one",
		"bad-speed-text.yml":         "FILE:1: policy.ports[0].speed: must be a speed in bits per second with its unit (100G, 2.5G, 1.6T), not \"100Gbps\"",
		"bad-speed-zero.yml":         "FILE:1: policy.ports[0].speed: must be a speed in bits per second with its unit (100G, 2.5G, 1.6T), not \"0G\"",
		"bad-speed.yml":              "FILE:1: policy.ports[0].speed: must be a speed in bits per second with its unit (100G, 2.5G, 1.6T), not an integer",
		"bad-syntax.yml":             "FILE:2: not YAML: found unexpected end of stream",
		"bad-tab.yml":                "FILE:2: not YAML: found character that cannot start any token",
		"bad-text-for-number.yml":    "FILE:1: limits.series: must be an integer from 0 to 10000000, not text",
		"bad-text-for-object.yml":    "FILE:1: node: must be an object (key: value), not text",
		"bad-underscore.yml":         "FILE:1: limits.series: must be an integer from 0 to 10000000, not 200_000",
		"bad-unknown-far.yml":        "FILE:2: scrape.parallelism: unknown key: the keys here are min_interval, timeout",
		"bad-unknown-key.yml":        "FILE:2: switch.queue: unknown key: did you mean queues?",
		"bad-unknown-merge.yml":      "FILE:1: node.<<: unknown key: the keys here are fabric, name, names, tier",
		"bad-unknown-nested.yml":     "FILE:3: policy.ports[0].sped: unknown key: did you mean speed?",
		"bad-unknown-section.yml":    "FILE:1: swich: unknown key: did you mean switch?",
		"bad-upper-case.yml":         "FILE:1: switch.Queues: unknown key: did you mean queues?",
		"bad-voq.yml":                "FILE:1: switch.voq: must be one of off, dropped, all, not \"on\"",
		"bad-windows-twice.yml":      "FILE:1: switch.windows[1]: user stands twice: leave one out",
		"bad-windows.yml":            "FILE:2: switch.windows[1]: must be one of periodic, user, persistent, not \"daily\"",
	}
	files, err := filepath.Glob("testdata/bad-*.yml")
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		files[i] = filepath.Base(file)
		got, err := readTestConfig(t, file)
		if err == nil || err.Error() != messages[files[i]] {
			t.Errorf("%s:\ngot  %v\nwant %v", file, err, messages[files[i]])
		}
		if !reflect.DeepEqual(got, Config{}) {
			t.Errorf("%s: half of it came through: %+v", file, got)
		}
	}
	if want := slices.Sorted(maps.Keys(messages)); !slices.Equal(files, want) {
		t.Errorf("files and messages differ:\n%v\n%v", files, want)
	}
}

func TestHugeConfig(t *testing.T) {
	_, err := ReadConfig(strings.NewReader(strings.Repeat("#", maxConfigBytes+1)), "FILE")
	if err == nil || err.Error() != "FILE: larger than 1048576 bytes: this is no configuration of the exporter" {
		t.Errorf("got %v", err)
	}
	if _, err := ReadConfig(strings.NewReader(strings.Repeat("#", maxConfigBytes)), "FILE"); err != nil {
		t.Errorf("as large as it may be: %v", err)
	}
}

// A file that is something else altogether must not fill the log.
func TestManyFaultsAreCut(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		text.WriteString(strings.Repeat("k", i+1) + ": 1\n")
	}
	_, err := ReadConfig(strings.NewReader(text.String()), "FILE")
	if lines := strings.Split(err.Error(), "\n"); len(lines) != maxFaults+1 || lines[maxFaults] != "FILE: and 980 more" {
		t.Errorf("got %d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

func FuzzReadConfig(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		config, err := ReadConfig(strings.NewReader(text), "FILE")
		if err != nil {
			return
		}
		if shown, err := yaml.Marshal(config); err != nil {
			t.Errorf("cannot be shown: %v", err)
		} else if _, err := ReadConfig(strings.NewReader(string(shown)), "shown"); err != nil {
			t.Errorf("what is shown cannot be read: %v\n%s", err, shown)
		}
	})
}
