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

	// Share of time that a port is paused by its peer, in the best way that it is known.
	pausedMeasured = `port_priority:roce_pfc_paused:ratio_rate2m`
	pausedApprox   = `port_priority:roce_pfc_paused_approx:ratio_rate5m`
)

// pausedAnyhow is the share of time that ports are paused, measured or else
// estimated or bounded by frames: then the label basis says so.
func pausedAnyhow(of string) string {
	return fmt.Sprintf(`(%s{%s} or on (fabric, node, port, priority) %s)`, pausedMeasured, of, pausedInexactly(of))
}

// spoken says how it is known in a column of its own, also that it is measured.
func spoken(paused string) string {
	return `label_replace(label_replace(` + paused + `, "basis", "measured", "basis", ""), "basis", "$1", "basis", "\\((?:by )?(.*)\\)")`
}

// pausedInexactly is that share where nobody measures it.
func pausedInexactly(of string) string {
	return fmt.Sprintf(`label_replace(label_replace(%s{%s}, "basis", "(by frames, at most)", "basis", "frames"), "basis", "(estimated)", "basis", "estimated")`, pausedApprox, of)
}

// withPeer adds what is at the other end, as it is known at the end of the
// range shown: where it changed, one port shall not be two lines.
func withPeer(expr, labels string) string {
	return fmt.Sprintf(`label_replace((%[1]s) * on (fabric, node, port) group_left (%[2]s) (port:roce_peer:info @ end() or on (fabric, node, port) group by (fabric, node, port) (%[1]s)), "peer", "unknown", "peer", "")`, expr, labels)
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
	shareHot = value{unit: "percentunit", decimals: ptr(1), steps: []step{{0, good}, {0.01, notice}, {0.1, warning}, {0.5, bad}}}
	clock    = value{unit: "time:ddd HH:mm"}
	noneBad  = value{unit: "short", decimals: ptr(0), steps: []step{{0, good}, {1, bad}}, none: "unknown"}

	// How long a port is paused, in words.
	pausedWords = value{unit: "percentunit", steps: []step{{0, good}}, words: []word{
		{math.Inf(-1), 0.01, "under 1 % of the time", good},
		{0.01, 0.1, "1 to 10 %", notice},
		{0.1, 0.5, "10 to 50 %", warning},
		{0.5, math.Inf(1), "over 50 %", bad},
	}, none: "not measured"}
)

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
	targets := `up{job=~".*roce.*"} * on (instance, job) group_left (fabric) instance_job:roce_node:last_info{` + ofFabric + `}`
	return panel{
		title: "Can this be trusted?", width: 4, draw: figures{column: true},
		about: "How many of the exporters that were seen in the last day answer, and how many nodes are seen only in part: their counters stand still, are not polled or could not be read. " +
			"Normal: 100 % and 0. Otherwise what is missing may hide the cause: see the alerts, and the dashboard of the exporter.",
		asks: []ask{
			{`avg(` + targets + `)`, "of exporters answer", look{value: &value{unit: "percentunit", decimals: ptr(0), steps: []step{{0, bad}, {0.95, warning}, {0.9999, good}}, none: "unknown"}}},
			{
				`count(group by (fabric, node) (ALERTS{layer="meta", node!="", severity!="info", alertname!~"RoCE(ClockSkew|CardinalityHigh|ScrapeSlow)", ` + ofFabric + `})) or 0 * count(node:roce_node:info{` + ofFabric + `})`,
				"nodes seen in part",
				look{value: &value{decimals: ptr(0), steps: []step{{0, good}, {1, warning}}, none: "unknown"}},
			},
		},
		value: value{none: "unknown", steps: []step{{0, neutral}}},
	}
}

