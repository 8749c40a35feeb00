// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"testing/fstest"
	"text/tabwriter"
	"time"

	dto "github.com/prometheus/client_model/go"

	"roce_exporter/collectors/host"
	"roce_exporter/collectors/host/hosttest"
)

// A server of eight GPUs has that many.
const costRails, costStatistics = 8, 1500

func rails(t testing.TB) fstest.MapFS {
	t.Helper()
	return hosttest.Rails(t, "testdata/hosts/connectx.txt", costRails, costStatistics)
}

// hostReading is what a scrape reads of a host.
type hostReading struct {
	facts   host.Host
	netdevs []*host.Netdev
	rdma    []*host.RDMA
}

// readRails reads a host as a scrape does, one device after the other.
func readRails(t testing.TB, r *host.Reader) (all hostReading) {
	list, err := r.List()
	if err != nil || len(list.Netdevs) != costRails || len(list.RDMA) != costRails {
		t.Fatalf("%v %v", list, err)
	}
	all.facts = r.ReadHost()
	for _, name := range list.Netdevs {
		n, err := r.ReadNetdev(name)
		if err != nil || n.Skipped != (host.Skipped{}) {
			t.Fatalf("%s: %v %s", name, err, n.Note)
		}
		all.netdevs = append(all.netdevs, n)
	}
	for _, name := range list.RDMA {
		d, err := r.ReadRDMA(name)
		if err != nil || d.Skipped != (host.Skipped{}) {
			t.Fatalf("%s: %v %s", name, err, d.Note)
		}
		all.rdma = append(all.rdma, d)
	}
	return all
}

// mapHost maps a reading and groups its samples.
func (h *Host) mapHost(r *hostReading) []*dto.MetricFamily {
	h.builder.Reset()
	m := hostMapper{b: h.builder, options: &h.options, lossless: map[string]uint8{}, ofRDMA: map[string]bool{}}
	m.addHost(&r.facts)
	for _, d := range r.rdma {
		m.learn(d)
	}
	for _, n := range r.netdevs {
		m.addNetdev(n)
	}
	for _, d := range r.rdma {
		m.addRDMA(d)
	}
	samples, _, _ := h.builder.Samples(h.options.SeriesLimit)
	families, _ := h.catalog.Gather(samples)
	return families
}

