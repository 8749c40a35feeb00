// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"roce_exporter/collectors/sonic"
	"roce_exporter/collectors/sonic/sonictest"
)

var cost = flag.Bool("cost", false, "measure what the exporter costs (make bench)")

// mapped is a switch of which a reading lies in memory.
type mapped struct {
	*Switch
	reading *sonic.Reading
}

func syntheticSwitch(t testing.TB, ports int, allQueues bool) mapped {
	t.Helper()
	found, err := sonic.OpenCapture(sonictest.Synthetic(ports, 8000).Capture(t))
	if err != nil {
		t.Fatal(err)
	}
	options := testOptions()
	options.Policy, options.AllQueues = nil, allQueues
	s := NewSwitch(testCatalog(t), sonic.Fixed{Read: found}, options)
	namespaces, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	return mapped{s, namespaces[0].reader.Read(t.Context(), time.Second)}
}

// families maps the reading and groups its samples: what a scrape does
// between Redis and the text.
func (m mapped) families() []*dto.MetricFamily {
	mapper := newMapper(m.builder, &m.options)
	mapper.add(m.reading, false)
	samples, _, _ := mapper.b.Samples(m.options.SeriesLimit)
	families, _ := m.catalog.Gather(samples)
	return families
}

// write writes the families as text.
func write(t testing.TB, w io.Writer, families []*dto.MetricFamily) {
	for _, mf := range families {
		if _, err := expfmt.MetricFamilyToText(w, mf); err != nil {
			t.Fatal(err)
		}
	}
}

// compress writes the families as promhttp does to a client that takes gzip.
func compress(t testing.TB, gz *gzip.Writer, families []*dto.MetricFamily) {
	gz.Reset(io.Discard)
	write(t, gz, families)
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
}

func count(families []*dto.MetricFamily) (samples int) {
	for _, mf := range families {
		samples += len(mf.Metric)
	}
	return samples
}

func BenchmarkSwitch(b *testing.B) {
	for _, size := range []struct {
		ports int
		all   bool
	}{{64, false}, {512, false}, {512, true}} {
		m := syntheticSwitch(b, size.ports, size.all)
		families := m.families()
		gz := gzip.NewWriter(io.Discard)
		for _, part := range []struct {
			name string
			do   func()
		}{
			{"map", func() { m.families() }},
			{"text", func() { write(b, io.Discard, families) }},
			{"map+text", func() { write(b, io.Discard, m.families()) }},
			{"map+text+gzip", func() { compress(b, gz, m.families()) }},
		} {
			b.Run(fmt.Sprintf("%s/ports=%d/all=%t", part.name, size.ports, size.all), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					part.do()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count(families)), "ns/sample")
			})
		}
	}
}

// maxMapping is how much mapping and text may cost, as a multiple of the text alone.
const maxMapping = 3

// TestCostOfMapping compares mapping and text with the text of families that
// are there already.
func TestCostOfMapping(t *testing.T) {
	if !*cost {
		t.Skip("make bench runs it")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // As the exporter runs.
	table := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', tabwriter.AlignRight)
	defer table.Flush()
	fmt.Fprintln(table, "CPU time a sample\tsamples\ttext\tmapping+text\tratio\tlimit\tgzip on top\t")
	for _, size := range []struct {
		ports int
		all   bool
	}{{64, false}, {64, true}, {512, false}, {512, true}} {
		m := syntheticSwitch(t, size.ports, size.all)
		families := m.families()
		n := count(families)
		gz := gzip.NewWriter(io.Discard)
		times := cheapest(
			func() { write(t, io.Discard, families) },
			func() { write(t, io.Discard, m.families()) },
			func() { compress(t, gz, families) },
		)
		text, both, zipped := times[0], times[1], times[2]
		ratio := float64(both) / float64(text)
		if ratio > maxMapping {
			t.Errorf("%d ports, all queues %t: mapping and text cost %.2f times the text, more than %d", size.ports, size.all, ratio, maxMapping)
		}
		each := func(d time.Duration) string { return fmt.Sprintf("%.0f ns", float64(d.Nanoseconds())/float64(n)) }
		name := fmt.Sprintf("%d ports", size.ports)
		if size.all {
			name += ", all queues"
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%.2f\t%d\t%s\t\n", name, n, each(text), each(both), ratio, maxMapping, each(zipped-text))
	}
}

// cheapest measures the CPU time of each function, garbage collection
// included, in turns: the least of several rounds.
func cheapest(functions ...func()) []time.Duration {
	return cheapestOf(5, 200*time.Millisecond, functions...)
}

func cheapestOf(rounds int, atLeast time.Duration, functions ...func()) []time.Duration {
	best := make([]time.Duration, len(functions))
	for range rounds {
		for i, do := range functions {
			start, n := cpuTime(), 0
			for n == 0 || cpuTime()-start < atLeast {
				do()
				n++
			}
			if took := (cpuTime() - start) / time.Duration(n); best[i] == 0 || took < best[i] {
				best[i] = took
			}
		}
	}
	return best
}

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
