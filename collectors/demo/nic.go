// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"path"
	"strconv"

	"roce_exporter/collectors/host"
)

// A Statistic is a number of a NIC or of its RDMA device.
type Statistic struct {
	Name string
	Number
}

// stat is a statistic of one name.
func (p *Port) stat(name string, sum ...Quantity) Statistic { return Statistic{name, p.number(sum...)} }

// none are statistics of which there never is anything.
func (p *Port) none(names ...string) []Statistic {
	all := make([]Statistic, len(names))
	for i, name := range names {
		all[i] = p.stat(name)
	}
	return all
}

// Ethtool are the statistics that the driver of a NIC has, as ethtool -S
// prints them.
func (p *Port) Ethtool(m Moment) []Statistic {
	switch p.Driver {
	case mlx5:
		return p.mlx5Statistics(m.Port(p).Mask != 0)
	case ice:
		return p.iceStatistics()
	}
	return p.bnxtStatistics()
}

// mlx5Statistics has the names of drivers/net/ethernet/mellanox/mlx5/core/en_stats.c.
// The lines of pause are those of priorities that have PFC, or of the port as a
// whole where none has.
func (p *Port) mlx5Statistics(pfc bool) []Statistic {
	all := []Statistic{
		p.stat("rx_bytes_phy", each(ReceivedBytes)...), p.stat("tx_bytes_phy", each(SentBytes)...),
		p.stat("rx_packets_phy", each(ReceivedPackets)...), p.stat("tx_packets_phy", each(SentPackets)...),
		p.stat("rx_crc_errors_phy", CRCErrors), p.stat("rx_pcs_symbol_err_phy", FECUncorrectable), p.stat("rx_corrected_bits_phy", FECCorrected),
		p.stat("rx_discards_phy", GroupDropped), p.stat("rx_oversize_pkts_phy", OversizeReceived),
		p.stat("rx_buffer_passed_thres_phy", BufferHigh), p.stat("link_down_events_phy", LinkDowns),
		p.stat("tx_pause_storm_warning_events", StormWarnings), p.stat("tx_pause_storm_error_events", StormErrors),
		p.stat("outbound_pci_stalled_rd", PCIeStallPercent), p.stat("outbound_pci_stalled_rd_events", PCIeStalls),
		p.stat("rx_pause_ctrl_phy", GlobalPauseReceived, PFCReceived), p.stat("tx_pause_ctrl_phy", GlobalPauseSent, PFCSent),
	}
	all = append(all, p.none("tx_discards_phy", "tx_errors_phy", "outbound_pci_stalled_wr", "outbound_pci_stalled_wr_events",
		"outbound_pci_buffer_overflow", "rx_out_of_buffer", "rx_steer_missed_packets", "rx_if_down_packets")...)
	of := map[int]Class{}
	for class, priority := range priorities {
		of[priority] = Class(class)
	}
	for i := range 8 {
		name := func(format string) string { return fmt.Sprintf(format, i) }
		class, ok := of[i]
		var dropped []Quantity
		if class == Data {
			dropped = []Quantity{GroupDropped}
		}
		sum := func(q Quantity) []Quantity {
			if !ok {
				return nil
			}
			return []Quantity{q + class}
		}
		all = append(all, p.stat(name("rx_prio%d_bytes"), sum(ReceivedBytes)...), p.stat(name("rx_prio%d_packets"), sum(ReceivedPackets)...),
			p.stat(name("tx_prio%d_bytes"), sum(SentBytes)...), p.stat(name("tx_prio%d_packets"), sum(SentPackets)...), p.stat(name("rx_prio%d_discards"), dropped...))
	}
	if !pfc {
		return append(all, p.stat("rx_global_pause", GlobalPauseReceived), p.stat("tx_global_pause", GlobalPauseSent),
			p.stat("rx_global_pause_duration", GlobalPausedMicroseconds), p.stat("tx_global_pause_duration"), p.stat("rx_global_pause_transition"))
	}
	return append(all, p.stat("rx_prio3_pause", PFCReceived), p.stat("rx_prio3_pause_duration", PausedMicroseconds),
		p.stat("rx_prio3_pause_transition", PausedEnds), p.stat("tx_prio3_pause", PFCSent), p.stat("tx_prio3_pause_duration", PausingMicroseconds))
}

