// SPDX-License-Identifier: Apache-2.0

package dashboards

// Of the node that was chosen.
const raw = `instance=~"$instance"`

func mine(labels, expr string) string { return named(labels, ofNode, expr) }

func switchBoard() board {
	return board{
		uid: "roce-switch", title: "switch", from: "now-3h", role: "switch",
		about:     "One switch: can its numbers be trusted, which of its ports are paused and which pause others, what fills up.",
		variables: []string{"datasource", "fabric", "tier", "node", "port", "priority"},
		hidden:    []hidden{instances("instance", "node")},
		rows: []row{
			{height: 4, panels: []panel{whichNode("switch", "{{hwsku}}, {{os_version}}"), upSince("switch"), countersFresh(), portsPaused(), portsPausing(), switchLost()}},
			{height: 9, panels: []panel{switchPorts()}},
			{height: 7, panels: []panel{worstPaused(), worstPausing()}},
			{height: 7, panels: []panel{uplinks(), switchMarks(), headroom()}},
			{height: 7, panels: []panel{watchdog(), pools(), switchDrops()}},
			{height: 7, panels: []panel{polled(), thresholdsInForce(), services()}},
		},
	}
}

func whichNode(role, legend string) panel {
	return panel{
		title: "What is $node?", width: 4, draw: figures{names: true},
		about: "Model and software of the node, as it says itself. Normal: what the inventory says, and the same on all nodes of a kind. Unknown: its exporter does not answer.",
		asks: []ask{
			{`max by (hwsku, platform, os_version) (roce_node_info{` + raw + `, role="` + role + `"})`, legend, look{}},
			{`absent(roce_node_info{` + raw + `, role="` + role + `"})`, "unknown", look{}},
		},
		value: value{steps: []step{{0, neutral}}, none: "unknown"},
	}
}

func upSince(role string) panel {
	return panel{
		title: "Up for", width: 3, draw: figures{},
		about: "Since the node booted. Normal: longer than the trouble. A reboot within the hour explains lost masks and MTUs, and counters that begin again.",
		asks:  []ask{{`max(node:roce_node_uptime_seconds{` + ofNode + `, role="` + role + `"})`, "", look{}}},
		value: value{unit: "dtdurations", decimals: ptr(0), steps: []step{{0, warning}, {3600, neutral}}, none: "unknown"},
	}
}

func countersFresh() panel {
	return panel{
		title: "Can it be trusted?", width: 5, draw: figures{column: true},
		about: "How long ago any counter of a port moved, by the clock of the switch, and how many groups of counters are not polled: these show their last value for ever, as if nothing happened. Normal: under 2 minutes, and 0.",
		asks: []ask{
			{mine("node", `max by (instance, job) (roce_node_time_seconds{`+raw+`}) - on (instance, job) group_right () roce_counters_last_change_timestamp_seconds{`+raw+`}`), "since counters moved", look{value: &value{unit: "s", decimals: ptr(0), steps: []step{{0, good}, {60, warning}, {120, bad}}, none: "unknown"}}},
			{`count(` + mine("group", `roce_flex_counter_enabled{`+raw+`} == 0`) + `) or 0 * count(roce_flex_counter_enabled{` + raw + `})`, "groups not polled", look{value: &value{decimals: ptr(0), steps: []step{{0, good}, {1, warning}}, none: "unknown"}}},
		},
		value: value{none: "unknown", steps: []step{{0, neutral}}},
	}
}

func portsPaused() panel {
	return panel{
		title: "Paused by others", width: 4, draw: figures{both: true, column: true},
		about: "Ports of this switch that their neighbours pause for more than 2 % of the time. Normal: 0. Follow the worst to its other end.",
		asks: []ask{
			{`count(group by (port) (` + pausedAnyhow(ofNode+", "+ofPriority) + ` > 0.02)) or 0 * count(` + pausedAnyhow(ofNode+", "+ofPriority) + `) unless on () ALERTS{alertname="RoCECountersFrozen", ` + ofNode + `}`, "ports", look{}},
		},
		value: value{decimals: ptr(0), steps: []step{{0, good}, {1, warning}}, none: "unknown"},
	}
}

