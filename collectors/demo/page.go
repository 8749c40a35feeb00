// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

// Sizes of the drawing.
const (
	rowSpines, rowLeaves, rowHosts = 40, 190, 340
	nodeWidth                      = 74
	drawingHeight                  = rowHosts + 60
	shownPauses                    = 20
)

// A drawnNode is a node in the drawing.
type drawnNode struct {
	Name, Class, Remark string
	X, Y                float64
}

// A drawnLink is a cable in the drawing.
type drawnLink struct {
	X1, Y1, X2, Y2 float64
	Class, Title   string
}

// A shownPause says in words who stops whom.
type shownPause struct {
	Text  string
	Share float64
	Class string
}

type shownIncident struct {
	Name, Title, Story, Culprit string
	Since                       string // Empty: it does not happen.
	Possible                    bool
}

// WritePage draws the fabric.
func (m Moment) WritePage(w io.Writer) error {
	f := m.scene.fabric
	page := struct {
		Width, Height         float64
		Time                  string
		Nodes                 []drawnNode
		Links                 []drawnLink
		Pauses                []shownPause
		Running, Possible     []shownIncident
		Spines, Leaves, Hosts int
	}{
		Height: drawingHeight, Time: m.Time.UTC().Format(time.DateTime),
		Spines: f.Spines, Leaves: f.Leaves, Hosts: f.Hosts,
	}
	widest := max(f.Spines, f.Leaves, f.Hosts, 12)
	page.Width = float64(widest * (nodeWidth + 8))
	at := make([][2]float64, len(f.Nodes))
	for tier, nodes := range [][]*Node{f.Nodes[:f.Spines], f.Nodes[f.Spines : f.Spines+f.Leaves], f.Nodes[f.Spines+f.Leaves:]} {
		for i, n := range nodes {
			at[n.index] = [2]float64{page.Width * (float64(i) + 0.5) / float64(len(nodes)), float64([]int{rowSpines, rowLeaves, rowHosts}[tier])}
			page.Nodes = append(page.Nodes, m.draw(n, at[n.index]))
		}
	}
	for _, p := range f.ports {
		if share := m.share(p); share >= 0.01 {
			page.Pauses = append(page.Pauses, shownPause{m.inWords(p, share), 100 * share, pauseClass(share)})
		}
		if p.index > p.Peer.index || p.IsBackplane() {
			continue
		}
		a, b := at[p.Node.index], at[p.Peer.Node.index]
		link := drawnLink{X1: a[0], Y1: a[1], X2: b[0], Y2: b[1], Title: fmt.Sprintf("%s %s, %s %s", p.Node.Name, p.Name, p.Peer.Node.Name, p.Peer.Name)}
		switch state := m.Port(p); {
		case !state.Up:
			link.Class = "down"
			link.Title += ": down"
		default:
			link.Class = pauseClass(max(m.share(p), m.share(p.Peer)))
			for _, end := range []*Port{p, p.Peer} {
				if share := m.share(end); share >= 0.01 {
					link.Title += "; " + m.inWords(end, share)
				}
			}
		}
		page.Links = append(page.Links, link)
	}
	slices.SortStableFunc(page.Pauses, func(a, b shownPause) int { return cmp.Compare(b.Share, a.Share) })
	page.Pauses = page.Pauses[:min(len(page.Pauses), shownPauses)]
	for _, i := range Incidents() {
		shown := shownIncident{Name: i.Name, Title: i.Title, Story: i.Story}
		culprits := i.Culprits(f)
		shown.Possible = len(culprits) > 0
		var names []string
		for _, p := range culprits {
			names = append(names, p.Node.Name+" "+p.Name)
		}
		shown.Culprit = strings.Join(names, ", ")
		for _, r := range f.Happening(m.Time) {
			if r.Incident.Name == i.Name {
				shown.Since = m.Time.Sub(r.Start).Truncate(time.Second).String()
			}
		}
		if shown.Since != "" {
			page.Running = append(page.Running, shown)
		} else {
			page.Possible = append(page.Possible, shown)
		}
	}
	parsed, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := parsed.Execute(&b, page); err != nil {
		return err
	}
	_, err = b.WriteTo(w)
	return err
}

// share is how much of the time a port is stopped by its peer, now.
func (m Moment) share(p *Port) float64 {
	state := m.Port(p)
	if !state.Up {
		return 0
	}
	growth := max(0, m.Time.Sub(m.scene.fabric.Start).Seconds()/creepTime.Seconds())
	return state.Paused + state.Creeping*growth
}

// inWords says who stops whom.
func (m Moment) inWords(p *Port, share float64) string {
	return fmt.Sprintf("%s %s pauses %s %s for %.0f %% of the time", p.Peer.Node.Name, p.Peer.Name, p.Node.Name, p.Name, 100*share)
}

func pauseClass(share float64) string {
	switch {
	case share >= 0.5:
		return "storm"
	case share >= 0.2:
		return "much"
	case share >= 0.05:
		return "more"
	case share >= 0.01:
		return "some"
	}
	return "calm"
}

// draw draws a node.
func (m Moment) draw(n *Node, at [2]float64) drawnNode {
	d := drawnNode{Name: n.Name, Class: "node", X: at[0], Y: at[1], Remark: n.Chip}
	if n.ASICs > 1 {
		d.Remark = fmt.Sprintf("%d ASICs", n.ASICs)
	}
	if !n.IsSwitch() {
		d.Remark = n.Ports[0].Driver
	}
	for _, r := range m.scene.fabric.Happening(m.Time) {
		for _, p := range r.Incident.Culprits(m.scene.fabric) {
			if p.Node == n {
				d.Class = "node culprit"
			}
		}
	}
	if m.Node(n).Gone {
		d.Class, d.Remark = "node gone", "no answer"
	}
	return d
}
