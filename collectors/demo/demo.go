// SPDX-License-Identifier: Apache-2.0

// Package demo is a made-up RoCE fabric and its incidents, told in the raw
// names of SONiC's databases and of NIC drivers.
package demo

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// Options say how large a fabric is and when its story begins. The zero value
// of a size is its default.
type Options struct {
	Name                         string // Of the fabric; empty: demo.
	Variant                      uint64
	Spines, Leaves, Hosts, Rails int
	Start                        time.Time // Incidents begin from here on; the nodes booted before.
}

// MaxNodes is how many nodes a fabric may have.
const MaxNodes = 1000

func (o *Options) check() error {
	o.Name = cmp.Or(o.Name, "demo")
	o.Spines, o.Leaves = cmp.Or(o.Spines, 2), cmp.Or(o.Leaves, 4)
	o.Hosts, o.Rails = cmp.Or(o.Hosts, 16), cmp.Or(o.Rails, 2)
	switch {
	case o.Spines < 1 || o.Leaves < 1 || o.Hosts < 2 || o.Rails < 1:
		return errors.New("a fabric has at least 1 spine, 1 leaf, 1 rail and 2 hosts")
	case o.Rails > 8 || o.Rails > o.Leaves:
		return fmt.Errorf("%d rails: at most 8, and each has a leaf of its own, of which there are %d", o.Rails, o.Leaves)
	case o.Spines+o.Leaves+o.Hosts > MaxNodes:
		return fmt.Errorf("%d nodes: at most %d", o.Spines+o.Leaves+o.Hosts, MaxNodes)
	case o.Start.IsZero():
		return errors.New("the story of a fabric needs a start")
	}
	return nil
}

// A Fabric is a set of nodes and what happens to them. All that it tells of a
// moment follows from its options, its incidents and that moment.
type Fabric struct {
	Options
	Nodes []*Node // Spines, leaves, hosts.
	ports []*Port

	mu        sync.Mutex
	incidents []Running
	scenes    []*scene // Of the stretches of time until now, in order; the last few.
}

// A Running is an incident that happens.
type Running struct {
	Incident   *Incident
	Start, End time.Time // End is zero while nobody has ended it.
}

// New makes a fabric.
func New(o Options) (*Fabric, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	f := &Fabric{Options: o}
	f.build()
	return f, nil
}

// Node finds a node by its name; nil: there is none.
func (f *Fabric) Node(name string) *Node {
	if i := slices.IndexFunc(f.Nodes, func(n *Node) bool { return n.Name == name }); i >= 0 {
		return f.Nodes[i]
	}
	return nil
}

