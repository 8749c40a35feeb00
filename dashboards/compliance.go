// SPDX-License-Identifier: Apache-2.0

package dashboards

// Alerts about how things are set, firing or about to.
const setWrong = `ALERTS{layer=~"config|link|inventory|ecn|cnp", severity!="info", ` + ofNode + `, tier=~"$tier"}`

// oneAlert are the labels that tell one alert from another, whatever its state.
const oneAlert = "alertname, severity, fabric, node, port, priority, device, dscp, pci_address, peer, peer_port, queue"

func complianceBoard() board {
	return board{
		uid: "roce-compliance", title: "configuration", from: "now-24h",
		about:     "Is everything set as it should be: PFC, MTU, DSCP, ECN, the watchdog, links and cards; on which ports not, and since when.",
		variables: []string{"datasource", "fabric", "tier", "node"},
		rows: []row{
			{height: 4, panels: []panel{
				findings("PFC", 3, "RoCEPFC(Mask.*|NotAsIntended|WatchdogDisabled)|RoCEPGProfileMissing", "masks of priorities, and the watchdog",
					"A mask that a reboot lost, that the ASIC does not have, or that the other end does not share: on that link nothing is lossless."),
				findings("MTU", 3, "RoCEMTU.*", "sizes of packets", "An MTU of 1500 costs a fifth of the throughput; one that is smaller than that of the other end drops what is too long."),
				findings("DSCP and trust", 3, "RoCEDSCP.*|RoCETrust.*|RoCETraffic.*|RoCECNPQueueShared", "which traffic lands where", "RDMA that lands on a lossy priority is dropped under load."),
				findings("ECN", 3, "RoCEECN.*", "marks and thresholds, and where there are none", "Without ECN only PFC is left; thresholds that differ were changed in part, or in another unit."),
				findings("Links and cards", 4, "RoCELink(Speed.*|Flapping|Errors|LayerWrong)|RoCEPCIe.*|RoCEFEC.*|RoCEUplink.*|RoCEFDB.*|RoCEFlood.*", "speed, lanes, errors", "A link or card at half of what it can do slows the whole job."),
				findings("Devices", 4, "RoCERDMADevice.*|RoCEGID.*|RoCEFirmware.*|RoCEARP.*|RoCENeighbor.*|RoCECNP(OutlierNode|Ignored|NotHandled|Surge)", "what is missing, differs or behaves otherwise", "A device that is gone or has another name, an address that was not set, another firmware."),
				notChecked(),
			}},
			{height: 9, panels: []panel{wrongNow()}},
			{height: 9, panels: []panel{portMatrix()}},
			{height: 10, panels: []panel{drift(), firmwares()}},
			{height: 7, panels: []panel{ecnSpread(), mtuSpread(), maskSpread()}},
		},
	}
}

func findings(title string, width uint32, alerts, what, meaning string) panel {
	of := `ALERTS{alertname=~"` + alerts + `", severity!="info", fabric=~"$fabric|", node=~"$node|", tier=~"$tier|"}`
	return panel{
		title: title, width: width, draw: figures{},
		about: "Findings: " + what + ". Alerts that fire or are about to. Normal: 0. " + meaning + " Unknown: the rules are not loaded, or nothing is known of these nodes.",
		asks:  []ask{{`count(group by (` + oneAlert + `) (` + of + `)) or 0 * count(node:roce_node:info{` + ofNode + `, tier=~"$tier"})` + judged, "", look{}}},
		value: noneBad,
	}
}

