// SPDX-License-Identifier: Apache-2.0

package collectors

import dto "github.com/prometheus/client_model/go"

// Gather groups samples into the families of the exposition formats, sorted by
// name. The families belong to the caller, what they point to is shared.
func (c *Catalog) Gather(readings ...Samples) []*dto.MetricFamily {
	var out []*dto.MetricFamily
	for i := range c.families {
		n := 0
		for _, r := range readings {
			if r.families != nil {
				n += len(r.families[i])
			}
		}
		if n == 0 {
			continue
		}
		f := &c.families[i]
		mf := &dto.MetricFamily{Name: &f.Name, Help: &f.Help, Metric: make([]*dto.Metric, 0, n)}
		// One allocation a family instead of three a sample.
		metrics, values := make([]dto.Metric, n), make([]float64, n)
		newValues := newGauges
		if f.Type == Counter {
			newValues = newCounters
		}
		set := newValues(mf, metrics)
		k := 0
		for _, r := range readings {
			if r.families == nil {
				continue
			}
			for _, s := range r.families[i] {
				values[k] = s.value
				metrics[k].Label = s.labels.pairs
				set(k, &values[k])
				mf.Metric = append(mf.Metric, &metrics[k])
				k++
			}
		}
		out = append(out, mf)
	}
	return out
}

func newGauges(mf *dto.MetricFamily, metrics []dto.Metric) func(int, *float64) {
	mf.Type = dto.MetricType_GAUGE.Enum()
	values := make([]dto.Gauge, len(metrics))
	return func(k int, v *float64) {
		values[k].Value = v
		metrics[k].Gauge = &values[k]
	}
}

func newCounters(mf *dto.MetricFamily, metrics []dto.Metric) func(int, *float64) {
	mf.Type = dto.MetricType_COUNTER.Enum()
	values := make([]dto.Counter, len(metrics))
	return func(k int, v *float64) {
		values[k].Value = v
		metrics[k].Counter = &values[k]
	}
}
