// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
)

var errNotPriorities = errors.New("not a list of priorities")

// parsePriorities reads "3,4" into a mask.
func parsePriorities(text string) (uint8, error) {
	var mask uint8
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil || n > 7 {
			return 0, errNotPriorities
		}
		mask |= 1 << n
	}
	return mask, nil
}

// bits lists the priorities of a mask.
func bits(mask uint8) []int {
	var out []int
	for i := range 8 {
		if mask&(1<<i) != 0 {
			out = append(out, i)
		}
	}
	return out
}

// A qosMap is one of the maps between DSCPs, traffic classes, queues and
// priority groups. A nil map is the identity, which is what the default
// template has for what it leaves out.
type qosMap struct {
	to      map[int]int
	unknown bool // It is named but not there, or not readable as numbers.
}

func (m qosMap) get(from int) (int, bool) {
	if m.unknown {
		return 0, false
	}
	if m.to == nil {
		return from, true
	}
	to, ok := m.to[from]
	return to, ok
}

// qosMap finds the map that a port's row names.
func (c *configuration) qosMap(row Hash, field, table string) qosMap {
	name := reference(row[field])
	if name == "" {
		return qosMap{}
	}
	hash, ok := c.profiles[table][name]
	if !ok {
		return qosMap{unknown: true}
	}
	m := qosMap{to: make(map[int]int, len(hash))}
	for from, to := range hash {
		if from == "NULL" {
			continue
		}
		f, err1 := strconv.ParseUint(from, 10, 8)
		t, err2 := strconv.ParseUint(to, 10, 8)
		if err1 != nil || err2 != nil {
			return qosMap{unknown: true}
		}
		m.to[int(f)] = int(t)
	}
	return m
}

// A binding is the QoS maps of a port.
type binding struct {
	dscpToTC                                     qosMap
	dscpBound                                    bool // A DSCP map is bound at all: there is no identity from 64 to 8.
	tcToQueue, tcToGroup, pfcToQueue, pfcToGroup qosMap
	pfcToGroupBound                              bool
}

