// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"maps"
	"slices"
	"strings"
)

// nicSources are the places where a host's raw names are found.
func nicSources() []RawSource {
	port, rdma := []string{"port"}, []string{"device", "rdma_port"}
	return []RawSource{
		{Name: "ethtool", Object: "ethtool", Where: "`ethtool -S <port>`", Labels: port},
		{Name: "ethtool.dropped", Object: "ethtool", Where: "`ethtool -S <port>`", Labels: port},
		{Name: "netdev", Object: "netdev", Where: "`/sys/class/net/<port>/`", Labels: port},
		{Name: "dcb", Object: "dcb", Where: "DCB of `<port>`, `struct ieee_pfc`", Labels: port},
		{Name: "counters", Object: "counters", Where: "`/sys/class/infiniband/<device>/ports/<rdma_port>/counters/`", Labels: rdma},
		{Name: "hw_counters", Object: "hw_counters", Where: "`/sys/class/infiniband/<device>/ports/<rdma_port>/hw_counters/`, or `<device>/hw_counters/`", Labels: rdma},

		{Name: "sysfs", Where: "`/sys`", Facts: true},
		{Name: "proc", Where: "`/proc`", Facts: true},
		{Name: "dcbnl", Where: "DCB of `<port>`", Facts: true},
		{Name: "driver", Where: "`ethtool -i <port>`", Facts: true},
		{Name: "statistics", Where: "`ethtool -S <port>`", Facts: true},
	}
}

// Drivers of network devices; RDMA devices have those of the PCI device
// beneath them too.
const (
	mlx5  = "mlx5_core"
	ice   = "ice"
	i40e  = "i40e"
	bnxt  = "bnxt_en"
	ionic = "ionic"
	hns3  = "hns3"
	qede  = "qede"
	mana  = "mana"
	cxgb4 = "cxgb4"
	rxe   = "rdma_rxe"
	erdma = "erdma"
	idpf  = "idpf"
)

// nic is the origin of one driver statistic, or of the sum of several.
func nic(driver string, raw ...string) Origin {
	return Origin{Source: "ethtool", Driver: driver, Raw: raw}
}

// hw is the origin of one file of hw_counters, or of the sum of several.
func hw(driver string, raw ...string) Origin {
	return Origin{Source: "hw_counters", Driver: driver, Raw: raw}
}

// netdev is the origin of one of the kernel's own counters. Those of traffic
// leave RDMA out, and many a driver never fills those of errors: they hold for
// the drivers named.
func netdev(driver, raw string) Origin {
	return Origin{Source: "netdev", Driver: driver, Raw: []string{raw}}
}

// irdma are the origins of a file of hw_counters of Intel's driver, which runs
// on two kinds of cards and has two generations of names.
func irdma(raw ...string) []Origin {
	var all []Origin
	for _, name := range raw {
		all = append(all, hw(ice, name), hw(idpf, name))
	}
	return all
}

// times gives the origin a scale, with a label value and with a note.
func (o Origin) times(scale float64) Origin { o.Scale = scale; return o }
func (o Origin) note(text string) Origin    { o.Note = text; return o }
func (o Origin) with(label, value string) Origin {
	labels := map[string]string{label: value}
	maps.Copy(labels, o.Labels)
	o.Labels = labels
	return o
}