func portsPausing() panel {
	pauses := `port_priority:roce_pfc_pauses_peer:ratio_rate2m{` + ofNode + `, ` + ofPriority + `}`
	return panel{
		title: "Pauses others", width: 4, draw: figures{both: true, column: true},
		about: "Ports through which this switch pauses its neighbour for more than 2 % of the time, as the neighbour measures it. Normal: 0. If nobody pauses this switch, the cause is here: its buffers, its full queue, its speed.",
		asks:  []ask{{`count(group by (port) (` + pauses + ` > 0.02)) or 0 * count(` + pauses + `)`, "ports", look{}}},
		value: value{decimals: ptr(0), steps: []step{{0, good}, {1, warning}}, none: "unknown"},
	}
}

func switchLost() panel {
	return panel{
		title: "What is lost?", width: 4, draw: figures{column: true},
		about: "Packets that lossless queues and groups of this switch dropped in 5 minutes, and storms that its watchdog found in an hour. Normal: 0. A watchdog drops on purpose.",
		asks: []ask{
			{orUnknown(`sum(port:roce_lossless_dropped_packets:increase5m{` + ofNode + `}) or 0 * count(` + dropsCounted(ofNode, `{`+raw+`}`) + `)`), "packets in 5 min", look{}},
			{orUnknown(`round(sum(` + mine("port, queue", counting(`increase(roce_pfcwd_storms_detected_total{`+raw+`}[1h])`)) + `))`), "storms in 1 h", look{}},
		},
		value: noneBad,
	}
}

func switchPorts() panel {
	yes := value{words: []word{{0, 0, "down", warning}, {1, 1, "up", good}}, none: "unknown"}
	loss := value{unit: "short", decimals: ptr(0), steps: []step{{0, good}, {1, bad}}, none: "unknown"}
	return panel{
		title: "Ports of $node", width: 24,
		about: "One row a port, those that are paused most first. Normal: up, shares under 1 %, nothing lost. Unknown: not measured or not counted on this switch. A click on a port shows both ends of its link.",
		draw: grid{
			sort: []sorting{{"Is paused", true}, {"Pauses it", true}},
			columns: []column{
				{name: "port", heading: "Port", width: 120, links: []link{toPort}},
				{name: "peer", heading: "Neighbour", width: 110, links: []link{toPeer}},
				{name: "peer_port", heading: "Its port", width: 120, links: []link{toPeer}},
				{name: "A", heading: "State", width: 70, value: &yes},
				{name: "B", heading: "Speed", width: 95, value: &value{unit: "bps", none: "unknown"}},
				{name: "C", heading: "MTU", width: 70, value: &value{unit: "none", none: "unknown"}},
				{name: "D", heading: "Lossless priorities", width: 145, value: &value{unit: "none", decimals: ptr(0), none: "unknown", steps: []step{{0, bad}, {1, neutral}}}},
				{name: "E", heading: "Is paused", width: 95, value: noneUnknown(shareHot)},
				{name: "basis", heading: "Known by", width: 125},
				{name: "F", heading: "Pauses it", width: 95, value: noneUnknown(shareHot)},
				{name: "G", heading: "ECN marks", width: 95, value: noneUnknown(value{unit: "percentunit", decimals: ptr(2), steps: []step{{0, good}, {0.01, notice}, {0.03, warning}}})},
				{name: "H", heading: "Sends", width: 100, value: &value{unit: "bps", none: "unknown"}},
				{name: "I", heading: "Lost, lossless", width: 115, value: &loss},
				{name: "J", heading: "Damaged", value: &loss},
				{name: "fabric", heading: "Fabric", hidden: true},
				{name: "node", heading: "Node", hidden: true},
			},
		},
		asks: []ask{
			{`max by (fabric, node, port, peer, peer_port) (port:roce_port_oper_up{` + ofPort + `} * on (fabric, node, port) group_left (peer, peer_port) port:roce_peer:info)`, "", look{}},
			{mine("fabric, node, port", `roce_port_speed_bytes_per_second{`+raw+`, port=~"$port"}`) + ` * 8`, "", look{}},
			{`max by (fabric, node, port) (port:roce_port_mtu_bytes{` + ofPort + `})`, "", look{}},
			{`max by (fabric, node, port) (port:roce_pfc_enabled:count{` + ofPort + `})`, "", look{}},
			{
				`max by (fabric, node, port, basis) (topk by (fabric, node, port) (1, ` + inColumn(inUse(pausedAnyhow(ofPort+", "+ofPriority))) + `))` +
					` or on (fabric, node, port) max by (fabric, node, port) (` + pausedAnyhow(ofPort+", "+ofPriority) + `)`, "", look{},
			},
			{`max by (fabric, node, port) (port_priority:roce_pfc_pauses_peer:ratio_rate2m{` + ofPort + `, ` + ofPriority + `})`, "", look{}},
			{`max by (fabric, node, port) (port_queue:roce_queue_ecn_marked:ratio_rate5m{` + ofPort + `})`, "", look{}},
			{`max by (fabric, node, port) (port:roce_port_transmit_bytes:rate5m{` + ofPort + `}) * 8`, "", look{}},
			{`sum by (fabric, node, port) (port:roce_lossless_dropped_packets:increase5m{` + ofPort + `}) or 0 * ` + mine("fabric, node, port", counting(`group by (instance, job, asic, port) (roce_queue_dropped_packets_total{`+raw+`, port=~"$port"} or roce_pg_dropped_packets_total{`+raw+`, port=~"$port"})`)), "", look{}},
			{mine("fabric, node, port", counting(`increase(roce_port_receive_crc_errors_total{`+raw+`, port=~"$port"}[5m])`)), "", look{}},
		},
		value: value{none: "unknown"},
	}
}