func (c *configuration) binding(port string) binding {
	row := c.qos[port]
	b := binding{
		tcToQueue: c.qosMap(row, "tc_to_queue_map", "TC_TO_QUEUE_MAP"),
		tcToGroup: c.qosMap(row, "tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP"),
		// Which queue a received PFC frame stops, and which group's fill sends one.
		pfcToQueue:      c.qosMap(row, "pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE"),
		pfcToGroup:      c.qosMap(row, "pfc_to_pg_map", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"),
		pfcToGroupBound: reference(row["pfc_to_pg_map"]) != "",
	}
	dscp := row
	if reference(row["dscp_to_tc_map"]) == "" {
		dscp = c.globalQoS
	}
	b.dscpBound = reference(dscp["dscp_to_tc_map"]) != ""
	b.dscpToTC = c.qosMap(dscp, "dscp_to_tc_map", "DSCP_TO_TC_MAP")
	return b
}

// groupOf is the priority group of a PFC priority. Only some platforms have a
// map of its own for it; on the others priority and traffic class are one.
func (b binding) groupOf(priority int) (int, bool) {
	if b.pfcToGroupBound {
		return b.pfcToGroup.get(priority)
	}
	return b.tcToGroup.get(priority)
}

// land says where a DSCP lands under a PFC mask: the queue it waits in, and
// its priority. That is the traffic class, unless the class's priority group
// is another priority's: what a group does, lossless or not, its packets get.
func (b binding) land(dscp int, pfc uint8) (d DSCP, ok bool) {
	if !b.dscpBound {
		return d, false
	}
	tc, ok1 := b.dscpToTC.get(dscp)
	queue, ok2 := b.tcToQueue.get(tc)
	group, ok3 := b.tcToGroup.get(tc)
	if !ok1 || !ok2 || !ok3 || tc > 7 {
		return d, false
	}
	d = DSCP{DSCP: dscp, Queue: queue, Priority: tc}
	var same []int // Priorities whose PFC frames are sent when the group fills.
	for priority := range 8 {
		if g, ok := b.groupWithPFC(priority); ok && g == group {
			same = append(same, priority)
		}
	}
	if slices.Contains(same, tc) {
		return d, true
	}
	for _, priority := range same {
		if pfc&(1<<priority) != 0 {
			d.Priority = priority
			return d, true
		}
	}
	if pfc&(1<<tc) == 0 {
		return d, true
	}
	if len(same) == 0 {
		return d, false
	}
	d.Priority = same[0]
	return d, true
}

// groupWithPFC is the priority group for which a priority's PFC frames are
// sent: without a map of its own the group of the same number.
func (b binding) groupWithPFC(priority int) (int, bool) {
	if b.pfcToGroupBound {
		return b.pfcToGroup.get(priority)
	}
	return priority, priority < 8
}

// qos fills in what the configuration means for a port's priorities.
func (c *configuration) setQoS(p *Port, dscps []int, skipped *Skipped) {
	row, ok := c.qos[p.Name]
	if !ok && (!c.walked || c.refused[[2]string{"PORT_QOS_MAP", p.Name}]) {
		p.QoSUnknown = true // A key with several ports may hold it.
		return
	}
	mask, err := parsePriorities(row["pfc_enable"])
	if err != nil {
		skipped.Unparsable++
		p.QoSUnknown = true
		return
	}
	if len(c.ports) > 0 || ok {
		p.ConfigPFC = &mask
	}
	b := c.binding(p.Name)
	lossless := true
	for _, priority := range bits(mask) {
		queue, ok1 := b.pfcToQueue.get(priority)
		group, ok2 := b.groupOf(priority)
		if !ok1 || !ok2 {
			lossless = false
			continue
		}
		p.addLosslessQueue(queue, priority)
		p.addLosslessGroup(group, priority)
	}
	if !lossless {
		p.QoSUnknown = true
	}
	for i := range p.LosslessQueues {
		q := &p.LosslessQueues[i]
		q.ECN = c.ecn(p.Name, q.Index, skipped)
	}
	for dscp := range 64 {
		if !ok {
			break // Without a row the port has no maps, and no identities either.
		}
		if d, ok := b.land(dscp, mask); ok && (mask&(1<<d.Priority) != 0 || slices.Contains(dscps, dscp)) {
			p.DSCP = append(p.DSCP, d)
		}
	}
	c.setWatchdog(p, row, mask, b, skipped)
}

func (p *Port) addLosslessQueue(index, priority int) {
	for i := range p.LosslessQueues {
		if p.LosslessQueues[i].Index == index {
			p.LosslessQueues[i].Priorities = append(p.LosslessQueues[i].Priorities, priority)
			return
		}
	}
	p.LosslessQueues = append(p.LosslessQueues, LosslessQueue{Index: index, Type: "unicast", Priorities: []int{priority}})
}

func (p *Port) addLosslessGroup(index, priority int) {
	for i := range p.LosslessGroups {
		if p.LosslessGroups[i].Index == index {
			p.LosslessGroups[i].Priorities = append(p.LosslessGroups[i].Priorities, priority)
			return
		}
	}
	p.LosslessGroups = append(p.LosslessGroups, LosslessGroup{Index: index, Priorities: []int{priority}})
}

// ecn resolves the WRED profile of a queue (qosorch.cpp). SONiC does not tell
// the probability of marking from that of dropping.
func (c *configuration) ecn(port string, queue int, skipped *Skipped) *ECN {
	at := portIndex{port, queue}
	row, ok := c.queues[at]
	if !ok && (!c.walked || c.refusedQueue[at]) {
		return nil
	}
	name := reference(row["wred_profile"])
	if name == "" {
		return &ECN{}
	}
	profile, ok := c.profiles["WRED_PROFILE"][name]
	if !ok {
		skipped.Missing++
		return nil
	}
	e := &ECN{Enabled: profile["ecn"] != "" && profile["ecn"] != "ecn_none"}
	for _, color := range []string{"green", "yellow", "red"} {
		for _, bound := range []string{"min", "max"} {
			text, ok := profile[color+"_"+bound+"_threshold"]
			if !ok {
				continue
			}
			bytes, ok := parseNumber(text)
			if !ok {
				skipped.Unparsable++
				continue
			}
			e.Thresholds = append(e.Thresholds, ECNThreshold{color, bound, bytes})
		}
	}
	return e
}

// setWatchdog fills in where the PFC watchdog is expected and how it is set
// (pfcwdorch.cpp). Times are milliseconds here.
func (c *configuration) setWatchdog(p *Port, qos Hash, pfc uint8, b binding, skipped *Skipped) {
	expected := pfc
	known := !c.refused[[2]string{"PFC_WD", p.Name}]
	if text, ok := qos["pfcwd_sw_enable"]; ok {
		mask, err := parsePriorities(text)
		if err != nil {
			skipped.Unparsable++
			known = false
		}
		expected = mask
	}
	for _, priority := range bits(expected) {
		if queue, ok := b.pfcToQueue.get(priority); ok && !slices.Contains(p.WatchdogExpected, queue) {
			p.WatchdogExpected = append(p.WatchdogExpected, queue)
		}
	}
	row, configured := c.watchdog[p.Name]
	p.Watchdog.Unknown = !known
	if len(c.ports) > 0 && known {
		watched := expected
		if !configured {
			watched = 0
		}
		p.Watched = &watched
	}
	if !configured {
		return
	}
	p.Watchdog.Configured, p.Watchdog.Action = true, row["action"]
	p.Watchdog.Detection = milliseconds(row, "detection_time", skipped)
	p.Watchdog.Restore = milliseconds(row, "restoration_time", skipped)
	if _, ok := row["restoration_time"]; !ok {
		forever := math.Inf(1)
		p.Watchdog.Restore = &forever
	}
}
