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
	for _, name := range names { // Also one in which the host was gone.
		sub, err := fs.Sub(dir, name)
		if err != nil {
			return nil, err
		}
		sample, err := openSample(sub)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		samples = append(samples, sample)
	}
	return samples, nil
}

func openSample(dir fs.FS) (Sources, error) {
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
	sources, err := ReadCapture(dir)
	sources.Clock = func() time.Time { return meta.Clock }
	return sources, err
}

// ReadCapture returns the sources of a sample of a capture: sys and proc as
// the kernel has them, or sys.tar and proc.tar, ethtool and dcb.
func ReadCapture(capture fs.FS) (Sources, error) {
	sys, err := openTree(capture, "sys")
	if err != nil {
		return Sources{}, err
	}
	proc, err := openTree(capture, "proc")
	if err != nil {
		return Sources{}, err
	}
	return Sources{SysPath: "the capture's sys", Sys: sys, Proc: proc, Ethtool: ReadEthtool(capture), DCB: ReadDCB(capture)}, nil
}

// openTree opens a directory of a capture, or reads the tar in its place.
func openTree(capture fs.FS, name string) (fs.FS, error) {
	if _, err := fs.Stat(capture, name); errors.Is(err, fs.ErrNotExist) {
		f, err := capture.Open(name + ".tar")
		if err == nil {
			defer func() { _ = f.Close() }()
			m, err := readTar(f)
			if err != nil {
				return nil, fmt.Errorf("%s.tar: %w", name, err)
			}
			return m, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return fs.Sub(capture, name) // Without either, all of it is absent.
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