// Begin lets an incident happen from a moment on, until end; a zero end: until
// somebody ends it. What was told of later moments is no longer true.
func (f *Fabric) Begin(name string, start, end time.Time) error {
	i := FindIncident(name)
	if i == nil {
		return fmt.Errorf("no incident is called %q", name)
	}
	if len(i.Culprits(f)) == 0 {
		return fmt.Errorf("incident %s: this fabric has no node that it could happen to", name)
	}
	if !end.IsZero() && !end.After(start) {
		return fmt.Errorf("incident %s ends before it begins", name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.incidents {
		if r.Incident.Name == name && (r.End.IsZero() || r.End.After(start)) && (end.IsZero() || end.After(r.Start)) {
			return fmt.Errorf("incident %s happens already", name)
		}
	}
	f.incidents = append(f.incidents, Running{i, start, end})
	f.forget(start)
	return nil
}

// End ends an incident. That it does not happen is an error.
func (f *Fabric) End(name string, now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, r := range f.incidents {
		if r.Incident.Name == name && r.happens(now) {
			f.incidents[i].End = now
			f.forget(now)
			return nil
		}
	}
	return fmt.Errorf("incident %q does not happen", name)
}

// Happening are the incidents of a moment.
func (f *Fabric) Happening(t time.Time) []Running {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Running
	for _, r := range f.incidents {
		if r.happens(t) {
			all = append(all, r)
		}
	}
	return all
}

func (r Running) happens(t time.Time) bool {
	return !t.Before(r.Start) && (r.End.IsZero() || t.Before(r.End))
}

// next is the first moment after t at which what the incident does changes;
// zero: never.
func (r Running) next(t time.Time) time.Time {
	all := []time.Time{r.Start}
	if !r.End.IsZero() {
		all = append(all, r.End)
	}
	if !t.Before(r.Start) {
		var from time.Duration // Of the round that t is in.
		if every := r.Incident.every; every > 0 {
			from = t.Sub(r.Start).Truncate(every)
		}
		for _, stage := range r.Incident.stages {
			all = append(all, r.Start.Add(from+stage), r.Start.Add(from+stage+r.Incident.every))
		}
	}
	var first time.Time
	for _, change := range all {
		if change.After(t) && (r.End.IsZero() || !change.After(r.End)) && (first.IsZero() || change.Before(first)) {
			first = change
		}
	}
	return first
}

// keptScenes is how many stretches of time are kept: moments are asked for in
// their order, or nearly so.
const keptScenes = 16

// scene returns what holds at a moment.
func (f *Fabric) scene(t time.Time) *scene {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.scenes) == 0 || t.Before(f.scenes[0].from) {
		f.scenes = []*scene{f.firstScene()}
	}
	for {
		last := f.scenes[len(f.scenes)-1]
		if last.until.IsZero() || t.Before(last.until) {
			break
		}
		f.scenes = append(f.scenes, f.nextScene(last))
		if len(f.scenes) > keptScenes {
			f.scenes = slices.Clone(f.scenes[1:])
		}
	}
	for i := len(f.scenes) - 1; ; i-- {
		if !t.Before(f.scenes[i].from) {
			return f.scenes[i]
		}
	}
}

// forget drops what was worked out of a moment and later; the caller holds the
// lock.
func (f *Fabric) forget(from time.Time) {
	for len(f.scenes) > 0 && !f.scenes[len(f.scenes)-1].from.Before(from) {
		f.scenes = f.scenes[:len(f.scenes)-1]
	}
	if len(f.scenes) > 0 {
		last := *f.scenes[len(f.scenes)-1] // Others may hold it.
		last.until = f.nextChange(last.from)
		f.scenes[len(f.scenes)-1] = &last
	}
}

// nextChange is the first moment after t at which anything but counters
// changes; zero: never.
func (f *Fabric) nextChange(t time.Time) time.Time {
	var first time.Time
	for _, r := range f.incidents {
		if next := r.next(t); !next.IsZero() && (first.IsZero() || next.Before(first)) {
			first = next
		}
	}
	return first
}

// A Moment is a fabric at one moment.
type Moment struct {
	Time  time.Time
	scene *scene
	now   basis
	// numbers are what ports have of quantities instead; nil: what they have.
	numbers func(p *Port, q Quantity) uint64
}

// A Look tells of a fabric when it is asked.
type Look func() Moment

// At returns the fabric at a moment.
func (f *Fabric) At(t time.Time) Moment { return Moment{Time: t, scene: f.scene(t), now: f.basis(t)} }

// Live looks at the fabric by a clock.
func (f *Fabric) Live(clock func() time.Time) Look {
	return func() Moment { return f.At(clock()) }
}

// Pretend is the same at another time, with other numbers.
func (m Moment) Pretend(t time.Time, numbers func(p *Port, q Quantity) uint64) Moment {
	m.Time, m.numbers = t, numbers
	return m
}

// Since and Until are the stretch of time around it in which nothing but
// counters changes; a zero until has no end.
func (m Moment) Since() time.Time { return m.scene.from }

// Until is the end of that stretch.
func (m Moment) Until() time.Time { return m.scene.until }

// Node is what holds of a node.
func (m Moment) Node(n *Node) *NodeState { return &m.scene.nodes[n.index] }

// Port is what holds of a port.
func (m Moment) Port(p *Port) *PortState { return &m.scene.ports[p.index] }

// Same says whether everything but numbers is the same of a node at another
// moment.
func (m Moment) Same(other Moment, n *Node) bool {
	if *m.Node(n) != *other.Node(n) {
		return false
	}
	for _, p := range n.Ports {
		if m.Port(p).PortFacts != other.Port(p).PortFacts {
			return false
		}
	}
	return true
}

// Numbers are all numbers that a node shows.
func (m Moment) Numbers(n *Node) []Number {
	var all []Number
	if n.IsSwitch() {
		for asic := range n.ASICs {
			for _, f := range n.Fields(asic) {
				all = append(all, f.Number)
			}
		}
		return all
	}
	for _, p := range n.Ports {
		for _, some := range [][]Statistic{p.Ethtool(m), p.Counters(), p.HWCounters()} {
			for _, s := range some {
				all = append(all, s.Number)
			}
		}
		all = append(all, p.number(CRCErrors), p.number(LinkDowns), p.number(PFCSent), p.number(PFCReceived)) // Of the kernel.
	}
	return all
}

// Unit is a number from 0 up to 1 that is the port's own, another for every
// other of the numbers given.
func (p *Port) Unit(of ...uint64) float64 {
	return unit(append([]uint64{p.Node.fabric.Variant, uint64(p.index)}, of...)...)
}

// window is how long a gauge stays as it is.
const window = 2 * time.Minute

// Number is what a port has of a quantity.
func (m Moment) Number(p *Port, q Quantity) uint64 {
	if m.numbers != nil {
		return m.numbers(p, q)
	}
	state := &m.scene.ports[p.index]
	if q < gauges {
		return uint64(max(0, state.at(q, m.now, m.scene.start)))
	}
	level := state.Gauge[q-gauges]
	if q == HeadroomWatermark && level >= headroomSize || q == PCIeStallPercent {
		return uint64(level)
	}
	return uint64(level * (0.9 + 0.2*unit(uint64(p.index), uint64(q), uint64(m.Time.Unix())/uint64(window.Seconds()))))
}

// A basis is the integrals of the fabric's signals from its epoch on, in
// seconds: what has rate r while signal s is 1 has counted r·basis[s].
type basis [signals]float64

// Signals by which things go up and down.
const (
	steady  = iota // Always 1.
	jobs           // The training jobs' traffic, one for each rail; the mean is 1.
	creep   = jobs + 8
	signals = creep + 1
)

// epoch is before every boot.
func (f *Fabric) epoch() time.Time { return f.Start.Add(-60 * 24 * time.Hour) }

// waves are what the jobs' traffic is made of: phases of a step, of an epoch,
// of a day. Their amplitudes add up to less than 1: a rate is never negative.
var waves = []struct{ amplitude, period float64 }{{0.16, 97}, {0.10, 660}, {0.08, 86400}}

// creepTime is how long the signal creep takes from 0 to 1.
const creepTime = 90 * 24 * time.Hour

func (f *Fabric) basis(t time.Time) basis {
	x := t.Sub(f.epoch()).Seconds()
	b := basis{steady: x}
	for job := range creep - jobs {
		sum := x
		for i, w := range waves {
			phase := 2 * math.Pi * unit(f.Variant, uint64(job), uint64(i))
			sum -= w.amplitude * w.period / (2 * math.Pi) * (math.Cos(2*math.Pi*x/w.period+phase) - math.Cos(phase))
		}
		b[jobs+job] = sum
	}
	if since := t.Sub(f.Start).Seconds(); since > 0 {
		b[creep] = since * since / (2 * creepTime.Seconds())
	}
	return b
}

// unit is a number from 0 up to 1 that follows from others (the mixing function
// of SplitMix64).
func unit(of ...uint64) float64 {
	var h uint64
	for _, n := range of {
		h += n + 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return float64(h>>11) / (1 << 53)
}
