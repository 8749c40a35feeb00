// SPDX-License-Identifier: Apache-2.0

package demo

import "time"

// A scene is a stretch of time in which nothing changes but that counters grow
// at the rates that it has.
type scene struct {
	fabric      *Fabric
	from, until time.Time // until is zero where nothing is to change.
	start       basis     // At from.
	nodes       []NodeState
	ports       []PortState
}

// A rate is how fast a counter grows: so many a second while a signal is 1, and
// so many whatever the signal.
type rate struct {
	signal            uint8
	perSecond, always float64
}

// A NodeState is what holds of a node.
type NodeState struct {
	Boot   time.Time
	Gone   bool // Its exporter does not answer.
	Off    bool // All its links are down.
	Frozen bool // orchagent is dead: nobody polls the counters.
	Skew   time.Duration
	ECNOff bool   // The counters of marks are not polled.
	Down   string // A service that is not up; empty: all are.

	WatchdogOff    bool
	ECNMin, ECNMax float64 // Bytes.
	DataDSCP       int     // The DSCP that the switch takes for RDMA data, beside 3.
	CNPPriority    int     // Where DSCP 48 lands.
	PoolWatermark  float64 // Of the lossless ingress pool, bytes.
	ARPFlux        bool    // Of a host: its ports answer for each other.
}

// A PortState is what holds of a port. The first fields are those that
// incidents set and the rates follow from.
type PortState struct {
	Paused   float64         // Share of time that the peer stops this port.
	Creeping float64         // What grows of it with the signal creep.
	Marked   float64         // Share of data packets that the port marks when it sends them.
	Slowed   float64         // Share of its usual traffic that the port does not send.
	Always   [gauges]float64 // More of something, a second.
	Happened [gauges]float64 // More of something, at the begin of the scene.
	Gauge    [quantities - gauges]float64
	Global   bool    // The port stops its peer with global pause.
	CNPs     float64 // Of a NIC, for each mark that it receives.
	Ignores  float64 // Share of CNPs.
	CountsAs Class   // What a NIC counts its data as.

	PortFacts

	rates [gauges]rate
	base  [gauges]float64 // At the begin of the scene.
}

// PortFacts are what holds of a port beside numbers.
type PortFacts struct {
	Up             bool
	Speed          float64 // Bits a second.
	MTU, ASICMTU   int
	Mask, ASICMask uint8 // Of PFC: as configured and in force; of a NIC both the same.
	Storm          bool  // The watchdog handles one.
	LLDP           bool  // What the peer announces is known; of a NIC: it announces itself.
	FDB            int   // MAC addresses learned.

	// Of a NIC.
	Device          string // Empty: the RDMA device is gone.
	Firmware        string
	LinkLayer       string
	Trust           string
	GIDs            int // Of RoCE v2.
	Lanes, MaxLanes int // Of PCIe.
	Generation      int // Of PCIe.
}

// Usual values.
const (
	load         = 0.42   // Of the speed of a NIC that its jobs use.
	across       = 0.5    // Of a leaf's traffic that takes the spines.
	packet       = 4158   // Bytes of a full RDMA packet: 4096 and its headers.
	notification = 82     // Bytes of a CNP.
	usualMarks   = 0.001  // Share of packets.
	usualPause   = 0.0004 // Share of time.
	usualCNPs    = 0.4    // For a mark: one answers for several that come together.
	usualMTU     = 9100   // Of a switch.
	hostMTU      = 9000
	maskOfData   = 1 << 3
	propagation  = 0.55 // How much of the time that it is stopped a switch stops those who send to it.
	headroomSize = 94208
	poolSize     = 33554432
	mebibyte     = 1 << 20
)

// firstScene is the one before anything has happened.
func (f *Fabric) firstScene() *scene {
	s := &scene{fabric: f, from: f.epoch()}
	s.start = f.basis(s.from)
	s.set(nil)
	for _, p := range f.ports {
		state, before := &s.ports[p.index], f.basis(p.Node.Boot)
		for q := range state.base {
			state.base[q] = -state.at(Quantity(q), before, s.start)
		}
	}
	s.until = f.nextChange(s.from)
	return s
}

// nextScene is the one after another.
func (f *Fabric) nextScene(last *scene) *scene {
	s := &scene{fabric: f, from: last.until}
	s.start = f.basis(s.from)
	s.set(last)
	for _, p := range f.ports {
		state, old := &s.ports[p.index], &last.ports[p.index]
		booted := s.nodes[p.Node.index].Boot != last.nodes[p.Node.index].Boot
		for q := range state.base {
			if !booted {
				state.base[q] = old.at(Quantity(q), s.start, last.start)
			}
			state.base[q] += state.Happened[q]
		}
	}
	s.until = f.nextChange(s.from)
	return s
}

// at is a counter at a moment of the scene.
func (p *PortState) at(q Quantity, now, start basis) float64 {
	r := &p.rates[q]
	return p.base[q] + r.perSecond*(now[r.signal]-start[r.signal]) + r.always*(now[steady]-start[steady])
}

