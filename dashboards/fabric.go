// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"math"
	"strings"
)

// Series that several panels show.
const (
	tierPriority = ofTier + ", " + ofPriority

	// Who is paused for more than 1 % of the time, by whom, and how that is known.
	pausedNow = `port_priority_peer:roce_pfc_paused:ratio`

	// Share of time that a port is paused by its peer, in the best way that it is known.
	pausedMeasured = `port_priority:roce_pfc_paused:ratio_rate2m`
	pausedApprox   = `port_priority:roce_pfc_paused_approx:ratio_rate5m`

	// There where that is known at all.
	pausedKnown = `(count(` + pausedMeasured + `{` + tierPriority + `}) or count(` + pausedApprox + `{` + tierPriority + `}))`
)

// pausedAnyhow is the share of time that ports are paused, measured or else
// estimated or bounded by frames: then the label basis says so.
func pausedAnyhow(of string) string {
	return fmt.Sprintf(`(%s{%s} or on (fabric, node, port, priority) %s{%s})`, pausedMeasured, of, pausedApprox, of)
}

// inColumn says in a column of its own how it is known.
func inColumn(paused string) string {
	return `label_replace(label_replace(` + paused + `, "basis", "measured", "basis", ""), "basis", "frames, at most", "basis", "frames")`
}

// inBrackets says beside a name how it is known, where it is not measured.
func inBrackets(paused string) string {
	return `label_replace(label_replace(label_replace(` + paused + `, "basis", "", "basis", "measured"), "basis", "(by frames, at most)", "basis", "frames"), "basis", "(estimated)", "basis", "estimated")`
}

// withPeer adds what is at the other end, as it is known at the end of the
// range shown: where it changed, one port shall not be two lines.
func withPeer(expr, labels string) string {
	const peer = `(port:roce_peer:info @ end() or on (fabric, node, port) group by (fabric, node, port) (port:roce_port_oper_up))`
	return fmt.Sprintf(`label_replace((%s) * on (fabric, node, port) group_left (%s) %s, "peer", "unknown", "peer", "")`, expr, labels, peer)
}

// worst keeps the few series with the highest values within the range shown;
// topk alone would choose others at each step.
func worst(count int, by, expr string) string {
	return fmt.Sprintf(`%s and on (%s) topk(%d, max by (%s) (max_over_time((%s)[$__range:$__interval] @ end())))`, expr, by, count, by, expr)
}

// inUse leaves out priorities that are not lossless and not paused either.
func inUse(paused string) string {
	return `(` + paused + ` > 0.001 or ` + paused + ` and on (fabric, node, port, priority) port_priority:roce_pfc_enabled:in_force)`
}

// Values that look the same on all dashboards.
var (
	share    = value{unit: "percentunit", min: ptr(0)}
	bits     = value{unit: "bps", min: ptr(0)}
	perSec   = value{unit: "pps", min: ptr(0)}
	shareHot = value{unit: "percentunit", decimals: ptr(1), words: []word{notKnown}, steps: []step{{0, good}, {0.01, notice}, {0.1, warning}, {0.5, bad}}}
	clock    = value{unit: "time:MMM D HH:mm", words: []word{notKnown}}
	noneBad  = value{unit: "short", decimals: ptr(0), steps: []step{{0, good}, {1, bad}}, words: []word{notKnown}, none: "unknown"}

	// How long a port is paused, in words.
	pausedWords = value{unit: "percentunit", steps: []step{{0, good}}, words: []word{
		{math.Inf(-1), 0.01, "under 1 % of the time", good},
		{0.01, 0.1, "1 to 10 %", notice},
		{0.1, 0.5, "10 to 50 %", warning},
		{0.5, math.Inf(1), "over 50 %", bad},
	}, none: "not measured"}
)

// notKnown is what stands beside values that are known; VictoriaMetrics has no NaN.
var notKnown = word{-1, -1, "unknown", neutral}

