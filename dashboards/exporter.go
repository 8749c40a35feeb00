// SPDX-License-Identifier: Apache-2.0

package dashboards

func exporterBoard() board {
	return board{
		uid: "roce-exporter", title: "the exporter itself", from: "now-3h",
		about:     "Does what watches the fabric work: who does not answer, what could not be read, what takes long, which clocks are wrong.",
		variables: []string{"datasource", "fabric", "tier", "node"},
		rows: []row{
			{height: 4, panels: []panel{answering(), partly(), reloads(), slowestScrape(), rulesWork(), clocks()}},
			{height: 6, panels: []panel{silent(), failing()}},
			{height: 7, panels: []panel{scrapeTimes(), collectorTimes(), samples()}},
			{height: 7, panels: []panel{counterAges(), skew(), skipped()}},
			{height: 6, panels: []panel{unpolled(), versions()}},
		},
	}
}

const nodesOf = ofTier + `, node=~"$node"`

// theirs gives raw series of many nodes the names of these.
func theirs(labels, expr string) string { return named(labels, nodesOf, expr) }

// known gives up and the like the identity that a node had within a day.
func known(labels, expr string) string {
	return `max by (` + labels + `) ((` + expr + `) * on (instance, job) group_left (fabric, tier, role, node) instance_job:roce_node:last_info{` + nodesOf + `})`
}

func answering() panel {
	return panel{
		title: "Exporters that answer", width: 4, draw: figures{both: true, column: true},
		about: "Share of the exporters of each role that answered the last scrape. Normal: 100 %. Who does not is listed below.",
		asks:  []ask{{`avg by (role) (` + known("fabric, role, node", `up{job=~".*roce.*"}`) + ` or label_replace(` + neverSeen + `, "role", "silent for a day, or ever", "", ""))`, "{{role}}", look{}}},
		value: value{unit: "percentunit", decimals: ptr(0), steps: []step{{0, bad}, {0.95, warning}, {0.9999, good}}, none: "unknown"},
	}
}

func partly() panel {
	return panel{
		title: "Answers, but not all", width: 5, draw: figures{column: true},
		about: "Sources (a database, a device) that could not be read, and nodes whose counters stand still. Normal: 0 and 0. Their series are absent or old: rules about them are silent.",
		asks: []ask{
			{`count(` + theirs("node, collector, source", `roce_scrape_source_success == 0`) + `) or 0 * count(node:roce_node:info{` + nodesOf + `})`, "sources unreadable", look{}},
			{`count(ALERTS{alertname="RoCECountersFrozen", ` + nodesOf + `}) or 0 * count(node:roce_node:info{` + nodesOf + `})` + judged, "counters stand still", look{}},
		},
		value: value{decimals: ptr(0), steps: []step{{0, good}, {1, bad}}, none: "unknown"},
	}
}

func slowestScrape() panel {
	return panel{
		title: "Slowest scrape", width: 4, draw: figures{both: true, column: true},
		about: "The node whose last scrape took longest. Normal: well under a second. Prometheus gives up after 10 seconds unless told otherwise.",
		asks:  []ask{{`topk(1, ` + known("node", `scrape_duration_seconds{job=~".*roce.*"}`) + `)`, "{{node}}", look{}}},
		value: value{unit: "s", decimals: ptr(2), steps: []step{{0, good}, {3, warning}, {8, bad}}, none: "unknown"},
	}
}

func rulesWork() panel {
	return panel{
		title: "Rules that failed", width: 3, draw: figures{},
		about: "Evaluations of the RoCE rules that failed within 10 minutes, as Prometheus counts them of itself. Normal: 0. Unknown: nobody scrapes Prometheus. A rule that fails, fails for all fabrics.",
		asks:  []ask{{`sum(increase(prometheus_rule_evaluation_failures_total{rule_group=~".*roce.*"}[10m]))`, "", look{}}},
		value: value{unit: "short", decimals: ptr(0), steps: []step{{0, good}, {1, bad}}, none: "unknown"},
	}
}

func clocks() panel {
	return panel{
		title: "Worst clock", width: 4, draw: figures{both: true, column: true},
		about: "The node whose clock is furthest from that of Prometheus. Normal: under a second. Logs and captures cannot be compared otherwise.",
		asks:  []ask{{`topk(1, ` + theirs("node", `abs(roce_node_time_seconds - timestamp(roce_node_time_seconds))`) + `)`, "{{node}}", look{}}},
		value: value{unit: "s", decimals: ptr(1), steps: []step{{0, good}, {2, warning}, {30, bad}}, none: "unknown"},
	}
}

