// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"strings"
)

// instances finds how a node is scraped: raw series carry no node, and asking
// for all of a fabric to keep one node's would be slow.
func instances(name, node string) hidden {
	return hidden{name: name, query: `label_values(instance_job:roce_node:info{fabric=~"$fabric", node=~"$` + node + `"}, instance)`, many: true}
}

// An end of a link.
type end struct {
	who      string // As titles call it.
	nodes    string // Selects it among instance_job:roce_node:info.
	recorded string // Selects it among recorded series.
	raw      string // Selects it among raw series.
}

var (
	thisEnd  = end{"$node $port", ofNode, ofPort, `instance=~"$instance", port=~"$port"`}
	otherEnd = end{"$peer $peer_port", `fabric=~"$fabric", node=~"$peer"`, `fabric=~"$fabric", node=~"$peer", port=~"$peer_port"`, `instance=~"$peer_instance", port=~"$peer_port"`}
)

// What comes to an end and what it sends have the same colors everywhere, with
// a shade for each priority.
var (
	inward  = look{color: "blue", shades: true}
	outward = look{color: "purple", shades: true}
)

// rate is the rate of a raw counter of this end.
func (e end) rate(counter, more string) string {
	rate := fmt.Sprintf(`rate(%s{%s}[$__rate_interval])`, counter, with(e.raw, more))
	if strings.HasPrefix(counter, "roce_nic_") { // No switch has it.
		return rate
	}
	return counting(rate)
}

// named gives raw series the name of the end's node, and keeps the labels.
func (e end) named(labels, expr string) string { return named(labels, e.nodes, expr) }

func with(selector, more string) string {
	if more == "" {
		return selector
	}
	return selector + ", " + more
}

func portBoard() board {
	here, there := thisEnd, otherEnd
	pair := func(height uint32, of func(e, other end) panel) row {
		left, right := of(here, there), of(there, here)
		left.width, right.width = 12, 12
		return row{height: height, panels: []panel{left, right}}
	}
	return board{
		uid: "roce-port", title: "port, both ends of a link", from: "now-3h",
		about:     "One link: on the left the port that was chosen, on the right the port at the other end. Each end shows what it measures itself.",
		variables: []string{"datasource", "fabric", "tier", "node", "port", "priority"},
		hidden: []hidden{
			instances("instance", "node"),
			// What is connected at the end of the range, not all that was within it.
			{name: "peer", query: `query_result(port:roce_link:info{` + ofPort + `})`, regex: `/[{,]peer="([^"]*)"/`},
			{name: "peer_port", query: `query_result(port:roce_link:info{` + ofPort + `})`, regex: `/[{,]peer_port="([^"]*)"/`},
			instances("peer_instance", "peer"),
		},
		rows: []row{
			{height: 4, panels: []panel{isPaused(), pauses(), linkState(), lostOnLink()}},
			pair(6, endPaused), pair(6, endFrames), pair(6, endTraffic), pair(6, endBuffers), pair(5, endLimits), pair(5, endMarks), pair(6, endErrors),
			{height: 11, panels: []panel{endsCompared()}},
		},
	}
}

func isPaused() panel {
	return panel{
		title: "$peer pauses $node $port", width: 6, draw: figures{both: true, column: true},
		about: "For which share of the time this port may not send, because the other end has stopped it, now. Normal: under 1 %. If it is much, look at the other end: what does it wait for?",
		asks:  []ask{{`topk(3, max by (priority, basis) (` + inBrackets(inUse(pausedAnyhow(ofPort+", "+ofPriority))) + `))`, "of the time, priority {{priority}} {{basis}}", look{}}},
		value: value{unit: "percentunit", decimals: ptr(1), steps: shareHot.steps, none: "unknown"},
	}
}

func pauses() panel {
	return panel{
		title: "$node $port pauses $peer", width: 6, draw: figures{both: true, column: true},
		about: "For which share of the time the other end may not send, because this port has stopped it, now. Normal: under 1 %. If it is much and this node is not paused itself, this is where it begins.",
		asks:  []ask{{`topk(3, max by (priority) (` + inUse(`port_priority:roce_pfc_pauses_peer:ratio_rate2m{`+ofPort+", "+ofPriority+`}`) + `))`, "of the time, priority {{priority}}", look{}}},
		value: value{unit: "percentunit", decimals: ptr(1), steps: shareHot.steps, none: "unknown"},
	}
}