// set says what holds: the usual, changed by the incidents, and the rates that
// follow.
func (s *scene) set(last *scene) {
	f := s.fabric
	s.nodes, s.ports = make([]NodeState, len(f.Nodes)), make([]PortState, len(f.ports))
	for i, n := range f.Nodes {
		s.nodes[i] = NodeState{
			Boot:   n.Boot,
			ECNMin: mebibyte, ECNMax: 2 * mebibyte, DataDSCP: 26, CNPPriority: priorities[CNP], PoolWatermark: 0.06 * poolSize,
		}
		if last != nil {
			s.nodes[i].Boot = last.nodes[i].Boot
		}
	}
	for i, p := range f.ports {
		s.ports[i] = usual(p)
	}
	for _, r := range f.incidents {
		if r.happens(s.from) {
			r.Incident.happen(s, r.Incident.Culprits(f), s.from.Sub(r.Start))
		}
	}
	s.flow()
}

// usual is a port to which nothing has happened.
func usual(p *Port) PortState {
	s := PortState{Marked: usualMarks * (0.5 + unit(p.Node.fabric.Variant, 2, uint64(p.index))), CountsAs: Data, CNPs: usualCNPs}
	s.PortFacts = PortFacts{Up: true, Speed: p.Speed, MTU: usualMTU, ASICMTU: usualMTU, Mask: maskOfData, ASICMask: maskOfData, LLDP: true, FDB: 1}
	s.set(QueueWatermark, 0.3*mebibyte)
	s.set(GroupWatermark, 0.2*mebibyte)
	s.set(HeadroomWatermark, 0.05*headroomSize)
	s.set(QueueOccupancy, 0.02*mebibyte)
	switch {
	case !p.Node.IsSwitch():
		s.MTU, s.ASICMTU = hostMTU, hostMTU
		s.Device, s.Firmware, s.LinkLayer, s.Trust, s.GIDs = p.Device, firmware[p.Driver], "Ethernet", "dscp", 2
		s.Lanes, s.MaxLanes, s.Generation = 16, 16, 4
		s.LLDP, s.Paused = p.Node.LLDP, usualPause
	case p.Peer.Node.IsSwitch():
		s.Paused, s.FDB = usualPause/4, 0
		s.LLDP = !p.IsBackplane()
	default:
		s.LLDP = p.Peer.Node.LLDP
	}
	return s
}

// set raises a gauge.
func (p *PortState) set(gauge Quantity, value float64) {
	p.Gauge[gauge-gauges] = max(p.Gauge[gauge-gauges], value)
}

// firmware is what the cards of a driver usually run.
var firmware = map[string]string{mlx5: "28.39.1002 (MT_0000000838)", ice: "4.40 0x8001c96b 1.3534.0", bnxt: "229.0.154.0/pkg 229.1.123.0"}

// pause lets the peer of a port stop it for a share of the time. A switch that
// cannot send fills up and stops those who send through it in its turn, until
// little is left. Nothing comes from a spine to go to another.
func (s *scene) pause(p *Port, share float64) {
	state := &s.ports[p.index]
	if share < 0.02 || share <= state.Paused {
		return
	}
	state.Paused = share
	if !p.Node.IsSwitch() {
		return
	}
	state.set(QueueWatermark, (1+7*share)*mebibyte)
	state.set(QueueOccupancy, share*mebibyte)
	state.Marked = max(state.Marked, 0.01*share) // A full queue marks.
	node := &s.nodes[p.Node.index]
	node.PoolWatermark = max(node.PoolWatermark, (0.2+0.5*share)*poolSize)
	for _, other := range p.Node.Ports {
		if other != p && other.ASIC == p.ASIC && (!p.isUplink() || !other.isUplink()) {
			s.ports[other.index].set(GroupWatermark, (0.5+2*share)*mebibyte)
			s.ports[other.index].set(HeadroomWatermark, 0.5*share*headroomSize)
			s.pause(other.Peer, share*propagation)
		}
	}
}

// slow takes a share of its traffic from every port: the slowest sets the pace
// of a job.
func (s *scene) slow(share float64) {
	for i := range s.ports {
		s.ports[i].Slowed = max(s.ports[i].Slowed, share)
	}
}

// reboot lets a node have booted at the moment that the scene begins.
func (s *scene) reboot(n *Node) { s.nodes[n.index].Boot = s.from }

// framesOf is how many PFC frames a second keep a port from sending for a share
// of the time. One stops it for 65535 quanta of 512 bit times at most, and is
// repeated before that is over.
func framesOf(share, speed float64) float64 { return 1.6 * share * speed / (65535 * 512) }

