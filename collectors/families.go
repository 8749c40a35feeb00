// SPDX-License-Identifier: Apache-2.0

package collectors

import "slices"

// Sources is the table of the places where raw names are found.
func Sources() []RawSource {
	port, queue, pg := []string{"port"}, []string{"port", "queue", "type"}, []string{"port", "pg"}
	return append([]RawSource{
		{Name: "counters.port", Object: "port", Where: "COUNTERS_DB `COUNTERS:<port>`", Labels: port, Group: "PORT"},
		{Name: "counters.port.drops", Object: "port", Where: "COUNTERS_DB `COUNTERS:<port>`", Labels: port, Group: "PORT_BUFFER_DROP"},
		{Name: "counters.port.watchdog", Object: "port", Where: "COUNTERS_DB `COUNTERS:<port>`", Labels: port, Group: "PFCWD"},
		{Name: "counters.port.history", Object: "port", Where: "COUNTERS_DB `COUNTERS:<port>`, written by the PFC watchdog's script", Labels: port, Group: "PFCWD"},
		{Name: "configured.port", Object: "port", Where: "COUNTERS_DB `COUNTERS:<port>` with the unit of `switch.pause_duration_unit`", Labels: port, Group: "PFCWD"},
		{Name: "counters.queue", Object: "queue", Where: "COUNTERS_DB `COUNTERS:<queue>`", Labels: queue, Group: "QUEUE"},
		{Name: "counters.queue.ecn", Object: "queue", Where: "COUNTERS_DB `COUNTERS:<queue>`", Labels: queue, Group: "WRED_ECN_QUEUE"},
		{Name: "counters.queue.occupancy", Object: "queue", Where: "COUNTERS_DB `COUNTERS:<queue>`", Labels: queue, Group: "PFCWD"},
		{Name: "counters.queue.watchdog", Object: "queue", Where: "COUNTERS_DB `COUNTERS:<queue>`, written by the PFC watchdog", Labels: []string{"port", "queue"}},
		{Name: "watermarks.queue", Object: "queue watermark", Where: "COUNTERS_DB `<WINDOW>_WATERMARKS:<queue>`", Labels: append(queue[:3:3], "window"), Group: "QUEUE_WATERMARK"},
		{Name: "counters.voq", Object: "voq", Where: "COUNTERS_DB `COUNTERS:<VOQ>`", Labels: []string{"system_port", "queue"}, Group: "QUEUE"},
		{Name: "counters.voq.wred", Object: "voq", Where: "COUNTERS_DB `COUNTERS:<VOQ>`", Labels: []string{"system_port", "queue"}, Group: "WRED_ECN_QUEUE"},
		{Name: "counters.pg", Object: "group", Where: "COUNTERS_DB `COUNTERS:<priority group>`", Labels: pg, Group: "PG_DROP"},
		{Name: "watermarks.pg", Object: "group watermark", Where: "COUNTERS_DB `<WINDOW>_WATERMARKS:<priority group>`", Labels: append(pg[:2:2], "window"), Group: "PG_WATERMARK"},
		{Name: "watermarks.pool", Object: "pool watermark", Where: "COUNTERS_DB `<WINDOW>_WATERMARKS:<buffer pool>`", Labels: []string{"pool", "window"}, Group: "BUFFER_POOL_WATERMARK"},

		{Name: "watchdog", Where: "COUNTERS_DB `COUNTERS:<queue>`, written by the PFC watchdog", Facts: true},
		{Name: "config", Where: "CONFIG_DB", Facts: true},
		{Name: "asic", Where: "ASIC_DB `ASIC_STATE:SAI_OBJECT_TYPE_PORT:<port>`", Facts: true},
		{Name: "appl", Where: "APPL_DB", Facts: true},
		{Name: "state", Where: "STATE_DB", Facts: true},
		{Name: "flex", Where: "FLEX_COUNTER_DB `FLEX_COUNTER_GROUP_TABLE:<group>`", Facts: true},
		{Name: "redis", Where: "Redis itself", Facts: true},
		{Name: "file", Where: "files of the node", Facts: true},
		{Name: "policy", Where: "`policy` of the exporter's configuration", Facts: true},
		{Name: "exporter", Where: "the exporter itself", Facts: true},
	}, nicSources()...)
}

// sai returns the origin of one SAI statistic, or of the sum of several.
func sai(source string, raw ...string) Origin { return Origin{Source: source, Raw: raw} }

