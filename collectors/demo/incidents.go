// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"slices"
	"time"
)

// An Incident is something that goes wrong in a fabric, with a known culprit.
type Incident struct {
	Name  string
	Title string // What goes wrong, in a few words.
	Story string // Who is the cause, what follows, who suffers.

	culprits func(f *Fabric) []*Port // The ports at fault; for a whole node its first. Empty: this fabric has no such node.
	stages   []time.Duration         // After the start: when what it does changes.
	every    time.Duration           // The stages repeat; 0: they do not.
	happen   func(s *scene, at []*Port, since time.Duration)
}

// Culprits are the ports at fault; where a whole node is, the first of it.
func (i *Incident) Culprits(f *Fabric) []*Port { return i.culprits(f) }

// FindIncident finds an incident by its name; nil: there is none.
func FindIncident(name string) *Incident {
	all := Incidents()
	if i := slices.IndexFunc(all, func(i *Incident) bool { return i.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// Incidents are all that there are.
func Incidents() []*Incident {
	return slices.Concat(pauseIncidents(), lossIncidents(), congestionIncidents(), configurationIncidents(), identityIncidents(), monitoringIncidents())
}

// nic chooses a rail of a host, counted from 1; of a driver: the first host of
// that number or later that has it.
func nic(host, rail int, driver string) func(*Fabric) []*Port {
	return func(f *Fabric) []*Port {
		for i := range f.Hosts {
			h := f.Nodes[f.Spines+f.Leaves+(host-1+i)%f.Hosts]
			if p := h.Ports[(rail-1)%f.Rails]; driver == "" || p.Driver == driver {
				return []*Port{p}
			}
		}
		return nil
	}
}

// below chooses the port of a leaf with a chip to a host with a driver.
func below(chip, driver string, skip int) func(*Fabric) []*Port {
	return func(f *Fabric) []*Port {
		left := skip
		for _, n := range f.Nodes[f.Spines : f.Spines+f.Leaves] {
			for _, p := range n.Ports {
				if n.Chip != chip || n.ASICs > 1 || p.Peer.Driver != driver {
					continue
				}
				if left--; left < 0 {
					return []*Port{p}
				}
			}
		}
		return nil
	}
}

// peers chooses the other ends.
func peers(of func(*Fabric) []*Port) func(*Fabric) []*Port {
	return func(f *Fabric) []*Port {
		ports := slices.Clone(of(f))
		for i, p := range ports {
			ports[i] = p.Peer
		}
		return ports
	}
}

// uplink chooses the first port of a leaf, counted from 1, to a spine, and its
// other end.
func uplink(leaf int) func(*Fabric) []*Port {
	return func(f *Fabric) []*Port {
		for _, p := range f.Nodes[f.Spines+(leaf-1)%f.Leaves].Ports {
			if p.Peer.Node.Tier == Spine {
				return []*Port{p, p.Peer}
			}
		}
		return nil
	}
}

// first chooses the first port of a switch: spines, then leaves, from 1.
func first(number int) func(*Fabric) []*Port {
	return func(f *Fabric) []*Port {
		return f.Nodes[(number-1)%(f.Spines+f.Leaves)].Ports[:1]
	}
}

// leaf chooses the first port of a leaf, counted from 1.
func leaf(number int) func(*Fabric) []*Port {
	return func(f *Fabric) []*Port { return f.Nodes[f.Spines+(number-1)%f.Leaves].Ports[:1] }
}

// of returns the states of a port's ends and of its node.
func (s *scene) of(p *Port) (here, there *PortState, node *NodeState) {
	return &s.ports[p.index], &s.ports[p.Peer.index], &s.nodes[p.Node.index]
}

// rebootTime is how long a node is away when it reboots.
const rebootTime = 2 * time.Minute

// rebooting takes a node away and lets it come back; false: it is away.
func (s *scene) rebooting(n *Node, since time.Duration) bool {
	switch {
	case since < rebootTime:
		s.nodes[n.index].Gone, s.nodes[n.index].Off = true, true
		return false
	case since == rebootTime:
		s.reboot(n)
	}
	return true
}

// Drivers of NICs.
const (
	mlx5 = "mlx5_core"
	ice  = "ice"
	bnxt = "bnxt_en"
)

func pauseIncidents() []*Incident {
	const stormTime, stormEvery = 90 * time.Second, 150 * time.Second
	slow := func(share float64) func(s *scene, at []*Port, since time.Duration) {
		return func(s *scene, at []*Port, _ time.Duration) {
			here, _, _ := s.of(at[0])
			here.Always[BufferHigh], here.Always[PCIeStalls] = 20, 0.9
			here.set(PCIeStallPercent, 85)
			s.pause(at[0].Peer, share)
			s.slow(0.45)
		}
	}
	return []*Incident{
		{
			Name: "slow-receiver", Title: "A host takes its data too slowly",
			Story:    "The PCIe link of a NIC came up with 4 lanes instead of 16. The NIC stops its leaf for most of the time, the leaf fills up and stops the spines, and these stop the other leaves: everybody is stopped but the host at fault.",
			culprits: nic(2, 1, mlx5),
			happen: func(s *scene, at []*Port, since time.Duration) {
				s.ports[at[0].index].Lanes = 4
				slow(0.7)(s, at, since)
			},
		},
		{
			Name: "slow-receiver-unmeasured", Title: "A host takes its data too slowly, and nobody measures for how long",
			Story:    "A NIC that does not measure pauses stops a leaf that does not either: what is known is the number of frames.",
			culprits: peers(below(Broadcom, ice, 0)), happen: slow(0.75),
		},
		{
			Name: "nic-storm", Title: "A NIC sends pause until the watchdog drops its traffic",
			Story:    "A NIC hangs and sends pause without end. The watchdog of its leaf finds a storm, clears the priority from the PFC mask and drops what the queue has, restores it when the storm ends, and begins again: the NIC storms every two and a half minutes.",
			culprits: nic(3, 1, mlx5), stages: []time.Duration{0, stormTime}, every: stormEvery,
			happen: func(s *scene, at []*Port, since time.Duration) {
				here, there, _ := s.of(at[0])
				switch since % stormEvery {
				case 0:
					there.Happened[StormsDetected], here.Happened[StormWarnings], here.Happened[StormErrors] = 1, 1, 1
				case stormTime:
					there.Happened[StormsRestored] = 1
				}
				if since%stormEvery < stormTime {
					there.Storm, there.ASICMask, there.Paused = true, 0, 0.97
					there.Always[StormDroppedSent], there.Always[StormDroppedReceived] = 9000, 4000
					s.slow(0.3)
				}
			},
		},
		{
			Name: "deadlock", Title: "Two switches stop each other for ever",
			Story:    "A leaf and a spine wait for each other: each has stopped the other, for a little less than the watchdog calls a storm, and neither can send what would let it go on. Everybody behind them comes to a halt.",
			culprits: uplink(1),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				s.pause(at[0], 0.985)
				s.pause(at[1], 0.985)
				s.slow(0.7)
			},
		},
		{
			Name: "spine-congested", Title: "A spine keeps stopping a leaf a little",
			Story:    "Congestion is no longer absorbed at the edge: a spine stops a leaf for three percent of the time, hour after hour.",
			culprits: peers(func(f *Fabric) []*Port { return uplink(1)(f)[:1] }),
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.ports[at[0].Peer.index].Paused = 0.03 },
		},
		{
			Name: "pause-elevated", Title: "A host is stopped too often",
			Story:    "Marks come too late for the jobs of one host: its leaf stops it for eight percent of the time.",
			culprits: func(f *Fabric) []*Port { return peers(nic(4, 1, mlx5))(f) },
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.ports[at[0].Peer.index].Paused = 0.08 },
		},
		{
			Name: "pause-creep", Title: "Pauses grow over a quarter",
			Story:    "A link is stopped a little more every week; after ninety days it is stopped for six percent of the time.",
			culprits: func(f *Fabric) []*Port { return uplink(1)(f)[:1] }, // A chip that measures pauses: what is estimated is not reviewed.
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.ports[at[0].index].Creeping = 0.06 },
		},
		{
			Name: "global-pause", Title: "A NIC sends global pause on a fabric of PFC",
			Story:    "Somebody switched 802.3x pause on: the NIC stops every priority of its leaf, the congestion notifications too.",
			culprits: nic(5, 1, mlx5),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				s.ports[at[0].index].Global = true
				s.ports[at[0].Peer.index].Paused = 0.15
			},
		},
		{
			Name: "watchdog-off", Title: "The PFC watchdog is not configured",
			Story:    "A leaf came out of an upgrade without its watchdog: the next storm will stop the fabric.",
			culprits: leaf(1),
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.nodes[at[0].Node.index].WatchdogOff = true },
		},
	}
}