// noneUnknown says so where there is no value.
func noneUnknown(v value) *value {
	v.none = "unknown"
	return &v
}

func worstPaused() panel {
	return panel{
		title: "Who pauses ports of $node", width: 12, draw: lines{right: true},
		about: "The 8 ports that are paused most, measured or else estimated, and who pauses them. Normal: under 1 %. Estimates by frames are upper bounds.",
		asks:  []ask{{withPeer(worst(8, "port", `max by (fabric, node, port, basis) (`+inBrackets(inUse(pausedAnyhow(ofPort+", "+ofPriority)))+`)`), "peer"), "{{peer}} pauses {{port}} {{basis}}", look{}}},
		value: share,
		links: []link{toSeries},
	}
}

func worstPausing() panel {
	return panel{
		title: "Whom $node pauses", width: 12, draw: lines{right: true},
		about: "The 8 ports through which this switch pauses its neighbours most, as they measure it. Normal: under 1 %. A switch that pauses its hosts hands on what it suffers, or is too full itself.",
		asks:  []ask{{withPeer(worst(8, "port", `max by (fabric, node, port) (port_priority:roce_pfc_pauses_peer:ratio_rate2m{`+ofPort+`, `+ofPriority+`})`), "peer"), "{{port}} pauses {{peer}}", look{}}},
		value: share,
		links: []link{toSeries},
	}
}

func uplinks() panel {
	return panel{
		title: "Balance: what goes to other switches", width: 8, draw: gauges{},
		about: "What each port to another switch sends, as a share of its speed. Normal: all nearly alike. One far above the others: flows share a path; look at the hash.",
		asks: []ask{{
			`topk(16, sort_desc(max by (port, peer) (port:roce_port_transmit_bytes:rate5m{` + ofPort + `} / on (fabric, node, port) ` +
				mine("fabric, node, port", `roce_port_speed_bytes_per_second{`+raw+`}`) + ` * on (fabric, node, port) group_left (peer) port:roce_link:info{` + ofPort + `, peer_role="switch"})))`,
			"{{port}} to {{peer}}",
			look{},
		}},
		value: value{unit: "percentunit", decimals: ptr(1), min: ptr(0), max: ptr(1), steps: []step{{0, "blue"}}, none: "no port to another switch, or not counted"},
	}
}

