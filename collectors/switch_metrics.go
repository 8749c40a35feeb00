// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"roce_exporter/collectors/sonic"
)

// A mapper turns the readings of a switch's namespaces into samples.
type mapper struct {
	b        *Builder
	options  *SwitchOptions
	services map[string]bool // That are in already.
	timed    bool            // The node's clock is in already.
	booted   bool            // And its boot time.
	off      map[string]bool // Poll groups of the namespace at hand that are off.
	windows  []string        // Of its watermarks.
}

func newMapper(b *Builder, options *SwitchOptions) *mapper {
	return &mapper{b: b, options: options, services: map[string]bool{}}
}

// add maps one namespace.
func (m *mapper) add(r *sonic.Reading, several bool) {
	m.b.ASIC("")
	if several {
		m.b.ASIC(r.ASIC)
	}
	m.windows = r.Windows
	m.addNode(r)
	m.addControl(r, several)
	for i := range r.Ports {
		m.addPort(&r.Ports[i])
	}
	for i := range r.Queues {
		m.addQueue(&r.Queues[i])
	}
	for i := range r.Groups {
		m.addGroup(&r.Groups[i])
	}
	for i := range r.Pools {
		m.addPool(&r.Pools[i])
	}
	for i := range r.VOQs {
		m.addVOQ(&r.VOQs[i])
	}
}