func lossIncidents() []*Incident {
	return []*Incident{
		{
			Name: "lossless-drops", Title: "A lossless group drops packets",
			Story:    "A cable is longer than the headroom was made for: what is under way when a port says stop has no room. The host behind sends again and again.",
			culprits: below(NVIDIA, mlx5, 5),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				here, there, _ := s.of(at[0])
				here.set(HeadroomWatermark, headroomSize)
				here.Always[GroupDropped] = 120
				there.Always[SequenceNAKs], there.Always[AckTimeouts], there.Always[Retransmits] = 110, 8, 118
				there.Paused = 0.02
			},
		},
		{
			Name: "nic-drops", Title: "A NIC drops RDMA packets for lack of buffer",
			Story:    "PFC is on, but the NIC's buffer for the priority is too small: it drops what it should have stopped.",
			culprits: nic(6, 1, mlx5),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				here, _, _ := s.of(at[0])
				here.Always[GroupDropped], here.Always[OutOfSequence] = 90, 80
			},
		},
		{
			Name: "buffer-full", Title: "The lossless buffer of a spine is full",
			Story:    "All leaves send to one: the shared buffer of a spine is used up, and what comes next is stopped.",
			culprits: first(2),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				s.nodes[at[0].Node.index].PoolWatermark = 0.97 * poolSize
			},
		},
		{
			Name: "crc-errors", Title: "A cable damages packets",
			Story:    "An optic is dirty: frames arrive with wrong checksums, and error correction meets codewords that it cannot repair.",
			culprits: below(NVIDIA, mlx5, 4),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				here, there, _ := s.of(at[0])
				here.Always[CRCErrors], here.Always[FECUncorrectable], here.Always[FECCorrected] = 40, 12, 90000
				there.Always[SequenceNAKs], there.Always[Retransmits] = 35, 40
			},
		},
		{
			Name: "out-of-order", Title: "Packets overtake each other",
			Story:    "A hash was changed: packets of one flow take several paths, and a NIC receives them out of order though none is lost.",
			culprits: nic(7, 1, mlx5),
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.ports[at[0].index].Always[OutOfSequence] = 700 },
		},
		{
			Name: "link-flaps", Title: "A link goes down and up",
			Story:    "An optic loses its signal every ten minutes for half a minute.",
			culprits: below(NVIDIA, mlx5, 3), stages: []time.Duration{0, 30 * time.Second}, every: 10 * time.Minute,
			happen: func(s *scene, at []*Port, since time.Duration) {
				here, there, _ := s.of(at[0])
				if since%(10*time.Minute) == 0 {
					here.Happened[LinkDowns], there.Happened[LinkDowns] = 1, 1
				}
				here.Up = since%(10*time.Minute) >= 30*time.Second
			},
		},
	}
}

