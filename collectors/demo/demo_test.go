// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func fabric(t *testing.T, o Options) *Fabric {
	t.Helper()
	o.Start = noon
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func begin(t *testing.T, f *Fabric, name string, after, lasting time.Duration) {
	t.Helper()
	end := time.Time{}
	if lasting > 0 {
		end = noon.Add(after + lasting)
	}
	if err := f.Begin(name, noon.Add(after), end); err != nil {
		t.Fatal(err)
	}
}

func TestSizes(t *testing.T) {
	for _, test := range []struct {
		options Options
		want    string // Error; empty: the fabric is made.
	}{
		{Options{}, ""},
		{Options{Spines: 1, Leaves: 1, Hosts: 2, Rails: 1}, ""},
		{Options{Spines: 3, Leaves: 5, Hosts: 17, Rails: 2}, ""}, // Nothing divides.
		{Options{Spines: 8, Leaves: 32, Hosts: 960, Rails: 8}, ""},
		{Options{Hosts: 1000}, "1006 nodes: at most 1000"},
		{Options{Rails: 5}, "5 rails: at most 8, and each has a leaf of its own, of which there are 4"},
		{Options{Hosts: 1}, "a fabric has at least 1 spine, 1 leaf, 1 rail and 2 hosts"},
		{Options{Spines: -1}, "a fabric has at least 1 spine, 1 leaf, 1 rail and 2 hosts"},
	} {
		test.options.Start = noon
		f, err := New(test.options)
		if test.want != "" || err != nil {
			if fmt.Sprint(err) != test.want {
				t.Errorf("%+v: %v", test.options, err)
			}
			continue
		}
		names := map[string]bool{}
		for _, p := range f.ports {
			if p.Peer == nil || p.Peer.Peer != p || p.Peer == p {
				t.Fatalf("%s %s has no cable", p.Node.Name, p.Name)
			}
			if name := p.Node.Name + " " + p.Name; names[name] {
				t.Fatalf("two ports are called %s", name)
			} else {
				names[name] = true
			}
		}
		for _, n := range f.Nodes {
			if n.Tier == Host && len(n.Ports) != f.Rails {
				t.Fatalf("%s has %d ports", n.Name, len(n.Ports))
			}
		}
	}
}

