// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"time"
)

// Tiers of nodes.
const (
	Spine = "spine"
	Leaf  = "leaf"
	Host  = "host"
)

// Chips of switches, by what they tell of PFC.
const (
	NVIDIA   = "nvidia"   // Pause time in microseconds.
	Broadcom = "broadcom" // Frames only.
	Marvell  = "marvell"  // Pause time without a unit.
)

// A Node is a switch or a host.
type Node struct {
	Name  string
	Tier  string
	Chip  string // Of a switch.
	ASICs int    // Of a switch.
	Ports []*Port
	Boot  time.Time // At the start of the story.
	// LLDP says whether a host runs an LLDP agent.
	LLDP bool

	fabric *Fabric
	index  int
}

// IsSwitch says whether it is one.
func (n *Node) IsSwitch() bool { return n.Tier != Host }

// A Port is a port of a switch or of a NIC. Every port has a cable.
type Port struct {
	Node   *Node
	Name   string // "Ethernet0", "ens1f0np0".
	Alias  string // Of a switch's port.
	Peer   *Port
	Rail   int
	ASIC   int     // Of a switch with several.
	Speed  float64 // Bits a second that it is made for.
	MAC    string
	Driver string // Of a NIC: mlx5_core, ice, bnxt_en.
	Device string // Of a NIC: the RDMA device.
	PCI    string // Of a NIC.

	index int // Of all ports.
	place int // Of the node's ports.
}

// isUplink says whether the port of a leaf goes to a spine.
func (p *Port) isUplink() bool { return p.Peer.Node.Tier == Spine }

// IsBackplane says whether the port is between two ASICs of a switch.
func (p *Port) IsBackplane() bool { return p.Peer.Node == p.Node }

const (
	gigabit   = 1e9
	hostSpeed = 100 * gigabit
	linkSpeed = 400 * gigabit // Of uplinks.
)

// build makes the nodes and their cables.
func (f *Fabric) build() {
	for i := range f.Spines {
		f.addNode(&Node{Name: fmt.Sprintf("spine%d", i+1), Tier: Spine, Chip: NVIDIA, ASICs: 1})
	}
	chips := []string{NVIDIA, Broadcom, Marvell, NVIDIA}
	for i := range f.Leaves {
		n := &Node{Name: fmt.Sprintf("leaf%d", i+1), Tier: Leaf, Chip: chips[i%len(chips)], ASICs: 1}
		if i%len(chips) == len(chips)-1 {
			n.ASICs = 2
		}
		f.addNode(n)
	}
	digits := len(fmt.Sprint(f.Hosts))
	for i := range f.Hosts {
		f.addNode(&Node{Name: fmt.Sprintf("gpu%0*d", max(2, digits), i+1), Tier: Host, LLDP: i%16 != 15})
	}
	spines, leaves, hosts := f.Nodes[:f.Spines], f.Nodes[f.Spines:f.Spines+f.Leaves], f.Nodes[f.Spines+f.Leaves:]
	pods := max(1, f.Leaves/f.Rails) // A pod has a leaf for each rail.
	inPod := (len(hosts) + pods - 1) / pods
	below := make([]int, len(leaves)) // Hosts of a leaf.
	for i := range hosts {
		for rail := range f.Rails {
			below[i/inPod*f.Rails+rail]++
		}
	}
	for i, host := range hosts {
		for rail := range f.Rails {
			at := i/inPod*f.Rails + rail
			leaf := leaves[at]
			nic := f.addNIC(host, i, rail)
			down := f.addPort(leaf, rail, hostSpeed)
			if leaf.ASICs > 1 && len(leaf.Ports) > (below[at]+1)/2 {
				down.ASIC = 1
			}
			connect(nic, down)
		}
	}
	for i, leaf := range leaves {
		for j, spine := range spines {
			up, down := f.addPort(leaf, i%f.Rails, linkSpeed), f.addPort(spine, i%f.Rails, linkSpeed)
			up.ASIC = j % leaf.ASICs
			connect(up, down)
		}
		if leaf.ASICs > 1 {
			a, b := f.addPort(leaf, i%f.Rails, linkSpeed), f.addPort(leaf, i%f.Rails, linkSpeed)
			a.Name, a.Alias = "Ethernet-BP0", "Eth0-ASIC0"
			b.Name, b.Alias, b.ASIC = "Ethernet-BP256", "Eth0-ASIC1", 1
			connect(a, b)
		}
	}
}

func (f *Fabric) addNode(n *Node) {
	n.fabric, n.index = f, len(f.Nodes)
	days := 5 + 10*unit(f.Variant, 1, uint64(n.index))
	n.Boot = f.Start.Add(-time.Duration(days * 24 * float64(time.Hour))).Truncate(time.Second)
	f.Nodes = append(f.Nodes, n)
}

func (f *Fabric) addPort(n *Node, rail int, speed float64) *Port {
	p := &Port{Node: n, Rail: rail, Speed: speed, index: len(f.ports), place: len(n.Ports)}
	p.MAC = fmt.Sprintf("02:00:5e:%02x:%02x:%02x", n.index>>8, n.index&0xff, p.place)
	if n.IsSwitch() {
		lane := 4 * p.place // Ports of four lanes below, of eight above: the names follow the first lane.
		if speed > hostSpeed {
			before := 0
			for _, other := range n.Ports {
				if other.Speed <= hostSpeed {
					before++
				}
			}
			lane = (before*4+7)/8*8 + 8*(p.place-before)
		}
		p.Name = fmt.Sprintf("Ethernet%d", lane)
		p.Alias = fmt.Sprintf("etp%d", p.place+1)
		if n.Chip != NVIDIA {
			p.Alias = fmt.Sprintf("Eth%d/1", p.place+1)
		}
	}
	n.Ports = append(n.Ports, p)
	f.ports = append(f.ports, p)
	return p
}

// addNIC adds a rail of a host: nearly all have ConnectX cards, of sixteen one
// has E810s and one BCM57508s.
func (f *Fabric) addNIC(host *Node, number, rail int) *Port {
	p := f.addPort(host, rail, hostSpeed)
	bus := 0x1a + 0x10*rail
	p.PCI = fmt.Sprintf("0000:%02x:00.0", bus)
	switch number % 16 {
	case 5:
		p.Driver, p.Name, p.Device = "ice", fmt.Sprintf("ens%df0", rail+1), fmt.Sprintf("rocep%ds0", bus)
	case 10:
		p.Driver, p.Name, p.Device = "bnxt_en", fmt.Sprintf("ens%df0np0", rail+1), fmt.Sprintf("bnxt_re%d", rail)
	default:
		p.Driver, p.Name, p.Device = "mlx5_core", fmt.Sprintf("ens%df0np0", rail+1), fmt.Sprintf("mlx5_%d", rail)
	}
	return p
}

func connect(a, b *Port) { a.Peer, b.Peer = b, a }