func congestionIncidents() []*Incident {
	eachLeafPort := func(s *scene, do func(p *Port, state *PortState)) {
		for i, p := range s.fabric.ports {
			if p.Node.IsSwitch() && !p.Peer.Node.IsSwitch() {
				do(p, &s.ports[i])
			}
		}
	}
	const wave, crest = 20 * time.Minute, 5 * time.Minute
	return []*Incident{
		{
			Name: "ecn-too-late", Title: "Thresholds are too high: pauses without marks",
			Story:    "Somebody set the thresholds of a leaf in cells where bytes were meant: its queues fill up and stop the senders before anything is marked.",
			culprits: leaf(1),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				node := &s.nodes[at[0].Node.index]
				node.ECNMin, node.ECNMax = 20*mebibyte, 40*mebibyte
				eachLeafPort(s, func(p *Port, state *PortState) {
					if p.Node == at[0].Node {
						state.Marked = 0
						s.ports[p.Peer.index].Paused = 0.03
					}
				})
				for _, p := range at[0].Node.Ports {
					s.ports[p.index].Marked = 0
				}
			},
		},
		{
			Name: "ecn-too-early", Title: "Thresholds are too low: more than three percent are marked",
			Story:    "A leaf marks as soon as a few packets wait: its hosts are told to slow down all the time.",
			culprits: leaf(1),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				node := &s.nodes[at[0].Node.index]
				node.ECNMin, node.ECNMax = 0.05*mebibyte, 0.2*mebibyte
				eachLeafPort(s, func(p *Port, state *PortState) {
					if p.Node == at[0].Node {
						state.Marked = 0.05
					}
				})
				s.slow(0.15)
			},
		},
		{
			Name: "ecn-sawtooth", Title: "Senders slow down and speed up together",
			Story:    "Low thresholds and a steep reaction: every twenty minutes the hosts of a leaf are marked hard, slow down, and come back.",
			culprits: leaf(1), stages: []time.Duration{0, crest}, every: wave,
			happen: func(s *scene, at []*Port, since time.Duration) {
				high := since%wave < crest
				eachLeafPort(s, func(p *Port, state *PortState) {
					if p.Node == at[0].Node && high {
						state.Marked = 0.16
					}
				})
			},
		},
		{
			Name: "cnp-surge", Title: "An overload makes many notifications",
			Story:    "A new job sends from everywhere to the hosts of one leaf: marks and notifications are ten times as many as usual.",
			culprits: leaf(1),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				eachLeafPort(s, func(p *Port, state *PortState) {
					if p.Node == at[0].Node {
						state.Marked = 0.02
					}
				})
			},
		},
		{
			Name: "cnp-firmware", Title: "A firmware sends too many notifications",
			Story:    "A host was updated alone: its firmware answers every mark with many notifications, and the senders slow down for nothing.",
			culprits: nic(8, 1, mlx5),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				for _, p := range at[0].Node.Ports {
					s.ports[p.index].CNPs, s.ports[p.index].Firmware = 40, "28.41.0000 (MT_0000000838)"
				}
				s.slow(0.2)
			},
		},
		{
			Name: "cnp-ignored", Title: "A host ignores congestion notifications",
			Story:    "The reaction point is off for the priority: a host goes on at full speed whatever it is told.",
			culprits: nic(12, 1, mlx5),
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.ports[at[0].index].Ignores = 0.6 },
		},
	}
}