func linkState() panel {
	speed := func(e end) string {
		return orUnknown(`max(` + e.named("node", `roce_port_speed_bytes_per_second{`+e.raw+`}`) + `) * 8`)
	}
	return panel{
		title: "Speed of the link", width: 6, draw: figures{both: true, column: true},
		about: "What each end runs at. Normal: both the same, and what was bought. Unknown: the link is down, or the end is not scraped. A link at half its speed has lost lanes: its cable or optic.",
		asks:  []ask{{speed(thisEnd), "$node", look{}}, {speed(otherEnd), "$peer", look{}}},
		value: value{unit: "bps", steps: []step{{0, neutral}}, words: []word{notKnown}, none: "unknown"},
	}
}

func lostOnLink() panel {
	dropped := func(e end) string {
		return orUnknown(`sum(port:roce_lossless_dropped_packets:increase5m{` + e.recorded + `}) or sum(` + e.named("priority, reason", `increase(roce_nic_priority_dropped_packets_total{`+e.raw+`}[5m])`) + ` and on (priority) port_priority:roce_pfc_enabled:in_force{` + e.recorded + `})` +
			` or 0 * count(` + dropsCounted(e.nodes, `{`+e.raw+`}`) + `)`)
	}
	checksums := func(e end) string {
		return e.named("node", counting(`increase(roce_port_receive_crc_errors_total{`+e.raw+`}[5m])`))
	}
	return panel{
		title: "Lost in the last 5 minutes", width: 6, draw: figures{column: true},
		about: "Packets that were dropped on lossless priorities at either end, and frames that arrived with a wrong checksum at those ends that tell. Normal: 0. Drops: headroom, or PFC is on at one end only. Checksums: clean or replace the cable.",
		asks: []ask{
			{dropped(thisEnd), "dropped by $node", look{}},
			{dropped(otherEnd), "dropped by $peer", look{}},
			{orUnknown(`sum(` + checksums(thisEnd) + ` or ` + checksums(otherEnd) + `)`), "damaged on the way", look{}},
		},
		value: noneBad,
	}
}

func endPaused(e, other end) panel {
	direction := func(which string) string {
		return e.named("priority", `clamp_max(`+e.rate("roce_pfc_"+which+"_pause_seconds_total", ofPriority)+`, 1)`)
	}
	return panel{
		title: e.who + ": share of time paused", draw: lines{},
		about: "As " + e.who + " measures it: for how long it is stopped by " + other.who + ", and for how long it stops that. Normal: under 1 %. No line: this end does not measure it; see the frames below.",
		asks: []ask{
			{direction("receive"), "is paused by " + other.who + ", priority {{priority}}", inward},
			{direction("transmit"), "pauses " + other.who + ", priority {{priority}}", outward},
		},
		value: value{unit: "percentunit", min: ptr(0), none: "not measured at this end"},
	}
}

func endFrames(e, other end) panel {
	frames := func(which string) string {
		all := e.named("priority", e.rate("roce_pfc_"+which+"_frames_total", ofPriority))
		return all + ` > 0 or ` + all + ` and on (priority) port_priority:roce_pfc_enabled:in_force{` + e.recorded + `}`
	}
	return panel{
		title: e.who + ": pause frames", draw: lines{},
		about: "PFC frames a second for each priority that is lossless or has any. Received frames stop this end, sent ones stop the other. How long a frame stops is not said: see the share of time. Normal: none, or bursts.",
		asks: []ask{
			{frames("receive"), "received from " + other.who + ", priority {{priority}}", inward},
			{frames("transmit"), "sent to " + other.who + ", priority {{priority}}", outward},
			{e.named("node", e.rate("roce_pause_receive_frames_total", "")) + ` > 0`, "received in all (802.3x; of some chips PFC too)", look{color: neutral, dashed: true}},
		},
		value: value{unit: "pps", min: ptr(0), none: "not counted at this end"},
	}
}

func endTraffic(e, _ end) panel {
	total := func(which string) string {
		return e.named("node", e.rate("roce_port_"+which+"_bytes_total", "")) + ` * 8`
	}
	priority := func(which string) string {
		return e.named("priority", e.rate("roce_nic_priority_"+which+"_bytes_total", ofPriority)) + ` * 8 > 1e6`
	}
	queue := e.named("priority", `max by (instance, job, port, queue) (`+e.rate("roce_queue_bytes_total", "")+`) * on (instance, job, port, queue) group_right () roce_queue_lossless{`+with(e.raw, ofPriority)+`}`) + ` * 8`
	return panel{
		title: e.who + ": traffic", draw: lines{},
		about: "What the port sends and receives in all, and on the priorities that are counted: those of a NIC with more than 1 Mbit/s, the lossless ones of a switch. Normal: nearly all of it on the lossless priority. What is missing at the other end was lost on the way.",
		asks: []ask{
			{total("transmit"), "sent", outward},
			{total("receive"), "received", inward},
			{priority("transmit"), "sent on priority {{priority}}", outward},
			{priority("receive"), "received on priority {{priority}}", inward},
			{queue, "sent on priority {{priority}}", outward},
		},
		value: bits,
	}
}