// fact returns an origin that is for documentation: code of its own reads it.
func fact(source, raw string) Origin { return Origin{Source: source, Raw: []string{raw}} }

func one(o Origin) []Origin { return []Origin{o} }

// AllFamilies is the table of all families. The names are a contract: rules,
// dashboards and users depend on them.
func AllFamilies() []Family {
	var all []Family
	for _, part := range [][]Family{
		nodeFamilies(), portFamilies(), pfcFamilies(), queueFamilies(), groupFamilies(), watchdogFamilies(),
		controlFamilies(), qosFamilies(), policyFamilies(), nicFamilies(),
	} {
		all = append(all, part...)
	}
	origins := nicOrigins()
	for i := range all {
		all[i].From = append(slices.Clip(all[i].From), origins[all[i].Name]...)
	}
	return all
}

func nodeFamilies() []Family {
	exporter := one(fact("exporter", ""))
	source := []string{"collector", "source"}
	return []Family{
		{
			"roce_node_info", "Identity of the node: one series a process.", Info,
			[]string{"node", "role", "fabric", "tier", "platform", "hwsku", "os_version"},
			[]Origin{
				fact("config", "DEVICE_METADATA|localhost hostname, platform, hwsku"),
				fact("file", "/etc/sonic/sonic_version.yml build_version"), fact("proc", "sys/kernel/hostname, sys/kernel/osrelease"), fact("exporter", "node.* of the configuration"),
			},
		},
		{"roce_node_boot_time_seconds", "Time the node booted, in seconds since the epoch.", Gauge, nil, one(fact("file", "/proc/stat btime"))},
		{"roce_node_time_seconds", "Clock of the node when it was read, in seconds since the epoch.", Gauge, nil, []Origin{fact("redis", "TIME"), fact("exporter", "its clock, on a host")}},
		{"roce_scrape_collector_success", "Whether the collector could read at least one of its sources; a host without NICs has none, and it is 1.", Gauge, []string{"collector"}, exporter},
		{"roce_scrape_collector_duration_seconds", "How long the collector took for this scrape.", Gauge, []string{"collector"}, exporter},
		{"roce_scrape_source_success", "Whether the source could be read for this scrape.", Gauge, source, exporter},
		{"roce_scrape_source_reading_age_seconds", "Age of the reading that is served, 0 unless it came too late for the scrape before.", Gauge, source, exporter},
		{"roce_scrape_skipped", "Objects and values that this scrape left out, by reason.", Gauge, []string{"collector", "reason"}, exporter},
		{"roce_scrape_series_dropped_total", "Series left out because the collector made more than the configured limit.", Counter, []string{"collector"}, exporter},
		{"roce_exporter_config_last_reload_successful", "Whether the last reading of the configuration succeeded.", Gauge, nil, exporter},
		{"roce_exporter_config_last_reload_success_timestamp_seconds", "Time of the last successful reading of the configuration, in seconds since the epoch.", Gauge, nil, exporter},
	}
}

