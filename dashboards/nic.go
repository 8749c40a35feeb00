// SPDX-License-Identifier: Apache-2.0

package dashboards

// Of the ports that were chosen, and of the RDMA devices on them.
const rawPort = raw + `, port=~"$port"`

// onPort moves what an RDMA device counts to its network port, so that a
// choice of ports holds for both.
func onPort(expr string) string {
	return `(` + expr + `) * on (instance, job, device, rdma_port) group_left (port) group by (instance, job, device, rdma_port, port) (roce_rdma_port_info{` + rawPort + `})`
}

func deviceRate(counter string) string { return `rate(` + counter + `{` + raw + `}[$__rate_interval])` }

func portRate(counter string) string {
	return `rate(` + counter + `{` + rawPort + `}[$__rate_interval])`
}

func nicBoard() board {
	return board{
		uid: "roce-nic", title: "host and its NICs", from: "now-3h", role: "host",
		about:     "One host: does it slow the fabric, is it slowed, does it lose, and is it set as it should be. Its NICs are compared with each other: in one job they do the same.",
		variables: []string{"datasource", "fabric", "tier", "node", "port", "priority"},
		hidden:    []hidden{instances("instance", "node")},
		rows: []row{
			{height: 4, panels: []panel{whichNode("host", "{{platform}} {{hwsku}} {{os_version}}"), upSince("host"), hostPauses(), hostPaused(), hostLost(), hostCards()}},
			{height: 5, panels: []panel{nics()}},
			{height: 7, panels: []panel{nicTraffic(), nicPaused(), nicWaits()}},
			{height: 7, panels: []panel{nicNotifications(), perPacket(), nicReliability()}},
			{height: 7, panels: []panel{byPriority(), nicDrops(), nicEvents()}},
		},
	}
}

func hostPauses() panel {
	return panel{
		title: "Does it slow the fabric?", width: 5, draw: figures{both: true, column: true},
		about: "For which share of the time the worst NIC of this host stops its switch, now. Normal: under 1 %. A host has no reason to stop its switch: look at PCIe, at its buffers and at the process that reads.",
		asks: []ask{{
			`topk(1, max by (port) (port_priority:roce_pfc_pauses_peer:ratio_rate2m{` + ofPort + `, ` + ofPriority + `})) or (topk(1, max by (port) (label_replace(` +
				pausedNow + `{` + ofFabric + `, ` + ofPriority + `, peer=~"$node", basis!="measured"}, "port", "by frames, at most", "", ""))) unless on () port_priority:roce_pfc_pauses_peer:ratio_rate2m{` + ofPort + `, ` + ofPriority + `})`,
			"{{port}}",
			look{},
		}},
		value: value{unit: "percentunit", decimals: ptr(1), steps: shareHot.steps, none: "unknown"},
	}
}

func hostPaused() panel {
	return panel{
		title: "Is it slowed by the fabric?", width: 4, draw: figures{both: true, column: true},
		about: "For which share of the time the worst NIC of this host is stopped by its switch, now. Normal: under 1 %. Then the cause is elsewhere: see the fabric.",
		asks:  []ask{{`topk(1, max by (port, basis) (` + inBrackets(inUse(pausedAnyhow(ofPort+", "+ofPriority))) + `))`, "{{port}} {{basis}}", look{}}},
		value: value{unit: "percentunit", decimals: ptr(1), steps: shareHot.steps, none: "unknown"},
	}
}

func hostLost() panel {
	count := func(counter string) string { return `increase(` + counter + `{` + raw + `}[5m])` }
	return panel{
		title: "In the last 5 minutes", width: 4, draw: figures{column: true},
		about: "RDMA packets that this host sent again, and those that its NICs dropped. Normal: 0. In a lossless fabric nothing is sent again; if it is, something on the path drops, or damages.",
		asks: []ask{
			{`round(sum(` + mine("device, rdma_port", onPort(count("roce_rdma_retransmits_total"))) + `))`, "packets sent again", look{}},
			{`round(sum(` + mine("port, priority, reason", `increase(roce_nic_priority_dropped_packets_total{`+rawPort+`}[5m])`) + ` or ` + mine("device, rdma_port", onPort(count("roce_rdma_receive_queue_empty_drops_total"))) + `))`, "packets dropped", look{}},
		},
		value: noneBad,
	}
}

