// SPDX-License-Identifier: Apache-2.0

package collectors

import dto "github.com/prometheus/client_model/go"

// Gather groups samples into the families of the exposition formats, sorted by
// name. They are the caller's until release: then their memory serves the next
// call. Only what they point to is shared: label pairs, names, help.
func (c *Catalog) Gather(readings ...Samples) (families []*dto.MetricFamily, release func()) {
	a := c.arena(readings)
	for i := range c.families {
		n := 0
		for _, r := range readings {
			n += len(r.of(i))
		}
		if n == 0 {
			continue
		}
		f := &c.families[i]
		mf := &dto.MetricFamily{Name: &f.Name, Help: &f.Help}
		p := &a.gauges
		mf.Type = dto.MetricType_GAUGE.Enum()
		if f.Type == Counter {
			p = &a.counters
			mf.Type = dto.MetricType_COUNTER.Enum()
		}
		mf.Metric = p.pointers[p.used : p.used+n : p.used+n]
		for _, r := range readings {
			for _, s := range r.of(i) {
				p.metrics[p.used].Label, p.values[p.used] = s.labels.pairs, s.value
				p.used++
			}
		}
		families = append(families, mf)
	}
	return families, func() { c.giveBack(a) }
}

// of are the samples of one family.
func (s Samples) of(family int) []sample {
	if s.families == nil {
		return nil
	}
	return s.families[family]
}

// An arena is the memory of one response, in a few pieces instead of three a
// sample, and used again: a scrape would else leave most of the garbage that
// the process makes.
type arena struct{ gauges, counters part }

// A part is the metrics of one type, with the values that they point to.
type part struct {
	used     int
	pointers []*dto.Metric
	metrics  []dto.Metric
	values   []float64
}

func newPart(n int) part {
	n += n / 32 // A few more the next time need no new one.
	p := part{pointers: make([]*dto.Metric, n), metrics: make([]dto.Metric, n), values: make([]float64, n)}
	for i := range p.metrics {
		p.pointers[i] = &p.metrics[i]
	}
	return p
}

// fits says whether n metrics have room, and not far too much.
func (p *part) fits(n int) bool { return n <= len(p.metrics) && len(p.metrics) <= 2*n+1000 }

// arena takes memory for the samples.
func (c *Catalog) arena(readings []Samples) *arena {
	gauges, counters := 0, 0
	for i := range c.families {
		for _, r := range readings {
			if c.families[i].Type == Counter {
				counters += len(r.of(i))
			} else {
				gauges += len(r.of(i))
			}
		}
	}
	select {
	case a := <-c.free:
		if a.gauges.fits(gauges) && a.counters.fits(counters) {
			a.gauges.used, a.counters.used = 0, 0
			return a
		}
	default:
	}
	a := &arena{newPart(gauges), newPart(counters)}
	g, k := make([]dto.Gauge, len(a.gauges.metrics)), make([]dto.Counter, len(a.counters.metrics))
	for i := range g {
		g[i].Value, a.gauges.metrics[i].Gauge = &a.gauges.values[i], &g[i]
	}
	for i := range k {
		k[i].Value, a.counters.metrics[i].Counter = &a.counters.values[i], &k[i]
	}
	return a
}

// giveBack keeps one arena for the next response.
func (c *Catalog) giveBack(a *arena) {
	select {
	case c.free <- a:
	default:
	}
}
