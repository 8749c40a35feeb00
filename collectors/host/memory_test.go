// SPDX-License-Identifier: Apache-2.0

package host

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"roce_exporter/collectors/host/hosttest"
)

// packed makes a tar.
func packed(t *testing.T, headers ...tar.Header) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		content := []byte(h.Name)
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write(content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// A tree read of a tar is like the one on disk, whatever is asked of it.
func TestATarIsLikeADirectory(t *testing.T) {
	dir := t.TempDir()
	hosttest.Write(t, hosttest.Parse(t, `
devices/pci0000:00/0000:1a:00.0/uevent = DRIVER=mlx5_core
devices/pci0000:00/0000:1a:00.0/net/eth0/mtu = 9000
devices/pci0000:00/0000:1a:00.0/net/eth0/empty =
devices/pci0000:00/0000:1a:00.0/net/eth0/device -> ../../../0000:1a:00.0
class/net/eth0 -> ../../devices/pci0000:00/0000:1a:00.0/net/eth0
class/net/round -> round
class/net/nowhere -> ../nothing
`), dir)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := readTar(&out)
	if err != nil {
		t.Fatal(err)
	}
	want := os.DirFS(dir)
	kind := func(err error) string {
		for _, known := range []error{nil, fs.ErrNotExist, fs.ErrInvalid, syscall.ENOTDIR, syscall.EISDIR, syscall.EINVAL, syscall.ELOOP} {
			if errors.Is(err, known) {
				return fmt.Sprint(known)
			}
		}
		return err.Error()
	}
	tell := func(files fs.FS, name string) string {
		var out strings.Builder
		data, err := fs.ReadFile(files, name)
		fmt.Fprintf(&out, "content %q %s\n", data, kind(err))
		info, err := fs.Stat(files, name)
		fmt.Fprintf(&out, "dir %t %s\n", err == nil && info.IsDir(), kind(err))
		info, err = fs.Lstat(files, name)
		fmt.Fprintf(&out, "link %t %s\n", err == nil && info.Mode().Type() == fs.ModeSymlink, kind(err))
		target, err := fs.ReadLink(files, name)
		fmt.Fprintf(&out, "target %s %s\n", target, kind(err))
		entries, err := fs.ReadDir(files, name)
		fmt.Fprintf(&out, "entries %s\n", kind(err))
		for _, e := range entries {
			fmt.Fprintf(&out, "  %s %s\n", e.Name(), e.Type())
		}
		return out.String()
	}
	for _, name := range []string{
		".", "class/net", "class/net/eth0", "class/net/eth0/mtu", "class/net/eth0/empty", "class/net/eth0/device", "class/net/eth0/device/uevent",
		"class/net/eth0/device/net/eth0/device/uevent", "class/net/eth0/mtu/more", "class/net/eth0/nothing", "class/net/round", "class/net/nowhere",
		"class/net/nowhere/more", "../class", "/class", "",
	} {
		if got, want := tell(got, name), tell(want, name); got != want {
			t.Errorf("%q of the tar:\n%s\nof the directory:\n%s", name, got, want)
		}
	}
}

func TestTarsThatAreRefused(t *testing.T) {
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
	link := func(name, target string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
	}
	for name, c := range map[string]struct {
		from *bytes.Buffer
		want string
	}{
		"no tar at all":          {bytes.NewBufferString(strings.Repeat("text\n", 200)), "invalid tar header"},
		"a name outside":         {packed(t, file("../class/net")), `not a path within the tree: "../class/net"`},
		"a name of this machine": {packed(t, file("/class/net")), `not a path within the tree: "/class/net"`},
		"a link of this machine": {packed(t, link("class/net/eth0", "/etc")), "class/net/eth0: a link that leads out of the tree: /etc"},
		"a link outside":         {packed(t, link("class/net/eth0", "../../../etc")), "class/net/eth0: a link that leads out of the tree: ../../../etc"},
		"something in a file":    {packed(t, file("class"), file("class/net")), "class: both a file and a directory"},
		"something in a link":    {packed(t, link("class", "."), file("class/net")), "class: both a link and a directory"},
	} {
		if _, err := readTar(c.from); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if m, err := readTar(packed(t, tar.Header{Typeflag: tar.TypeFifo, Name: "fifo"}, tar.Header{Typeflag: tar.TypeLink, Name: "hard", Linkname: "mtu"}, file("./mtu"))); err != nil || len(m.nodes) != 2 {
		t.Errorf("what is neither file, directory nor link is not left out: %v %v", m, err)
	}
}

// What is larger than any host is refused, be it of one file or of many names.
func TestATarThatIsTooLarge(t *testing.T) {
	var one bytes.Buffer
	w := tar.NewWriter(&one)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "large", Size: memoryLimit}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, memoryLimit)); err != nil {
		t.Fatal(err)
	}
	if _, err := readTar(&one); err == nil || !strings.Contains(err.Error(), "large: more than 64 MiB") {
		t.Errorf("one file: %v", err)
	}
	m := NewMemory()
	m.size = memoryLimit - 1000 // The rest is filled by names alone.
	var err error
	for i := 0; i < 100 && err == nil; i++ {
		err = m.Add(fmt.Sprint(i), 0o644, nil)
	}
	if err == nil || len(m.nodes) > 10 {
		t.Errorf("%d empty files: %v", len(m.nodes), err)
	}
}