func switchMarks() panel {
	return panel{
		title: "ECN marks, worst queues", width: 8, draw: lines{},
		about: "Share of packets that queues mark. Normal: under 1 %. Over the line throughput begins to swing. No line: not counted: see whether the group is polled, below.",
		asks: []ask{
			{worst(6, "port, queue", `max by (port, queue) (port_queue:roce_queue_ecn_marked:ratio_rate5m{`+ofPort+`})`), "{{port}} queue {{queue}}", look{}},
			{`roce:ecn_marks:threshold`, "too many", look{color: warning, dashed: true}},
		},
		value: share,
	}
}

func headroom() panel {
	used := mine("port, pg", counting(`max_over_time(roce_pg_headroom_watermark_bytes{`+raw+`, port=~"$port", window="periodic"}[10m])`)+` / on (instance, job, port, pg) group_left () (max by (instance, job, port, pg) (roce_pg_headroom_size_bytes{`+raw+`}) > 0)`)
	return panel{
		title: "Headroom in use, fullest groups", width: 8, draw: lines{},
		about: "Share of the headroom that was used within 10 minutes: what still arrives after this switch said stop. At 100 % the next packet is dropped. Normal: under 50 %. Full: the cable is longer, the MTU larger or the speed higher than the headroom was made for.",
		asks: []ask{
			{worst(6, "port, pg", used), "{{port}} group {{pg}}", look{}},
			{`roce:headroom_warning:threshold`, "nearly full", look{color: warning, dashed: true}},
		},
		value: value{unit: "percentunit", min: ptr(0), none: "not known: no headroom is told"},
	}
}

func watchdog() panel {
	return panel{
		title: "PFC watchdog", width: 8, draw: states{},
		about: "Queues on which the watchdog found a storm within the range shown. While it handles one it drops what the queue has, and takes the priority out of the mask. The last line stands for all queues. Normal: no storm.",
		asks: []ask{{
			mine("port, queue", counting(`roce_pfcwd_storm_active{`+raw+`, port=~"$port"}`)) + ` and on (port, queue) topk(10, ` + mine("port, queue", `max_over_time(roce_pfcwd_storm_active{`+raw+`}[$__range] @ end())`) + ` > 0)`,
			"{{port}} queue {{queue}}",
			look{},
		}, {`max(` + mine("port, queue", counting(`roce_pfcwd_storm_active{`+raw+`}`)) + `)`, "any queue", look{}}},
		value: value{words: []word{{0, 0, "no storm", good}, {1, 1, "storm: drops", bad}}, none: "no watchdog tells of storms"},
	}
}

func pools() panel {
	return panel{
		title: "Buffer pools", width: 8, draw: lines{},
		about: "The most that each pool held since its last reset, as a share of its size. Normal: lossless pools far from full; lossy pools may fill. A full lossless pool makes the switch stop whoever sends to it.",
		asks: []ask{
			{mine("pool, asic", counting(`max_over_time(roce_buffer_pool_watermark_bytes{`+raw+`, window="periodic"}[10m])`)+` / on (instance, job, asic, pool) group_left () (max by (instance, job, asic, pool) (roce_buffer_pool_size_bytes{`+raw+`}) > 0)`), "{{pool}} {{asic}}", look{}},
			{`roce:buffer_pool:threshold`, "nearly full", look{color: warning, dashed: true}},
		},
		value: value{unit: "percentunit", min: ptr(0), none: "not known: no size or watermark is told"},
	}
}