// orUnknown says that a value is not known; expr has no labels.
func orUnknown(expr string) string { return expr + ` or vector(-1)` }

// judged is where the rules are evaluated: elsewhere no alert means nothing.
const judged = ` and on () ALERTS{alertname="RoCEWatchdogHeartbeat"}`

// dropsCounted are nodes that count what lossless queues or groups drop.
func dropsCounted(nodes, selector string) string {
	counters := `group by (instance, job) (roce_queue_dropped_packets_total` + selector + ` or roce_pg_dropped_packets_total` + selector + `)`
	return named("fabric, node", nodes, counters+` unless on (instance, job) instance_job_asic_group:roce_counters:frozen_seconds`)
}

// carried is what every link takes along.
const carried = "${__url_time_range}&${datasource:queryparam}"

// seriesNode is the node of the series that was clicked.
const seriesNode = "&var-fabric=${__field.labels.fabric}&var-node=${__field.labels.node}"

// severities have colors.
var severities = &value{none: "unknown", spoken: []word{{text: "critical", color: bad}, {text: "warning", color: warning}}}

// Links from rows of tables.
var (
	toPort   = link{"Both ends of this link", "/d/roce-port?" + carried + "&var-fabric=${__data.fields.fabric}&var-node=${__data.fields.node}&var-port=${__data.fields.port}"}
	toSwitch = link{"This switch", "/d/roce-switch?" + carried + "&var-fabric=${__data.fields.fabric}&var-node=${__data.fields.node}"}
	toNIC    = link{"This host", "/d/roce-nic?" + carried + "&var-fabric=${__data.fields.fabric}&var-node=${__data.fields.node}"}
	toSeries = link{"Both ends of this link", "/d/roce-port?" + carried + seriesNode + "&var-port=${__field.labels.port}"}
	toPeer   = link{"Both ends, from its side", "/d/roce-port?" + carried + "&var-fabric=${__data.fields.fabric}&var-node=${__data.fields.peer}&var-port=${__data.fields.peer_port}"}
)

func fabricBoard() board {
	return board{
		uid: "roce-fabric", title: "fabric", from: "now-3h",
		about:     "Is it real, who started it, since when, who is hit. Begin here; names lead on.",
		variables: []string{"datasource", "fabric", "tier", "priority"},
		rows: []row{
			{height: 4, panels: []panel{trusted(), startedBy(), priorityAndSince(), whatChanged(), whoIsHit(), lost()}},
			{height: 7, panels: []panel{whoPausesWhom(), firing()}},
			{height: 7, panels: []panel{longestPaused(), pausedByTier(), markedByTier()}},
			{height: 6, panels: []panel{pausedSpread(), notifications(), trafficByTier(), changed()}},
		},
	}
}

func trusted() panel {
	targets := `up{job=~".*roce.*"} * on (instance, job) group_left (fabric) instance_job:roce_node:last_info{` + ofFabric + `} or on (instance, job) ` + neverSeen
	return panel{
		title: "Can this be trusted?", width: 4, draw: figures{column: true},
		about: "How many of the exporters of this fabric answer, and of those that said nothing for a day or ever; and how many nodes are seen only in part: their counters stand still, are not polled or could not be read. " +
			"Normal: 100 % and 0. Otherwise what is missing may hide the cause: see the alerts, and the dashboard of the exporter.",
		asks: []ask{
			{`avg(` + targets + `)`, "of exporters answer", look{value: &value{unit: "percentunit", decimals: ptr(0), steps: []step{{0, bad}, {0.95, warning}, {0.9999, good}}, none: "unknown"}}},
			{
				`count(group by (fabric, node) (ALERTS{layer="meta", node!="", severity!="info", alertname!~"RoCE(ClockSkew|CardinalityHigh|ScrapeSlow)", ` + ofFabric + `})) or 0 * count(node:roce_node:info{` + ofFabric + `})` + judged,
				"nodes seen in part",
				look{value: &value{decimals: ptr(0), steps: []step{{0, good}, {1, warning}}, none: "unknown"}},
			},
		},
		value: value{none: "unknown", steps: []step{{0, neutral}}},
	}
}