func startedBy() panel {
	origin := `max by (fabric, node, port, priority) (ALERTS{alertname=~"RoCEPFCStormOrigin", ` + ofFabric + `, ` + ofPriority + `})`
	deadlock := `max by (fabric, node, port, peer, priority) (ALERTS{alertname="RoCEPFCDeadlockSuspected", ` + ofFabric + `, ` + ofPriority + `})`
	frames := `max by (fabric, peer, peer_port, priority) (ALERTS{alertname="RoCEPFCStormApprox", severity="critical", ` + ofFabric + `, ` + ofPriority + `})`
	return panel{
		title: "Who pauses the others?", width: 5, draw: figures{names: true},
		about: "The node that pauses others while nobody pauses it: begin with it, the others suffer from it. A host: its PCIe, its process, its NIC. A switch: its buffers and its full queue. " +
			"Two that stop each other are a deadlock: break it by switching one port off. \"Nobody\" is normal; it is said only where pause is measured.",
		asks: []ask{
			{`topk(4, ` + origin + `)`, "{{node}} {{port}}", look{color: bad}},
			{`topk(1, ` + deadlock + `)`, "{{node}} and {{peer}} each other", look{color: bad}},
			{`topk(4, ` + frames + `)`, "{{peer}} {{peer_port}} (by frames)", look{color: bad}},
			{
				`label_replace(0 * count(` + pausedMeasured + `{` + ofFabric + `, ` + ofPriority + `}) unless (count(` + origin + `) or count(` + deadlock + `) or count(` + frames + `)), "who", "nobody", "", "")`,
				"{{who}}",
				look{color: good},
			},
		},
		value: value{none: "unknown", steps: []step{{0, bad}}},
		links: []link{{"Both ends of this link", "/d/roce-port?" + carried + seriesNode + "&var-port=${__field.labels.port}"}},
	}
}

func priorityAndSince() panel {
	paused := `(max by (priority) (` + pausedMeasured + `{` + tierPriority + `}) or on (priority) max by (priority, basis) (` + pausedInexactly(tierPriority) + `))`
	const (
		all   = `ALERTS_FOR_STATE{severity="critical", fabric=~"$fabric|"}`
		pause = `ALERTS_FOR_STATE{severity="critical", layer="pfc", fabric=~"$fabric|"}`
	)
	moment := look{value: &value{unit: "time:ddd HH:mm", steps: []step{{0, bad}}}}
	nothing := look{value: &value{words: []word{{0, 0, "none", good}}}}
	return panel{
		title: "Which priority, since when?", width: 4, draw: figures{both: true, column: true},
		about: "The priorities on which a port is paused for more than 2 % of the time, and for how long the worst of them. Then since when the first critical alert about pause is true, in local time; without any, that about something else. " +
			"Normal: none and none. A priority that should not be lossless: see configuration.",
		asks: []ask{
			{`topk(2, ` + paused + ` > 0.02)`, "priority {{priority}} {{basis}}", look{value: &value{unit: "percentunit", decimals: ptr(0), steps: []step{{0, notice}, {0.1, warning}, {0.5, bad}}}}},
			{`0 * count(` + paused + `) unless count(` + paused + ` > 0.02)`, "priority", nothing},
			{`min(` + pause + `) * 1000`, "paused since", moment},
			{`(min(` + all + `) unless min(` + pause + `)) * 1000`, "critical since", moment},
			{`0 * count(node:roce_node:info{` + ofFabric + `}) unless count(` + all + `)`, "critical alert", nothing},
		},
		value: value{none: "unknown", steps: []step{{0, neutral}}},
	}
}

func whatChanged() panel {
	return panel{
		title: "What changed?", width: 4, draw: figures{names: true, column: true},
		about: "Up to two of the changes within the range shown that concern most ports: reboots, firmware, masks, MTUs, thresholds, links that went down. All of them are in the list below. Normal: nothing. If something did, compare its time with that of the storm: the marks in the graphs.",
		asks: []ask{
			{`topk(2, ` + changes() + `)`, "{{node}}: {{what}}", look{}},
			{`count_values("more", count(` + changes() + `) - 2 > 0)`, "and {{more}} more", look{}},
			{`label_replace(count(node:roce_node:info{` + ofTier + `}) unless count(` + changes() + `), "what", "nothing", "", "")`, "{{what}}", look{}},
		},
		value: value{none: "unknown", steps: []step{{0, neutral}}},
		links: []link{{"This switch", "/d/roce-switch?" + carried + seriesNode}, {"This host", "/d/roce-nic?" + carried + seriesNode}},
	}
}

func whoIsHit() panel {
	paused := pausedAnyhow(tierPriority)
	over := `(` + paused + ` > 0.1)`
	hosts := `max by (fabric, node) (` + over + ` and on (fabric, node) node:roce_node:info{role="host"})`
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
			{`label_replace(count(` + paused + `) unless count(` + over + `), "who", "nobody", "", "")`, "{{who}}", look{color: good}},
		},
		value: value{none: "unknown", steps: []step{{0, warning}}},
		links: []link{{"This host", "/d/roce-nic?" + carried + seriesNode}},
	}
}

