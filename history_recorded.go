// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"roce_exporter/collectors/demo"
)

// recordedStep is the interval of the review's rules, and the range of their
// rates.
const recordedStep = 5 * time.Minute

// A vector is a series with a value for each step of a day; NaN is none.
type vector struct {
	labels map[string]string
	values []float64
}

// writeRecorded writes what the rules of alerts/review.yml would have recorded,
// in the same order.
func (h *historian) writeRecorded(ctx context.Context, w *bufio.Writer, moments []demo.Moment) (samples int, err error) {
	all, err := h.series(ctx, moments)
	if err != nil {
		return 0, err
	}
	before := make([]demo.Moment, len(moments))
	for i, m := range moments {
		before[i] = h.fabric.At(m.Time.Add(-recordedStep))
	}
	rates := func(family string, keep func(labels map[string]string) bool) []vector {
		return h.rates(all[family], moments, before, keep)
	}
	write := func(name string, of []vector) []vector {
		if err == nil {
			var n int
			n, err = writeVectors(w, name, of, moments)
			samples += n
		}
		return of
	}
	const (
		node   = "fabric,role,tier,node"
		port   = node + ",port"
		device = node + ",device"
		tier   = "fabric,tier"
	)
	paused := write("port_priority:roce_pfc_paused:ratio_rate5m", group(port+",priority", highest, change(rates("roce_pfc_receive_pause_seconds_total", notEstimated), func(v float64) float64 { return min(v, 1) })))
	write("port:roce_pfc_pause_frames:rate5m", group(port, total, rates("roce_pfc_receive_frames_total", nil)))
	marked := write("port:roce_queue_ecn_marked_packets:rate5m", group(port, total, rates("roce_queue_ecn_marked_packets_total", nil)))
	packets := write("port:roce_queue_lossless_packets:rate5m", group(port, total, where(rates("roce_queue_packets_total", nil), h.values(all["roce_queue_lossless"], moments), "node", "port", "queue")))
	sent := write("device:roce_cnp_sent_packets:rate5m", group(device, total, rates("roce_rdma_cnp_sent_packets_total", nil)))
	write("device:roce_cnp_handled_packets:rate5m", group(device, total, rates("roce_rdma_cnp_handled_packets_total", nil)))
	received := group(device, total, rates("roce_rdma_receive_packets_total", nil))
	write("node:roce_pfc_paused:avg_ratio_rate5m", group(node, mean, paused))
	write("tier:roce_pfc_paused:avg_ratio_rate5m", group(tier, mean, paused))
	write("tier:roce_pfc_paused_ports:count5m", group(tier, total, change(paused, func(v float64) float64 {
		switch {
		case v > 0.01:
			return 1
		case math.IsNaN(v):
			return v
		}
		return 0
	})))
	write("tier:roce_queue_ecn_marked:ratio_rate5m", divide(group(tier, total, marked), group(tier, total, packets)))
	write("fabric:roce_cnp_sent_packets:sum_rate5m", group("fabric", total, sent))
	write("fabric:roce_cnp_sent_per_packet:ratio_rate5m", divide(group("fabric", total, sent), group("fabric", total, received)))
	write("role:roce_scrape_coverage:ratio", group("fabric,role", mean, h.values(all["up"], moments)))
	h.written(moments[len(moments)-1].Time)
	return samples, err
}

func notEstimated(labels map[string]string) bool { return labels["method"] != "estimated" }

// where keeps the values of vectors where another that has the same values of
// some labels has one, too.
func where(of, other []vector, on ...string) []vector {
	key := func(v vector) (text string) {
		for _, name := range on {
			text += strconv.Quote(v.labels[name])
		}
		return text
	}
	known := map[string]vector{}
	for _, v := range other {
		known[key(v)] = v
	}
	for _, v := range of {
		match, ok := known[key(v)]
		for i := range v.values {
			if !ok || math.IsNaN(match.values[i]) {
				v.values[i] = math.NaN()
			}
		}
	}
	return of
}

// labels reads the labels of a series, with those of its node's identity.
func (h *historian) labels(text string) map[string]string {
	labels := parseLabels(text)
	if n := h.fabric.Node(labels["instance"]); n != nil {
		labels["fabric"], labels["node"], labels["tier"], labels["role"] = h.fabric.Name, n.Name, n.Tier, roleOf(n)
	}
	return labels
}

// parseLabels reads labels as they stand within the braces of a series.
func parseLabels(text string) map[string]string {
	labels := map[string]string{}
	for text != "" {
		name, rest, ok := strings.Cut(text, "=")
		quoted, err := strconv.QuotedPrefix(rest)
		if !ok || err != nil {
			break
		}
		labels[name], _ = strconv.Unquote(quoted)
		text = strings.TrimPrefix(rest[len(quoted):], ",")
	}
	return labels
}