func configurationIncidents() []*Incident {
	return []*Incident{
		{
			Name: "mask-lost", Title: "A reboot loses the PFC mask, in configuration and ASIC alike",
			Story:    "The mask of a leaf was never saved. After a reboot neither the configuration nor the ASIC has it, so comparing the two finds nothing.",
			culprits: leaf(1), stages: []time.Duration{rebootTime},
			happen: func(s *scene, at []*Port, since time.Duration) {
				if s.rebooting(at[0].Node, since) {
					for _, p := range at[0].Node.Ports {
						s.ports[p.index].Mask, s.ports[p.index].ASICMask = 0, 0
					}
				}
			},
		},
		{
			Name: "mask-missing", Title: "The ASIC does not have the PFC mask that is configured",
			Story:    "The configuration says priority 3; the ASIC was never told. On this port nothing is lossless.",
			culprits: below(Broadcom, mlx5, 1),
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.ports[at[0].index].ASICMask = 0 },
		},
		{
			Name: "nic-mask-missing", Title: "A NIC has no PFC on the priority",
			Story:    "The boot script of a host did not run: its NIC neither stops its leaf nor obeys it.",
			culprits: nic(4, 1, mlx5),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				s.ports[at[0].index].Mask, s.ports[at[0].index].ASICMask = 0, 0
			},
		},
		{
			Name: "dscp-mismatch", Title: "The switch takes DSCP 24 for RDMA, the hosts send 26",
			Story:    "A template was wrong: on a leaf DSCP 26 lands in a lossy queue.",
			culprits: leaf(1),
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.nodes[at[0].Node.index].DataDSCP = 24 },
		},
		{
			Name: "trust-pcp", Title: "A NIC takes the priority from the VLAN tag",
			Story:    "A NIC came up with trust in PCP: its RDMA traffic, untagged, is of a lossy priority.",
			culprits: nic(9, 1, mlx5),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				here, _, _ := s.of(at[0])
				here.Trust, here.CountsAs = "pcp", Strayed
			},
		},
		{
			Name: "cnp-shared", Title: "Congestion notifications wait in the queue of the data",
			Story:    "On a leaf DSCP 48 lands in the queue of the data: notifications are stopped with what they are to slow down.",
			culprits: leaf(1),
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.nodes[at[0].Node.index].CNPPriority = 3 },
		},
		{
			Name: "mtu-host", Title: "A reboot sets the MTU of a host back to 1500",
			Story:    "The MTU was set by hand. After a reboot the host's RDMA packets carry 1024 bytes, and its links end at 83 of 100 Gbit/s.",
			culprits: nic(4, 1, mlx5), stages: []time.Duration{rebootTime},
			happen: func(s *scene, at []*Port, since time.Duration) {
				if s.rebooting(at[0].Node, since) {
					for _, p := range at[0].Node.Ports {
						s.ports[p.index].MTU, s.ports[p.index].ASICMTU = 1500, 1500
					}
				}
			},
		},
		{
			Name: "mtu-switch", Title: "A port of a switch has an MTU of 1500",
			Story:    "A port was configured anew without its MTU: the host's large packets are dropped as oversize.",
			culprits: below(NVIDIA, mlx5, 2),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				here, _, _ := s.of(at[0])
				here.MTU, here.ASICMTU = 1500, 1500
				here.Always[OversizeReceived] = 300
			},
		},
		{
			Name: "mtu-drift", Title: "The ASIC does not have the MTU that is configured",
			Story:    "The configuration says 9100, the ASIC was programmed with 1500.",
			culprits: below(NVIDIA, mlx5, 1),
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.ports[at[0].index].ASICMTU = 1500 },
		},
		{
			Name: "half-speed", Title: "A link came up at half its speed",
			Story:    "A cable lost half of its lanes: the link works at 50 of 100 Gbit/s, and the job with it.",
			culprits: below(NVIDIA, mlx5, 0),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				here, there, _ := s.of(at[0])
				here.Speed, there.Speed = at[0].Speed/2, at[0].Speed/2
				s.slow(0.4)
			},
		},
		{
			Name: "pcie-downgraded", Title: "A NIC has fewer PCIe lanes than it could",
			Story:    "A card is not well seated: eight of sixteen lanes came up. At this load nobody notices yet.",
			culprits: nic(13, 1, mlx5),
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.ports[at[0].index].Lanes = 8 },
		},
		{
			Name: "pcie-oversubscribed", Title: "A slot is too slow for its NIC",
			Story:    "The card sits in a slot of generation 3 with 8 lanes: the slot carries less than the link.",
			culprits: nic(14, 1, mlx5),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				here, _, _ := s.of(at[0])
				here.Lanes, here.MaxLanes, here.Generation = 8, 8, 3
			},
		},
		{
			Name: "fdb-empty", Title: "A switch has forgotten its MAC addresses",
			Story:    "Learning is dead: a leaf floods what it should forward, and every port of it sends the same at a suspiciously constant 9.68 Gbit/s.",
			culprits: leaf(3),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				const flood = 9.68 * gigabit / 8
				for _, p := range at[0].Node.Ports {
					here, there, _ := s.of(p)
					here.FDB = 0
					if p.Peer.Node.IsSwitch() {
						continue
					}
					here.Slowed, there.Slowed = 1, 1
					here.Always[SentBytes+Data], here.Always[SentPackets+Data] = flood, flood/packet
					there.Always[ReceivedBytes+Data], there.Always[ReceivedPackets+Data] = flood, flood/packet
					const own = flood / 8
					there.Always[SentBytes+Data], there.Always[SentPackets+Data] = own, own/packet
					here.Always[ReceivedBytes+Data], here.Always[ReceivedPackets+Data] = own, own/packet
				}
			},
		},
	}
}