func switchDrops() panel {
	all := func(index, counter string) string {
		return `sum(` + mine("port, "+index, counting(`rate(`+counter+`{`+raw+`, port=~"$port"}[$__rate_interval])`)) + `)`
	}
	drops := func(index, counter string) string {
		return worst(4, "port, "+index, mine("port, "+index, counting(`rate(`+counter+`{`+raw+`, port=~"$port"}[$__rate_interval])`))+` > 0`)
	}
	return panel{
		title: "Drops", width: 8, draw: lines{},
		about: "Packets a second that queues, lossless groups and the watchdog of this switch drop: all together, and the worst of each. Normal: 0. A lossless group that drops: its headroom is too small, or the other end does not obey.",
		asks: []ask{
			{all("queue", "roce_queue_dropped_packets_total"), "all queues", look{}},
			{all("pg", "roce_pg_dropped_packets_total"), "all lossless groups", look{}},
			{drops("queue", "roce_queue_dropped_packets_total"), "{{port}} queue {{queue}}", look{}},
			{drops("pg", "roce_pg_dropped_packets_total"), "{{port}} group {{pg}}", look{}},
			{drops("queue, direction", "roce_pfcwd_dropped_packets_total"), "{{port}} queue {{queue}}, by the watchdog ({{direction}})", look{}},
		},
		value: value{unit: "pps", min: ptr(0), none: "not counted"},
	}
}

func polled() panel {
	return panel{
		title: "Which counters are polled", width: 8,
		about: "Groups of counters that the switch can poll. Normal: all. One that is off leaves its last values behind, and every rate of them is 0: that is unknown, not good. Switch it on with counterpoll. ECN marks are off by default on many releases.",
		draw: grid{
			sort: []sorting{{"Polled?", false}, {"Group", false}},
			columns: []column{
				{name: "group", heading: "Group", width: 230},
				{name: "A", heading: "Polled?", width: 110, value: &value{words: []word{{0, 0, "no: unknown", warning}, {1, 1, "yes", good}}, none: "unknown"}},
				{name: "B", heading: "Every", value: &value{unit: "s", none: "unknown"}},
			},
		},
		asks: []ask{
			{`min by (group) (` + mine("group, asic", `roce_flex_counter_enabled{`+raw+`}`) + `)`, "", look{}},
			{mine("group", `roce_flex_counter_interval_seconds{`+raw+`}`), "", look{}},
		},
		value: value{none: "unknown"},
	}
}

func thresholdsInForce() panel {
	count := func(bound string) string {
		return `count by (queue, bound, bytes) (count_values by (queue, bound, port) ("bytes", ` + mine("port, queue, bound", `roce_queue_ecn_threshold_bytes{`+raw+`, port=~"$port", bound="`+bound+`"}`) + `))`
	}
	return panel{
		title: "ECN thresholds in force", width: 8,
		about: "Where marking begins (min) and where every packet is marked (max), and on how many ports. Normal: one pair for all ports of a speed. Several pairs: a change that did not reach all; a value that is hundreds of times another: cells taken for bytes.",
		draw: grid{
			sort: []sorting{{"Queue", false}, {"Bound", false}},
			columns: []column{
				{name: "queue", heading: "Queue", width: 80},
				{name: "bound", heading: "Bound", width: 90},
				{name: "bytes", heading: "Bytes", width: 140},
				{name: "A", heading: "Ports", value: &value{unit: "none"}},
			},
		},
		asks:  []ask{{count("min") + ` or ` + count("max"), "", look{}}},
		value: value{none: "no ECN threshold is known"},
	}
}

func services() panel {
	return panel{
		title: "Services and databases", width: 8, draw: states{},
		about: "Services that the switch needs to forward and to count, and the databases that are read. Normal: all up. swss or syncd down: forwarding may go on, but nothing changes and no counter moves. Never reload its QoS configuration.",
		asks: []ask{
			{mine("name", `roce_service_up{`+raw+`}`), "{{name}}", look{}},
			{`min by (node) (` + mine("node, database", `roce_redis_up{`+raw+`}`) + `)`, "databases", look{}},
		},
		value: value{words: []word{{0, 0, "down", bad}, {1, 1, "up", good}}, none: "unknown"},
	}
}