// iceStatistics has the names of drivers/net/ethernet/intel/ice/ice_ethtool.c.
func (p *Port) iceStatistics() []Statistic {
	all := []Statistic{
		p.stat("rx_bytes.nic", each(ReceivedBytes)...), p.stat("tx_bytes.nic", each(SentBytes)...),
		p.stat("rx_unicast.nic", each(ReceivedPackets)...), p.stat("tx_unicast.nic", each(SentPackets)...),
		p.stat("rx_crc_errors.nic", CRCErrors), p.stat("rx_dropped.nic", GroupDropped), p.stat("rx_oversize.nic", OversizeReceived),
		p.stat("link_xoff_rx.nic", GlobalPauseReceived), p.stat("link_xoff_tx.nic", GlobalPauseSent),
	}
	all = append(all, p.none("rx_multicast.nic", "tx_multicast.nic", "rx_broadcast.nic", "tx_broadcast.nic", "tx_errors.nic", "tx_dropped_link_down.nic", "rx_dropped")...)
	for i := range 8 {
		xoff := func(q Quantity) []Quantity {
			if i != priorities[Data] {
				return nil
			}
			return []Quantity{q}
		}
		name := func(format string) string { return fmt.Sprintf(format, i) }
		all = append(all, p.stat(name("rx_priority_%d_xoff.nic"), xoff(PFCReceived)...), p.stat(name("tx_priority_%d_xoff.nic"), xoff(PFCSent)...),
			p.stat(name("rx_priority_%d_xon.nic"), xoff(PausedEnds)...), p.stat(name("tx_priority_%d_xon.nic"), xoff(PausingEnds)...))
	}
	return all
}

// bnxtStatistics has the names of drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c.
func (p *Port) bnxtStatistics() []Statistic {
	all := []Statistic{
		p.stat("rx_bytes", each(ReceivedBytes)...), p.stat("tx_bytes", each(SentBytes)...),
		p.stat("rx_total_frames", each(ReceivedPackets)...), p.stat("tx_total_frames", each(SentPackets)...),
		p.stat("rx_fcs_err_frames", CRCErrors), p.stat("rx_stat_discard", GroupDropped), p.stat("rx_ovrsz_frames", OversizeReceived),
		p.stat("rx_corrected_bits", FECCorrected), p.stat("rx_fec_corrected_blocks", FECCorrected), p.stat("rx_fec_uncorrectable_blocks", FECUncorrectable),
		p.stat("link_down_events", LinkDowns), p.stat("rx_pause_frames", GlobalPauseReceived), p.stat("tx_pause_frames", GlobalPauseSent),
		p.stat("continuous_pause_events", StormWarnings), p.stat("rx_buffer_passed_threshold", BufferHigh),
	}
	all = append(all, p.none("continuous_roce_pause_events", "rx_stat_err", "tx_stat_error", "tx_stat_discard", "rx_pcs_symbol_err", "rx_total_ring_discards")...)
	for i := range 8 {
		name := func(format string) string { return fmt.Sprintf(format, i) }
		data := func(q Quantity) []Quantity {
			if i != priorities[Data] {
				return nil
			}
			return []Quantity{q}
		}
		all = append(all, p.stat(name("rx_pfc_ena_frames_pri%d"), data(PFCReceived)...), p.stat(name("tx_pfc_ena_frames_pri%d"), data(PFCSent)...),
			p.stat(name("pfc_pri%d_rx_duration_us"), data(PausedMicroseconds)...), p.stat(name("pfc_pri%d_tx_duration_us"), data(PausingMicroseconds)...),
			p.stat(name("pfc_pri%d_rx_transitions"), data(PausedEnds)...), p.stat(name("pfc_pri%d_tx_transitions"), data(PausingEnds)...))
		for class, priority := range priorities {
			if priority == i {
				all = append(all, p.stat(name("rx_bytes_pri%d"), ReceivedBytes+Class(class)), p.stat(name("tx_bytes_pri%d"), SentBytes+Class(class)),
					p.stat(name("rx_packets_pri%d"), ReceivedPackets+Class(class)), p.stat(name("tx_packets_pri%d"), SentPackets+Class(class)))
			}
		}
	}
	return all
}

// rdmaTraffic is what an RDMA device counts: the data, whatever its priority.
func rdmaTraffic(q Quantity) []Quantity { return []Quantity{q + Data, q + CNP, q + Strayed} }

// Counters are the files of counters/ of an RDMA port
// (drivers/infiniband/core/sysfs.c), whose data is in words of four bytes.
func (p *Port) Counters() []Statistic {
	if p.Driver == ice {
		return nil
	}
	received, sent := p.stat("port_rcv_data", rdmaTraffic(ReceivedBytes)...), p.stat("port_xmit_data", rdmaTraffic(SentBytes)...)
	received.Per, sent.Per = 4, 4
	return []Statistic{received, sent, p.stat("port_rcv_packets", rdmaTraffic(ReceivedPackets)...), p.stat("port_xmit_packets", rdmaTraffic(SentPackets)...), p.stat("link_downed", LinkDowns)}
}

