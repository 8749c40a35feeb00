// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func recordTree(t *testing.T, f *tree, patience time.Duration) *Recording {
	t.Helper()
	sources, err := ReadCapture(f)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Record(t.Context(), sources, Options{Wanted: wanted}, nil, patience)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func written(t *testing.T, r *Recording) string {
	t.Helper()
	dir := t.TempDir()
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What is read of a capture of a tree is what is read of the tree. Files that
// could not be read are missing in it, and named.
func TestRecordedTrees(t *testing.T) {
	for name, leftOut := range map[string]int{"connectx": 1, "e810": 0, "others": 0, "bond": 0} {
		t.Run(name, func(t *testing.T) {
			r := recordTree(t, readTree(t, name+".txt"), time.Minute)
			if len(r.LeftOut) != leftOut {
				t.Errorf("left out: %q, want %d", r.LeftOut, leftOut)
			}
			sources, err := ReadCapture(os.DirFS(written(t, r)))
			if err != nil {
				t.Fatal(err)
			}
			want := describe(t, newReader(t, readTree(t, name+".txt"), Options{}))
			got := describe(t, NewReader(sources, Options{Wanted: wanted}))
			if diff := cmp.Diff(withoutTrouble(want), withoutTrouble(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Where a file system holds no links, the trees that have some are written as
// tars, and read the same.
func TestRecordedToAFileSystemWithoutLinks(t *testing.T) {
	for _, name := range []string{"connectx", "bond"} {
		t.Run(name, func(t *testing.T) {
			r := recordTree(t, readTree(t, name+".txt"), time.Minute)
			read := func(dir string) string {
				sources, err := ReadCapture(os.DirFS(dir))
				if err != nil {
					t.Fatal(err)
				}
				return describe(t, NewReader(sources, Options{Wanted: wanted}))
			}
			want := read(written(t, r))
			r.symlink = func(_ *os.Root, target, name string) error {
				return &os.LinkError{Op: "symlinkat", Old: target, New: name, Err: syscall.EPERM}
			}
			dir := written(t, r)
			if diff := cmp.Diff(want, read(dir)); diff != "" {
				t.Error(diff)
			}
			for name, want := range map[string]bool{"sys": false, "sys.tar": true, "ethtool": true, "proc.tar": false} {
				if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != want {
					t.Errorf("%s is there: %t, want %t", name, err == nil, want)
				}
			}
		})
	}
}

// withoutTrouble leaves out what tells of files that cannot be read: they are
// not there in a capture.
func withoutTrouble(description string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(description, "\n"), func(line string) bool {
		return strings.Contains(line, "Skipped") || strings.Contains(line, "Note")
	}), "\n")
}

func TestRecordedTrouble(t *testing.T) {
	r := recordTree(t, readTree(t, "trouble.txt"), time.Minute)
	for _, want := range []string{
		"sys/class/net/ens1/mtu: permission denied", "sys/class/infiniband/mlx5_0/board_id: input/output error",
	} {
		if !slices.Contains(r.LeftOut, want) {
			t.Errorf("want %q in %q", want, r.LeftOut)
		}
	}
	dir := written(t, r)
	if _, err := os.Stat(filepath.Join(dir, "sys/class/infiniband/mlx5_0/ports/1")); err != nil {
		t.Error(err)
	}
}

// A device that hangs is named, and what came of it and of the others is kept.
func TestRecordOfADeviceThatHangs(t *testing.T) {
	f := readTree(t, "trouble.txt")
	release := make(chan struct{})
	f.opened = func(name string) {
		if strings.Contains(name, "mlx5_0/ports/1/hw_counters/") {
			<-release
		}
	}
	r := recordTree(t, f, 100*time.Millisecond)
	close(release) // What comes now comes too late, and harms nothing.
	if !slices.Contains(r.LeftOut, "RDMA device mlx5_0: no answer within 100ms") {
		t.Errorf("left out: %q", r.LeftOut)
	}
	if _, ok := r.sys.files["class/infiniband/mlx5_1/ports/1/hw_counters/np_cnp_sent"]; !ok {
		t.Error("the other device is missing")
	}
	written(t, r)
}

// Of a device that hangs there is one read, however many samples are taken.
func TestSamplesOfADeviceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := readTree(t, "trouble.txt")
		release := make(chan struct{})
		var waiting atomic.Int32
		f.opened = func(name string) {
			if strings.Contains(name, "mlx5_0/ports/1/hw_counters/") {
				waiting.Add(1)
				<-release
				waiting.Add(-1)
			}
		}
		sources, err := ReadCapture(f)
		if err != nil {
			t.Fatal(err)
		}
		recorder := NewRecorder(sources, Options{Wanted: wanted}, time.Second)
		sample := func(leftOut string) {
			t.Helper()
			r, err := recorder.Record(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			of := slices.DeleteFunc(r.LeftOut, func(what string) bool { return !strings.HasPrefix(what, "RDMA device mlx5_0") })
			if got := strings.Join(of, "; "); got != leftOut {
				t.Errorf("left out: %q, want %q", got, leftOut)
			}
			if _, ok := r.sys.files["class/infiniband/mlx5_1/ports/1/hw_counters/np_cnp_sent"]; !ok {
				t.Error("the other device is missing")
			}
		}
		sample("RDMA device mlx5_0: no answer within 1s")
		for range 3 {
			sample("RDMA device mlx5_0: it has not answered since an earlier sample")
		}
		if n := waiting.Load(); n != 1 {
			t.Errorf("%d reads hang", n)
		}
		close(release)
		synctest.Wait()
		sample("") // It came back.
	})
}

// No link of a capture leads out of it.
func TestRecordLeavesLinksOut(t *testing.T) {
	r := recordTree(t, parseTree(t, `
sys/class/net/eth0/device/uevent + DRIVER=mlx5_core
sys/class/net/eth0/mtu = 1500
sys/class/net/eth1 -> /etc
sys/class/net/eth2 -> ../../../../etc
`), time.Minute)
	want := []string{"sys/class/net/eth1: a link that leads out of the tree: /etc", "sys/class/net/eth2: a link that leads out of the tree: ../../../../etc"}
	if !slices.Equal(r.LeftOut, want) {
		t.Errorf("left out %q, want %q", r.LeftOut, want)
	}
	dir := written(t, r)
	if _, err := os.Lstat(filepath.Join(dir, "sys/class/net/eth2")); err == nil {
		t.Error("a link that leads out is written")
	}
}

func TestRecordWithoutADevice(t *testing.T) {
	if _, err := Record(t.Context(), Sources{Sys: fstest.MapFS{}, Proc: fstest.MapFS{}}, Options{}, nil, time.Minute); !errors.Is(err, ErrNoDevice) {
		t.Errorf("%v, want that there is no device", err)
	}
}

// Of /proc only that is kept which is read of it: no addresses of the kernel.
func TestRecordTrimsProc(t *testing.T) {
	r := recordTree(t, parseTree(t, `
sys/class/net/eth0/device/uevent + DRIVER=mlx5_core
proc/stat + cpu 1 2 3
proc/stat + btime 1767200000
proc/modules + mlx5_ib 409600 3 - Live 0xffffffffc0a00000
proc/modules + secret 1 0 - Live 0xffffffffc0b00000
`), time.Minute)
	for name, want := range map[string]string{"stat": "btime 1767200000\n", "modules": "mlx5_ib 0 0 - Live 0x0000000000000000\n"} {
		if got := string(r.proc.files[name]); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// standIns are those of a switch's anonymiser.
type standIns struct{}

func (standIns) Node(string) string { return "node-1" }
func (standIns) MAC(string) string  { return "02:00:5e:00:00:01" }

func TestAnonymisedFiles(t *testing.T) {
	a := NewAnonymiser(standIns{})
	for _, f := range []struct{ name, text, want string }{
		{"class/net/eth0/address", "b8:3f:d2:00:00:01\n", "02:00:5e:00:00:01\n"},
		{"class/net/eth1/bonding_slave/perm_hwaddr", "B8:3F:D2:00:00:01\n", "02:00:5e:00:00:01\n"},
		{"class/net/eth2/address", "00:00:00:00:00:00\n", "00:00:00:00:00:00\n"},
		{"class/infiniband/mlx5_0/node_guid", "b83f:d203:0000:0001\n", "0200:5e03:0000:0001\n"},
		{"class/infiniband/bnxt_re0/node_guid", "ba3f:d2ff:fe00:0001\n", "0000:5eff:fe00:0001\n"},
		{"class/infiniband/erdma0/node_guid", "1122:3344:5566:7788\n", "0200:5e00:0000:0001\n"},
		{"class/infiniband/rxe0/node_guid", "0000:0000:0000:0000\n", "0000:0000:0000:0000\n"},
		{"class/net/ib0/address", "80:00:00:28:fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:00:00:01\n", "02:00:5e:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:02\n"},
		{"sys/kernel/hostname", "gpu1.example.net\n", "node-1\n"},
		{"class/infiniband/mlx5_0/node_desc", "gpu1 mlx5_0\n", "anonymised\n"},
		{"class/infiniband/rxe0/node_desc", "rxe\n", "rxe\n"},
		{"class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "enxb83fd2000001\n", "enx02005e000001\n"},
		{"devices/pci0000:00/0000:1a:00.0/uevent", "PCI_SLOT_NAME=0000:1a:00.0\n", "PCI_SLOT_NAME=0000:1a:00.0\n"},
	} {
		if got := string(a.file(f.name, []byte(f.text))); got != f.want {
			t.Errorf("%s: %q, want %q", f.name, got, f.want)
		}
	}
}