// flow works out the rates of all ports.
func (s *scene) flow() {
	f := s.fabric
	for i, p := range f.ports {
		// Nobody stops, and nobody obeys, without PFC at both ends; but the watchdog
		// takes it away from a port that is stopped all the more.
		if here, there := &s.ports[i], &s.ports[p.Peer.index]; !here.Storm && (here.ASICMask == 0 || there.ASICMask == 0) && !there.Global {
			here.Paused, here.Creeping = 0, 0
		}
	}
	down := make([]bool, len(f.ports))
	for i, p := range f.ports {
		for _, end := range []*Port{p, p.Peer} {
			down[i] = down[i] || s.nodes[end.Node.index].Off || !s.ports[end.index].Up
		}
	}
	data, cnps := make([]float64, len(f.ports)), make([]float64, len(f.ports)) // Packets a second that ports send.
	below, answers := make([]float64, len(f.Nodes)), make([]float64, len(f.Nodes))
	total, nics := 0.0, 0.0
	send := func(p *Port, usual float64) {
		data[p.index] = usual * (1 - s.ports[p.index].Slowed) * (1 - s.ports[p.index].Paused)
	}
	for i, p := range f.ports {
		s.ports[i].Up = !down[i]
		if p.Node.IsSwitch() || down[i] {
			continue
		}
		usual := load * min(s.ports[i].Speed, s.ports[p.Peer.index].Speed) / 8 / packet
		send(p, usual)
		send(p.Peer, usual)
		cnps[i] = data[p.Peer.index] * s.ports[p.Peer.index].Marked * s.ports[i].CNPs
		below[p.Peer.Node.index] += usual
		answers[p.Peer.Node.index] += cnps[i]
		total, nics = total+cnps[i], nics+1
	}
	for i, p := range f.ports {
		switch leaf := p.Node; {
		case down[i] || !p.Node.IsSwitch():
		case !p.Peer.Node.IsSwitch():
			cnps[i] = total / nics // The jobs send to everybody alike, so everybody is told alike.
		default:
			if leaf.Tier == Spine {
				leaf = p.Peer.Node
			}
			share := across / float64(f.Spines)
			if p.IsBackplane() {
				share = across / 2
			}
			send(p, below[leaf.index]*share)
			cnps[i] = answers[leaf.index] * share
		}
	}
	for _, p := range f.ports {
		s.setRates(p, data, cnps)
	}
}

// setRates works out the rates of a port.
func (s *scene) setRates(p *Port, data, cnps []float64) {
	state, peer, node := &s.ports[p.index], &s.ports[p.Peer.index], &s.nodes[p.Node.index]
	job := uint8(jobs + p.Rail)
	for q, perSecond := range state.Always {
		state.rates[q] = rate{job, 0, perSecond}
	}
	if node.Frozen {
		state.rates = [gauges]rate{}
		return
	}
	if !state.Up {
		return
	}
	grow := func(q Quantity, perSecond float64) { state.rates[q].perSecond += perSecond }
	traffic := func(class Class, received, sent float64) {
		grow(ReceivedPackets+class, received)
		grow(ReceivedBytes+class, received*sizes[class])
		grow(SentPackets+class, sent)
		grow(SentBytes+class, sent*sizes[class])
	}
	for q, perSecond := range map[Quantity]float64{ReceivedPackets: 40, ReceivedBytes: 40 * sizes[Other], SentPackets: 40, SentBytes: 40 * sizes[Other]} {
		state.rates[q+Other].always += perSecond
	}
	class := state.CountsAs
	if p.Node.IsSwitch() && node.DataDSCP != 26 {
		class = Strayed
		state.Gauge[QueueOccupancy-gauges] = 0 // Nothing comes to the queue of the data.
	}
	received, sent := data[p.Peer.index], data[p.index]
	traffic(class, received, sent)
	traffic(CNP, cnps[p.Peer.index], cnps[p.index])
	if class == Data {
		grow(MarkedPackets, sent*state.Marked)
	}
	if !p.Node.IsSwitch() {
		grow(MarkedReceived, received*peer.Marked)
		grow(CNPSent, cnps[p.index])
		grow(CNPHandled, cnps[p.Peer.index]*(1-state.Ignores))
		grow(CNPIgnored, cnps[p.Peer.index]*state.Ignores)
	}
	state.rates[FECCorrected].always += 3 + 4*unit(s.fabric.Variant, 3, uint64(p.index))

	if peer.Global {
		state.rates[GlobalPauseReceived].always += framesOf(state.Paused, p.Speed)
		state.rates[GlobalPausedMicroseconds].always += state.Paused * 1e6
	} else {
		s.stop(state, PausedMicroseconds, PFCReceived, PausedEnds, state.Paused, state.Creeping, p.Speed)
	}
	if state.Global {
		state.rates[GlobalPauseSent].always += framesOf(peer.Paused, p.Speed)
	} else {
		s.stop(state, PausingMicroseconds, PFCSent, PausingEnds, peer.Paused, peer.Creeping, p.Speed)
	}
}

// sizes are those of the classes' packets, in bytes.
var sizes = [classes]float64{210, packet, packet, notification}

// stop lets one end of a link be stopped, or see that it stops the other.
func (s *scene) stop(state *PortState, microseconds, frames, ends Quantity, share, creeping, speed float64) {
	for q, perShare := range map[Quantity]float64{microseconds: 1e6, frames: framesOf(1, speed), ends: framesOf(1, speed) / 2} {
		state.rates[q].always += share * perShare
		if creeping > 0 {
			state.rates[q].signal, state.rates[q].perSecond = creep, creeping*perShare
		}
	}
}