func notChecked() panel {
	return panel{
		title: "Not checked", width: 4, draw: figures{column: true},
		about: "Nodes whose exporter was not told what is intended (policy), and ports that are up but whose neighbour is not known: what compares with the one or the other is silent there. Normal: 0 and 0.",
		asks: []ask{
			{`count(` + named("fabric, node", ofNode, `roce_node_info unless on (instance, job) roce_policy_lossless_priority`) + ` and on (fabric, node) node:roce_node:info{` + ofNode + `, tier=~"$tier"}) or 0 * count(node:roce_node:info{` + ofNode + `, tier=~"$tier"})`, "nodes without policy", look{}},
			{`count(port:roce_port_up:info{` + ofNode + `, tier=~"$tier", role="switch"} and on (fabric, node, port) port:roce_port:info{kind="front"} unless on (fabric, node, port) port:roce_link:info) or 0 * count(port:roce_port_oper_up{` + ofNode + `, tier=~"$tier", role="switch"})`, "neighbours unknown", look{}},
		},
		value: value{decimals: ptr(0), steps: []step{{0, good}, {1, warning}}, none: "unknown"},
	}
}

func wrongNow() panel {
	return panel{
		title: "What is not as it should be", width: 24,
		about: "Findings, critical ones first, the 100 newest of each severity, with the place and since when. Pending: true, but not long enough yet to tell somebody. Normal: no rows. The runbook says for each what to do.",
		draw: grid{
			sort: []sorting{{"Severity", false}, {"What", false}, {"Node", false}},
			columns: []column{
				{name: "severity", heading: "Severity", width: 85, value: severities},
				{name: "alertname", heading: "What", width: 250},
				{name: "node", heading: "Node", width: 130, links: []link{toSwitch, toNIC}},
				{name: "port", heading: "Port", width: 150, links: []link{toPort}},
				{name: "priority", heading: "Priority", width: 80},
				{name: "device", heading: "Device", width: 110},
				{name: "peer", heading: "Other end", width: 130, links: []link{toPeer}},
				{name: "peer_port", heading: "Its port", width: 150, links: []link{toPeer}},
				{name: "alertstate", heading: "State", width: 90},
				{name: "A", heading: "Since", value: &clock},
				{name: "fabric", heading: "Fabric", hidden: true},
			},
		},
		asks: []ask{{
			`topk by (severity) (100, max by (severity, alertname, alertstate, fabric, node, port, priority, device, peer, peer_port) (` + setWrong + ` * on (` + oneAlert + `) group_left () ` +
				`max by (` + oneAlert + `) (ALERTS_FOR_STATE))) * 1000`, "", look{},
		}},
		value: value{none: "nothing"},
	}
}