// nicOrigins is the vendors' part of the table: what of each driver gives which
// family. A driver that is not listed for a family has nothing of the kind.
func nicOrigins() map[string][]Origin {
	const microseconds = 1e-6
	measured := func(o Origin) Origin { return o.times(microseconds).with("method", "measured") }
	// The families of both directions, with the words that the raw names have
	// for them.
	origins := map[string][]Origin{}
	both := func(family string, of func(rx, receive string) []Origin) {
		origins[strings.Replace(family, "receive", "transmit", 1)] = of("tx", "transmit")
		origins[family] = of("rx", "receive")
	}
	both("roce_port_receive_bytes_total", func(x, _ string) []Origin {
		return []Origin{
			nic(mlx5, x+"_bytes_phy"), nic(ice, x+"_bytes.nic"), nic(i40e, "port."+x+"_bytes"), nic(bnxt, x+"_bytes"),
			nic(ionic, "octets_"+x+"_ok"), nic(hns3, "mac_"+x+"_total_oct_num"), nic(cxgb4, x+"_octets_ok"),
			nic(qede, x+"_ucast_bytes", x+"_mcast_bytes", x+"_bcast_bytes"),
		}
	})
	both("roce_port_receive_packets_total", func(x, _ string) []Origin {
		return []Origin{
			nic(mlx5, x+"_packets_phy"), nic(ice, x+"_unicast.nic", x+"_multicast.nic", x+"_broadcast.nic"),
			nic(i40e, "port."+x+"_unicast", "port."+x+"_multicast", "port."+x+"_broadcast"),
			nic(bnxt, x+"_total_frames"), nic(ionic, "frames_"+x+"_ok"), nic(hns3, "mac_"+x+"_total_pkt_num"), nic(cxgb4, x+"_frames_ok"),
			nic(qede, x+"_ucast_pkts", x+"_mcast_pkts", x+"_bcast_pkts"),
		}
	})
	origins["roce_port_receive_discarded_packets_total"] = []Origin{
		nic(mlx5, "rx_discards_phy"), nic(ice, "rx_dropped.nic"), nic(i40e, "port.rx_dropped"), nic(bnxt, "rx_stat_discard"),
		nic(ionic, "frames_rx_dropped"), netdev(hns3, "statistics/rx_dropped"), nic(qede, "brb_discards"),
		nic(cxgb4, "rx_bg0_frames_dropped", "rx_bg1_frames_dropped", "rx_bg2_frames_dropped", "rx_bg3_frames_dropped"),
	}
	origins["roce_port_receive_buffer_dropped_packets_total"] = []Origin{
		nic(mlx5, "rx_discards_phy"), nic(ice, "rx_dropped.nic"), nic(i40e, "port.rx_dropped"), nic(bnxt, "rx_stat_discard"),
		nic(ionic, "frames_rx_dropped"), nic(qede, "brb_discards"),
		nic(cxgb4, "rx_bg0_frames_dropped", "rx_bg1_frames_dropped", "rx_bg2_frames_dropped", "rx_bg3_frames_dropped"),
	}
	origins["roce_port_transmit_discarded_packets_total"] = []Origin{
		nic(mlx5, "tx_discards_phy"), nic(ice, "tx_dropped_link_down.nic"), nic(i40e, "port.tx_dropped_link_down"),
		nic(bnxt, "tx_stat_discard"), nic(ionic, "hw_tx_dropped"), nic(cxgb4, "tx_frames_dropped"),
	}
	origins["roce_port_receive_errors_total"] = []Origin{
		nic(bnxt, "rx_stat_err"), nic(ionic, "frames_rx_bad_all"), nic(hns3, "mac_rx_bad_pkt_num"),
		netdev(mlx5, "statistics/rx_errors"), netdev(ice, "statistics/rx_errors"), netdev(i40e, "statistics/rx_errors"),
		netdev(qede, "statistics/rx_errors"), netdev(cxgb4, "statistics/rx_errors"),
	}
	origins["roce_port_transmit_errors_total"] = []Origin{
		nic(mlx5, "tx_errors_phy"), nic(ice, "tx_errors.nic"), nic(i40e, "port.tx_errors"), nic(bnxt, "tx_stat_error"),
		nic(ionic, "frames_tx_bad"), nic(hns3, "mac_tx_bad_pkt_num"), nic(qede, "tx_err_drop_pkts"), nic(cxgb4, "tx_error_frames"),
	}
	origins["roce_port_receive_crc_errors_total"] = []Origin{
		nic(mlx5, "rx_crc_errors_phy"), nic(ice, "rx_crc_errors.nic"), nic(i40e, "port.rx_crc_errors"), nic(bnxt, "rx_fcs_err_frames"),
		nic(ionic, "frames_rx_bad_fcs"), nic(hns3, "mac_rx_fcs_err_pkt_num"), nic(qede, "rx_crc_errors"), nic(cxgb4, "rx_fcs_errors"),
	}
	origins["roce_port_receive_oversize_packets_total"] = []Origin{
		nic(mlx5, "rx_oversize_pkts_phy"), nic(ice, "rx_oversize.nic"), nic(i40e, "port.rx_oversize"), nic(bnxt, "rx_ovrsz_frames"),
		nic(ionic, "frames_rx_oversized"), nic(hns3, "mac_rx_oversize_pkt_num"), nic(qede, "rx_oversize_packets"), nic(cxgb4, "rx_frames_too_long"),
	}
	origins["roce_port_fec_corrected_codewords_total"] = []Origin{nic(bnxt, "rx_fec_corrected_blocks")}
	origins["roce_port_fec_uncorrectable_codewords_total"] = []Origin{nic(bnxt, "rx_fec_uncorrectable_blocks")}
	origins["roce_port_fec_corrected_bits_total"] = []Origin{nic(mlx5, "rx_corrected_bits_phy"), nic(bnxt, "rx_corrected_bits")}
	origins["roce_port_pcs_symbol_errors_total"] = []Origin{nic(mlx5, "rx_pcs_symbol_err_phy"), nic(bnxt, "rx_pcs_symbol_err"), nic(cxgb4, "rx_symbol_errors")}
	origins["roce_port_link_down_events_total"] = []Origin{
		nic(mlx5, "link_down_events_phy"), nic(bnxt, "link_down_events"), netdev("", "carrier_down_count").note("where the driver counts none"),
	}

	both("roce_pfc_receive_frames_total", func(x, _ string) []Origin {
		counter := map[string]string{"rx": "pfc_indications_", "tx": "pfc_requests_"}[x]
		return []Origin{
			nic(mlx5, x+"_prio{priority}_pause").note("only priorities that have PFC"),
			nic(ice, x+"_priority_{priority}_xoff.nic").note("XOFF only"),
			nic(i40e, "port."+x+"_priority_{priority}_xoff_"+x).note("XOFF only"), nic(i40e, "port."+x+"_priority_{priority}_xoff").note("XOFF only; older kernels"),
			nic(bnxt, x+"_pfc_ena_frames_pri{priority}"),
			nic(hns3, "mac_"+x+"_pfc_pri{priority}_pkt_num"),
			nic(cxgb4, x+"_ppp{priority}_frames"),
			{Source: "dcb", Raw: []string{counter + placeholder}, Note: "of mlx5, bnxt, ice and hns3"},
		}
	})
	both("roce_pfc_receive_xon_frames_total", func(x, _ string) []Origin {
		return []Origin{nic(ice, x+"_priority_{priority}_xon.nic"), nic(i40e, "port."+x+"_priority_{priority}_xon_"+x), nic(i40e, "port."+x+"_priority_{priority}_xon").note("older kernels")}
	})
	both("roce_pfc_receive_pause_seconds_total", func(x, _ string) []Origin {
		return []Origin{
			measured(nic(mlx5, x+"_prio{priority}_pause_duration")), measured(nic(bnxt, "pfc_pri{priority}_"+x+"_duration_us")),
			measured(nic(ionic, x+"_pripause_{priority}_1us_count")),
		}
	})
	origins["roce_pfc_receive_pause_raw_total"] = []Origin{nic(hns3, "mac_rx_pfc_pri{priority}_xoff_time")}
	origins["roce_pfc_receive_transitions_total"] = []Origin{nic(mlx5, "rx_prio{priority}_pause_transition"), nic(bnxt, "pfc_pri{priority}_rx_transitions")}
	origins["roce_pfc_transmit_transitions_total"] = []Origin{nic(bnxt, "pfc_pri{priority}_tx_transitions")}
	both("roce_pause_receive_frames_total", func(x, _ string) []Origin {
		return []Origin{
			nic(mlx5, x+"_global_pause"), nic(mlx5, x+"_pause_ctrl_phy"), nic(ice, "link_xoff_"+x+".nic").note("XOFF only"),
			nic(i40e, "port.link_xoff_"+x).note("XOFF only"), nic(bnxt, x+"_pause_frames"), nic(ionic, "frames_"+x+"_pause"),
			nic(hns3, "mac_"+x+"_mac_pause_num"), nic(qede, x+"_pause_frames"), nic(cxgb4, x+"_pause_frames"),
		}
	})
	both("roce_pause_receive_seconds_total", func(x, _ string) []Origin {
		own := []Origin{nic(mlx5, x+"_global_pause_duration").times(microseconds)}
		if x == "rx" {
			own = append(own, nic(ionic, "rx_pause_1us_count").times(microseconds))
		}
		return own
	})

	origins["roce_nic_pause_storm_events_total"] = []Origin{
		nic(mlx5, "tx_pause_storm_warning_events").with("severity", "warning"), nic(mlx5, "tx_pause_storm_error_events").with("severity", "error"),
		nic(bnxt, "continuous_pause_events", "continuous_roce_pause_events").with("severity", "warning"),
	}
	both("roce_nic_priority_receive_bytes_total", func(x, _ string) []Origin {
		return []Origin{nic(mlx5, x+"_prio{priority}_bytes"), nic(bnxt, x+"_bytes_pri{priority}")}
	})
	both("roce_nic_priority_receive_packets_total", func(x, _ string) []Origin {
		return []Origin{nic(mlx5, x+"_prio{priority}_packets"), nic(bnxt, x+"_packets_pri{priority}"), nic(ionic, "frames_"+x+"_pri_{priority}")}
	})
	dropped := func(raw, reason string) Origin {
		return Origin{Source: "ethtool.dropped", Driver: mlx5, Raw: []string{raw}}.with("reason", reason)
	}
	origins["roce_nic_priority_dropped_packets_total"] = []Origin{
		dropped("rx_prio{priority}_discards", "buffer"), dropped("rx_prio{priority}_buf_discard", "host_buffer"), dropped("rx_prio{priority}_cong_discard", "congestion"),
	}
	origins["roce_nic_receive_dropped_packets_total"] = []Origin{
		nic(mlx5, "rx_out_of_buffer").with("reason", "no_descriptor"),
		nic(mlx5, "dev_internal_queue_oob").with("reason", "internal_queue"), nic(mlx5, "dev_out_of_buffer").with("reason", "internal_queue").note("OFED"),
		nic(mlx5, "rx_steer_missed_packets").with("reason", "steering"), nic(mlx5, "rx_if_down_packets").with("reason", "interface_down"),
		nic(mlx5, "outbound_pci_buffer_overflow").with("reason", "pcie"),
		nic(ice, "rx_dropped").with("reason", "no_descriptor"), nic(bnxt, "rx_total_ring_discards").with("reason", "no_descriptor"),
		nic(ionic, "hw_rx_dropped").with("reason", "no_descriptor"), nic(qede, "no_buff_discards").with("reason", "no_descriptor"),
		nic(mana, "hc_rx_discards_no_wqe").with("reason", "no_descriptor"),
	}
	origins["roce_nic_receive_buffer_high_events_total"] = []Origin{nic(mlx5, "rx_buffer_passed_thres_phy"), nic(bnxt, "rx_buffer_passed_threshold")}
	origins["roce_pcie_stall_ratio"] = []Origin{
		nic(mlx5, "outbound_pci_stalled_rd").times(0.01).with("operation", "read"), nic(mlx5, "outbound_pci_stalled_wr").times(0.01).with("operation", "write"),
	}
	origins["roce_pcie_stall_seconds_total"] = []Origin{
		nic(mlx5, "outbound_pci_stalled_rd_events").with("operation", "read"), nic(mlx5, "outbound_pci_stalled_wr_events").with("operation", "write"),
	}

	both("roce_rdma_receive_bytes_total", func(x, _ string) []Origin {
		file := map[string]string{"rx": "port_rcv_data", "tx": "port_xmit_data"}[x]
		ip := map[string]string{"rx": "InOctets", "tx": "OutOctets"}[x]
		return []Origin{
			Origin{Source: "counters", Raw: []string{file}}.times(4).note("words of 4 bytes"),
			hw(ice, "ip4"+ip, "ip6"+ip), hw(i40e, "ip4"+ip, "ip6"+ip), hw(idpf, "ip4"+ip, "ip6"+ip),
			hw(bnxt, x+"_roce_only_bytes"), hw(bnxt, x+"_bytes"), hw(mana, x+"_bytes"), hw(erdma, x+"_bytes_cnt"),
		}
	})
	both("roce_rdma_receive_packets_total", func(x, _ string) []Origin {
		file := map[string]string{"rx": "port_rcv_packets", "tx": "port_xmit_packets"}[x]
		udp := map[string]string{"rx": "RxUDP", "tx": "TxUDP"}[x]
		soft := map[string]string{"rx": "rcvd_pkts", "tx": "sent_pkts"}[x]
		return []Origin{
			{Source: "counters", Raw: []string{file}},
			hw(ice, udp), hw(idpf, udp), hw(bnxt, x+"_roce_only_pkts"), hw(bnxt, x+"_pkts"), hw(hns3, x+"_pkt"), hw(mana, x+"_packets"),
			hw(erdma, x+"_packets_cnt"), hw(rxe, soft),
		}
	})
	origins["roce_rdma_cnp_sent_packets_total"] = append([]Origin{hw(mlx5, "np_cnp_sent"), hw(bnxt, "tx_cnp_pkts"), hw(bnxt, "np_cnp_sent").note("other firmware"), hw(hns3, "tx_cnp_pkt"), hw(mana, "sent_cnps")}, irdma("cnpSent")...)
	origins["roce_rdma_cnp_handled_packets_total"] = append([]Origin{
		hw(mlx5, "rp_cnp_handled"), hw(bnxt, "rx_cnp_pkts").note("received"), hw(bnxt, "rp_cnp_handled").note("other firmware"),
		hw(hns3, "rx_cnp_pkt").note("received"), hw(mana, "received_cnps").note("received"), hw(mana, "received_cnp_count").note("received; of the device"),
	}, irdma("cnpHandled")...)
	origins["roce_rdma_cnp_ignored_packets_total"] = append([]Origin{hw(mlx5, "rp_cnp_ignored")}, irdma("cnpIgnored")...)
	origins["roce_rdma_ecn_marked_packets_total"] = append([]Origin{hw(mlx5, "np_ecn_marked_roce_packets"), hw(bnxt, "rx_ecn_marked_pkts"), hw(bnxt, "np_ecn_marked_roce_packets").note("other firmware"), hw(mana, "received_ecns")}, irdma("RxECNMrkd")...)
	origins["roce_rdma_out_of_sequence_packets_total"] = append([]Origin{
		hw(mlx5, "out_of_sequence"), hw(bnxt, "oos_drop_count"), hw(mana, "responder_oos"), hw(rxe, "out_of_seq_request"),
	}, irdma("Rcvd Out of order packets")...)
	origins["roce_rdma_sequence_naks_total"] = append([]Origin{
		hw(mlx5, "packet_seq_err"), hw(bnxt, "seq_err_naks_rcvd"), hw(mana, "requester_oos_nak"), hw(rxe, "rcvd_seq_err"),
	}, irdma("Nak Sequence Error")...)
	origins["roce_rdma_ack_timeouts_total"] = append([]Origin{hw(mlx5, "local_ack_timeout_err"), hw(bnxt, "to_retransmits"), hw(mana, "requester_timeout")}, irdma("RTO")...)
	origins["roce_rdma_retransmits_total"] = append([]Origin{
		hw(mlx5, "roce_adp_retrans").note("adaptive ones"), hw(rxe, "completer_retry_err"),
	}, irdma("tcpRetransSegs", "RetransSegs")...)
	origins["roce_rdma_retries_exceeded_total"] = []Origin{
		hw(mlx5, "req_transport_retries_exceeded"), hw(bnxt, "max_retry_exceeded"), hw(mana, "requester_retries_exceeded"), hw(rxe, "retry_exceeded_err"),
	}
	origins["roce_rdma_rnr_naks_total"] = append([]Origin{
		hw(mlx5, "rnr_nak_retry_err"), hw(bnxt, "rnr_naks_rcvd"), hw(mana, "requester_rnr_nak"), hw(rxe, "rcvd_rnr_err"),
	}, irdma("RNR received")...)
	origins["roce_rdma_receive_queue_empty_drops_total"] = []Origin{hw(mlx5, "out_of_buffer"), hw(bnxt, "rx_out_of_buffer")}
	origins["roce_rdma_icrc_errors_total"] = append([]Origin{hw(mlx5, "rx_icrc_encapsulated")}, irdma("CRC errors")...)
	origins["roce_rdma_duplicate_requests_total"] = []Origin{hw(mlx5, "duplicate_request"), hw(bnxt, "dup_req"), hw(mana, "responder_dup_request"), hw(rxe, "duplicate_request")}
	origins["roce_rdma_slow_restarts_total"] = []Origin{hw(mlx5, "roce_slow_restart")}
	origins["roce_rdma_link_down_events_total"] = []Origin{{Source: "counters", Raw: []string{"link_downed"}}, hw(rxe, "link_downed")}
	completion := func(raw, side, kind string) Origin { return hw(mlx5, raw).with("side", side).with("kind", kind) }
	origins["roce_rdma_completion_errors_total"] = []Origin{
		completion("req_cqe_error", "requester", "error"), completion("req_cqe_flush_error", "requester", "flushed"),
		completion("resp_cqe_error", "responder", "error"), completion("resp_cqe_flush_error", "responder", "flushed"),
	}
	return origins
}