func startedBy() panel {
	const of = ofFabric + `, ` + ofPriority
	origin := `max by (fabric, node, port, priority) (ALERTS{alertname="RoCEPFCStormOrigin", ` + of + `})`
	deadlock := `max by (fabric, node, port, peer, priority) (ALERTS{alertname="RoCEPFCDeadlockSuspected", ` + of + `})`
	cycle := `max by (fabric, priority) (ALERTS{alertname="RoCEPFCDeadlockCycle", ` + of + `})`
	frames := asNode(`max by (fabric, peer, peer_port, priority) (ALERTS{alertname="RoCEPFCStormApprox", severity="critical", ` + of + `})`)
	// Somebody is paused, though nobody is named.
	some := `(count(` + pausedNow + `{` + of + `} > 0.1) or count(ALERTS{layer="pfc", severity="critical", ` + of + `}))`
	nobody := `(count(` + pausedMeasured + `{` + of + `}) unless ` + some + judged + `)`
	return panel{
		title: "Who pauses the others?", width: 5, draw: figures{names: true},
		about: "The node that pauses others while nobody pauses it: begin with it, the others suffer from it. A host: its PCIe, its process, its NIC. A switch: its buffers and its full queue. " +
			"Two that stop each other are a deadlock, or several in a circle: break it by switching one port off. \"Nobody\" is normal; it is said only where pause is measured and no port is paused for more than 10 %. Not clear: somebody is paused, but who began is not known: see the list below.",
		asks: []ask{
			{`topk(4, ` + origin + `)`, "{{node}} {{port}}", look{color: bad}},
			{`topk(1, ` + deadlock + `)`, "{{node}} and {{peer}} each other", look{color: bad}},
			{`topk(1, ` + cycle + `)`, "several in a circle", look{color: bad}},
			{`topk(4, ` + frames + `)`, "{{node}} {{port}} (by frames)", look{color: bad}},
			{nobody, "nobody", look{color: good}},
			{`vector(0) unless (count(` + origin + `) or count(` + deadlock + `) or count(` + cycle + `) or count(` + frames + `) or ` + nobody + `)`, "not clear", look{color: neutral}},
		},
		value: value{none: "unknown", steps: []step{{0, bad}}},
		links: []link{toSeries, {"This switch", "/d/roce-switch?" + carried + seriesNode}, {"This host", "/d/roce-nic?" + carried + seriesNode}},
	}
}

// asNode gives what is said of a peer the names of that node and port.
func asNode(expr string) string {
	return `label_replace(label_replace(` + expr + `, "node", "$1", "peer", "(.*)"), "port", "$1", "peer_port", "(.*)")`
}

// asPeer is the other way round.
func asPeer(expr string) string {
	return `label_replace(label_replace(` + expr + `, "peer", "$1", "node", "(.*)"), "peer_port", "$1", "port", "(.*)")`
}