func lost() panel {
	return panel{
		title: "What is lost?", width: 3, draw: figures{column: true},
		about: "Packets that lossless queues and groups dropped in 5 minutes, and storms that PFC watchdogs found in an hour. Normal: 0 and 0. A watchdog drops on purpose: find the storm. Without one, look at the headroom of the port.",
		asks: []ask{
			{`sum(port:roce_lossless_dropped_packets:increase5m{` + ofTier + `}) or 0 * count(port_queue:roce_queue_lossless:info{` + ofTier + `})`, "packets, 5 min", look{}},
			{`round(sum(` + named("fabric, node, port, queue", ofTier, `increase(roce_pfcwd_storms_detected_total[1h])`) + `))`, "storms, 1 h", look{}},
		},
		value: noneBad,
	}
}

func whoPausesWhom() panel {
	rows := withPeer(spoken(pausedAnyhow(tierPriority)), "peer, peer_port, peer_role")
	rows = `max by (fabric, node, port, peer, peer_port, peer_role, priority, basis) (` + rows + `) > 0.01`
	const (
		itself   = `fabric, node, port, priority`
		peerKeys = `fabric, peer, priority`
		much     = ` > on () group_left () roce:pfc_origin:threshold`
		host     = ` and on (fabric, node, port) port:roce_peer:info{peer_role="host"}`
		begin    = "no: begin here"
	)
	asPeer := func(expr string) string {
		return ` and on (` + peerKeys + `) max by (` + peerKeys + `) (label_replace(` + expr + `, "peer", "$1", "node", "(.*)"))`
	}
	known := asPeer(pausedAnyhow(ofFabric))
	// The first that holds says whether who pauses is paused itself. A host hands
	// nothing on: that it is paused as well is no excuse.
	var said []string
	for _, s := range []struct{ says, which string }{
		{"yes, by it: deadlock", rows + ` and on (` + itself + `) ALERTS{alertname="RoCEPFCDeadlockSuspected"}`},
		{begin, rows + much + host},
		{"no", rows + host},
		{"yes: it hands on", rows + asPeer(pausedAnyhow(ofFabric)+` > 0.02`)},
		{begin, rows + much + known},
		{"no", rows + known},
		{"unknown", rows},
	} {
		said = append(said, `label_replace(`+s.which+`, "itself", "`+s.says+`", "", "")`)
	}
	top := `topk(20, ` + strings.Join(said, ` or on (`+itself+`) `) + `)`
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
			{top + ` or label_replace(absent(` + pausedMeasured + ` or ` + pausedApprox + `), "peer", "nothing is known", "", "")`, "", look{}},
		},
		value: value{none: "no port is paused for more than 1 %"},
	}
}