// HWCounters are the files of hw_counters/ of an RDMA port.
func (p *Port) HWCounters() []Statistic {
	switch p.Driver {
	case mlx5: // drivers/infiniband/hw/mlx5/counters.c
		all := []Statistic{
			p.stat("np_cnp_sent", CNPSent), p.stat("rp_cnp_handled", CNPHandled), p.stat("rp_cnp_ignored", CNPIgnored), p.stat("np_ecn_marked_roce_packets", MarkedReceived),
			p.stat("out_of_sequence", OutOfSequence), p.stat("packet_seq_err", SequenceNAKs), p.stat("local_ack_timeout_err", AckTimeouts),
			p.stat("roce_adp_retrans", Retransmits), p.stat("req_transport_retries_exceeded", RetriesExceeded), p.stat("out_of_buffer", OutOfBuffer),
		}
		return append(all, p.none("rnr_nak_retry_err", "rx_icrc_encapsulated", "duplicate_request", "roce_slow_restart", "req_cqe_error", "req_cqe_flush_error", "resp_cqe_error", "resp_cqe_flush_error")...)
	case ice: // drivers/infiniband/hw/irdma/verbs.c
		all := []Statistic{
			p.stat("cnpSent", CNPSent), p.stat("cnpHandled", CNPHandled), p.stat("cnpIgnored", CNPIgnored), p.stat("RxECNMrkd", MarkedReceived),
			p.stat("ip4InOctets", rdmaTraffic(ReceivedBytes)...), p.stat("ip4OutOctets", rdmaTraffic(SentBytes)...),
			p.stat("RxUDP", rdmaTraffic(ReceivedPackets)...), p.stat("TxUDP", rdmaTraffic(SentPackets)...),
			p.stat("tcpRetransSegs", Retransmits),
		}
		return append(all, p.none("ip6InOctets", "ip6OutOctets")...)
	}
	all := []Statistic{ // drivers/infiniband/hw/bnxt_re/hw_counters.c
		p.stat("tx_cnp_pkts", CNPSent), p.stat("rx_cnp_pkts", CNPHandled, CNPIgnored), p.stat("rx_ecn_marked_pkts", MarkedReceived),
		p.stat("oos_drop_count", OutOfSequence), p.stat("seq_err_naks_rcvd", SequenceNAKs), p.stat("to_retransmits", AckTimeouts), p.stat("max_retry_exceeded", RetriesExceeded),
	}
	return append(all, p.none("rx_roce_discards", "rx_roce_errors")...)
}

// driverInfo is what ethtool -i prints.
func (p *Port) driverInfo(m Moment) host.Driver {
	return host.Driver{Name: p.Driver, Version: "6.8.0-51-generic", Firmware: m.Port(p).Firmware, Bus: p.PCI}
}

// dcbState is what a NIC says of data center bridging.
func (p *Port) dcbState(m Moment) *host.DCBState {
	state := m.Port(p)
	dcb := &host.DCBState{PFC: &state.Mask, Trust: state.Trust, Mode: "host ieee"}
	if state.Trust == "dscp" {
		dcb.DSCP = map[uint8]uint8{26: uint8(priorities[Data]), 48: uint8(priorities[CNP])}
	}
	dcb.Requests, dcb.Indications = new([8]uint64), new([8]uint64)
	dcb.Requests[priorities[Data]], dcb.Indications[priorities[Data]] = m.Number(p, PFCSent), m.Number(p, PFCReceived)
	return dcb
}