func priorityAndSince() panel {
	paused := `(max by (priority) (` + pausedNow + `{` + tierPriority + `, basis="measured"} > 0.02) or on (priority) max by (priority, basis) (` + inBrackets(pausedNow+`{`+tierPriority+`, basis!="measured"} > 0.02`) + `))`
	const (
		all   = `ALERTS_FOR_STATE{alertname=~"RoCE.*", severity="critical", fabric=~"$fabric|"}`
		pause = `ALERTS_FOR_STATE{alertname=~"RoCE.*", severity="critical", layer="pfc", fabric=~"$fabric|", tier=~"$tier|", priority=~"$priority|"}`
	)
	moment := look{value: &value{unit: "time:MMM D HH:mm", steps: []step{{0, bad}}}}
	nothing := look{value: &value{words: []word{{0, 0, "none", good}, notKnown}}}
	return panel{
		title: "Which priority, since when?", width: 4, draw: figures{both: true, column: true},
		about: "The priorities on which a port is paused for more than 2 % of the time, and for how long the worst of them. Then since when the first critical alert about pause is true, in local time; without any, that about something else. " +
			"Normal: none and none. A priority that should not be lossless: see configuration.",
		asks: []ask{
			{`topk(2, ` + paused + `)`, "priority {{priority}} {{basis}}", look{value: &value{unit: "percentunit", decimals: ptr(0), steps: []step{{0, notice}, {0.1, warning}, {0.5, bad}}}}},
			{`(` + orUnknown(`0 * `+pausedKnown) + `) unless count(` + paused + `)`, "priority", nothing},
			{`min(` + pause + `) * 1000`, "paused since", moment},
			{`(min(` + all + `) unless min(` + pause + `)) * 1000`, "critical since", moment},
			{`(` + orUnknown(`0 * count(node:roce_node:info{`+ofFabric+`})`+judged) + `) unless count(` + all + `)`, "critical alert", nothing},
		},
		value: value{none: "unknown", steps: []step{{0, neutral}}},
	}
}

func whatChanged() panel {
	return panel{
		title: "What changed?", width: 4, draw: figures{names: true, column: true},
		about: "Two of the changes within the range shown: reboots, firmware, masks, MTUs, thresholds, PCIe lanes, links that went down. All of them are in the list below. Normal: nothing. If something did, compare its time with that of the storm: the marks in the graphs.",
		asks: []ask{
			{`topk(2, ` + changes() + `)`, "{{node}}: {{what}}", look{}},
			{`count_values("more", count(` + changes() + `) - 2 > 0)`, "and {{more}} more", look{}},
			{`count(node:roce_node:info{` + ofTier + `}) unless count(` + changes() + `)`, "nothing", look{}},
			{`absent(node:roce_node:info{` + ofTier + `})`, "unknown", look{}},
		},
		value: value{none: "unknown", steps: []step{{0, neutral}}},
		links: []link{{"This switch", "/d/roce-switch?" + carried + seriesNode}, {"This host", "/d/roce-nic?" + carried + seriesNode}},
	}
}

func whoIsHit() panel {
	const (
		over  = `(` + pausedNow + `{` + tierPriority + `} > 0.1)`
		hosts = `max by (fabric, node) (` + pausedNow + `{` + tierPriority + `, role="host"} > 0.1)`
	)
	return panel{
		title: "Who is hit?", width: 4, draw: figures{names: true, column: true},
		about: "The hosts with a port that is paused for more than 10 % of the time, the two worst by name, and how many hosts and ports there are in all. Where time is not measured: by frames, at most. Normal: nobody. They are victims: do not begin with them.",
		asks: []ask{
			{`topk(2, ` + hosts + `)`, "{{node}}", look{color: warning}},
			{
				`count_values("hosts", count(` + hosts + `) or 0 * count(` + over + `)) * on () group_left (ports) topk(1, count_values("ports", count(group by (fabric, node, port) ` + over + `)))`,
				"hosts: {{hosts}}, ports: {{ports}}",
				look{color: warning},
			},
			{pausedKnown + ` unless count(` + over + `)`, "nobody", look{color: good}},
			{`vector(0) unless (` + pausedKnown + ` or count(` + over + `))`, "unknown", look{color: neutral}},
		},
		value: value{none: "unknown", steps: []step{{0, warning}}},
		links: []link{{"This host", "/d/roce-nic?" + carried + seriesNode}},
	}
}