// TestAMomentDoesNotDependOnWhatWasAskedBefore asks for moments in any order,
// with incidents that were planned and with the same ones begun and ended live.
func TestAMomentDoesNotDependOnWhatWasAskedBefore(t *testing.T) {
	planned, live := fabric(t, Options{}), fabric(t, Options{})
	begin(t, planned, "nic-storm", 5*time.Minute, 12*time.Minute)
	begin(t, planned, "mask-lost", 8*time.Minute, 20*time.Minute)
	begin(t, planned, "pause-creep", 0, 0)
	begin(t, live, "pause-creep", 0, 0)
	at := func(f *Fabric, minutes float64) string {
		m := f.At(noon.Add(time.Duration(minutes * float64(time.Minute))))
		var b strings.Builder
		for _, p := range f.ports {
			fmt.Fprintf(&b, "%s %s %v", p.Node.Name, p.Name, m.Port(p).PortFacts)
			for q := range quantities {
				fmt.Fprintf(&b, " %d", m.Number(p, q))
			}
			b.WriteByte('\n')
		}
		return b.String()
	}
	minutes := []float64{0, 4, 5.5, 6.9, 8, 9, 11, 16.99, 17, 25, 28, 40}
	told := map[float64]string{}
	for _, minute := range minutes {
		switch minute {
		case 5.5:
			begin(t, live, "nic-storm", 5*time.Minute, 0)
		case 8:
			begin(t, live, "mask-lost", 8*time.Minute, 0)
		case 17:
			if err := live.End("nic-storm", noon.Add(17*time.Minute)); err != nil {
				t.Fatal(err)
			}
		case 28:
			if err := live.End("mask-lost", noon.Add(28*time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
		told[minute] = at(planned, minute)
		if got := at(live, minute); got != told[minute] {
			t.Errorf("after %v minutes the live fabric is another than the planned one", minute)
		}
	}
	slices.Reverse(minutes)
	for _, minute := range minutes {
		if at(planned, minute) != told[minute] {
			t.Errorf("after %v minutes another fabric, asked for later", minute)
		}
	}
	if another := fabric(t, Options{Variant: 7}); at(another, 4) == told[4] {
		t.Error("another variant is the same fabric")
	}
}

// TestEveryIncidentIsSeen lets each happen alone: it has a culprit, changes
// what holds, says how, and after its end all is as before.
func TestEveryIncidentIsSeen(t *testing.T) {
	names := map[string]bool{}
	for _, i := range Incidents() {
		t.Run(i.Name, func(t *testing.T) {
			if names[i.Name] || i.Title == "" || !strings.HasSuffix(i.Story, ".") {
				t.Error("its name is taken, or it is not told")
			}
			names[i.Name] = true
			f := fabric(t, Options{})
			if len(i.Culprits(f)) == 0 {
				t.Fatal("nobody is at fault")
			}
			before := f.At(noon.Add(time.Minute))
			begin(t, f, i.Name, 10*time.Minute, time.Hour)
			same := func(a, b Moment) bool {
				for _, n := range f.Nodes {
					if !a.Same(b, n) {
						return false
					}
					for _, p := range n.Ports {
						if a.Port(p).rates != b.Port(p).rates || a.Port(p).Gauge != b.Port(p).Gauge {
							return false
						}
					}
				}
				return true
			}
			if same(before, f.At(noon.Add(10*time.Minute+5*time.Second))) && same(before, f.At(noon.Add(20*time.Minute))) {
				t.Error("nothing has changed")
			}
			after := f.At(noon.Add(80 * time.Minute))
			for _, n := range f.Nodes { // A reboot stays one.
				after.scene.nodes[n.index].Boot = n.Boot
			}
			if !same(before, after) {
				t.Error("something stays after its end")
			}
			if !after.Until().IsZero() {
				t.Error("something is yet to come after its end")
			}
		})
	}
}

// TestCountersOnlyGrow watches all of them over an hour with incidents: they
// begin again at a reboot and never else.
func TestCountersOnlyGrow(t *testing.T) {
	f := fabric(t, Options{})
	for i, incident := range Incidents() {
		begin(t, f, incident.Name, time.Duration(i)*time.Minute, 7*time.Minute)
	}
	last := f.At(noon)
	for minute := range 60 {
		m := f.At(noon.Add(time.Duration(minute) * time.Minute))
		for _, p := range f.ports {
			for q := range gauges {
				if before, now := last.Number(p, q), m.Number(p, q); now < before && m.Node(p.Node).Boot.Equal(last.Node(p.Node).Boot) {
					t.Fatalf("minute %d: quantity %d of %s %s fell from %d to %d", minute, q, p.Node.Name, p.Name, before, now)
				}
			}
		}
		last = m
	}
}

// TestBothEndsOfALinkAgree compares what one end sends with what the other
// receives, whatever happens.
func TestBothEndsOfALinkAgree(t *testing.T) {
	f := fabric(t, Options{})
	begin(t, f, "slow-receiver", time.Minute, 5*time.Minute)
	begin(t, f, "deadlock", 3*time.Minute, 5*time.Minute)
	begin(t, f, "fdb-empty", 10*time.Minute, 5*time.Minute)
	begin(t, f, "link-flaps", 12*time.Minute, 5*time.Minute)
	from, to := f.At(noon), f.At(noon.Add(20*time.Minute))
	grown := func(p *Port, q Quantity) float64 { return float64(to.Number(p, q)) - float64(from.Number(p, q)) }
	for _, p := range f.ports {
		for _, pair := range [][2]Quantity{
			{SentBytes + Data, ReceivedBytes + Data},
			{SentPackets + Data, ReceivedPackets + Data},
			{SentPackets + CNP, ReceivedPackets + CNP},
			{PFCSent, PFCReceived},
			{PausingMicroseconds, PausedMicroseconds},
		} {
			if a, b := grown(p, pair[0]), grown(p.Peer, pair[1]); math.Abs(a-b) > 2 && math.Abs(a-b) > 1e-9*a {
				t.Errorf("%s %s: %v sent, %v received at the other end", p.Node.Name, p.Name, a, b)
			}
		}
	}
}

// TestAStormHasItsOrigin follows the pauses of a slow receiver: who stops others
// without being stopped is the host at fault.
func TestAStormHasItsOrigin(t *testing.T) {
	f := fabric(t, Options{})
	begin(t, f, "slow-receiver", 0, 0)
	m := f.At(noon.Add(time.Minute))
	culprit := FindIncident("slow-receiver").Culprits(f)[0]
	stopped, stopping := map[string]float64{}, map[string]float64{}
	for _, p := range f.ports {
		stopped[p.Node.Name] = max(stopped[p.Node.Name], m.share(p))
		stopping[p.Node.Name] = max(stopping[p.Node.Name], m.share(p.Peer))
	}
	for _, n := range f.Nodes {
		switch {
		case n == culprit.Node:
			if stopping[n.Name] < 0.5 || m.share(culprit) > 0.01 {
				t.Errorf("the culprit stops its leaf for %.2f of the time and is stopped for %.2f", stopping[n.Name], m.share(culprit))
			}
		case n.Tier == Host && stopping[n.Name] > 0:
			t.Errorf("%s stops others", n.Name)
		case n.IsSwitch() && stopping[n.Name] > 0.1 && stopped[n.Name] < stopping[n.Name]:
			t.Errorf("%s stops others more than it is stopped", n.Name)
		}
	}
	for _, leaf := range f.Nodes[f.Spines : f.Spines+f.Leaves] {
		if stopped[leaf.Name] < 0.1 {
			t.Errorf("%s is no victim", leaf.Name)
		}
	}
}

func TestIncidentsOfSmallFabrics(t *testing.T) {
	f := fabric(t, Options{Spines: 1, Leaves: 1, Hosts: 2, Rails: 1})
	for _, i := range Incidents() {
		if err := f.Begin(i.Name, noon, noon.Add(time.Minute)); err != nil && !strings.Contains(err.Error(), "this fabric has no node that it could happen to") {
			t.Error(err)
		}
	}
	f.At(noon.Add(30 * time.Second))
	var page bytes.Buffer
	if err := f.At(noon.Add(45 * time.Second)).WritePage(&page); err != nil {
		t.Error(err)
	}
}

func TestWhatCannotHappen(t *testing.T) {
	f := fabric(t, Options{})
	begin(t, f, "deadlock", time.Minute, time.Minute)
	for _, test := range []struct {
		err  error
		want string
	}{
		{f.Begin("no-such", noon, time.Time{}), `no incident is called "no-such"`},
		{f.Begin("deadlock", noon.Add(90*time.Second), time.Time{}), "incident deadlock happens already"},
		{f.Begin("deadlock", noon, time.Time{}), "incident deadlock happens already"},
		{f.Begin("deadlock", noon.Add(time.Hour), noon.Add(time.Hour)), "incident deadlock ends before it begins"},
		{f.End("deadlock", noon), `incident "deadlock" does not happen`},
		{f.Begin("deadlock", noon.Add(time.Hour), time.Time{}), "<nil>"},
	} {
		if fmt.Sprint(test.err) != test.want {
			t.Errorf("%v, not %s", test.err, test.want)
		}
	}
}