func identityIncidents() []*Incident {
	return []*Incident{
		{
			Name: "firmware-skew", Title: "Two firmwares on cards of one kind",
			Story:    "A host came back from repair with cards of an older firmware.",
			culprits: nic(11, 1, mlx5),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				for _, p := range at[0].Node.Ports {
					s.ports[p.index].Firmware = "28.35.2000 (MT_0000000838)"
				}
			},
		},
		{
			Name: "device-renamed", Title: "RDMA devices have new names after a reboot",
			Story:    "A rule of udev was lost: mlx5_0 is called by its place now, and the jobs look for the old name.",
			culprits: nic(12, 1, mlx5), stages: []time.Duration{rebootTime},
			happen: func(s *scene, at []*Port, since time.Duration) {
				if s.rebooting(at[0].Node, since) {
					for _, p := range at[0].Node.Ports {
						s.ports[p.index].Device = "rocep" + p.PCI[5:7] + "s0"
					}
				}
			},
		},
		{
			Name: "device-missing", Title: "An RDMA device has gone",
			Story:    "The RDMA driver of a NIC could not be loaded: the network device is there, the RDMA device is not.",
			culprits: nic(13, 2, mlx5),
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.ports[at[0].index].Device = "" },
		},
		{
			Name: "link-layer", Title: "A card was left in InfiniBand mode",
			Story:    "A replaced card speaks InfiniBand: it has a device, and no RoCE.",
			culprits: nic(14, 2, mlx5),
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.ports[at[0].index].LinkLayer = "InfiniBand" },
		},
		{
			Name: "gid-missing", Title: "A rail lost its address",
			Story:    "The address of a rail was not set at boot: there is no RoCE v2 GID, and connections go nowhere.",
			culprits: nic(5, 2, mlx5),
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.ports[at[0].index].GIDs = 0 },
		},
		{
			Name: "arp-flux", Title: "A host answers for the wrong rail",
			Story:    "Two rails share a subnet, and arp_ignore is 0: a rail answers for the address of the other.",
			culprits: nic(7, 1, mlx5),
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.nodes[at[0].Node.index].ARPFlux = true },
		},
		{
			Name: "neighbor-missing", Title: "A link has no neighbor",
			Story:    "A host no longer announces itself and its address was not learned: nobody can say what is behind the port.",
			culprits: below(NVIDIA, mlx5, 6),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				here, there, _ := s.of(at[0])
				here.LLDP, there.LLDP, here.FDB = false, false, 0
			},
		},
	}
}