func roleOf(n *demo.Node) string {
	if n.IsSwitch() {
		return "switch"
	}
	return "host"
}

// values are the values of series.
func (h *historian) values(series map[string][]span, moments []demo.Moment) []vector {
	var all []vector
	for _, text := range slices.Sorted(maps.Keys(series)) {
		v := vector{h.labels(text), missing(len(moments))}
		for _, s := range series[text] {
			for i := s.from; i < s.until; i++ {
				v.values[i] = s.line.value(moments[i])
			}
		}
		all = append(all, v)
	}
	return all
}

// rates are how much counters grew since the moments before, a second. A node
// that booted between the two has counted from 0.
func (h *historian) rates(series map[string][]span, moments, before []demo.Moment, keep func(labels map[string]string) bool) []vector {
	var all []vector
	for _, text := range slices.Sorted(maps.Keys(series)) {
		labels := h.labels(text)
		if keep != nil && !keep(labels) {
			continue
		}
		v := vector{labels, missing(len(moments))}
		n := h.fabric.Node(labels["instance"])
		for _, s := range series[text] {
			for i := s.from; i < s.until; i++ {
				if before[i].Time.Before(h.fabric.Start) {
					continue // Nobody has scraped then.
				}
				grown := s.line.value(moments[i])
				if moments[i].Node(n).Boot.Equal(before[i].Node(n).Boot) {
					grown -= s.line.value(before[i])
				}
				v.values[i] = grown / recordedStep.Seconds()
			}
		}
		all = append(all, v)
	}
	return all
}

func missing(n int) []float64 { return slices.Repeat([]float64{math.NaN()}, n) }

// Ways to make one value of several.
func highest(values []float64) float64 { return slices.Max(values) }

func total(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

func mean(values []float64) float64 { return total(values) / float64(len(values)) }

// group makes one vector of all that have the same values of some labels.
func group(by string, one func(values []float64) float64, of []vector) []vector {
	members := map[string][]vector{}
	for _, v := range of {
		var quoted strings.Builder
		for name := range strings.SplitSeq(by, ",") {
			quoted.WriteString(strconv.Quote(v.labels[name]))
		}
		key := quoted.String()
		members[key] = append(members[key], v)
	}
	var all []vector
	for _, key := range slices.Sorted(maps.Keys(members)) {
		some := members[key]
		made := vector{map[string]string{}, missing(len(some[0].values))}
		for name := range strings.SplitSeq(by, ",") {
			made.labels[name] = some[0].labels[name]
		}
		var values []float64
		for i := range made.values {
			values = values[:0]
			for _, v := range some {
				if !math.IsNaN(v.values[i]) {
					values = append(values, v.values[i])
				}
			}
			if len(values) > 0 {
				made.values[i] = one(values)
			}
		}
		all = append(all, made)
	}
	return all
}

// change applies a function to all values.
func change(of []vector, f func(v float64) float64) []vector {
	all := make([]vector, len(of))
	for i, v := range of {
		all[i] = vector{v.labels, make([]float64, len(v.values))}
		for j, value := range v.values {
			all[i].values[j] = f(value)
		}
	}
	return all
}

// divide divides vectors by those with the same labels; by 0 there is no value.
func divide(of, by []vector) []vector {
	for _, v := range of {
		i := slices.IndexFunc(by, func(other vector) bool { return maps.Equal(v.labels, other.labels) })
		for j := range v.values {
			if i < 0 || !(by[i].values[j] > 0) {
				v.values[j] = math.NaN()
				continue
			}
			v.values[j] /= by[i].values[j]
		}
	}
	return of
}

func writeVectors(w *bufio.Writer, name string, of []vector, moments []demo.Moment) (samples int, err error) {
	if _, err := fmt.Fprintf(w, "# TYPE %s gauge\n", name); err != nil {
		return 0, err
	}
	for _, v := range of {
		var labels []string
		for _, label := range slices.Sorted(maps.Keys(v.labels)) {
			labels = append(labels, fmt.Sprintf("%s=%q", label, v.labels[label]))
		}
		prefix := name + "{" + strings.Join(labels, ",") + "} "
		for i, value := range v.values {
			if math.IsNaN(value) {
				continue
			}
			if _, err := fmt.Fprintf(w, "%s%s %.3f\n", prefix, strconv.FormatFloat(value, 'g', -1, 64), seconds(moments[i].Time)); err != nil {
				return samples, err
			}
			samples++
		}
	}
	return samples, nil
}