// transfers are the speeds of PCIe generations as the kernel prints them.
var transfers = map[int]string{3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe", 5: "32.0 GT/s PCIe"}

// Files are the files of a host beneath sys/ and proc/; those that begin with
// ">" are links.
func (n *Node) Files(m Moment) map[string]string {
	state := m.Node(n)
	files := map[string]string{
		"proc/sys/kernel/hostname":                n.Name + ".example.net\n",
		"proc/sys/kernel/osrelease":               "6.8.0-51-generic\n",
		"proc/stat":                               fmt.Sprintf("btime %d\n", state.Boot.Unix()),
		"proc/sys/net/ipv4/conf/all/rp_filter":    "0\n",
		"proc/modules":                            "",
		"proc/sys/net/ipv4/conf/all/arp_ignore":   "0\n",
		"proc/sys/net/ipv4/conf/all/arp_announce": "0\n",
	}
	modules := map[string]bool{"ib_uverbs": true, "rdma_cm": true, "nvidia_peermem": true}
	for _, p := range n.Ports {
		modules[map[string]string{mlx5: "mlx5_ib", ice: "irdma", bnxt: "bnxt_re"}[p.Driver]] = true
		p.putNetdev(files, m)
		if m.Port(p).Device != "" {
			p.putRDMA(files, m)
		}
	}
	for _, name := range host.Modules() {
		if modules[name] {
			files["proc/modules"] += name + " 16384 1 - Live 0x0000000000000000\n"
		}
	}
	return files
}

// dir is the directory of a NIC's PCI function.
func (p *Port) dir() (slot, function string) {
	slot = "sys/devices/pci0000:00/0000:00:" + p.PCI[5:]
	return slot, path.Join(slot, p.PCI)
}

func (p *Port) putNetdev(files map[string]string, m Moment) {
	state, node := m.Port(p), m.Node(p.Node)
	slot, function := p.dir()
	dir := path.Join(function, "net", p.Name)
	put := func(name, text string) { files[name] = text + "\n" }
	files["sys/class/net/"+p.Name] = ">../../" + dir[len("sys/"):]
	files[path.Join(dir, "device")] = ">../../../" + p.PCI
	files[path.Join(function, "driver")] = ">../../../../bus/pci/drivers/" + p.Driver
	for _, at := range []string{slot, function} {
		put(path.Join(at, "max_link_width"), strconv.Itoa(state.MaxLanes))
		put(path.Join(at, "max_link_speed"), transfers[state.Generation])
	}
	put(path.Join(function, "current_link_width"), strconv.Itoa(state.Lanes))
	put(path.Join(function, "current_link_speed"), transfers[state.Generation])
	oper, speed := "up", megabits(state.Speed)
	if !state.Up {
		oper, speed = "down", "-1"
	}
	for name, text := range map[string]string{
		"ifindex": strconv.Itoa(p.place + 2), "flags": "0x1003", "type": "1", "operstate": oper, "speed": speed, "mtu": strconv.Itoa(state.MTU),
		"address": p.MAC, "statistics/rx_errors": strconv.FormatUint(m.Number(p, CRCErrors), 10), "statistics/rx_dropped": "0",
		"carrier_down_count": strconv.FormatUint(m.Number(p, LinkDowns), 10),
	} {
		put(path.Join(dir, name), text)
	}
	ignore, announce := "1", "2"
	if node.ARPFlux {
		ignore, announce = "0", "0"
	}
	put("proc/sys/net/ipv4/conf/"+p.Name+"/arp_ignore", ignore)
	put("proc/sys/net/ipv4/conf/"+p.Name+"/arp_announce", announce)
	put("proc/sys/net/ipv4/conf/"+p.Name+"/rp_filter", "0")
}

func (p *Port) putRDMA(files map[string]string, m Moment) {
	state := m.Port(p)
	_, function := p.dir()
	dir := path.Join(function, "infiniband", state.Device)
	put := func(name, text string) { files[path.Join(dir, name)] = text + "\n" }
	files["sys/class/infiniband/"+state.Device] = ">../../" + dir[len("sys/"):]
	files[path.Join(dir, "device")] = ">../../../" + p.PCI
	firmware := state.Firmware
	for i, r := range firmware {
		if r == ' ' {
			firmware = firmware[:i]
			break
		}
	}
	put("fw_ver", firmware)
	put("node_type", "1: CA")
	put("node_guid", fmt.Sprintf("0200:5e%02x:%04x:%04x", p.Node.index>>8, p.Node.index&0xffff, p.place))
	board := map[string]string{mlx5: "MT_0000000838", bnxt: "BCM957508"}[p.Driver]
	if board != "" {
		put("board_id", board)
	}
	link, rate := "4: ACTIVE", rateText(state.Speed)
	if !state.Up {
		link = "1: DOWN"
	}
	put("ports/1/link_layer", state.LinkLayer)
	put("ports/1/state", link)
	put("ports/1/rate", rate)
	put("ports/1/gid_attrs/types/0", "IB/RoCE v1")
	put("ports/1/gid_attrs/ndevs/0", p.Name)
	for i := range state.GIDs {
		put(fmt.Sprintf("ports/1/gid_attrs/types/%d", i+1), "RoCE v2")
		put(fmt.Sprintf("ports/1/gid_attrs/ndevs/%d", i+1), p.Name)
	}
	for _, s := range p.Counters() {
		put("ports/1/counters/"+s.Name, strconv.FormatUint(s.Value(m), 10))
	}
	for _, s := range p.HWCounters() {
		put("ports/1/hw_counters/"+s.Name, strconv.FormatUint(s.Value(m), 10))
	}
}

// rateText is the speed of an RDMA port as the kernel prints it.
func rateText(bits float64) string {
	if bits < hostSpeed {
		return fmt.Sprintf("%g Gb/sec (1X HDR)", bits/gigabit)
	}
	return fmt.Sprintf("%g Gb/sec (4X EDR)", bits/gigabit)
}