// The capture says which of its files is no good.
func TestCapturesThatCannotBeOpened(t *testing.T) {
	const meta = `{"format": 1, "clock": "2026-01-01T00:00:00Z"}`
	for want, files := range map[string]map[string]string{
		"not a capture":      {"sys.tar": ""},
		"meta.json":          {"meta.json": "{", "sys.tar": ""},
		"format 7":           {"meta.json": `{"format": 7}`, "sys.tar": ""},
		"sys.tar":            {"meta.json": meta, "sys.tar": "text"},
		"0002: not a":        {"0001/meta.json": meta, "0001/sys.tar": "", "0002/sys.tar": ""},
		"0001: proc.tar: un": {"0001/meta.json": meta, "0001/sys.tar": "", "0001/proc.tar": "text"},
	} {
		dir := fstest.MapFS{}
		for name, text := range files {
			dir[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if _, err := OpenCapture(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", files, err, want)
		}
	}
	if samples, err := OpenCapture(fstest.MapFS{"meta.json": {Data: []byte(meta)}}); len(samples) > 0 || err != nil {
		t.Errorf("nothing of a host: %v %v", samples, err)
	}
}

// Of the many samples of a capture that are tars, a few are in memory at a time,
// and each gives what is its own, also when it is asked for again.
func TestManySamplesInTars(t *testing.T) {
	const samples = 20
	dir := fstest.MapFS{}
	for i := range samples {
		name := fmt.Sprintf("%04d/", i+1)
		dir[name+"meta.json"] = &fstest.MapFile{Data: []byte(`{"format": 1, "clock": "2026-01-01T00:00:00Z"}`)}
		for _, tree := range []string{"sys", "proc"} {
			m := NewMemory()
			if err := m.Add("sample", 0o644, fmt.Append(nil, tree, i)); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			w := tar.NewWriter(&out)
			if err := errors.Join(w.AddFS(m), w.Close()); err != nil {
				t.Fatal(err)
			}
			dir[name+tree+".tar"] = &fstest.MapFile{Data: out.Bytes()}
		}
	}
	opened, err := OpenCapture(dir)
	if err != nil || len(opened) != samples {
		t.Fatalf("%d samples, %v", len(opened), err)
	}
	inMemory := func() (n int) {
		for _, s := range opened {
			for _, tree := range []fs.FS{s.Sys, s.Proc} {
				if tree.(*packedTree).inside != nil {
					n++
				}
			}
		}
		return n
	}
	if n := inMemory(); n > maxTrees {
		t.Errorf("%d trees are in memory before any is asked for", n)
	}
	for range 2 {
		for i, s := range opened {
			for tree, files := range map[string]fs.FS{"sys": s.Sys, "proc": s.Proc} {
				if text, err := readText(files, "sample"); err != nil || text != fmt.Sprint(tree, i) {
					t.Errorf("sample %d: %q, %v", i+1, text, err)
				}
			}
			if n := inMemory(); n > maxTrees {
				t.Fatalf("sample %d: %d trees are in memory", i+1, n)
			}
		}
	}
}