func portMatrix() panel {
	// Only ports with a finding: a fabric has ten thousands of ports.
	const only = ` and on (fabric, node, port) group by (fabric, node, port) (ALERTS{layer=~"config|link|inventory|ecn", severity!="info", port!="", ` + ofNode + `, tier=~"$tier"})`
	check := func(expr string) string {
		return `min by (fabric, node, port) (` + named("fabric, node, port", ofTier+`, node=~"$node"`, expr) + `)` + only
	}
	each := func(by, expr string) string { return `min by (instance, job, ` + by + `) (` + expr + `)` }
	const (
		inForce = `roce_pfc_enabled{source!="config"}`
		here    = `port_priority:roce_pfc_enabled:in_force`
		there   = `port_priority:roce_pfc_enabled:of_peer`
		differ  = here + ` unless on (fabric, node, port, priority) ` + there + ` or ` + there + ` unless on (fabric, node, port, priority) ` + here
		both    = `max by (fabric, node, port) (port:roce_pfc_enabled:count and on (fabric, node, port) port:roce_pfc_enabled:count_of_peer)`
	)
	verdict := &value{none: "unknown", words: []word{{0, 0, "no", bad}, {1, 1, "yes", good}}}
	return panel{
		title: "Ports with a finding, check by check", width: 24,
		about: "All checks of the ports in the list above, so that what belongs together is seen together. Normal: yes. No: not as it should be. Unknown: this port or node does not tell, or there is no policy to compare with.",
		draw: grid{
			sort: []sorting{{"Node", false}, {"Port", false}},
			columns: []column{
				{name: "node", heading: "Node", width: 105, links: []link{toSwitch, toNIC}},
				{name: "port", heading: "Port", width: 120, links: []link{toPort}},
				{name: "A", heading: "Findings", width: 85, value: &value{decimals: ptr(0), steps: []step{{0, neutral}}, none: "unknown"}},
				{name: "B", heading: "PFC as configured", width: 150, value: verdict},
				{name: "C", heading: "PFC as intended", width: 135, value: verdict},
				{name: "D", heading: "PFC as other end", width: 140, value: verdict},
				{name: "E", heading: "MTU in force", width: 110, value: &value{unit: "none", none: "unknown", steps: []step{{0, bad}, {4200, good}}}},
				{name: "F", heading: "MTU as intended", width: 140, value: verdict},
				{name: "G", heading: "RDMA lands lossless", width: 160, value: verdict},
				{name: "H", heading: "ECN on", width: 85, value: verdict},
				{name: "I", heading: "Watchdog on", width: 110, value: verdict},
				{name: "J", heading: "Full speed", width: 95, value: verdict},
				{name: "K", heading: "Neighbour known", value: verdict},
				{name: "fabric", heading: "Fabric", hidden: true},
			},
		},
		asks: []ask{
			{`count by (fabric, node, port) (ALERTS{layer=~"config|link|inventory|ecn", severity!="info", port!="", ` + ofNode + `, tier=~"$tier"})`, "", look{}},
			{check(each("port", `roce_pfc_enabled{source="asic"} == bool on (instance, job, port, priority) group_left () max by (instance, job, port, priority) (roce_pfc_enabled{source="config"})`)), "", look{}},
			{
				check(each("port", `(`+inForce+` and on (instance, job, priority) roce_policy_lossless_priority or 1 - (`+inForce+` unless on (instance, job, priority) roce_policy_lossless_priority)) and on (instance, job, port) roce_policy_port and on (instance, job) roce_policy_lossless_priority`)),
				"",
				look{},
			},
			{`(0 * group by (fabric, node, port) (` + differ + `) and on (fabric, node, port) ` + both + ` or on (fabric, node, port) 1 + 0 * ` + both + `)` + only, "", look{}},
			{check(each("port", `roce_port_mtu_bytes{source!="config"}`)), "", look{}},
			{check(each("port", `roce_port_mtu_bytes{source=~"config|kernel"} == bool on (instance, job, port) group_left () max by (instance, job, port) (roce_policy_port_mtu_bytes)`)), "", look{}},
			{
				check(each("port", `(group by (instance, job, port, dscp, priority) (roce_port_dscp_info) and on (instance, job, dscp) roce_policy_dscp{class="data"}) * 0 + on (instance, job, port, priority) group_left () max by (instance, job, port, priority) (`+inForce+`)`)),
				"",
				look{},
			},
			{check(each("port", `roce_queue_ecn_enabled`)), "", look{}},
			{check(each("port", `roce_pfcwd_enabled`)), "", look{}},
			{check(each("port", `roce_port_speed_bytes_per_second >= bool on (instance, job, port) group_left () max by (instance, job, port) (roce_policy_port_speed_bytes_per_second or on (instance, job, port) roce_port_configured_speed_bytes_per_second)`)), "", look{}},
			{
				`min by (fabric, node, port) (1 + 0 * port:roce_link:info{` + ofNode + `} or on (fabric, node, port) 0 * port:roce_port_oper_up{` + ofNode + `, role="switch"})` + only,
				"",
				look{},
			},
		},
		value: value{none: "no port has a finding"},
	}
}

func drift() panel {
	return panel{
		title: "Findings over time", width: 16, draw: lines{stacked: true, right: true},
		about: "How many findings there were, by what they are. Normal: none. A step up tells when a change went wrong; compare it with the marks of reboots and of changes.",
		asks: []ask{{
			worst(12, "alertname", `count by (alertname) (group by (`+oneAlert+`) (`+setWrong+`))`), "{{alertname}}", look{},
		}},
		value: value{unit: "short", decimals: ptr(0), min: ptr(0), none: "no findings"},
	}
}

