// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"regexp"
	"slices"
	"strconv"
)

// A Policy is what the operator intends, from the configuration. Rules compare
// it with what the devices have.
type Policy struct {
	LosslessPriorities []int
	Ports              []PortPolicy // The first that matches a port holds.
	RDMAMTU            int          // Bytes; 0: nothing intended.
	DataDSCP, CNPDSCP  []int
	CongestionControl  string // dcqcn, pfc_only, other; empty: nothing intended.
}

// A PortPolicy is what the operator intends for the ports that match.
type PortPolicy struct {
	Match *regexp.Regexp // Anchored at both ends.
	MTU   int            // Bytes; 0: nothing intended.
	Speed float64        // Bytes per second; 0: nothing intended.
}

// DSCPs lists those of both classes.
func (p *Policy) DSCPs() []int {
	if p == nil {
		return nil
	}
	return slices.Concat(p.DataDSCP, p.CNPDSCP)
}

// AddNode adds what the policy says of the whole node. A nil policy intends
// nothing.
func (p *Policy) AddNode(b *Builder) {
	if p == nil {
		return
	}
	for _, priority := range p.LosslessPriorities {
		b.Add("roce_policy_lossless_priority", 1, strconv.Itoa(priority))
	}
	for _, dscp := range p.DataDSCP {
		b.Add("roce_policy_dscp", 1, strconv.Itoa(dscp), "data")
	}
	for _, dscp := range p.CNPDSCP {
		b.Add("roce_policy_dscp", 1, strconv.Itoa(dscp), "cnp")
	}
	if p.RDMAMTU > 0 {
		b.Add("roce_policy_rdma_mtu_bytes", float64(p.RDMAMTU))
	}
	if p.CongestionControl != "" {
		b.Add("roce_policy_congestion_control_info", 1, p.CongestionControl)
	}
}

// AddPort adds what the policy says of one port.
func (p *Policy) AddPort(b *Builder, port string) {
	if p == nil {
		return
	}
	for _, rule := range p.Ports {
		if !rule.Match.MatchString(port) {
			continue
		}
		b.Add("roce_policy_port", 1, port)
		if rule.MTU > 0 {
			b.Add("roce_policy_port_mtu_bytes", float64(rule.MTU), port)
		}
		if rule.Speed > 0 {
			b.Add("roce_policy_port_speed_bytes_per_second", rule.Speed, port)
		}
		return
	}
}