func portFamilies() []Family {
	const c, drops = "counters.port", "counters.port.drops"
	port := []string{"port"}
	count := func(name, help string, from ...Origin) Family { return Family{name, help, Counter, port, from} }
	return []Family{
		{
			"roce_port_info", "Identity of the port, fields that the device does not have are empty.", Info,
			[]string{"port", "alias", "kind", "driver", "firmware", "pci_address", "mac"},
			[]Origin{
				fact("config", "PORT|<port> alias, role"),
				fact("driver", "driver, firmware-version, bus-info"), fact("sysfs", "class/net/<port>/device, address"),
			},
		},
		{"roce_port_admin_up", "Whether the port is switched on.", Gauge, port, []Origin{fact("appl", "PORT_TABLE:<port> admin_status"), fact("config", "PORT|<port> admin_status"), fact("sysfs", "class/net/<port>/flags")}},
		{"roce_port_oper_up", "Whether the port has a link.", Gauge, port, []Origin{fact("appl", "PORT_TABLE:<port> oper_status"), fact("state", "PORT_TABLE|<port> netdev_oper_status"), fact("sysfs", "class/net/<port>/operstate")}},
		{"roce_port_speed_bytes_per_second", "Operating speed of the port, absent while it is down or the speed unknown.", Gauge, port, []Origin{fact("state", "PORT_TABLE|<port> speed"), fact("sysfs", "class/net/<port>/speed")}},
		{"roce_port_configured_speed_bytes_per_second", "Configured speed of the port.", Gauge, port, one(fact("config", "PORT|<port> speed"))},
		{
			"roce_port_mtu_bytes", "MTU of the port as configured, as programmed into the ASIC less its framing, or as the kernel has it.", Gauge,
			[]string{"port", "source"},
			[]Origin{
				fact("config", "PORT|<port> mtu"),
				{Source: "asic", Raw: []string{"SAI_PORT_ATTR_MTU"}, Note: "less 22 bytes, 54 on a port with a MACsec profile"},
				fact("state", "PORT_TABLE|<port> mtu"), fact("sysfs", "class/net/<port>/mtu"),
			},
		},
		count("roce_port_receive_bytes_total", "Bytes received by the port.", sai(c, "SAI_PORT_STAT_IF_IN_OCTETS")),
		count("roce_port_transmit_bytes_total", "Bytes sent by the port.", sai(c, "SAI_PORT_STAT_IF_OUT_OCTETS")),
		count("roce_port_receive_packets_total", "Packets received by the port.",
			sai(c, "SAI_PORT_STAT_IF_IN_UCAST_PKTS", "SAI_PORT_STAT_IF_IN_NON_UCAST_PKTS"),
			sai(c, "SAI_PORT_STAT_IF_IN_UCAST_PKTS", "SAI_PORT_STAT_IF_IN_MULTICAST_PKTS", "SAI_PORT_STAT_IF_IN_BROADCAST_PKTS")),
		count("roce_port_transmit_packets_total", "Packets sent by the port.",
			sai(c, "SAI_PORT_STAT_IF_OUT_UCAST_PKTS", "SAI_PORT_STAT_IF_OUT_NON_UCAST_PKTS"),
			sai(c, "SAI_PORT_STAT_IF_OUT_UCAST_PKTS", "SAI_PORT_STAT_IF_OUT_MULTICAST_PKTS", "SAI_PORT_STAT_IF_OUT_BROADCAST_PKTS")),
		count("roce_port_receive_discarded_packets_total", "Packets that the port dropped on receipt for any reason, intended ones included.", sai(c, "SAI_PORT_STAT_IF_IN_DISCARDS")),
		count("roce_port_transmit_discarded_packets_total", "Packets that the port dropped instead of sending them, for any reason.", sai(c, "SAI_PORT_STAT_IF_OUT_DISCARDS")),
		count("roce_port_receive_buffer_dropped_packets_total", "Packets that the port dropped on receipt for lack of buffer; they are among the discarded ones, so do not add both.", sai(drops, "SAI_PORT_STAT_IN_DROPPED_PKTS")),
		count("roce_port_transmit_buffer_dropped_packets_total", "Packets that the port dropped for lack of buffer instead of sending them; they are among the discarded ones, so do not add both.", sai(drops, "SAI_PORT_STAT_OUT_DROPPED_PKTS")),
		count("roce_port_receive_errors_total", "Packets received with an error.", sai(c, "SAI_PORT_STAT_IF_IN_ERRORS")),
		count("roce_port_transmit_errors_total", "Packets that could not be sent because of an error.", sai(c, "SAI_PORT_STAT_IF_OUT_ERRORS")),
		count("roce_port_receive_crc_errors_total", "Frames received with a wrong checksum.", sai(c, "SAI_PORT_STAT_DOT3_STATS_FCS_ERRORS")),
		count("roce_port_receive_oversize_packets_total", "Frames received that were longer than the port accepts.", sai(c, "SAI_PORT_STAT_ETHER_RX_OVERSIZE_PKTS")),
		count("roce_port_fec_corrected_codewords_total", "Codewords that forward error correction repaired.", sai(c, "SAI_PORT_STAT_IF_IN_FEC_CORRECTABLE_FRAMES")),
		count("roce_port_fec_uncorrectable_codewords_total", "Codewords that forward error correction could not repair: their frames are lost.", sai(c, "SAI_PORT_STAT_IF_IN_FEC_NOT_CORRECTABLE_FRAMES")),
		count("roce_port_fec_corrected_bits_total", "Bits that forward error correction repaired.", sai(c, "SAI_PORT_STAT_IF_IN_FEC_CORRECTED_BITS")),
		count("roce_port_fec_symbol_errors_total", "Symbol errors seen before forward error correction.", sai(c, "SAI_PORT_STAT_IF_IN_FEC_SYMBOL_ERRORS")),
		{
			"roce_port_neighbor_info", "What LLDP says is at the other end of the port's cable.", Info,
			[]string{"port", "neighbor", "neighbor_port", "neighbor_port_id", "neighbor_kind"},
			[]Origin{fact("appl", "LLDP_ENTRY_TABLE:<port>"), fact("config", "DEVICE_NEIGHBOR_METADATA|<neighbor> type")},
		},
		{"roce_port_mode_info", "Whether the port switches (l2) or routes (l3).", Info, []string{"port", "mode"}, []Origin{fact("config", "VLAN_MEMBER|<vlan>|<port>"), fact("config", "INTERFACE|<port>, PORTCHANNEL_INTERFACE|<lag>")}},
		{"roce_port_fdb_entries", "MAC addresses learned on the port, or on the LAG that it is a member of.", Gauge, port, one(fact("state", "FDB_TABLE|<vlan>:<mac> port"))},
		{
			"roce_port_attached_mac_info", "A MAC address behind the port, only on ports with few of them.", Info,
			[]string{"port", "mac"},
			[]Origin{fact("state", "FDB_TABLE|<vlan>:<mac> port"), {Source: "appl", Raw: []string{"NEIGH_TABLE:<port>:<ip> neigh"}, Note: "on a routed port"}},
		},
		{"roce_port_lag_member_info", "The link aggregation group that the port is a member of.", Info, []string{"port", "lag"}, []Origin{fact("config", "PORTCHANNEL_MEMBER|<lag>|<port>"), fact("sysfs", "class/net/<port>/master")}},
	}
}