func silent() panel {
	what := func(text, expr string) string { return `label_replace(` + expr + `, "what", "` + text + `", "", "")` }
	return panel{
		title: "Who is silent, and what could not be read", width: 12,
		about: "Exporters that do not answer, collectors and sources that could not be read, services that are down. Normal: no rows. The exporter's own page and log say why.",
		draw: grid{
			sort: []sorting{{"Node", false}},
			columns: []column{
				{name: "node", heading: "Node", width: 110, links: []link{toSwitch, toNIC}},
				{name: "role", heading: "Role", width: 80},
				{name: "what", heading: "What", width: 230},
				{name: "collector", heading: "Collector", width: 100},
				{name: "source", heading: "Source"},
				{name: "fabric", heading: "Fabric", hidden: true},
			},
		},
		asks: []ask{{
			`topk(50, max by (fabric, role, node, what, collector, source) (` + what("does not answer", known("fabric, role, node", `up{job=~".*roce.*"} == 0`)+` + 1`) +
				` or ` + what("silent for a day, or ever", `label_replace(`+neverSeen+` + 1, "node", "$1", "instance", "(.*)")`) +
				` or ` + what("collector failed", theirs("fabric, role, node, collector", `roce_scrape_collector_success == 0`)) +
				` or ` + what("source could not be read", theirs("fabric, role, node, collector, source", `roce_scrape_source_success == 0`)) +
				` or ` + what("counters stand still", `max by (fabric, role, node) (ALERTS{alertname="RoCECountersFrozen", `+nodesOf+`})`) +
				` or ` + what("service is down", `label_replace(`+theirs("fabric, role, node, name", `roce_service_up == 0`)+`, "source", "$1", "name", "(.*)")`) + `))`,
			"",
			look{},
		}},
		value: value{none: "everybody answers, everything could be read"},
	}
}

func failing() panel {
	up := known("fabric, node", `up{job=~".*roce.*"}`)
	return panel{
		title: "Nodes that did not answer", width: 12, draw: states{},
		about: "Exporters that missed a scrape within the range shown, at most 12. Normal: none. Two minutes are a reboot.",
		asks: []ask{{
			up + ` and on (fabric, node) bottomk(12, min by (fabric, node) (min_over_time((` + up + `)[$__range:$__interval] @ end())) < 1)`,
			"{{node}}",
			look{},
		}},
		value: value{words: []word{{0, 0, "does not answer", bad}, {1, 1, "answers", good}}, none: "all answered, all the time"},
	}
}

func scrapeTimes() panel {
	return panel{
		title: "Duration of scrapes, slowest nodes", width: 8, draw: lines{log: true},
		about: "How long Prometheus waited for the nodes that take longest. Normal: well under a second. What grows: Redis is busy, or a driver hangs.",
		asks: []ask{
			{worst(6, "node", known("node", `scrape_duration_seconds{job=~".*roce.*"}`)), "{{node}}", look{}},
			{`roce:scrape_duration:threshold`, "too long", look{color: warning, dashed: true}},
		},
		value: value{unit: "s", none: "unknown"},
	}
}

func collectorTimes() panel {
	return panel{
		title: "Time of collectors", width: 8, draw: lines{log: true},
		about: "How long the slowest node of each collector took to read, as it says itself. Normal: well under a second. The rest of a scrape is the network.",
		asks:  []ask{{`max by (collector) (` + theirs("node, collector", `roce_scrape_collector_duration_seconds`) + `)`, "{{collector}}", look{}}},
		value: value{unit: "s", none: "unknown"},
	}
}

func samples() panel {
	return panel{
		title: "Samples a scrape, largest nodes", width: 8, draw: lines{},
		about: "How many samples the nodes with most of them give, as Prometheus counts them, and what a switch of 128 ports should give at most. Normal: level. More: all queues or all priorities were switched on.",
		asks: []ask{
			{worst(6, "node", known("node", `scrape_samples_scraped{job=~".*roce.*"}`)), "{{node}}", look{}},
			{`roce:samples_switch:threshold`, "budget of a switch", look{color: warning, dashed: true}},
		},
		value: value{unit: "short", min: ptr(0), none: "unknown"},
	}
}

