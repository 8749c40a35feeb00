// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/safchain/ethtool"

	"roce_exporter/collectors/host"
	"roce_exporter/collectors/host/hosttest"
)

// maxReading is how much reading may cost, as a multiple of the same answers
// of ethtool and the same files.
const maxReading = 1.5

// costQueues make a veth have about as many statistics as costStatistics: seven
// for a queue that receives, two for one that transmits.
const costQueues = costStatistics / 9

// TestCostOfReadingAHost compares the reader with the same calls of ethtool to
// the kernel, by the library alone, and fs.ReadFile of the files that it opens
// once its first reading is done, each once. Files that it opens again, files that it looks for in vain, links and
// directories are on its account. The devices that ethtool asks bear the names
// of the rails whose files are read.
func TestCostOfReadingAHost(t *testing.T) {
	if !*cost {
		t.Skip("make bench runs it")
	}
	if !hosttest.Elsewhere(t, hosttest.NewNetwork(), "-cost") {
		return
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // As the exporter runs.
	dir := t.TempDir()
	hosttest.Write(t, rails(t), dir)
	kinds := addRails(t)
	live := host.NewLive(filepath.Join(dir, "sys"), filepath.Join(dir, "proc"))
	live.DCB = nil

	opened, asked := &openedFiles{}, &notingEthtool{Ethtool: live.Ethtool}
	noted := NewHost(testCatalog(t), NewDevices(host.Sources{Sys: notingFS{live.Sys, opened}, Proc: notingFS{live.Proc, opened}, Ethtool: asked}), hostOptions()).begin().reader
	readRails(t, noted)
	*opened, *asked = openedFiles{}, notingEthtool{Ethtool: live.Ethtool}
	readRails(t, noted)

	lib, err := ethtool.NewEthtool()
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	r := NewHost(testCatalog(t), NewDevices(live), hostOptions()).begin().reader
	ratio, times := typical(
		func() {
			for _, name := range asked.drivers {
				if _, err := lib.DriverInfo(name); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range asked.statistics {
				if _, err := lib.Stats(name); err != nil && !errors.Is(err, syscall.EOPNOTSUPP) {
					t.Fatal(err)
				}
			}
			for _, f := range opened.files {
				if _, err := fs.ReadFile(f.in, f.name); err != nil {
					t.Fatal(err)
				}
			}
		},
		func() { readRails(t, r) },
	)
	if ratio > maxReading {
		t.Errorf("reading costs %.2f times its files and answers, more than %.1f", ratio, maxReading)
	}
	table := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', tabwriter.AlignRight)
	defer table.Flush()
	fmt.Fprintln(table, "CPU time of reading\tfiles\tlooked for\tcalls of ethtool\tstatistics\tfloor\treader\tratio\tlimit\t")
	ms := func(i int) string { return fmt.Sprintf("%.2f ms", float64(times[i].Microseconds())/1e3) }
	fmt.Fprintf(table, "%d NICs (%s), %d RDMA devices\t%d\t%d\t%d\t%d\t%s\t%s\t%.2f\t%.1f\t\n", costRails, kinds, costRails,
		len(opened.files), opened.attempts, len(asked.drivers)+len(asked.statistics), asked.answers, ms(0), ms(1), ratio, maxReading)
}

// addRails makes a network device for each rail, and says of which kinds: all
// are veth, but for one without statistics, a dummy, where the kernel has it.
func addRails(t *testing.T) (kinds string) {
	t.Helper()
	kinds = fmt.Sprintf("%d veth, 1 dummy", costRails-1)
	for i := range costRails {
		name := fmt.Sprintf("ens%df0np0", i+1)
		if i == costRails-1 {
			switch err := hosttest.AddLink("dummy", name, 1); {
			case err == nil:
				continue
			case !errors.Is(err, syscall.EOPNOTSUPP):
				t.Fatal("dummy: ", err)
			}
			kinds = fmt.Sprintf("%d veth, no dummy in this kernel", costRails)
		}
		if err := hosttest.AddLink("veth", name, costQueues); err != nil {
			t.Skip("no veth: ", err)
		}
	}
	return kinds
}

// typical compares two functions by the median of many short rounds: what
// disturbs the system calls of one disturbs those of the other.
func typical(floor, do func()) (ratio float64, times []time.Duration) {
	const rounds = 51
	all := make([][]time.Duration, rounds)
	for i := range all {
		all[i] = cheapestOf(1, 20*time.Millisecond, floor, do)
	}
	of := func(times []time.Duration) float64 { return float64(times[1]) / float64(times[0]) }
	slices.SortFunc(all, func(a, b []time.Duration) int { return cmp.Compare(of(a), of(b)) })
	return of(all[rounds/2]), all[rounds/2]
}

// A notingEthtool notes which devices are asked for what, and how many
// statistics they have.
type notingEthtool struct {
	host.Ethtool
	drivers, statistics []string
	answers             int
}

func (n *notingEthtool) Driver(name string) (host.Driver, error) {
	n.drivers = append(n.drivers, name)
	return n.Ethtool.Driver(name)
}

func (n *notingEthtool) Statistics(name string) (map[string]uint64, error) {
	n.statistics = append(n.statistics, name)
	statistics, err := n.Ethtool.Statistics(name)
	n.answers += len(statistics)
	return statistics, err
}

// openedFiles are the files that were opened, each once, in their order.
type openedFiles struct {
	files    []openedFile
	attempts int
}

type openedFile struct {
	in   fs.FS
	name string
}

// A notingFS notes which files are opened.
type notingFS struct {
	fs.FS
	opened *openedFiles
}

func (n notingFS) Open(name string) (fs.File, error) {
	f, err := n.FS.Open(name)
	n.opened.attempts++
	if one := (openedFile{n.FS, name}); err == nil && !slices.Contains(n.opened.files, one) {
		n.opened.files = append(n.opened.files, one)
	}
	return f, err
}

func (n notingFS) ReadLink(name string) (string, error)       { return fs.ReadLink(n.FS, name) }
func (n notingFS) Lstat(name string) (fs.FileInfo, error)     { return fs.Lstat(n.FS, name) }
func (n notingFS) Stat(name string) (fs.FileInfo, error)      { return fs.Stat(n.FS, name) }
func (n notingFS) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(n.FS, name) }