// TestCostOfMappingAHost compares mapping and text with the text of families
// that are there already.
func TestCostOfMappingAHost(t *testing.T) {
	if !*cost {
		t.Skip("make bench runs it")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // As the exporter runs.
	h := capturedHost(t, testCatalog(t), rails(t), hostOptions())
	reading := readRails(t, h.reader)
	families := h.mapHost(&reading)
	n := count(families)
	times := cheapest(
		func() { write(t, io.Discard, families) },
		func() { write(t, io.Discard, h.mapHost(&reading)) },
	)
	ratio := float64(times[1]) / float64(times[0])
	if ratio > maxMapping {
		t.Errorf("mapping and text cost %.2f times the text, more than %d", ratio, maxMapping)
	}
	table := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', tabwriter.AlignRight)
	defer table.Flush()
	fmt.Fprintln(table, "CPU time a sample\tsamples\ttext\tmapping+text\tratio\tlimit\t")
	fmt.Fprintf(table, "%d NICs, %d RDMA devices\t%d\t%d ns\t%d ns\t%.2f\t%d\t\n", costRails, costRails,
		n, times[0].Nanoseconds()/int64(n), times[1].Nanoseconds()/int64(n), ratio, maxMapping)
}

// maxReading is how much reading may cost, as a multiple of the same answers
// of ethtool and the same files.
const maxReading = 1.5

// TestCostOfReadingAHost compares the reader with the same calls of ethtool
// and fs.ReadFile of the files that it opens once its first reading is done.
// Files that it looks for in vain, links and directories are on its account.
func TestCostOfReadingAHost(t *testing.T) {
	if !*cost {
		t.Skip("make bench runs it")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // As the exporter runs.
	dir := t.TempDir()
	capture := rails(t)
	hosttest.Write(t, capture, dir)
	answers := &cannedEthtool{}
	answers.fill(t, capture)
	sys, proc := os.DirFS(filepath.Join(dir, "sys")), os.DirFS(filepath.Join(dir, "proc"))

	opened := &openedFiles{}
	noted := NewHost(testCatalog(t), NewDevices(host.Sources{Sys: notingFS{sys, opened}, Proc: notingFS{proc, opened}, Ethtool: answers}), hostOptions()).reader
	readRails(t, noted)
	opened.files, opened.attempts, answers.asked = nil, 0, nil
	readRails(t, noted)
	asked := answers.asked

	r := NewHost(testCatalog(t), NewDevices(host.Sources{Sys: sys, Proc: proc, Ethtool: answers}), hostOptions()).reader
	ratio, times := typical(
		func() {
			for _, name := range asked {
				if _, err := answers.Statistics(name); err != nil {
					t.Fatal(err)
				}
			}
			for _, f := range opened.files {
				if _, err := fs.ReadFile(f.in, f.name); err != nil {
					t.Fatal(err)
				}
			}
			answers.asked = answers.asked[:0]
		},
		func() {
			readRails(t, r)
			answers.asked = answers.asked[:0]
		},
	)
	if ratio > maxReading {
		t.Errorf("reading costs %.2f times its files and answers, more than %.1f", ratio, maxReading)
	}
	table := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', tabwriter.AlignRight)
	defer table.Flush()
	fmt.Fprintln(table, "CPU time of reading\tfiles\tlooked for\tcalls of ethtool\tfloor\treader\tratio\tlimit\t")
	ms := func(i int) string { return fmt.Sprintf("%.2f ms", float64(times[i].Microseconds())/1e3) }
	fmt.Fprintf(table, "%d NICs, %d RDMA devices\t%d\t%d\t%d\t%s\t%s\t%.2f\t%.1f\t\n", costRails, costRails,
		len(opened.files), opened.attempts, len(asked), ms(0), ms(1), ratio, maxReading)
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

// cannedEthtool answers from memory, with a new map each time as the live one
// does.
type cannedEthtool struct {
	drivers    map[string]host.Driver
	statistics map[string][]statistic
	asked      []string // For statistics.
}

type statistic struct {
	name  string
	value uint64
}

func (c *cannedEthtool) fill(t testing.TB, capture fs.FS) {
	t.Helper()
	c.drivers, c.statistics = map[string]host.Driver{}, map[string][]statistic{}
	names, err := fs.ReadDir(capture, "ethtool")
	if err != nil {
		t.Fatal(err)
	}
	read := host.ReadEthtool(capture)
	for _, entry := range names {
		name := entry.Name()
		if c.drivers[name], err = read.Driver(name); err != nil {
			t.Fatal(err)
		}
		values, err := read.Statistics(name)
		if err != nil || len(values) != costStatistics {
			t.Fatalf("%s: %d statistics: %v", name, len(values), err)
		}
		for n, value := range values {
			c.statistics[name] = append(c.statistics[name], statistic{n, value})
		}
	}
}

func (c *cannedEthtool) Driver(name string) (host.Driver, error) { return c.drivers[name], nil }

func (c *cannedEthtool) Statistics(name string) (map[string]uint64, error) {
	c.asked = append(c.asked, name)
	values := make(map[string]uint64, len(c.statistics[name]))
	for _, s := range c.statistics[name] {
		values[s.name] = s.value
	}
	return values, nil
}

// openedFiles are the files that were opened, in their order.
type openedFiles struct {
	files []struct {
		in   fs.FS
		name string
	}
	attempts int
}

// A notingFS notes which files are opened.
type notingFS struct {
	fs.FS
	opened *openedFiles
}

func (n notingFS) Open(name string) (fs.File, error) {
	f, err := n.FS.Open(name)
	n.opened.attempts++
	if err == nil {
		n.opened.files = append(n.opened.files, struct {
			in   fs.FS
			name string
		}{n.FS, name})
	}
	return f, err
}

func (n notingFS) ReadLink(name string) (string, error)       { return fs.ReadLink(n.FS, name) }
func (n notingFS) Lstat(name string) (fs.FileInfo, error)     { return fs.Lstat(n.FS, name) }
func (n notingFS) Stat(name string) (fs.FileInfo, error)      { return fs.Stat(n.FS, name) }
func (n notingFS) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(n.FS, name) }
