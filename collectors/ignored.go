// SPDX-License-Identifier: Apache-2.0

package collectors

// An Ignored is a raw name that is left out on purpose. The pattern is that of
// path.Match.
type Ignored struct{ Source, Pattern, Reason string }

// ownCode is the reason of what is read, but not by way of the table.
const ownCode = "read by code of its own"

// IgnoredNames lists the raw names that devices have and the table does not
// map.
func IgnoredNames() []Ignored {
	const (
		poll      = "the last poll's peak or fill; the watermark tables hold windows"
		sizes     = "packet sizes: no rule needs them, and they are many"
		countdown = "state of a countdown or of the last storm, no counter"
		internal  = "state of a script of the switch"
		sum       = "the sum of all priorities"
		unit      = "a time without a known unit"
		otherNIC  = "of a driver that the table does not have; host.raw_stats gives it"
	)
	return []Ignored{
		{"port", "SAI_PORT_STAT_ETHER_*_PKTS_*_OCTETS", sizes},
		{"port", "SAI_PORT_STAT_IP_IN_*", "routed packets: parts of the packet counters"},
		{"port", "SAI_PORT_STAT_IF_IN_UNKNOWN_PROTOS", "in the discards already"},
		{"port", "SAI_PORT_STAT_IF_OUT_QLEN", "always 0 on most chips; the queues have their own"},
		{"port", "SAI_PORT_STAT_ETHER_TX_OVERSIZE_PKTS", "what the port itself sends; the peer's oversize counter tells"},
		{"port", "SAI_PORT_STAT_ETHER_STATS_*", "fragments and jabbers: in the errors already"},
		{"port", "SAI_PORT_STAT_IF_IN_FEC_CODEWORD_ERRORS_S*", "sixteen bins a port: too many for what they tell"},
		{"port", "SAI_PORT_STAT_DOT3_STATS_*", "parts of the errors; those of the checksum are mapped"},
		{"port", "SAI_PORT_STAT_*TRIM_PACKETS", "packet trimming is not RoCE's"},
		{"port", "SAI_PORT_STAT_*WRED_DROPPED_PACKETS", "the queues have them"},
		{"port", "SAI_PORT_STAT_*_CONFIGURED_DROP_REASONS_*", "defined by the operator, so of no common meaning"},
		{"port", "EST_PORT_STAT_PFC_*_RECENT_PAUSE_*", "a moment, not a total"},
		{"port", "*_last", internal},
		{"queue", "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES", poll},
		{"queue", "SAI_QUEUE_STAT_*TRIM_PACKETS", "packet trimming is not RoCE's"},
		{"queue", "SAI_QUEUE_STAT_WRED_DROPPED_BYTES", "the packets tell"},
		{"queue", "SAI_QUEUE_ATTR_PAUSE_STATUS", "a moment at the watchdog's poll; the storm state follows from it"},
		{"queue", "PFC_WD_QUEUE_STATS_*_LAST", countdown},
		{"queue", "PFC_WD_*_LEFT", countdown},
		{"queue", "PFC_WD_QUEUE_STATS_?X_PACKETS", "packets that passed during a storm; those that were dropped are exported"},
		{"queue", "PFC_WD_ACTION", ownCode},
		{"queue", "PFC_WD_STATUS", ownCode},
		{"queue", "PFC_WD_*_TIME", ownCode},
		{"queue", "PFC_STAT_HISTORY", "the configuration of the estimates"},
		{"queue", "BIG_RED_SWITCH_MODE", ownCode},
		{"queue", "DEBUG_STORM", "a test hook of the watchdog"},
		{"queue", "*_last", internal},
		{"group", "SAI_INGRESS_PRIORITY_GROUP_STAT_PACKETS", "the queue of the same traffic has them"},
		{"group", "SAI_INGRESS_PRIORITY_GROUP_STAT_BYTES", "the queue of the same traffic has them"},
		{"group", "SAI_INGRESS_PRIORITY_GROUP_STAT_*_BYTES", poll},

		{"ethtool", "rx_prio?_marked", "marked by the NIC because its own host is slow; its drops are exported"},
		{"ethtool", "rx_global_pause_transition", "the frames and the time of global pause tell"},
		{"ethtool", "rx*_ecn_mark", "of what reached the kernel, which RDMA never does"},
		{"ethtool", `\[*\]: ?x_discards`, "of one ring; the port's are exported"},
		{"ethtool", "?x_pfc_frames", sum},
		{"ethtool", "frames_?x_pripause", sum},
		{"ethtool", "mac_?x_pfc_pkt_num", sum},
		{"ethtool", "mac_?x_pause_xoff_time", unit},
		{"ethtool", "mac_tx_pfc_pri?_xoff_time", unit},
		{"ethtool", "resume*_pause_events", "ends of what is counted where it begins"},
		{"ethtool", "rx_discard_*_cos?", "by hardware queue, which is no priority"},
		{"ethtool", "?x_total_*_discards", "of the rings; those for lack of descriptors are exported"},
		{"ethtool", "tx_hwtstamp_discarded", "time stamps, not packets"},
		{"ethtool", "*_discard", "what the card refuses on purpose, by its filters"},
		{"ethtool", "*_filter_discards", "what the card refuses on purpose, by its filters"},
		{"ethtool", "veb.?x_discards", "of the switch within the card"},
		{"ethtool", "port.rx_priority_?_xon_2_xoff", "the change into the pause, not that out of it"},
		{"ethtool", "rx_pause_frames", otherNIC + " (be2net)"},
		{"ethtool", "tx_pauseframes", otherNIC + " (be2net)"},
		{"ethtool", "rx_priority_pause_frames", otherNIC + " (be2net)"},
		{"ethtool", "tx_priority_pauseframes", otherNIC + " (be2net)"},
		{"ethtool", "pkts tx discard", otherNIC + " (vmxnet3)"},
		{"ethtool", "admin_q_pause", "of the queue of commands to the card (ena)"},
		{"hw_counters", "roce_slow_restart_cnps", "CNPs made by slow restart; the restarts are exported"},
		{"hw_counters", "ip?InDiscards", "of all IP traffic, not of RDMA"},
		{"hw_counters", "ecn_doorbell", "an internal event of the card"},
		{"hw_counters", "?x_roce_discards", "of all causes together; those of RoCE are exported one by one"},
	}
}