func pfcFamilies() []Family {
	const c, watchdog = "counters.port", "counters.port.watchdog"
	port, priority := []string{"port"}, []string{"port", "priority"}
	method := []string{"port", "priority", "method"}
	return []Family{
		{"roce_pfc_receive_frames_total", "PFC frames for the priority that the port received: its peer stopped it.", Counter, priority, one(sai(c, "SAI_PORT_STAT_PFC_{priority}_RX_PKTS"))},
		{"roce_pfc_transmit_frames_total", "PFC frames for the priority that the port sent: it stopped its peer.", Counter, priority, one(sai(c, "SAI_PORT_STAT_PFC_{priority}_TX_PKTS"))},
		{
			"roce_pfc_receive_pause_seconds_total", "Time that the port could not send the priority because its peer stopped it; its rate is the share of time paused.",
			Counter, method,
			[]Origin{
				{Source: watchdog, Raw: []string{"SAI_PORT_STAT_PFC_{priority}_RX_PAUSE_DURATION_US"}, Scale: 1e-6, Labels: map[string]string{"method": "measured"}, Note: "only priorities that the PFC watchdog watches"},
				{Source: "configured.port", Raw: []string{"SAI_PORT_STAT_PFC_{priority}_RX_PAUSE_DURATION"}, Labels: map[string]string{"method": "configured"}, Note: "converted with the configured unit"},
				{Source: "counters.port.history", Raw: []string{"EST_PORT_STAT_PFC_{priority}_RX_PAUSE_DURATION_US"}, Scale: 1e-6, Labels: map[string]string{"method": "estimated"}, Note: "rounded up to the watchdog's poll interval"},
			},
		},
		{"roce_pfc_receive_pause_raw_total", "Time that the port could not send the priority because its peer stopped it, in the unknown unit of the chip.", Counter, priority, one(sai(watchdog, "SAI_PORT_STAT_PFC_{priority}_RX_PAUSE_DURATION"))},
		{
			"roce_pfc_receive_transitions_total", "How often the port was allowed to send the priority again after its peer had stopped it.", Counter, priority,
			[]Origin{
				sai(watchdog, "SAI_PORT_STAT_PFC_{priority}_ON2OFF_RX_PKTS"),
				sai("counters.port.history", "EST_PORT_STAT_PFC_{priority}_ON2OFF_RX_PKTS"),
			},
		},
		{
			"roce_pfc_enabled", "Whether PFC is on for the priority, as configured, as programmed into the ASIC for sending, or as the NIC has it.", Gauge,
			[]string{"port", "priority", "source"},
			[]Origin{
				fact("config", "PORT_QOS_MAP|<port> pfc_enable"),
				fact("asic", "SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL"),
				{Source: "asic", Raw: []string{"SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL_TX"}, Note: "in separate mode"},
				fact("dcbnl", "struct ieee_pfc pfc_en"),
			},
		},
		{"roce_pfc_receive_enabled", "Whether the ASIC obeys received PFC frames for the priority, only where this is set apart from sending.", Gauge, []string{"port", "priority", "source"}, one(fact("asic", "SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL_RX"))},
		{"roce_pause_receive_frames_total", "Global pause frames that the port received: its peer stopped it altogether; some chips count PFC frames here too.", Counter, port, one(sai(c, "SAI_PORT_STAT_PAUSE_RX_PKTS"))},
		{"roce_pause_transmit_frames_total", "Global pause frames that the port sent: it stopped its peer altogether; some chips count PFC frames here too.", Counter, port, one(sai(c, "SAI_PORT_STAT_PAUSE_TX_PKTS"))},
	}
}