func counterAges() panel {
	return panel{
		title: "Since counters moved, oldest nodes", width: 8, draw: lines{},
		about: "How long ago any port counter of a switch moved, by its own clock. Normal: seconds. Over the line the counters stand still: syncd or orchagent is dead, or polling is off; every rate of that switch is wrong.",
		asks: []ask{
			{worst(6, "node", theirs("node", `max by (instance, job) (roce_node_time_seconds) - on (instance, job) group_right () roce_counters_last_change_timestamp_seconds`)), "{{node}}", look{}},
			{`roce:counters_frozen:threshold`, "stand still", look{color: bad, dashed: true}},
		},
		value: value{unit: "s", min: ptr(0), none: "unknown"},
	}
}

func skew() panel {
	return panel{
		title: "Clocks, worst nodes", width: 8, draw: lines{soft: 1},
		about: "Clock of the node less that of Prometheus: above 0 it is ahead. Normal: within a second. Otherwise: its time server.",
		asks: []ask{{
			theirs("node", `roce_node_time_seconds - timestamp(roce_node_time_seconds)`) + ` and on (node) topk(6, max by (node) (max_over_time((` + theirs("node", `abs(roce_node_time_seconds - timestamp(roce_node_time_seconds))`) + `)[$__range:$__interval] @ end())))`,
			"{{node}}",
			look{},
		}},
		value: value{unit: "s", none: "unknown"},
	}
}

func skipped() panel {
	return panel{
		title: "Left out of scrapes", width: 8, draw: lines{},
		about: "Objects and values that all nodes together left out of a scrape, by reason, and series dropped over the limit. Normal: few and level. Missing: the databases name objects that they do not have, as on a switch that just booted.",
		asks: []ask{
			{`sum by (collector, reason) (` + theirs("node, collector, reason", `roce_scrape_skipped`) + `) > 0`, "{{collector}}: {{reason}}", look{}},
			{`sum(` + theirs("node, collector", `increase(roce_scrape_series_dropped_total[$__rate_interval])`) + `) > 0`, "over the limit", look{color: bad}},
		},
		value: value{unit: "short", min: ptr(0), none: "nothing was left out"},
	}
}

func unpolled() panel {
	return panel{
		title: "Counters that are not polled", width: 12,
		about: "Groups of counters that switches do not poll, and on how many. What such a group counts is unknown, whatever the graphs show. Normal: no rows. Switch it on with counterpoll.",
		draw: grid{
			sort: []sorting{{"Switches", true}},
			columns: []column{
				{name: "group", heading: "Group", width: 230},
				{name: "A", heading: "Switches", width: 100, value: &value{unit: "none"}},
				{name: "node", heading: "One of them", links: []link{toSwitch}},
				{name: "fabric", heading: "Fabric", hidden: true},
			},
		},
		asks: []ask{
			{`count by (group) (` + theirs("node, group", `roce_flex_counter_enabled == 0`) + `)`, "", look{}},
			{`topk by (group) (1, ` + theirs("fabric, node, group", `roce_flex_counter_enabled == 0`) + `)`, "", look{}},
		},
		value: value{none: "all groups are polled, where that is known"},
	}
}

func reloads() panel {
	return panel{
		title: "Configurations", width: 4, draw: figures{column: true},
		about: "Exporters that refused their last configuration and go on with the one before, and those whose configuration has no policy. Normal: 0 and 0. The log names the line.",
		asks: []ask{
			{`count(` + theirs("node", `roce_exporter_config_last_reload_successful == 0`) + `) or 0 * count(` + theirs("node", `roce_exporter_config_last_reload_successful`) + `)`, "refused", look{}},
			{`count(` + theirs("node", `roce_node_info unless on (instance, job) roce_policy_lossless_priority`) + `) or 0 * count(node:roce_node:info{` + nodesOf + `})`, "without a policy", look{}},
		},
		value: value{decimals: ptr(0), steps: []step{{0, good}, {1, warning}}, none: "unknown"},
	}
}

func versions() panel {
	return panel{
		title: "Versions of the exporter", width: 12, draw: gauges{},
		about: "How many nodes run which version. Normal: one. Several: an update is under way.",
		asks:  []ask{{`topk(8, count by (version) (` + theirs("node, version", `roce_exporter_build_info`) + `))`, "version {{version}}", look{}}},
		value: value{unit: "none", decimals: ptr(0), min: ptr(0), steps: []step{{0, "blue"}}, none: "unknown"},
	}
}