func (m *mapper) addNode(r *sonic.Reading) {
	if !r.Time.IsZero() && !m.timed {
		m.b.Add("roce_node_time_seconds", seconds(r.Time))
		m.timed = true
	}
	if !r.Device.Boot.IsZero() && !m.booted {
		m.b.Add("roce_node_boot_time_seconds", seconds(r.Device.Boot))
		m.booted = true
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

func (m *mapper) addControl(r *sonic.Reading, several bool) {
	m.off = map[string]bool{}
	for _, g := range r.PollGroups {
		if g.Enabled != nil {
			m.off[g.Name] = !*g.Enabled
		}
		m.b.MaybeBool("roce_flex_counter_enabled", g.Enabled, g.Name)
		if g.Interval > 0 {
			m.b.Add("roce_flex_counter_interval_seconds", g.Interval.Seconds(), g.Name)
		}
	}
	for _, d := range r.Databases {
		m.b.AddBool("roce_redis_up", d.Up, d.Name)
	}
	for _, s := range r.Services {
		if several {
			m.b.ASIC(s.ASIC)
		}
		if m.services[s.Name+"@"+s.ASIC] {
			continue // The host has the first word.
		}
		m.services[s.Name+"@"+s.ASIC] = true
		m.b.AddBool("roce_service_up", s.Up, s.Name)
	}
	if several {
		m.b.ASIC(r.ASIC)
	}
	if !r.LastChange.IsZero() {
		m.b.Add("roce_counters_last_change_timestamp_seconds", seconds(r.LastChange), "PORT")
	}
	m.b.MaybeBool("roce_pfcwd_big_red_switch", r.BigRedSwitch)
}

// counters maps raw values unless syncd does not poll them: then they are
// leftovers.
func (m *mapper) counters(source string, values []float64, keep func(string) bool, labels ...string) {
	if !m.off[m.b.catalog.sources[source].Group] {
		m.b.Counters(source, values, keep, labels...)
	}
}

func (m *mapper) addPort(p *sonic.Port) {
	b, name := m.b, p.Name
	b.Add("roce_port_info", 1, name, p.Alias, p.Kind, "", "", "", "")
	m.b.MaybeBool("roce_port_admin_up", p.AdminUp, name)
	m.b.MaybeBool("roce_port_oper_up", p.OperUp, name)
	m.b.Maybe("roce_port_speed_bytes_per_second", p.Speed, name)
	m.b.Maybe("roce_port_configured_speed_bytes_per_second", p.ConfiguredSpeed, name)
	m.b.Maybe("roce_port_mtu_bytes", p.ConfigMTU, name, "config")
	m.b.Maybe("roce_port_mtu_bytes", p.ASICMTU, name, "asic")
	m.b.Maybe("roce_port_mtu_bytes", p.KernelMTU, name, "kernel")
	m.addPortCounters(p)
	m.addLink(p)
	m.addPFC(p)
	m.addQoS(p)
	m.addWatchdog(p)
	if p.Kind == "front" {
		m.options.Policy.AddPort(b, name)
	}
}

func (m *mapper) addPortCounters(p *sonic.Port) {
	m.b.Object()
	m.counters("counters.port", p.Counters, nil, p.Name)
	m.counters("counters.port.drops", p.Counters, nil, p.Name)
	// Only the watchdog polls these: on a priority that it does not watch they
	// are leftovers.
	watched := func(priority string) bool {
		bit := uint8(1) << (priority[0] - '0')
		lossless := m.options.AllPriorities || p.ConfigPFC == nil || *p.ConfigPFC&bit != 0
		return lossless && (p.Watched == nil || *p.Watched&bit != 0)
	}
	m.counters("counters.port.watchdog", p.Counters, watched, p.Name)
	m.counters("configured.port", m.configuredPause(p), watched, p.Name)
	m.counters("counters.port.history", p.Counters, watched, p.Name)
}

// configuredPause converts pause durations that have no unit, if the operator
// gave one. A quantum is the time of 512 bits (IEEE 802.3, annex 31B).
func (m *mapper) configuredPause(p *sonic.Port) []float64 {
	times, by := 1.0, 1e6
	speed := p.Speed
	if speed == nil {
		speed = p.ConfiguredSpeed
	}
	switch {
	case m.options.PauseDurationUnit == "microseconds":
	case m.options.PauseDurationUnit == "quanta" && speed != nil && *speed > 0:
		times, by = 512/8, *speed
	default:
		return nil
	}
	out := make([]float64, len(p.Counters))
	for i, v := range p.Counters {
		out[i] = v * times / by
	}
	return out
}

// addLink adds what is at the other end of the port.
func (m *mapper) addLink(p *sonic.Port) {
	b, name := m.b, p.Name
	if n := p.Neighbor; n != nil {
		neighbor := n.Name
		if !m.options.FullNames {
			neighbor = ShortName(neighbor)
		}
		b.Add("roce_port_neighbor_info", 1, name, neighbor, n.Port, n.PortID, n.Kind)
	}
	if p.Mode != "" {
		b.Add("roce_port_mode_info", 1, name, p.Mode)
	}
	if p.FDB != nil {
		b.Add("roce_port_fdb_entries", float64(*p.FDB), name)
	}
	for _, mac := range p.MACs {
		b.Add("roce_port_attached_mac_info", 1, name, mac)
	}
	if p.LAG != "" {
		b.Add("roce_port_lag_member_info", 1, name, p.LAG)
	}
}

// ShortName cuts a host name at the first dot, but leaves an address alone.
func ShortName(name string) string {
	if _, err := netip.ParseAddr(name); err == nil {
		return name
	}
	short, _, _ := strings.Cut(name, ".")
	return short
}

func (m *mapper) addPFC(p *sonic.Port) {
	if p.Kind != "front" && p.Kind != "backplane" {
		return
	}
	for priority := range 8 {
		label, bit := strconv.Itoa(priority), uint8(1)<<priority
		if p.ConfigPFC != nil {
			m.b.AddBool("roce_pfc_enabled", *p.ConfigPFC&bit != 0, p.Name, label, "config")
		}
		if p.ASICPFC != nil {
			m.b.AddBool("roce_pfc_enabled", *p.ASICPFC&bit != 0, p.Name, label, "asic")
		}
		if p.ASICReceivePFC != nil {
			m.b.AddBool("roce_pfc_receive_enabled", *p.ASICReceivePFC&bit != 0, p.Name, label, "asic")
		}
	}
}

func (m *mapper) addQoS(p *sonic.Port) {
	for _, d := range p.DSCP {
		m.b.Add("roce_port_dscp_info", 1, p.Name, strconv.Itoa(d.DSCP), strconv.Itoa(d.Priority), strconv.Itoa(d.Queue))
	}
	for i := range p.LosslessQueues {
		q := &p.LosslessQueues[i]
		index := strconv.Itoa(q.Index)
		for _, priority := range q.Priorities {
			m.b.Add("roce_queue_lossless", 1, p.Name, index, q.Type, strconv.Itoa(priority))
		}
		if q.ECN == nil {
			continue
		}
		m.b.AddBool("roce_queue_ecn_enabled", q.ECN.Enabled, p.Name, index)
		for _, t := range q.ECN.Thresholds {
			if t.Color == "green" || m.options.AllQueues {
				m.b.Add("roce_queue_ecn_threshold_bytes", t.Bytes, p.Name, index, t.Bound, t.Color)
			}
		}
	}
	for i := range p.LosslessGroups {
		g := &p.LosslessGroups[i]
		index := strconv.Itoa(g.Index)
		for _, priority := range g.Priorities {
			m.b.Add("roce_pg_lossless", 1, p.Name, index, strconv.Itoa(priority))
		}
		m.b.Maybe("roce_pg_headroom_size_bytes", g.Headroom, p.Name, index)
	}
}

func (m *mapper) addWatchdog(p *sonic.Port) {
	for _, queue := range p.WatchdogExpected {
		if p.Watchdog.Unknown {
			break
		}
		m.b.AddBool("roce_pfcwd_enabled", p.Watchdog.Configured, p.Name, strconv.Itoa(queue))
	}
	m.b.Maybe("roce_pfcwd_detection_time_seconds", p.Watchdog.Detection, p.Name)
	m.b.Maybe("roce_pfcwd_restoration_time_seconds", p.Watchdog.Restore, p.Name)
	if p.Watchdog.Action != "" {
		m.b.Add("roce_pfcwd_action_info", 1, p.Name, p.Watchdog.Action)
	}
}

func (m *mapper) addQueue(q *sonic.Queue) {
	index := strconv.Itoa(q.Index)
	m.b.Object()
	if q.Selected {
		m.counters("counters.queue", q.Counters, nil, q.Port, index, q.Type)
		m.counters("counters.queue.ecn", q.Counters, nil, q.Port, index, q.Type)
		if q.Watched {
			m.counters("counters.queue.occupancy", q.Counters, nil, q.Port, index, q.Type)
		}
	}
	m.counters("counters.queue.watchdog", q.Counters, nil, q.Port, index)
	m.b.MaybeBool("roce_pfcwd_storm_active", q.Stormed, q.Port, index)
	for i, values := range q.Watermarks {
		m.b.Object()
		m.counters("watermarks.queue", values, nil, q.Port, index, q.Type, m.windows[i])
	}
}

func (m *mapper) addGroup(g *sonic.PriorityGroup) {
	index := strconv.Itoa(g.Index)
	m.b.Object()
	m.counters("counters.pg", g.Counters, nil, g.Port, index)
	for i, values := range g.Watermarks {
		m.b.Object()
		m.counters("watermarks.pg", values, nil, g.Port, index, m.windows[i])
	}
}

func (m *mapper) addPool(p *sonic.BufferPool) {
	m.b.Maybe("roce_buffer_pool_size_bytes", p.Size, p.Name)
	m.b.Maybe("roce_buffer_pool_headroom_size_bytes", p.Headroom, p.Name)
	for i, values := range p.Watermarks {
		m.b.Object()
		m.counters("watermarks.pool", values, nil, p.Name, m.windows[i])
	}
}

// isDrop says whether a raw name of a VOQ is exported with voq: dropped.
func isDrop(raw string) bool {
	return strings.Contains(raw, "DROPPED") || strings.Contains(raw, "DELETED")
}

func (m *mapper) addVOQ(q *sonic.VOQ) {
	values := q.Counters
	if m.options.VOQ == "dropped" {
		values = slices.Clone(values)
		for i, raw := range m.b.catalog.Wanted("voq") {
			if i < len(values) && !isDrop(raw) {
				values[i] = math.NaN()
			}
		}
	}
	index := strconv.Itoa(q.Index)
	m.b.Object()
	m.counters("counters.voq", values, nil, q.SystemPort, index)
	m.counters("counters.voq.wred", values, nil, q.SystemPort, index)
}