// lossless gives what is of a queue or group (index) its lossless priority.
func (e end) lossless(index, expr string) string {
	return e.named("priority", `max by (instance, job, port, `+index+`) `+counting(expr)+` * on (instance, job, port, `+index+`) group_right () roce_`+index+`_lossless{`+e.raw+`}`)
}

func endBuffers(e, _ end) panel {
	watermark := func(index string) string {
		return e.lossless(index, `roce_`+index+`_watermark_bytes{`+e.raw+`, window="periodic"}`)
	}
	return panel{
		title: e.who + ": buffer in use", draw: lines{},
		about: "The most that waited to be sent in each lossless queue, and that was received in each lossless group and not yet sent, since the last reset of the watermark. Normal: up to some hundred KiB. A queue with megabytes waits for the other end; a group with megabytes makes this end pause the other. A host has none of this.",
		asks: []ask{
			{watermark("queue"), "waits to be sent, priority {{priority}}", outward},
			{watermark("pg"), "was received, priority {{priority}}", inward},
		},
		value: value{unit: "bytes", min: ptr(0), none: "no queues are known here: a host, or not polled"},
	}
}

func endLimits(e, _ end) panel {
	return panel{
		title: e.who + ": headroom, PCIe, discards", draw: lines{},
		about: "Of a switch: the share of its headroom that was used, which is what arrived after it said stop; at 100 % the next packet is dropped. And the share of packets that it discarded. Of a NIC: the share of time in which PCIe did not take or give data: a NIC that pauses its switch and waits for PCIe is slow inside its host. Normal: headroom under 50 %, the others near 0.",
		asks: []ask{
			{
				e.lossless("pg", `roce_pg_headroom_watermark_bytes{`+e.raw+`, window="periodic"} / on (instance, job, port, pg) group_left () (max by (instance, job, port, pg) (roce_pg_headroom_size_bytes{`+e.raw+`}) > 0)`),
				"headroom in use, priority {{priority}}",
				look{color: "blue"},
			},
			{e.named("operation", `roce_pcie_stall_ratio{`+e.raw+`, operation="read"}`), "PCIe {{operation}} stalled", look{color: "purple"}},
			{e.named("operation", `roce_pcie_stall_ratio{`+e.raw+`, operation="write"}`), "PCIe {{operation}} stalled", look{color: "yellow"}},
			{
				e.named("node", e.rate("roce_port_transmit_discarded_packets_total", "")+` / (`+e.rate("roce_port_transmit_packets_total", "")+` > 0)`),
				"packets discarded",
				look{color: bad},
			},
		},
		value: value{unit: "percentunit", min: ptr(0), none: "not measured at this end"},
	}
}

func endMarks(e, _ end) panel {
	device := func(counter string) string {
		return `sum by (instance, job, port) (rate(` + counter + `{instance=~"` + e.instance() + `"}[$__rate_interval]) * on (instance, job, device, rdma_port) group_left (port) group by (instance, job, device, rdma_port, port) (roce_rdma_port_info{` + e.raw + `}))`
	}
	return panel{
		title: e.who + ": ECN marks", draw: lines{},
		about: "Of a switch: the share of packets that its queue marked while sending them. Of a host: the share of packets that arrived marked. Normal: under 1 %. Pauses without marks: thresholds are too high. No line: not counted.",
		asks: []ask{
			{`max by (queue) (port_queue:roce_queue_ecn_marked:ratio_rate5m{` + e.recorded + `})`, "marked by queue {{queue}}", look{}},
			{e.named("port", device("roce_rdma_ecn_marked_packets_total")+` / (`+device("roce_rdma_receive_packets_total")+` > 100)`), "received with a mark", look{}},
		},
		value: value{unit: "percentunit", min: ptr(0), none: "not counted at this end"},
	}
}

func (e end) instance() string {
	if e == thisEnd {
		return "$instance"
	}
	return "$peer_instance"
}

