// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"io/fs"
	"strings"
	"sync"
	"time"

	"roce_exporter/collectors/host"
)

// stillTime is how long what was told of a moment is told again: a reader sees
// one moment, or two.
const stillTime = 100 * time.Millisecond

// A present is a host as it is when somebody asks.
type present struct {
	node *Node
	look Look

	mu   sync.Mutex
	last *hostNow
}

func (p *present) get() *hostNow {
	m := p.look()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil || m.movedSince(p.last.Time) {
		p.last = p.node.hostNow(m)
	}
	return p.last
}

// movedSince says whether what was told of t is too old.
func (m Moment) movedSince(t time.Time) bool {
	since := m.Time.Sub(t)
	return since < 0 || since >= stillTime
}

// Sources are what the exporter of a host reads.
func (n *Node) Sources(look Look) host.Sources {
	p := &present{node: n, look: look}
	return host.Sources{
		Sys:     liveFiles(func() *host.Memory { return p.get().sys }),
		Proc:    liveFiles(func() *host.Memory { return p.get().proc }),
		Ethtool: nics{p}, DCB: bridging{p},
		Clock: func() time.Time {
			m := look()
			return m.Time.Add(m.Node(n).Skew)
		},
	}
}

// A hostNow is a host at a moment.
type hostNow struct {
	Moment
	node      *Node
	sys, proc *host.Memory
}

func (n *Node) hostNow(m Moment) *hostNow {
	h := &hostNow{m, n, host.NewMemory(), host.NewMemory()}
	for name, text := range n.Files(m) {
		files, mode := h.sys, fs.FileMode(0o444)
		name, isSys := strings.CutPrefix(name, "sys/")
		if !isSys {
			name, files = strings.TrimPrefix(name, "proc/"), h.proc
		}
		if target, isLink := strings.CutPrefix(text, ">"); isLink {
			text, mode = target, fs.ModeSymlink|0o777
		}
		if err := files.Add(name, mode, []byte(text)); err != nil {
			panic(err) // A name of this package is wrong.
		}
	}
	return h
}

// port finds a NIC.
func (h *hostNow) port(name string) (*Port, error) {
	for _, p := range h.node.Ports {
		if p.Name == name {
			return p, nil
		}
	}
	return nil, fs.ErrNotExist
}

// liveFiles are the files of the present.
type liveFiles func() *host.Memory

func (f liveFiles) Open(name string) (fs.File, error)          { return f().Open(name) }
func (f liveFiles) Stat(name string) (fs.FileInfo, error)      { return f().Stat(name) }
func (f liveFiles) Lstat(name string) (fs.FileInfo, error)     { return f().Lstat(name) }
func (f liveFiles) ReadLink(name string) (string, error)       { return f().ReadLink(name) }
func (f liveFiles) ReadDir(name string) ([]fs.DirEntry, error) { return f().ReadDir(name) }

// nics answer what ethtool asks.
type nics struct{ *present }

// Driver is what ethtool -i prints.
func (n nics) Driver(name string) (host.Driver, error) {
	now := n.get()
	p, err := now.port(name)
	if err != nil {
		return host.Driver{}, err
	}
	return p.driverInfo(now.Moment), nil
}

// Statistics is what ethtool -S prints.
func (n nics) Statistics(name string) (map[string]uint64, error) {
	now := n.get()
	p, err := now.port(name)
	if err != nil {
		return nil, err
	}
	all := map[string]uint64{}
	for _, s := range p.Ethtool(now.Moment) {
		all[s.Name] = s.Value(now.Moment)
	}
	return all, nil
}

// bridging answers what is asked of data center bridging.
type bridging struct{ *present }

// Get is the state of a NIC.
func (b bridging) Get(name string) (*host.DCBState, error) {
	now := b.get()
	p, err := now.port(name)
	if err != nil {
		return nil, err
	}
	return p.dcbState(now.Moment), nil
}