func firing() panel {
	// The state of an alert tells since when.
	state := `(ALERTS_FOR_STATE{severity=~"critical|warning", fabric=~"$fabric|"} and ignoring (alertstate) ALERTS{alertstate="firing"})`
	const notLoaded = `label_replace(label_replace(absent(ALERTS{alertname="RoCEWatchdogHeartbeat"}), "alertname", "rules are not loaded", "", ""), "severity", "unknown", "", "")`
	return panel{
		title: "Alerts", width: 10,
		about: "Alerts that fire, critical ones first: where the first of them was seen, since when, and on how many series. Normal: none. The runbook of each says what to do.",
		draw: grid{
			sort: []sorting{{"Severity", false}, {"Since", false}},
			columns: []column{
				{name: "severity", heading: "Severity", width: 75, value: severities},
				{name: "alertname", heading: "Alert", width: 245},
				{name: "node", heading: "First at", width: 80, links: []link{toSwitch, toNIC}},
				{name: "port", heading: "Port", width: 95, links: []link{toPort}},
				{name: "A", heading: "Since", width: 95, value: &clock},
				{name: "B", heading: "Count", value: &value{unit: "short", decimals: ptr(0)}},
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
	series := `max by (fabric, node, port, priority) (` + pausedMeasured + `{` + tierPriority + `})`
	return panel{
		title: "Ports that were paused most", width: 12,
		about: "The 10 ports with the highest share of time paused within the range shown, and who paused them. A port in red could not send for most of the time. Normal: all green. A hole: not measured then.",
		draw:  states{},
		asks: []ask{{
			withPeer(series+` and on (fabric, node, port, priority) topk(10, max_over_time(`+pausedMeasured+`{`+tierPriority+`}[$__range] @ end()))`, "peer"),
			"{{node}} {{port}}, paused by {{peer}}",
			look{},
		}},
		value: pausedWords, least: "30s",
	}
}

func pausedByTier() panel {
	return panel{
		title: "Paused: worst port of each tier", width: 6, draw: lines{}, tiers: true,
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
		title: "ECN marks: worst queue of each tier", width: 6, draw: lines{}, tiers: true,
		about: "Share of packets that the worst queue of each tier marks. Normal: under 1 %. Over 3 % throughput begins to swing; pauses without any marks mean that the thresholds are too high. No line: not counted, or fewer than 100 packets a second.",
		asks: []ask{
			{`max by (tier) (port_queue:roce_queue_ecn_marked:ratio_rate5m{` + ofTier + `})`, "{{tier}}", look{}},
			{`roce:ecn_marks:threshold`, "too many", look{color: warning, dashed: true}},
		},
		value: share,
	}
}

func pausedSpread() panel {
	bucket := func(le string) string {
		return fmt.Sprintf(`label_replace(sum(%s <= bool %s), "le", "%s", "", "")`, pausedMeasured+"{"+tierPriority+"}", le, le)
	}
	var buckets []string
	for _, le := range []string{"0.001", "0.01", "0.05", "0.1", "0.25", "0.5", "1"} {
		buckets = append(buckets, bucket(le))
	}
	return panel{
		title: "How many ports are paused how long", width: 6, draw: heat{},
		about: "Ports by the share of time in which they are paused: each line up to what is written at its top; below is how many a color means. Normal: all in the lowest line. A line at the top with few ports is one link; many ports half way up are victims of one.",
		asks:  []ask{{strings.Join(buckets, " or "), "{{le}}", look{}}},
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
		about: "What all ports of a tier send. A drop while nothing is lost and pauses rise is what a storm costs; a drop without pauses is the job itself.",
		asks:  []ask{{`sum by (tier) (port:roce_port_transmit_bytes:rate5m{` + ofTier + `}) * 8`, "{{tier}}", look{}}},
		value: bits,
	}
}

// changes are what changed within the range shown: nodes and how many ports or
// events of them.
func changes() string {
	kind := func(what, expr string) string {
		return fmt.Sprintf(`label_replace(%s, "what", "%s", "", "")`, expr, what)
	}
	ports := func(record string) string {
		return `count by (fabric, node) (` + differs(record+`{`+ofTier+`}`, theRange) + `)`
	}
	return `(` + kind("rebooted", named("fabric, node", ofTier, rebooted(theRange))) +
		` or ` + kind("PFC mask", ports("port:roce_pfc_enabled:count")) +
		` or ` + kind("MTU", ports("port:roce_port_mtu_bytes")) +
		` or ` + kind("ECN thresholds", `count by (fabric, node) (`+named("fabric, node, port, queue", ofTier, differs("roce_queue_ecn_threshold_bytes", theRange))+`)`) +
		` or ` + kind("firmware", firmwareChanges("fabric, node", "$__range")) +
		` or ` + kind("link down", `round(sum by (fabric, node) (`+named("fabric, node, port", ofTier, `increase(roce_port_link_down_events_total[$__range]) > 0`)+`))`) + `)`
}

func changed() panel {
	return panel{
		title: "Changes in this time", width: 6,
		about: "Reboots, firmware, PFC masks, MTUs and ECN thresholds that changed within the range shown, and links that went down; with the number of ports, queues or events. Normal: none. Widen the range to look further back.",
		draw: grid{
			sort: []sorting{{"Node", false}},
			columns: []column{
				{name: "node", heading: "Node", width: 100, links: []link{toSwitch, toNIC}},
				{name: "what", heading: "What", width: 190},
				{name: "A", heading: "How many", value: &value{unit: "short", decimals: ptr(0)}},
				{name: "fabric", heading: "Fabric", hidden: true},
			},
		},
		asks:  []ask{{`topk(20, ` + changes() + `)`, "", look{}}},
		value: value{none: "nothing"},
	}
}