func hostCards() panel {
	return panel{
		title: "Set as it should be?", width: 4, draw: figures{both: true, column: true},
		about: "Alerts about configuration, links, devices, inventory, marks and notifications that fire or are about to fire for this host. Normal: none. Which they are is in the dashboard of the configuration.",
		asks: []ask{{
			`count(ALERTS{layer=~"config|link|inventory|ecn|cnp", severity!="info", ` + ofNode + `}) or 0 * count(node:roce_node:info{` + ofNode + `})` + judged, "alerts", look{},
		}},
		value: value{decimals: ptr(0), steps: []step{{0, good}, {1, warning}}, none: "unknown"},
		links: []link{{"Configuration of this host", "/d/roce-compliance?" + carried + "&${fabric:queryparam}&${node:queryparam}"}},
	}
}

func nics() panel {
	lanes := value{unit: "none", decimals: ptr(0), none: "unknown"}
	return panel{
		title: "NICs of $node", width: 24,
		about: "One row a NIC. Normal: all alike. Fewer PCIe lanes than the card and slot have, an MTU of 1500, another firmware or driver: found here. A click on a port shows both ends of its link.",
		draw: grid{
			sort: []sorting{{"Port", false}},
			columns: []column{
				{name: "port", heading: "Port", width: 110, links: []link{toPort}},
				{name: "peer", heading: "Switch", width: 80, links: []link{toPeer}},
				{name: "peer_port", heading: "Its port", width: 110, links: []link{toPeer}},
				{name: "device", heading: "RDMA device", width: 110},
				{name: "driver", heading: "Driver", width: 90},
				{name: "firmware", heading: "Firmware", width: 210},
				{name: "A", heading: "State", width: 70, value: &value{words: []word{{0, 0, "down", bad}, {1, 1, "up", good}}, none: "unknown"}},
				{name: "B", heading: "Speed", width: 90, value: &value{unit: "bps", none: "unknown"}},
				{name: "C", heading: "PCIe lanes", width: 95, value: &lanes},
				{name: "D", heading: "PCIe lanes missing", width: 150, value: &value{unit: "none", none: "unknown", steps: []step{{0, good}, {1, bad}}}},
				{name: "E", heading: "MTU", width: 70, value: &value{unit: "none", none: "unknown", steps: []step{{0, bad}, {4200, good}}}},
				{name: "F", heading: "RDMA MTU", width: 95, value: &value{unit: "none", none: "unknown", steps: []step{{0, bad}, {4096, good}}}},
				{name: "G", heading: "Lossless priorities", width: 145, value: &value{unit: "none", none: "unknown", steps: []step{{0, bad}, {1, neutral}}}},
				{name: "H", heading: "RoCE v2 GIDs", value: &value{unit: "none", none: "unknown", steps: []step{{0, bad}, {1, neutral}}}},
				{name: "fabric", heading: "Fabric", hidden: true},
				{name: "node", heading: "Node", hidden: true},
			},
		},
		asks: []ask{
			{
				`max by (fabric, node, port, peer, peer_port, device, driver, firmware) ((port:roce_port_oper_up{` + ofPort + `} * on (fabric, node, port) group_left (peer, peer_port) port:roce_peer:info)` +
					` * on (fabric, node, port) group_left (driver, firmware, device) topk by (fabric, node, port) (1, ` + mine("fabric, node, port, driver, firmware, device", `group by (instance, job, port, driver, firmware, device) (roce_rdma_port_info{`+rawPort+`})`) +
					` or on (fabric, node, port) ` + mine("fabric, node, port, driver, firmware", `group by (instance, job, port, driver, firmware) (roce_port_info{`+rawPort+`, kind="physical"})`) + `))`, "", look{},
			},
			{mine("fabric, node, port", `roce_port_speed_bytes_per_second{`+rawPort+`}`) + ` * 8`, "", look{}},
			{mine("fabric, node, port", `roce_pcie_link_width_lanes{`+rawPort+`}`), "", look{}},
			{mine("fabric, node, port", `roce_pcie_link_max_width_lanes{`+rawPort+`} - roce_pcie_link_width_lanes{`+rawPort+`}`), "", look{}},
			{mine("fabric, node, port", `roce_port_mtu_bytes{`+rawPort+`, source="kernel"}`), "", look{}},
			{`min by (fabric, node, port) (` + mine("fabric, node, port, device", onPort(`roce_rdma_mtu_bytes{`+raw+`}`)) + `)`, "", look{}},
			{`max by (fabric, node, port) (port:roce_pfc_enabled:count{` + ofPort + `})`, "", look{}},
			{mine("fabric, node, port", onPort(`roce_rdma_gids{`+raw+`, type="v2"}`)), "", look{}},
		},
		value: value{none: "no NIC is known"},
	}
}