func queueFamilies() []Family {
	const c, ecn = "counters.queue", "counters.queue.ecn"
	queue, voq := []string{"port", "queue", "type"}, []string{"system_port", "queue"}
	count := func(name, help string, labels []string, source, raw string) Family {
		return Family{name, help, Counter, labels, one(sai(source, raw))}
	}
	return []Family{
		count("roce_queue_packets_total", "Packets that the queue sent.", queue, c, "SAI_QUEUE_STAT_PACKETS"),
		count("roce_queue_bytes_total", "Bytes that the queue sent.", queue, c, "SAI_QUEUE_STAT_BYTES"),
		count("roce_queue_dropped_packets_total", "Packets that the queue dropped.", queue, c, "SAI_QUEUE_STAT_DROPPED_PACKETS"),
		count("roce_queue_dropped_bytes_total", "Bytes that the queue dropped.", queue, c, "SAI_QUEUE_STAT_DROPPED_BYTES"),
		count("roce_queue_ecn_marked_packets_total", "Packets that the queue marked as having met congestion.", queue, ecn, "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS"),
		count("roce_queue_ecn_marked_bytes_total", "Bytes of the packets that the queue marked as having met congestion.", queue, ecn, "SAI_QUEUE_STAT_WRED_ECN_MARKED_BYTES"),
		count("roce_queue_wred_dropped_packets_total", "Packets that the queue dropped early because it grew.", queue, ecn, "SAI_QUEUE_STAT_WRED_DROPPED_PACKETS"),
		{"roce_queue_watermark_bytes", "Highest fill of the queue within the window.", Gauge, append(queue[:3:3], "window"), one(sai("watermarks.queue", "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"))},
		{"roce_queue_occupancy_bytes", "Fill of the queue when it was last polled.", Gauge, queue, one(sai("counters.queue.occupancy", "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES"))},
		{"roce_queue_lossless", "1 for a queue that a PFC priority of the configuration maps to.", Gauge, append(queue[:3:3], "priority"), []Origin{fact("config", "PORT_QOS_MAP|<port> pfc_enable, pfc_to_queue_map")}},
		{"roce_queue_ecn_enabled", "Whether the lossless queue marks packets when it grows.", Gauge, []string{"port", "queue"}, []Origin{fact("config", "QUEUE|<port>|<queue> wred_profile"), fact("config", "WRED_PROFILE|<profile> ecn")}},
		{"roce_queue_ecn_threshold_bytes", "Fill at which the queue begins to mark (min) and marks with its highest probability (max).", Gauge, []string{"port", "queue", "bound", "color"}, one(fact("config", "WRED_PROFILE|<profile> <color>_<bound>_threshold"))},
		count("roce_voq_packets_total", "Packets that the virtual output queue forwarded.", voq, "counters.voq", "SAI_QUEUE_STAT_PACKETS"),
		count("roce_voq_bytes_total", "Bytes that the virtual output queue forwarded.", voq, "counters.voq", "SAI_QUEUE_STAT_BYTES"),
		count("roce_voq_dropped_packets_total", "Packets that the virtual output queue dropped.", voq, "counters.voq", "SAI_QUEUE_STAT_DROPPED_PACKETS"),
		count("roce_voq_dropped_bytes_total", "Bytes that the virtual output queue dropped.", voq, "counters.voq", "SAI_QUEUE_STAT_DROPPED_BYTES"),
		count("roce_voq_wred_dropped_packets_total", "Packets that the virtual output queue dropped early because it grew.", voq, "counters.voq.wred", "SAI_QUEUE_STAT_WRED_DROPPED_PACKETS"),
		count("roce_voq_credit_watchdog_deleted_packets_total", "Packets that the virtual output queue dropped because no credit to send them came.", voq, "counters.voq", "SAI_QUEUE_STAT_CREDIT_WD_DELETED_PACKETS"),
	}
}

