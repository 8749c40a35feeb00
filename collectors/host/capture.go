// SPDX-License-Identifier: Apache-2.0

package host

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"
	"time"
)

// captureFormat is the version of the layout of a capture: sys, proc, ethtool,
// dcb, meta.json.
const captureFormat = 1

// OpenCapture opens the samples of a capture, of which there is one or those
// in directories 0001, 0002, …. Without anything of a host there are none.
func OpenCapture(dir fs.FS) ([]Sources, error) {
	names, err := fs.Glob(dir, "[0-9][0-9][0-9][0-9]")
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	found := false
	for _, name := range names {
		for _, sys := range []string{"sys", "sys.tar"} {
			_, err := fs.Stat(dir, path.Join(name, sys))
			found = found || err == nil
		}
	}
	if !found {
		return nil, nil
	}
	var samples []Sources
	var trees shelf
	for _, name := range names { // Also one in which the host was gone.
		sub, err := fs.Sub(dir, name)
		if err != nil {
			return nil, err
		}
		sample, err := openSample(sub, &trees)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		samples = append(samples, sample)
	}
	return samples, nil
}

func openSample(dir fs.FS, trees *shelf) (Sources, error) {
	data, err := fs.ReadFile(dir, "meta.json")
	if err != nil {
		return Sources{}, fmt.Errorf("not a capture: %w", err)
	}
	var meta struct {
		Format int
		Clock  time.Time
	}
	if err := json.Unmarshal(data, &meta); err != nil {
		return Sources{}, fmt.Errorf("meta.json: %w", err)
	}
	if meta.Format != captureFormat {
		return Sources{}, fmt.Errorf("meta.json: format %d, this exporter reads format %d", meta.Format, captureFormat)
	}
	sources, err := readCapture(dir, trees)
	sources.Clock = func() time.Time { return meta.Clock }
	return sources, err
}

// ReadCapture returns the sources of a sample of a capture: sys and proc as
// the kernel has them, or sys.tar and proc.tar, ethtool and dcb.
func ReadCapture(capture fs.FS) (Sources, error) { return readCapture(capture, &shelf{}) }

func readCapture(capture fs.FS, trees *shelf) (Sources, error) {
	sys, err := openTree(capture, "sys", trees)
	if err != nil {
		return Sources{}, err
	}
	proc, err := openTree(capture, "proc", trees)
	if err != nil {
		return Sources{}, err
	}
	return Sources{SysPath: "the capture's sys", Sys: sys, Proc: proc, Ethtool: ReadEthtool(capture), DCB: ReadDCB(capture)}, nil
}

// openTree opens a directory of a capture, or the tar in its place, of which it
// sees that it is whole.
func openTree(capture fs.FS, name string, trees *shelf) (fs.FS, error) {
	if _, err := fs.Stat(capture, name); errors.Is(err, fs.ErrNotExist) {
		if _, err := fs.Stat(capture, name+".tar"); err == nil {
			p := &packedTree{capture: capture, name: name + ".tar", trees: trees}
			if _, err := p.tree(); err != nil {
				return nil, err
			}
			return p, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return fs.Sub(capture, name) // Without either, all of it is absent.
}

// A packedTree is a tar of a capture, which is read into memory when something of
// it is asked for. Of a capture's many samples a few are there at a time.
type packedTree struct {
	capture fs.FS
	name    string
	trees   *shelf
	inside  *Memory // Under the lock of the shelf; nil: not in memory.
}

// A shelf has the trees that are in memory, the last one asked for at the end.
type shelf struct {
	mu  sync.Mutex
	all []*packedTree
}

// maxTrees is those of as many samples as scrapes side by side may read, sys
// and proc.
const maxTrees = 8

// tree returns what the tar holds.
func (p *packedTree) tree() (*Memory, error) {
	s := p.trees
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.inside == nil {
		f, err := p.capture.Open(p.name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		if p.inside, err = readTar(f); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	s.all = append(slices.DeleteFunc(s.all, func(other *packedTree) bool { return other == p }), p)
	if len(s.all) > maxTrees {
		s.all[0].inside = nil
		s.all = slices.Delete(s.all, 0, 1)
	}
	return p.inside, nil
}

// The methods are those of Memory.

func (p *packedTree) Open(name string) (fs.File, error) {
	m, err := p.tree()
	if err != nil {
		return nil, err
	}
	return m.Open(name)
}

func (p *packedTree) Stat(name string) (fs.FileInfo, error) {
	m, err := p.tree()
	if err != nil {
		return nil, err
	}
	return m.Stat(name)
}

func (p *packedTree) Lstat(name string) (fs.FileInfo, error) {
	m, err := p.tree()
	if err != nil {
		return nil, err
	}
	return m.Lstat(name)
}

func (p *packedTree) ReadLink(name string) (string, error) {
	m, err := p.tree()
	if err != nil {
		return "", err
	}
	return m.ReadLink(name)
}

func (p *packedTree) ReadDir(name string) ([]fs.DirEntry, error) {
	m, err := p.tree()
	if err != nil {
		return nil, err
	}
	return m.ReadDir(name)
}

// readTar reads the files, directories and links of a tar into memory.
func readTar(from io.Reader) (*Memory, error) {
	m := NewMemory()
	for t := tar.NewReader(from); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return nil, err
		}
		name := path.Clean(h.Name) // "./class/" of tar(1).
		switch h.Typeflag {
		case tar.TypeDir:
			err = m.Add(name, fs.ModeDir|0o755, nil)
		case tar.TypeSymlink:
			err = m.Add(name, fs.ModeSymlink|0o777, []byte(h.Linkname))
		case tar.TypeReg:
			var data []byte
			if data, err = io.ReadAll(io.LimitReader(t, memoryLimit)); err == nil { // With what a node takes, a longer one is refused.
				err = m.Add(name, 0o644, data)
			}
		}
		if err != nil {
			return nil, err
		}
	}
}