func nicTraffic() panel {
	return panel{
		title: "Traffic", width: 8, draw: lines{},
		about: "What each NIC sends and receives, and the speed of the slowest link. Normal in a job: all NICs alike. One below the others slows the whole job. A flat line far under the speed is a limit: of PCIe, of an MTU of 1500, of a rate.",
		asks: []ask{
			{worst(8, "port", mine("port", portRate("roce_port_transmit_bytes_total"))+` * 8`), "{{port}} sends", outward},
			{worst(8, "port", mine("port", portRate("roce_port_receive_bytes_total"))+` * 8`), "{{port}} receives", inward},
			{`min(` + mine("port", `roce_port_speed_bytes_per_second{`+rawPort+`}`) + `) * 8`, "slowest link", look{color: neutral, dashed: true}},
		},
		value: bits,
	}
}

func nicPaused() panel {
	return panel{
		title: "Share of time paused", width: 8, draw: lines{},
		about: "For how long each NIC is stopped by its switch, and for how long it stops that. Normal: under 1 %. A NIC that stops its switch is where a storm begins; one that is stopped is a victim.",
		asks: []ask{
			{worst(8, "port", `max by (port, basis) (`+inBrackets(inUse(pausedAnyhow(ofPort+", "+ofPriority)))+`)`), "{{port}} is paused by its switch {{basis}}", inward},
			{worst(8, "port", `max by (port) (port_priority:roce_pfc_pauses_peer:ratio_rate2m{`+ofPort+`, `+ofPriority+`})`), "{{port}} pauses its switch", outward},
		},
		value: value{unit: "percentunit", min: ptr(0), none: "not measured here"},
	}
}

func nicWaits() panel {
	told := func(operation string) string {
		return worst(4, "port", mine("port", `roce_pcie_stall_ratio{`+rawPort+`, operation="`+operation+`"}`+
			` or rate(roce_pcie_stall_seconds_total{`+rawPort+`, operation="`+operation+`"}[$__rate_interval])`))
	}
	return panel{
		title: "Waiting for PCIe", width: 8, draw: lines{},
		about: "Share of time in which the host did not take (write) or give (read) data over PCIe in time; of some NICs, the share of seconds in which it did not for over 30 %. Normal: near 0. High, with pauses to the switch: the host is the bottleneck: lanes, generation, IOMMU, the memory of the other socket.",
		asks: []ask{
			{told("read"), "{{port}} read", look{color: "purple", shades: true}},
			{told("write"), "{{port}} write", look{color: "blue", shades: true}},
		},
		value: value{unit: "percentunit", min: ptr(0), none: "these NICs do not tell"},
	}
}

func nicNotifications() panel {
	sum := func(counter string) string {
		return `sum(` + mine("device, rdma_port", onPort(deviceRate(counter))) + `)`
	}
	return panel{
		title: "Congestion notifications", width: 8, draw: lines{},
		about: "CNPs a second that this host sent (its senders shall slow down), heeded (it slowed down) and ignored, and packets that arrived marked. Normal: sent follows marked, ignored is 0. Sent without marks: firmware.",
		asks: []ask{
			{sum("roce_rdma_cnp_sent_packets_total"), "sent", look{}},
			{sum("roce_rdma_cnp_handled_packets_total"), "heeded", look{}},
			{sum("roce_rdma_cnp_ignored_packets_total"), "ignored", look{color: bad}},
			{sum("roce_rdma_ecn_marked_packets_total"), "received with a mark", look{}},
		},
		value: value{unit: "pps", min: ptr(0), none: "these NICs do not tell"},
	}
}

func perPacket() panel {
	return panel{
		title: "CNPs per packet, beside the fabric", width: 8, draw: lines{soft: 0.001},
		about: "CNPs that each device sends for a packet that it receives, and the median of the fabric. Normal: near the median. Far above it on all devices of one host: compare its firmware with others.",
		asks: []ask{
			{worst(8, "device", `max by (device) (device:roce_rdma_cnp_sent_per_packet:ratio_rate5m{`+ofNode+`})`), "{{device}}", look{}},
			{`fabric:roce_rdma_cnp_sent_per_packet:median_rate5m{` + ofFabric + `}`, "median of {{fabric}}", look{color: neutral, dashed: true}},
		},
		value: share,
	}
}

