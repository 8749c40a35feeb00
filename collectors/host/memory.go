// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// memoryLimit is more than the /sys of any host fills, of what is read of it.
const memoryLimit = 64 << 20

// A Memory is a file system in memory, with links.
type Memory struct {
	nodes map[string]*node // By paths that lead through no link.
	size  int
}

// A node is a file, a link or a directory.
type node struct {
	name    string
	mode    fs.FileMode
	data    []byte        // Of a link: where it leads to.
	entries []fs.DirEntry // Of a directory.
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory {
	return &Memory{nodes: map[string]*node{".": {name: ".", mode: fs.ModeDir | 0o755}}}
}

// Add adds a node and the directories above it. One that is there already gets
// the new content.
func (m *Memory) Add(name string, mode fs.FileMode, data []byte) error {
	if !fs.ValidPath(name) {
		return fmt.Errorf("not a path within the tree: %q", name)
	}
	if target := string(data); mode.Type() == fs.ModeSymlink && (path.IsAbs(target) || !within(path.Dir(name), target)) {
		return fmt.Errorf("%s: a link that leads out of the tree: %s", name, target)
	}
	old := m.nodes[name]
	if m.size += len(data); old == nil {
		m.size += 256 // About what a node takes beside its content.
	}
	if m.size > memoryLimit {
		return fmt.Errorf("%s: more than %d MiB", name, memoryLimit>>20)
	}
	if old != nil {
		if old.mode.Type() != mode.Type() {
			return fmt.Errorf("%s: both a %s and a %s", name, kindOf(old.mode), kindOf(mode))
		}
		old.data = data
		return nil
	}
	above := path.Dir(name)
	if err := m.Add(above, fs.ModeDir|0o755, nil); err != nil {
		return err
	}
	n := &node{name: path.Base(name), mode: mode, data: data}
	m.nodes[name] = n
	m.nodes[above].entries = append(m.nodes[above].entries, fs.FileInfoToDirEntry(n))
	return nil
}

func kindOf(mode fs.FileMode) string {
	switch mode.Type() {
	case fs.ModeDir:
		return "directory"
	case fs.ModeSymlink:
		return "link"
	}
	return "file"
}

// find follows the links of a path.
func (m *Memory) find(op, name string, last bool) (*node, error) {
	failed := func(err error) (*node, error) { return nil, &fs.PathError{Op: op, Path: name, Err: err} }
	if !fs.ValidPath(name) {
		return failed(fs.ErrInvalid)
	}
	at, links := ".", 0
	for parts := strings.Split(name, "/"); len(parts) > 0; {
		if !m.nodes[at].IsDir() {
			return failed(syscall.ENOTDIR)
		}
		next := path.Join(at, parts[0])
		parts = parts[1:]
		n := m.nodes[next]
		if n == nil {
			return failed(fs.ErrNotExist)
		}
		if n.mode.Type() == fs.ModeSymlink && (last || len(parts) > 0) {
			if links++; links > maxLinks {
				return failed(syscall.ELOOP)
			}
			parts = append(strings.Split(string(n.data), "/"), parts...)
			continue
		}
		at = next
	}
	return m.nodes[at], nil
}

// Open is that of fs.FS.
func (m *Memory) Open(name string) (fs.File, error) {
	n, err := m.find("open", name, true)
	if err != nil {
		return nil, err
	}
	return &opened{node: n, Reader: bytes.NewReader(n.data)}, nil
}

// Stat is that of fs.StatFS.
func (m *Memory) Stat(name string) (fs.FileInfo, error) {
	n, err := m.find("stat", name, true)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// Lstat is that of fs.ReadLinkFS.
func (m *Memory) Lstat(name string) (fs.FileInfo, error) {
	n, err := m.find("lstat", name, false)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// ReadLink is that of fs.ReadLinkFS.
func (m *Memory) ReadLink(name string) (string, error) {
	n, err := m.find("readlink", name, false)
	if err != nil {
		return "", err
	}
	if n.mode.Type() != fs.ModeSymlink {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: syscall.EINVAL}
	}
	return string(n.data), nil
}

// ReadDir is that of fs.ReadDirFS.
func (m *Memory) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := m.find("open", name, true)
	if err != nil {
		return nil, err
	}
	if !n.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: syscall.ENOTDIR}
	}
	return slices.SortedFunc(slices.Values(n.entries), func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) }), nil
}

// A node is its own fs.FileInfo.

func (n *node) Name() string       { return n.name }
func (n *node) Size() int64        { return int64(len(n.data)) }
func (n *node) Mode() fs.FileMode  { return n.mode }
func (n *node) ModTime() time.Time { return time.Time{} }
func (n *node) IsDir() bool        { return n.mode.IsDir() }
func (n *node) Sys() any           { return nil }

// An opened is an open file.
type opened struct {
	*bytes.Reader
	node *node
}

func (o *opened) Stat() (fs.FileInfo, error) { return o.node, nil }
func (o *opened) Close() error               { return nil }

func (o *opened) Read(b []byte) (int, error) {
	if o.node.IsDir() {
		return 0, &fs.PathError{Op: "read", Path: o.node.name, Err: syscall.EISDIR}
	}
	return o.Reader.Read(b)
}
