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
		mf := &dto.MetricFamily{Name: &f.Name, Help: &f.Help, Type: dto.MetricType_GAUGE.Enum()}
		if f.Type == Counter {
			mf.Type = dto.MetricType_COUNTER.Enum()
		}
		mf.Metric = a.pointers[a.used : a.used+n : a.used+n]
		for _, r := range readings {
			for _, s := range r.of(i) {
				a.add(s, f.Type == Counter)
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
type arena struct {
	used     int
	pointers []*dto.Metric
	metrics  []dto.Metric
	gauges   []dto.Gauge
	counters []dto.Counter
	values   []float64
}

// arena takes memory for the samples.
func (c *Catalog) arena(readings []Samples) *arena {
	n := 0
	for i := range c.families {
		for _, r := range readings {
			n += len(r.of(i))
		}
	}
	select {
	case a := <-c.free:
		if n <= len(a.metrics) && len(a.metrics) <= 2*n+1000 {
			a.used = 0
			return a
		}
	default:
	}
	n += n / 32 // A few more the next time need no new one.
	a := &arena{
		pointers: make([]*dto.Metric, n), metrics: make([]dto.Metric, n), gauges: make([]dto.Gauge, n),
		counters: make([]dto.Counter, n), values: make([]float64, n),
	}
	for i := range a.metrics {
		a.pointers[i] = &a.metrics[i]
		a.gauges[i].Value, a.counters[i].Value = &a.values[i], &a.values[i]
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

func (a *arena) add(s sample, counter bool) {
	m := &a.metrics[a.used]
	a.values[a.used] = s.value
	m.Label, m.Gauge, m.Counter = s.labels.pairs, nil, nil
	if counter {
		m.Counter = &a.counters[a.used]
	} else {
		m.Gauge = &a.gauges[a.used]
	}
	a.used++
}
