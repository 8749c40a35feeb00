// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"roce_exporter/collectors/host"
)

// A hostMapper turns what was read of a host into samples.
type hostMapper struct {
	b       *Builder
	options *HostOptions
	masks   map[string]uint8 // The lossless priorities that ports have; a port that is not in it: unknown.
	ofRDMA  map[string]bool  // Network devices that RDMA takes.
}

func (m *hostMapper) addHost(h *host.Host, now time.Time) {
	m.b.Add("roce_node_time_seconds", seconds(now))
	if !h.Boot.IsZero() {
		m.b.Add("roce_node_boot_time_seconds", seconds(h.Boot))
	}
	for _, module := range slices.Sorted(maps.Keys(h.Modules)) {
		m.b.AddBool("roce_host_module_loaded", h.Modules[module], module)
	}
}

// learn notes which network devices an RDMA device takes.
func (m *hostMapper) learn(r *host.RDMA) {
	if r == nil {
		return
	}
	for _, p := range r.Ports {
		m.ofRDMA[p.Netdev] = true
		for _, member := range p.Members {
			m.ofRDMA[member] = true
		}
	}
}

func (m *hostMapper) addNetdev(n *host.Netdev) {
	port := n.Name
	m.b.Driver(n.Driver)
	if n.Known { // Else it would become another series as soon as the driver answers.
		m.b.Add("roce_port_info", 1, port, "", n.Kind, n.Driver, n.Firmware, n.PCI, n.MAC)
	}
	m.b.MaybeBool("roce_port_admin_up", n.AdminUp, port)
	m.b.MaybeBool("roce_port_oper_up", n.OperUp, port)
	m.b.Maybe("roce_port_speed_bytes_per_second", n.Speed, port)
	m.b.Maybe("roce_port_mtu_bytes", n.MTU, port, "kernel")
	if n.Bond != "" {
		m.b.Add("roce_port_lag_member_info", 1, port, n.Bond)
	}
	for name, value := range n.Raw {
		m.b.Add("roce_nic_raw_stat", float64(value), port, name)
	}
	if n.Link != nil {
		m.b.Maybe("roce_pcie_link_width_lanes", n.Link.Width, port, n.PCI)
		m.b.Maybe("roce_pcie_link_max_width_lanes", n.Link.MaxWidth, port, n.PCI)
		m.b.Maybe("roce_pcie_link_speed_transfers_per_second", n.Link.Speed, port, n.PCI)
		m.b.Maybe("roce_pcie_link_max_speed_transfers_per_second", n.Link.MaxSpeed, port, n.PCI)
		m.b.Maybe("roce_pcie_max_payload_bytes", n.Link.Payload, port, n.PCI)
	}
	if m.ofRDMA[port] {
		m.b.Maybe("roce_host_sysctl", n.Sysctls.ARPIgnore, port, "arp_ignore")
		m.b.Maybe("roce_host_sysctl", n.Sysctls.ARPAnnounce, port, "arp_announce")
		m.b.Maybe("roce_host_sysctl", n.Sysctls.RPFilter, port, "rp_filter")
	}
	if n.Kind != host.Physical {
		return
	}
	m.options.Policy.AddPort(m.b, port)
	m.addQoS(n)
	keep := m.keeps(port)
	m.b.Object()
	if n.Ethtool == nil {
		m.b.Reserve("ethtool")
	}
	m.b.Counters("ethtool", n.Ethtool, nil, port)
	m.b.Counters("ethtool.dropped", n.Ethtool, keep, port)
	m.b.Counters("netdev", n.Netdev, nil, port)
	m.b.Counters("dcb", n.Frames, nil, port)
}

// addQoS adds what the port makes of priorities, and notes which it has that are
// lossless.
func (m *hostMapper) addQoS(n *host.Netdev) {
	var mask uint8
	known := false
	if n.PauseSeen != nil {
		mask, known = *n.PauseSeen, true
	}
	if n.DCB != nil && n.DCB.PFC != nil {
		mask, known = mask|*n.DCB.PFC, true
		for priority := range 8 {
			m.b.AddBool("roce_pfc_enabled", *n.DCB.PFC>>priority&1 == 1, n.Name, strconv.Itoa(priority), "nic")
		}
	}
	if known {
		m.masks[n.Name] = mask
	}
	if n.DCB == nil {
		return
	}
	if n.DCB.Trust != "" {
		m.b.Add("roce_nic_trust_info", 1, n.Name, n.DCB.Trust)
	}
	if n.DCB.Trust != "dscp" {
		return // The DSCP decides nothing.
	}
	intended := m.options.Policy.DSCPs()
	for _, dscp := range slices.Sorted(maps.Keys(n.DCB.DSCP)) {
		priority := n.DCB.DSCP[dscp]
		inMask := n.DCB.PFC != nil && *n.DCB.PFC>>priority&1 == 1
		if inMask || slices.Contains(intended, int(dscp)) {
			m.b.Add("roce_port_dscp_info", 1, n.Name, strconv.Itoa(int(dscp)), strconv.Itoa(int(priority)), "")
		}
	}
}

// keeps chooses the priorities of a port that are exported where there would
// be many series: the lossless ones that it has, and those that the operator
// wants.
func (m *hostMapper) keeps(port string) func(priority string) bool {
	mask, known := m.masks[port]
	if m.options.AllPriorities || !known {
		return nil
	}
	if m.options.Policy != nil {
		for _, priority := range m.options.Policy.LosslessPriorities {
			mask |= 1 << priority
		}
	}
	return func(priority string) bool {
		p, err := strconv.ParseUint(priority, 10, 3)
		return err != nil || mask>>p&1 == 1
	}
}

func (m *hostMapper) addRDMA(r *host.RDMA) {
	m.b.Driver(r.Driver)
	for i := range r.Ports {
		p := &r.Ports[i]
		device, number := r.Name, strconv.Itoa(p.Number)
		m.b.Add("roce_rdma_port_info", 1, device, number, p.Netdev, r.PCI, r.Driver, r.Firmware, r.BoardID, p.LinkLayer)
		if !p.IsEthernet() {
			continue // Another kind of fabric: enough to see that a card was left in this mode.
		}
		m.b.MaybeBool("roce_rdma_port_up", p.Up, device, number)
		m.b.Maybe("roce_rdma_port_speed_bytes_per_second", p.Speed, device, number)
		m.b.Maybe("roce_rdma_mtu_bytes", p.MTU, device, number)
		m.b.Maybe("roce_rdma_default_tos", p.DefaultTOS, device, number)
		m.b.Maybe("roce_rdma_traffic_class", p.TrafficClass, device, number)
		if p.GIDs != nil && !r.IWARP {
			m.b.Add("roce_rdma_gids", float64(p.GIDs.V1), device, number, "v1")
			m.b.Add("roce_rdma_gids", float64(p.GIDs.V2), device, number, "v2")
		}
		keep := m.keeps(p.Netdev)
		if len(p.Members) > 0 {
			keep = m.keeps(p.Members[0])
		}
		for _, e := range p.ECN {
			priority := strconv.Itoa(e.Priority)
			if keep == nil || keep(priority) {
				m.b.AddBool("roce_rdma_ecn_enabled", e.Enabled, device, number, priority, e.Role)
			}
		}
		m.b.Object()
		m.b.Counters("counters", p.Counters, nil, device, number)
		m.b.Counters("hw_counters", p.HWCounters, nil, device, number)
	}
}