func monitoringIncidents() []*Incident {
	return []*Incident{
		{
			Name: "orchagent-dead", Title: "Counters stand still though Redis answers",
			Story:    "orchagent died on a leaf: forwarding goes on, but every number in the databases is what it was.",
			culprits: leaf(2),
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.nodes[at[0].Node.index].Frozen = true },
		},
		{
			Name: "control-plane-down", Title: "A service of a switch is down",
			Story:    "swss crashed on a leaf after a configuration was reloaded.",
			culprits: leaf(1),
			happen: func(s *scene, at []*Port, _ time.Duration) {
				s.nodes[at[0].Node.index].Down, s.nodes[at[0].Node.index].Frozen = "swss", true
			},
		},
		{
			Name: "ecn-counters-off", Title: "Nobody counts ECN marks",
			Story:    "The group of counters for marks is off on a spine: a rate of 0 there means nothing.",
			culprits: first(1),
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.nodes[at[0].Node.index].ECNOff = true },
		},
		{
			Name: "exporter-gone", Title: "An exporter does not answer",
			Story:    "The exporter of a host was stopped: the host works, and nobody sees it.",
			culprits: nic(12, 1, ""),
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.nodes[at[0].Node.index].Gone = true },
		},
		{
			Name: "clock-skew", Title: "A clock is wrong",
			Story:    "A host lost its time server: its clock is 40 seconds ahead, and nobody can compare its logs.",
			culprits: nic(3, 1, ""),
			happen:   func(s *scene, at []*Port, _ time.Duration) { s.nodes[at[0].Node.index].Skew = 40 * time.Second },
		},
	}
}