func endErrors(e, _ end) panel {
	sum := func(counter, each string) string {
		return `sum by (node) (` + e.named("node, port"+each, e.rate(counter, "")) + `)`
	}
	return panel{
		title: e.who + ": lost and damaged", draw: lines{},
		about: "Packets a second that this end dropped or received damaged. Normal: 0 in every line. Drops in a lossless group: headroom. Codewords that FEC cannot repair, checksums: the cable or optic. Too long: the MTU of this end is smaller than that of the other.",
		asks: []ask{
			{sum("roce_queue_dropped_packets_total", ", queue"), "dropped by queues", look{color: "yellow"}},
			{sum("roce_pg_dropped_packets_total", ", pg"), "dropped by lossless groups", look{color: bad}},
			{sum("roce_nic_priority_dropped_packets_total", ", priority, reason"), "dropped by the NIC", look{color: "orange"}},
			{sum("roce_port_receive_crc_errors_total", ""), "wrong checksum", look{color: "blue"}},
			{sum("roce_port_fec_uncorrectable_codewords_total", ""), "FEC could not repair", look{color: "purple"}},
			{sum("roce_port_receive_oversize_packets_total", ""), "too long", look{color: "light-green"}},
		},
		value: perSec,
	}
}

func endsCompared() panel {
	// Eight priorities would be many: those that are lossless anywhere here.
	const lossless = ` and on (priority) port_priority:roce_pfc_enabled:in_force{` + ofFabric + `}`
	what := func(text, expr string) string {
		return fmt.Sprintf(`label_replace(%s, "what", "%s", "", "")`, expr, text)
	}
	join := func(text, from, expr string) string {
		return fmt.Sprintf(`label_replace(%s, "what", "%s", "%s", "(.*) (.*)")`, expr, text, from)
	}
	only := func(expr string) string { return `max by (what) (` + expr + `)` }
	equal := func(e end) string {
		return only(what("is up", e.named("fabric", `roce_port_oper_up{`+e.raw+`}`)) +
			` or ` + what("speed in Gbit/s", e.named("fabric", `roce_port_speed_bytes_per_second{`+e.raw+`} * 8e-9`)) +
			` or ` + join("PFC is configured on priority $1", "words", `label_join(`+e.named("fabric, priority", `roce_pfc_enabled{`+with(e.raw, ofPriority)+`, source=~"config|nic"}`+lossless)+`, "words", " ", "priority", "priority")`) +
			` or ` + join("PFC is in force on priority $1", "words", `label_join(`+e.named("fabric, priority", `roce_pfc_enabled{`+with(e.raw, ofPriority)+`, source!="config"}`+lossless)+`, "words", " ", "priority", "priority")`) +
			` or ` + join("DSCP $1 lands on priority $2", "words", `label_join(`+e.named("fabric, dscp, priority", `roce_port_dscp_info{`+with(e.raw, ofPriority)+`}`)+`, "words", " ", "dscp", "priority")`))
	}
	// The MTU of a switch may be larger than that of its host.
	mtu := func(e end) string {
		return only(what("MTU in bytes, configured", e.named("fabric", `roce_port_mtu_bytes{`+e.raw+`, source=~"config|kernel"}`)) +
			` or ` + what("MTU in bytes, in force", e.named("fabric", `roce_port_mtu_bytes{`+e.raw+`, source=~"asic|kernel"}`)))
	}
	yes := value{words: []word{{0, 0, "no", ""}, {1, 1, "yes", ""}}, none: "unknown"}
	return panel{
		title: "Compared: $node $port (this end) and $peer $peer_port (other end)", width: 24,
		about: "What both ends of a link must agree on. Normal: all the same; the MTU of a switch may be larger. PFC on at one end only: that end stops the other and is not obeyed, or does not stop it at all. Unknown: that end does not tell.",
		draw: grid{
			sort: []sorting{{"Same?", false}, {"What", false}},
			columns: []column{
				{name: "what", heading: "What", width: 330},
				{name: "A", heading: "This end", width: 260, value: &yes},
				{name: "B", heading: "Other end", width: 260, value: &yes},
				{name: "C", heading: "Same?", value: &value{words: []word{{0, 0, "they differ", warning}, {1, 1, "the same", good}, {2, 2, "not the same; a switch may have more than its host", neutral}}, none: "unknown"}},
			},
		},
		asks: []ask{
			{equal(thisEnd) + ` or ` + mtu(thisEnd), "", look{}},
			{equal(otherEnd) + ` or ` + mtu(otherEnd), "", look{}},
			{`(` + equal(thisEnd) + ` == bool on (what) ` + equal(otherEnd) + `) or 2 - (` + mtu(thisEnd) + ` == bool on (what) ` + mtu(otherEnd) + `)`, "", look{}},
		},
		value: value{none: "nothing is known of this link"},
	}
}