func lost() panel {
	return panel{
		title: "What is lost?", width: 3, draw: figures{column: true},
		about: "Packets that lossless queues and groups dropped in 5 minutes, and storms that PFC watchdogs found in an hour. Normal: 0 and 0. A watchdog drops on purpose: find the storm. Without one, look at the headroom of the port. Unknown: no switch counts it.",
		asks: []ask{
			{orUnknown(`sum(port:roce_lossless_dropped_packets:increase5m{` + ofTier + `}) or 0 * count(` + dropsCounted(ofTier, "") + `)`), "packets, 5 min", look{}},
			{orUnknown(`round(sum(` + named("fabric, node, port, queue", ofTier, counting(`increase(roce_pfcwd_storms_detected_total[1h])`)) + `))`), "storms, 1 h", look{}},
		},
		value: noneBad,
	}
}

func whoPausesWhom() panel {
	rows := func(of string) string {
		return `max by (fabric, node, port, peer, peer_port, peer_role, priority, basis) (label_replace(` + inColumn(pausedNow+`{`+tierPriority+of+`}`) + `, "peer", "unknown", "peer", ""))`
	}
	const (
		itself = `fabric, node, port, priority`
		begin  = "no: begin here"
	)
	// The first that holds says whether who pauses is paused itself. Where to begin
	// say the alerts. A host hands nothing on: that it is paused as well is no excuse.
	var said []string
	for _, s := range []struct{ says, which string }{
		{"yes, by it: deadlock", rows("") + ` and on (` + itself + `) ALERTS{alertname="RoCEPFCDeadlockSuspected"}`},
		{begin, rows("") + ` and on (fabric, peer, peer_port, priority) ` + asPeer(`ALERTS{alertname="RoCEPFCStormOrigin", role="host"}`)},
		{begin, rows("") + ` and on (fabric, peer, priority) ` + asPeer(`ALERTS{alertname="RoCEPFCStormOrigin", role="switch"}`)},
		{begin, rows("") + ` and on (` + itself + `) ALERTS{alertname="RoCEPFCStormApprox", severity="critical"}`},
		{"no", rows(`, peer_role="host"`)},
		{"yes: it hands on", rows("") + ` and on (fabric, peer, priority) ` + asPeer(pausedNow+`{`+ofFabric+`} > 0.02`)},
		{"no", rows("") + ` and on (fabric, peer) label_replace(instance_job:roce_node:info{` + ofFabric + `} unless on (instance, job) instance_job_asic_group:roce_counters:frozen_seconds, "peer", "$1", "node", "(.*)")`},
		{"unknown", rows("")},
	} {
		said = append(said, `label_replace(`+s.which+`, "itself", "`+s.says+`", "", "")`)
	}
	top := `topk(20, ` + strings.Join(said, ` or on (`+itself+`) `) + `)`
	const nothing = `label_replace(-1 * absent(` + pausedMeasured + `{` + ofFabric + `} or ` + pausedApprox + `{` + ofFabric + `}), "peer", "nothing is known", "", "")`
	return panel{
		title: "Who pauses whom, now", width: 14,
		about: "Each row: the first pauses the second, so the second cannot send this priority for that share of the time. The one that is not paused itself is where to begin. " +
			"Known by frames: the time is not measured there, this is the most that the pause frames can do. Normal: no rows, or a few under 5 %.",
		draw: grid{
			sort: []sorting{{"Share of time", true}},
			columns: []column{
				{name: "peer", heading: "Who pauses", width: 105, links: []link{toPeer}},
				{name: "peer_port", heading: "On its port", width: 120, links: []link{toPeer}},
				{name: "itself", heading: "Is it paused itself?", width: 150, value: &value{none: "unknown", spoken: []word{{text: begin, color: bad}, {text: "yes, by it: deadlock", color: bad}}}},
				{name: "node", heading: "Who is paused", width: 110, links: []link{toPort}},
				{name: "port", heading: "On port", width: 120, links: []link{toPort}},
				{name: "priority", heading: "Priority", width: 75},
				{name: "A", heading: "Share of time", width: 115, value: &shareHot},
				{name: "basis", heading: "Known by"},
				{name: "peer_role", heading: "Role", hidden: true},
				{name: "fabric", heading: "Fabric", hidden: true},
			},
		},
		asks: []ask{
			{top + ` or ` + nothing, "", look{}},
		},
		value: value{none: "no port is paused for more than 1 %"},
	}
}

