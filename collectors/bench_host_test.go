// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"fmt"
	"io"
	"runtime"
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
	m := hostMapper{b: h.builder, options: &h.options, masks: map[string]uint8{}, ofRDMA: map[string]bool{}}
	m.addHost(&r.facts, time.Now())
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
	reading := readRails(t, h.begin().reader)
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