func groupFamilies() []Family {
	const pg = "SAI_INGRESS_PRIORITY_GROUP_STAT_"
	labels, window := []string{"port", "pg"}, []string{"port", "pg", "window"}
	pool, poolWindow := []string{"pool"}, []string{"pool", "window"}
	return []Family{
		{"roce_pg_dropped_packets_total", "Packets that the priority group dropped; on a lossless one each is an incident.", Counter, labels, one(sai("counters.pg", pg+"DROPPED_PACKETS"))},
		{"roce_pg_watermark_bytes", "Highest fill of the priority group's shared buffer within the window.", Gauge, window, one(sai("watermarks.pg", pg+"SHARED_WATERMARK_BYTES"))},
		{"roce_pg_headroom_watermark_bytes", "Highest fill of the priority group's headroom within the window: what arrived after the peer was told to stop.", Gauge, window, one(sai("watermarks.pg", pg+"XOFF_ROOM_WATERMARK_BYTES"))},
		{"roce_pg_headroom_size_bytes", "Headroom of the priority group by the buffer profile in force.", Gauge, labels, []Origin{fact("appl", "BUFFER_PG_TABLE:<port>:<pg> profile"), fact("appl", "BUFFER_PROFILE_TABLE:<profile> xoff")}},
		{"roce_pg_lossless", "1 for a priority group that a PFC priority of the configuration maps to.", Gauge, append(labels[:2:2], "priority"), []Origin{fact("config", "PORT_QOS_MAP|<port> pfc_enable, pfc_to_pg_map, tc_to_pg_map")}},
		{"roce_buffer_pool_watermark_bytes", "Highest fill of the buffer pool within the window.", Gauge, poolWindow, one(sai("watermarks.pool", "SAI_BUFFER_POOL_STAT_WATERMARK_BYTES"))},
		{"roce_buffer_pool_headroom_watermark_bytes", "Highest fill of the buffer pool's shared headroom within the window.", Gauge, poolWindow, one(sai("watermarks.pool", "SAI_BUFFER_POOL_STAT_XOFF_ROOM_WATERMARK_BYTES"))},
		{"roce_buffer_pool_size_bytes", "Size of the buffer pool.", Gauge, pool, []Origin{fact("appl", "BUFFER_POOL_TABLE:<pool> size"), fact("config", "BUFFER_POOL|<pool> size")}},
		{"roce_buffer_pool_headroom_size_bytes", "Size of the buffer pool's shared headroom.", Gauge, pool, []Origin{fact("appl", "BUFFER_POOL_TABLE:<pool> xoff"), fact("config", "BUFFER_POOL|<pool> xoff")}},
	}
}