func firing() panel {
	// The state of an alert tells since when.
	state := `(ALERTS_FOR_STATE{alertname=~"RoCE.*", severity=~"critical|warning", fabric=~"$fabric|"} and ignoring (alertstate) ALERTS{alertstate="firing"})`
	const notLoaded = `label_replace(label_replace(-1 * absent(ALERTS{alertname="RoCEWatchdogHeartbeat"}), "alertname", "rules are not evaluated", "", ""), "severity", "unknown", "", "")`
	return panel{
		title: "Alerts", width: 10,
		about: "Alerts that fire, critical ones first: where the first of them was seen, since when, and on how many series. Normal: none. The runbook of each says what to do.",
		draw: grid{
			sort: []sorting{{"Severity", false}, {"Since", false}},
			columns: []column{
				{name: "severity", heading: "Severity", width: 75, value: severities},
				{name: "alertname", heading: "Alert", width: 240},
				{name: "node", heading: "First at", width: 80, links: []link{toSwitch, toNIC}},
				{name: "port", heading: "Port", width: 95, links: []link{toPort}},
				{name: "A", heading: "Since", width: 100, value: &clock},
				{name: "B", heading: "Count", value: &value{unit: "short", decimals: ptr(0), none: "–"}},
				{name: "fabric", heading: "Fabric", hidden: true},
			},
		},
		asks: []ask{
			{`max by (severity, alertname, fabric, node, port) (bottomk by (severity, alertname) (1, ` + state + `)) * 1000 or ` + notLoaded, "", look{}},
			{`count by (severity, alertname) (` + state + `)`, "", look{}},
		},
		value: value{none: "no alert fires"},
	}
}

func longestPaused() panel {
	const series = pausedMeasured + `{` + tierPriority + `}`
	return panel{
		title: "Ports that were paused most", width: 14,
		about: "The 10 ports with the highest share of time paused within the range shown, and who paused them. A port in red could not send for most of the time. Normal: all green. A hole: not measured then.",
		draw:  states{},
		asks: []ask{{
			withPeer(series+` and on (fabric, node, port, priority) topk(10, max_over_time(`+series+`[$__range] @ end()))`, "peer"),
			"{{node}} {{port}} on {{priority}}, paused by {{peer}}",
			look{},
		}},
		value: pausedWords, least: "30s",
		links: []link{toSeries},
	}
}

func pausedByTier() panel {
	return panel{
		title: "Paused: worst port of each tier", width: 5, draw: lines{}, tiers: true,
		about: "Share of time in which the worst port of each tier is paused by its peer, where that is measured. Normal: under 1 %. Spines that are paused mean that congestion is no longer absorbed at the edge.",
		asks: []ask{
			{`max by (tier) (` + pausedMeasured + `{` + tierPriority + `})`, "{{tier}}", look{}},
			{`roce:pfc_storm:threshold`, "storm", look{color: bad, dashed: true}},
		},
		value: share,
	}
}

func markedByTier() panel {
	return panel{
		title: "ECN marks: worst queue of each tier", width: 5, draw: lines{}, tiers: true,
		about: "Share of packets that the worst queue of each tier marks. Normal: under 1 %. Over 3 % throughput begins to swing; pauses without any marks mean that the thresholds are too high. No line: not counted, or fewer than 100 packets a second.",
		asks: []ask{
			{`max by (tier) (port_queue:roce_queue_ecn_marked:ratio_rate5m{` + ofTier + `})`, "{{tier}}", look{}},
			{`roce:ecn_marks:threshold`, "too many", look{color: warning, dashed: true}},
		},
		value: share,
	}
}