// nicFamilies are the families that only a host has. Their counters' origins
// are in nicOrigins.
func nicFamilies() []Family {
	port, device := []string{"port"}, []string{"device", "rdma_port"}
	priority := []string{"port", "priority"}
	function := []string{"port", "pci_address"}
	counter := func(name, help string, labels []string) Family { return Family{name, help, Counter, labels, nil} }
	gauge := func(name, help string, labels []string, from ...Origin) Family {
		return Family{name, help, Gauge, labels, from}
	}
	add := func(labels []string, more ...string) []string {
		return append(slices.Clip(labels), more...)
	}
	const rdma = "class/infiniband/<device>/ports/<rdma_port>/"
	return []Family{
		counter("roce_port_pcs_symbol_errors_total", "Symbol errors that forward error correction did not repair.", port),
		counter("roce_port_link_down_events_total", "How often the link went down.", port),
		counter("roce_pfc_receive_xon_frames_total", "PFC frames that the port received to let it send the priority again.", priority),
		counter("roce_pfc_transmit_xon_frames_total", "PFC frames that the port sent to let its peer send the priority again.", priority),
		counter("roce_pfc_transmit_pause_seconds_total", "Time that the port stopped its peer from sending the priority; its rate is the share of time.", add(priority, "method")),
		counter("roce_pfc_transmit_transitions_total", "How often the port let its peer send the priority again after it had stopped it.", priority),
		counter("roce_pause_receive_seconds_total", "Time that the port could not send at all because its peer stopped it by global pause.", port),
		counter("roce_pause_transmit_seconds_total", "Time that the port stopped its peer altogether by global pause.", port),

		counter("roce_nic_pause_storm_events_total", "How often the NIC's own guard saw it send pause for too long (warning), or made it stop sending pause (error).", add(port, "severity")),
		counter("roce_nic_priority_receive_bytes_total", "Bytes received with the priority.", priority),
		counter("roce_nic_priority_transmit_bytes_total", "Bytes sent with the priority.", priority),
		counter("roce_nic_priority_receive_packets_total", "Packets received with the priority.", priority),
		counter("roce_nic_priority_transmit_packets_total", "Packets sent with the priority.", priority),
		counter("roce_nic_priority_dropped_packets_total", "Packets of the priority that the NIC dropped on receipt.", add(priority, "reason")),
		counter("roce_nic_receive_dropped_packets_total", "Packets that came over the wire and were dropped behind it.", add(port, "reason")),
		counter("roce_nic_receive_buffer_high_events_total", "How often the NIC's receive buffer was nearly full.", port),
		{
			"roce_nic_trust_info", "What the port takes the priority of a packet from.", Info, add(port, "trust"),
			[]Origin{fact("dcbnl", "DCB_ATTR_DCB_APP_TRUST_TABLE"), fact("dcbnl", "DCB_ATTR_IEEE_APP_TABLE"), fact("sysfs", "class/net/<port>/qos/trust")},
		},
		{"roce_nic_raw_stat", "A driver statistic that the configuration names, as it is.", Gauge, add(port, "name"), one(fact("statistics", "names and patterns of host.raw_stats in the configuration"))},

		gauge("roce_pcie_link_width_lanes", "Lanes of the PCIe link.", function, fact("sysfs", "class/net/<port>/device/current_link_width")),
		gauge("roce_pcie_link_max_width_lanes", "Lanes that card and slot could have.", function, fact("sysfs", "class/net/<port>/device/max_link_width")),
		gauge("roce_pcie_link_speed_transfers_per_second", "Transfers a second on each lane of the PCIe link.", function, fact("sysfs", "class/net/<port>/device/current_link_speed")),
		gauge("roce_pcie_link_max_speed_transfers_per_second", "Transfers a second on each lane that card and slot could have.", function, fact("sysfs", "class/net/<port>/device/max_link_speed")),
		gauge("roce_pcie_max_payload_bytes", "Bytes of data in the largest packet that the NIC sends over PCIe.", function, fact("sysfs", "class/net/<port>/device/config")),
		gauge("roce_pcie_stall_ratio", "Share of the last second in which the NIC could not get at the host's memory.", add(port, "operation")),
		counter("roce_pcie_stall_seconds_total", "Seconds of which the NIC could not get at the host's memory for more than 30 percent.", add(port, "operation")),
		gauge("roce_host_sysctl", "Effective value of a setting that decides which port answers for an address.", add(port, "name"), fact("proc", "sys/net/ipv4/conf/<port>/<name>, sys/net/ipv4/conf/all/<name>")),
		gauge("roce_host_module_loaded", "Whether the kernel module is loaded.", []string{"module"}, fact("proc", "modules")),

		{"roce_rdma_port_info", "Identity of the RDMA port, fields that the device does not have are empty.", Info, add(device, "port", "pci_address", "driver", "firmware", "board_id", "link_layer"), one(fact("sysfs", "class/infiniband/<device>/"))},
		gauge("roce_rdma_port_up", "Whether the RDMA port is active.", device, fact("sysfs", rdma+"state")),
		gauge("roce_rdma_port_speed_bytes_per_second", "Speed of the RDMA port, absent while it is down.", device, fact("sysfs", rdma+"rate")),
		gauge("roce_rdma_mtu_bytes", "RoCE MTU that the driver makes of the MTU of the network device.", device, fact("sysfs", "class/net/<port>/mtu")),
		gauge("roce_rdma_gids", "Addresses that the RDMA port has; without one of type v2 no RoCE v2 connection can be made.", add(device, "type"), fact("sysfs", rdma+"gid_attrs/types/")),
		gauge("roce_rdma_default_tos", "Type of service of connections that rdma_cm makes.", device, fact("sysfs", "kernel/config/rdma_cm/<device>/ports/<rdma_port>/default_roce_tos")),
		gauge("roce_rdma_traffic_class", "Traffic class of all RDMA traffic; the DSCP is a quarter of it.", device, fact("sysfs", "class/infiniband/<device>/tc/<rdma_port>/traffic_class")),
		gauge("roce_rdma_ecn_enabled", "Whether the priority takes part in congestion control: sends CNPs (notification), obeys them (reaction).", add(device, "priority", "role"), fact("sysfs", "class/net/<port>/ecn/roce_np/enable/<priority>"), fact("sysfs", "class/net/<port>/ecn/roce_rp/enable/<priority>")),
		counter("roce_rdma_receive_bytes_total", "Bytes of RDMA traffic received.", device),
		counter("roce_rdma_transmit_bytes_total", "Bytes of RDMA traffic sent.", device),
		counter("roce_rdma_receive_packets_total", "Packets of RDMA traffic received.", device),
		counter("roce_rdma_transmit_packets_total", "Packets of RDMA traffic sent.", device),
		counter("roce_rdma_cnp_sent_packets_total", "Congestion notifications that the device sent: what it received was marked.", device),
		counter("roce_rdma_cnp_handled_packets_total", "Congestion notifications that the device acted on; with bnxt, hns and mana those that it received.", device),
		counter("roce_rdma_cnp_ignored_packets_total", "Congestion notifications that the device received and did not act on.", device),
		counter("roce_rdma_ecn_marked_packets_total", "RDMA packets received that had met congestion.", device),
		counter("roce_rdma_out_of_sequence_packets_total", "Packets received out of order.", device),
		counter("roce_rdma_sequence_naks_total", "Answers that asked to send again because a packet was missing.", device),
		counter("roce_rdma_ack_timeouts_total", "How often no answer came in time.", device),
		counter("roce_rdma_retransmits_total", "How often the device sent again.", device),
		counter("roce_rdma_retries_exceeded_total", "How often the device gave up: a connection was lost.", device),
		counter("roce_rdma_rnr_naks_total", "Answers that the receiver was not ready.", device),
		counter("roce_rdma_receive_queue_empty_drops_total", "Packets dropped because the application had posted nothing to receive into.", device),
		counter("roce_rdma_icrc_errors_total", "RoCE packets received with a wrong checksum.", device),
		counter("roce_rdma_duplicate_requests_total", "Requests received that had been answered before.", device),
		counter("roce_rdma_slow_restarts_total", "How often the device went on slowly instead of at its full rate (RoCE slow restart).", device),
		counter("roce_rdma_link_down_events_total", "How often the link of the RDMA device went down.", device),
		counter("roce_rdma_completion_errors_total", "Requests that ended with an error; flushed ones are those of a connection that was closed.", add(device, "side", "kind")),
	}
}