func watchdogFamilies() []Family {
	const c, stats = "counters.queue.watchdog", "PFC_WD_QUEUE_STATS_"
	port, queue := []string{"port"}, []string{"port", "queue"}
	dropped := func(raw, direction string) Origin {
		return Origin{Source: c, Raw: []string{stats + raw}, Labels: map[string]string{"direction": direction}}
	}
	return []Family{
		{"roce_pfcwd_enabled", "Whether the PFC watchdog is configured on a queue where it is expected.", Gauge, queue, []Origin{fact("config", "PORT_QOS_MAP|<port> pfcwd_sw_enable, else pfc_enable"), fact("config", "PFC_WD|<port>")}},
		{"roce_pfcwd_storm_active", "Whether the PFC watchdog sees a storm on the queue, absent where it does not watch.", Gauge, queue, one(fact("watchdog", "PFC_WD_STATUS"))},
		{"roce_pfcwd_storms_detected_total", "Storms that the PFC watchdog found on the queue.", Counter, queue, one(sai(c, stats+"DEADLOCK_DETECTED"))},
		{"roce_pfcwd_storms_restored_total", "Storms that the PFC watchdog saw end on the queue.", Counter, queue, one(sai(c, stats+"DEADLOCK_RESTORED"))},
		{"roce_pfcwd_dropped_packets_total", "Packets dropped while the PFC watchdog handled a storm on the queue.", Counter, append(queue[:2:2], "direction"), []Origin{dropped("RX_DROPPED_PACKETS", "receive"), dropped("TX_DROPPED_PACKETS", "transmit")}},
		{"roce_pfcwd_detection_time_seconds", "How long a priority must be stuck before the PFC watchdog calls it a storm.", Gauge, port, []Origin{{Source: "watchdog", Raw: []string{"PFC_WD_DETECTION_TIME"}, Note: "µs"}, {Source: "config", Raw: []string{"PFC_WD|<port> detection_time"}, Note: "ms"}}},
		{"roce_pfcwd_restoration_time_seconds", "How long a priority must be free before the PFC watchdog ends a storm, +Inf for never.", Gauge, port, []Origin{{Source: "watchdog", Raw: []string{"PFC_WD_RESTORATION_TIME"}, Note: "µs"}, {Source: "config", Raw: []string{"PFC_WD|<port> restoration_time"}, Note: "ms"}}},
		{"roce_pfcwd_action_info", "What the PFC watchdog does in a storm.", Info, []string{"port", "action"}, []Origin{fact("config", "PFC_WD|<port> action")}},
		{"roce_pfcwd_big_red_switch", "Whether the big red switch is on: the PFC watchdog off and every lossless queue dropped.", Gauge, nil, []Origin{fact("config", "PFC_WD|GLOBAL BIG_RED_SWITCH")}},
	}
}

func controlFamilies() []Family {
	group := []string{"group"}
	flex := []Origin{fact("flex", "FLEX_COUNTER_STATUS, POLL_INTERVAL"), fact("config", "FLEX_COUNTER_TABLE|<group>")}
	return []Family{
		{"roce_flex_counter_enabled", "Whether the switch polls this group of counters; what it does not poll keeps its last value.", Gauge, group, flex},
		{"roce_flex_counter_interval_seconds", "How often the switch polls this group of counters.", Gauge, group, flex},
		{"roce_counters_last_change_timestamp_seconds", "When a counter of the group last moved as seen by the exporter, in the clock of the node.", Gauge, group, one(fact("exporter", "COUNTERS_DB `COUNTERS:<port>`, two readings compared"))},
		{"roce_service_up", "Whether the service of the switch's control plane is ready.", Gauge, []string{"name"}, []Origin{fact("state", "ALL_SERVICE_STATUS|<name> service_status"), fact("state", "SYSTEM_READY|SYSTEM_STATE Status")}},
		{"roce_redis_up", "Whether the database answered.", Gauge, []string{"database"}, one(fact("redis", ""))},
	}
}

func qosFamilies() []Family {
	return []Family{
		{
			"roce_port_dscp_info", "The PFC priority and the queue that packets with the DSCP get on the port.", Info,
			[]string{"port", "dscp", "priority", "queue"},
			[]Origin{fact("config", "PORT_QOS_MAP|<port> dscp_to_tc_map, tc_to_queue_map, tc_to_pg_map, pfc_to_pg_map"), fact("dcbnl", "DCB_ATTR_IEEE_APP_TABLE")},
		},
	}
}

func policyFamilies() []Family {
	from := one(fact("policy", ""))
	port := []string{"port"}
	return []Family{
		{"roce_policy_lossless_priority", "1 for a priority that the operator wants lossless.", Gauge, []string{"priority"}, from},
		{"roce_policy_port", "1 for a port that the operator's policy applies to.", Gauge, port, from},
		{"roce_policy_port_mtu_bytes", "MTU that the operator wants on the port.", Gauge, port, from},
		{"roce_policy_port_speed_bytes_per_second", "Speed that the operator wants on the port.", Gauge, port, from},
		{"roce_policy_rdma_mtu_bytes", "RDMA MTU that the operator wants on the hosts.", Gauge, nil, from},
		{"roce_policy_dscp", "1 for a DSCP that the operator uses for RDMA data or for congestion notifications.", Gauge, []string{"dscp", "class"}, from},
		{"roce_policy_congestion_control_info", "How the operator wants congestion controlled.", Info, []string{"mode"}, from},
	}
}

// NewDefaultCatalog is the catalog of the whole table.
func NewDefaultCatalog() (*Catalog, error) { return NewCatalog(AllFamilies(), Sources()) }