func pausedSpread() panel {
	return panel{
		title: "How many ports are paused how long", width: 6, draw: heat{},
		about: "Ports by the share of time in which they are paused, on their worst priority: each line up to what is written at its top; below is how many a color means. Normal: all in the lowest line. A line at the top with few ports is one link; many ports half way up are victims of one.",
		asks:  []ask{{`sum by (le) (tier:roce_pfc_paused_ports:bucket{` + ofTier + `})`, "{{le}}", look{}}},
		value: value{unit: "percentunit"}, least: "2m",
	}
}

func notifications() panel {
	return panel{
		title: "Congestion notifications per packet", width: 6, draw: lines{soft: 0.001},
		about: "CNPs that devices send for each RDMA packet that they receive: the worst device, and the median of its fabric. Normal: both close together. One device far above the others: its firmware. All of them up: see the marks.",
		asks: []ask{
			{`max by (fabric) (device:roce_rdma_cnp_sent_per_packet:ratio_rate5m{` + ofFabric + `})`, "worst device, {{fabric}}", look{}},
			{`fabric:roce_rdma_cnp_sent_per_packet:median_rate5m{` + ofFabric + `}`, "median, {{fabric}}", look{}},
		},
		value: share,
	}
}

func trafficByTier() panel {
	return panel{
		title: "Traffic sent, by tier", width: 6, draw: lines{}, tiers: true,
		about: "What all ports of a tier send. Normal: as the jobs are. A drop while nothing is lost and pauses rise is what a storm costs; a drop without pauses is the job itself.",
		asks:  []ask{{`sum by (tier) (port:roce_port_transmit_bytes:rate5m{` + ofTier + `}) * 8`, "{{tier}}", look{}}},
		value: bits,
	}
}

// changes are what changed within the range shown: of which node.
func changes() string {
	kind := func(what, expr string) string {
		return fmt.Sprintf(`label_replace(%s, "what", "%s", "", "")`, expr, what)
	}
	recorded := func(record string) string {
		return `group by (fabric, node) (` + differs(record+`{`+ofTier+`}`, "$__range") + `)`
	}
	return `(` + kind("rebooted", named("fabric, node", ofTier, rebooted("$__range"))) +
		` or ` + kind("PFC mask", recorded("node_priority:roce_pfc_enabled:ratio")) +
		` or ` + kind("MTU", recorded("node:roce_port_mtu_bytes:avg")) +
		` or ` + kind("PCIe lanes", recorded("node:roce_pcie_link_width_lanes:avg")) +
		` or ` + kind("ECN thresholds", recorded("node:roce_queue_ecn_threshold_bytes:avg")) +
		` or ` + kind("firmware", firmwareChanges("fabric, node", ofTier, "$__range")) +
		` or ` + kind("a link went down", named("fabric, node", ofTier, `group by (instance, job) (increase(roce_port_link_down_events_total[$__range]) > 0)`)) + `)`
}

func changed() panel {
	return panel{
		title: "Changes in this time", width: 6,
		about: "Nodes that rebooted within the range shown, got another firmware, PFC mask, MTU, number of PCIe lanes or ECN thresholds, or lost a link. Normal: none. Widen the range to look further back; the marks in the graphs say when. What the watchdog does to the mask is no change.",
		draw: grid{
			sort: []sorting{{"Node", false}},
			columns: []column{
				{name: "node", heading: "Node", width: 120, links: []link{toSwitch, toNIC}},
				{name: "what", heading: "What"},
				{name: "fabric", heading: "Fabric", hidden: true},
			},
		},
		asks:  []ask{{`topk(50, ` + changes() + `) or label_replace(absent(node:roce_node:info{` + ofTier + `}), "what", "nothing is known", "", "")`, "", look{}}},
		value: value{none: "nothing"},
	}
}