func firmwares() panel {
	return panel{
		title: "Firmware of RDMA devices", width: 8,
		about: "How many RDMA devices have which firmware, by kind of card. Normal: one firmware a card. Several: an update is under way, or was forgotten somewhere.",
		draw: grid{
			sort: []sorting{{"Card", false}, {"Devices", true}},
			columns: []column{
				{name: "board_id", heading: "Card", width: 150},
				{name: "firmware", heading: "Firmware", width: 190},
				{name: "driver", heading: "Driver", width: 90},
				{name: "A", heading: "Devices", value: &value{unit: "none"}},
			},
		},
		asks: []ask{{
			`topk(50, count by (board_id, firmware, driver) (` + named("fabric, node, device, board_id, firmware, driver", ofTier+`, node=~"$node"`, `group by (instance, job, device, board_id, firmware, driver) (roce_rdma_port_info)`) + `))`,
			"",
			look{},
		}},
		value: value{none: "no RDMA device is known"},
	}
}

func ecnSpread() panel {
	bound := func(which string) string {
		return `count by (tier, queue, bound, bytes) (count_values by (tier, node, port, queue, bound) ("bytes", ` + named("fabric, tier, node, port, queue, bound", ofTier+`, node=~"$node"`, `roce_queue_ecn_threshold_bytes{bound="`+which+`"}`) + `))`
	}
	return panel{
		title: "ECN thresholds in use", width: 10,
		about: "How many queues have which thresholds. Normal: one pair a tier and speed. A value that is far from the others: cells taken for bytes, or a change that did not reach all.",
		draw: grid{
			sort: []sorting{{"Tier", false}, {"Queue", false}, {"Bound", true}, {"Queues", true}},
			columns: []column{
				{name: "tier", heading: "Tier", width: 90},
				{name: "queue", heading: "Queue", width: 75},
				{name: "bound", heading: "Bound", width: 75},
				{name: "bytes", heading: "Bytes", width: 130},
				{name: "A", heading: "Queues", value: &value{unit: "none"}},
			},
		},
		asks:  []ask{{`topk(50, ` + bound("min") + ` or ` + bound("max") + `)`, "", look{}}},
		value: value{none: "no thresholds are known"},
	}
}

func mtuSpread() panel {
	return panel{
		title: "MTUs in use", width: 7,
		about: "How many ports and RDMA devices have which MTU. Normal: one value a role, RDMA 4096. A few ports with 1500 are ports that were set up anew or nodes that were rebooted.",
		draw: grid{
			sort: []sorting{{"Of", false}, {"How many", true}},
			columns: []column{
				{name: "of", heading: "Of", width: 150}, {name: "bytes", heading: "Bytes", width: 90}, {name: "A", heading: "How many", value: &value{unit: "none"}},
			},
		},
		asks: []ask{{
			`sum by (of, bytes) (label_join(count by (role, bytes) (count_values by (role, node, port) ("bytes", port:roce_port_mtu_bytes{` + ofNode + `, tier=~"$tier"})), "of", " ", "role")) or ` +
				`label_replace(count by (bytes) (count_values by (node, device) ("bytes", ` + named("fabric, node, device", ofTier+`, node=~"$node"`, `min by (instance, job, device) (roce_rdma_mtu_bytes)`) + `)), "of", "RDMA device", "", "")`,
			"",
			look{},
		}},
		value: value{none: "no MTU is known"},
	}
}

func maskSpread() panel {
	return panel{
		title: "Lossless priorities in use", width: 7,
		about: "How many ports have PFC in force on which priority. Normal: all ports on the one or two priorities that are meant to be lossless. A few on others: an old template.",
		draw: grid{
			sort: []sorting{{"Role", false}, {"Priority", false}},
			columns: []column{
				{name: "role", heading: "Role", width: 110}, {name: "priority", heading: "Priority", width: 90}, {name: "A", heading: "Ports with PFC", value: &value{unit: "none"}},
			},
		},
		asks:  []ask{{`count by (role, priority) (port_priority:roce_pfc_enabled:in_force{` + ofNode + `, tier=~"$tier"}) or label_replace(count by (role) (port:roce_pfc_enabled:count{` + ofNode + `, tier=~"$tier"} == 0), "priority", "none", "", "")`, "", look{}}},
		value: value{none: "no mask is known"},
	}
}