func nicReliability() panel {
	sum := func(counter string) string {
		return `sum(` + mine("device, rdma_port", onPort(deviceRate(counter))) + `)`
	}
	return panel{
		title: "Reliability", width: 8, draw: lines{},
		about: "RDMA packets a second that came out of order or were asked for or sent again. Normal: 0 in every line. Out of order without anything sent again: several paths. Sent again: loss. Receiver not ready: the application.",
		asks: []ask{
			{sum("roce_rdma_out_of_sequence_packets_total"), "out of order", look{}},
			{sum("roce_rdma_sequence_naks_total"), "asked for again", look{}},
			{sum("roce_rdma_retransmits_total"), "sent again", look{color: bad}},
			{sum("roce_rdma_ack_timeouts_total"), "no answer in time", look{}},
			{sum("roce_rdma_rnr_naks_total"), "receiver not ready", look{color: "purple"}},
			{sum("roce_rdma_icrc_errors_total"), "damaged (ICRC)", look{color: "light-blue"}},
		},
		value: value{unit: "pps", min: ptr(0), none: "these NICs do not tell"},
	}
}

func byPriority() panel {
	rates := func(which string) string {
		return `sum by (priority) (` + mine("port, priority", portRate("roce_nic_priority_"+which+"_bytes_total")+` * 8 > 1e6`) + `)`
	}
	return panel{
		title: "Received, by priority", width: 8, draw: lines{},
		about: "What all NICs of the host receive on each priority that has more than 1 Mbit/s. Normal: nearly all on the lossless one. RDMA on another priority is not protected: a wrong DSCP, or trust in the VLAN tag.",
		asks:  []ask{{rates("receive"), "priority {{priority}}", look{}}},
		value: value{unit: "bps", min: ptr(0), none: "these NICs do not tell"},
	}
}

func nicDrops() panel {
	return panel{
		title: "Dropped by the NIC", width: 8, draw: lines{},
		about: "Packets a second that NICs dropped and why: the worst of all, and which they are: a packet may count in several. Normal: 0. Buffer: PFC is off or too slow. No descriptor: the application does not provide buffers.",
		asks: []ask{
			{
				`max(` + mine("port, priority, reason", portRate("roce_nic_priority_dropped_packets_total")) + ` or ` + mine("port, reason", portRate("roce_nic_receive_dropped_packets_total")) + ` or ` +
					mine("device", onPort(deviceRate("roce_rdma_receive_queue_empty_drops_total"))) + ` or ` + mine("port", portRate("roce_port_receive_buffer_dropped_packets_total")) + `)`, "worst of all", look{color: neutral},
			},
			{worst(5, "port, priority, reason", mine("port, priority, reason", portRate("roce_nic_priority_dropped_packets_total"))+` > 0`), "{{port}} priority {{priority}}: {{reason}}", look{}},
			{worst(5, "port, reason", mine("port, reason", portRate("roce_nic_receive_dropped_packets_total"))+` > 0`), "{{port}}: {{reason}}", look{}},
			{worst(4, "device", mine("device", onPort(deviceRate("roce_rdma_receive_queue_empty_drops_total")))+` > 0`), "{{device}}: receive queue empty", look{}},
			{worst(4, "port", mine("port", portRate("roce_port_receive_buffer_dropped_packets_total"))+` > 0`), "{{port}}: port buffer", look{}},
		},
		value: value{unit: "pps", min: ptr(0), none: "these NICs do not tell"},
	}
}

func nicEvents() panel {
	storms := func(severity string) string {
		return worst(6, "port", mine("port", `increase(roce_nic_pause_storm_events_total{`+rawPort+`, severity="`+severity+`"}[$__interval])`)+` > 0`)
	}
	every := func(counter string) string { return mine("port", `increase(`+counter+`{`+rawPort+`}[$__interval])`) }
	return panel{
		title: "Events in each interval", width: 8, draw: lines{bars: true, stacked: true}, least: "2m",
		about: "Pause storms that a NIC found in itself, links that went down, and times that a receive buffer was nearly full. Normal: none. A storm error: the NIC gave up pausing and may drop; reset it.",
		asks: []ask{
			{storms("error"), "{{port}}: pause storm, error", look{color: bad, shades: true}},
			{storms("warning"), "{{port}}: pause storm, warning", look{color: warning, shades: true}},
			{worst(6, "port", mine("port", `increase(roce_port_link_down_events_total{`+rawPort+`}[$__interval])`)+` > 0`), "{{port}}: link down", look{color: "purple", shades: true}},
			{worst(6, "port", mine("port", `increase(roce_nic_receive_buffer_high_events_total{`+rawPort+`}[$__interval])`)+` > 0`), "{{port}}: buffer nearly full", look{color: "blue", shades: true}},
			{
				`0 * sum(` + every("roce_port_link_down_events_total") + ` or ` + every("roce_nic_receive_buffer_high_events_total") + `)`, "counted", look{color: neutral},
			},
		},
		value: value{unit: "short", min: ptr(0), none: "these NICs do not tell"},
	}
}
