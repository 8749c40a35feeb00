// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"roce_exporter/collectors/demo"
	"roce_exporter/exporter"
)

// writeHistory writes what Prometheus would have scraped of a made-up fabric,
// or what its rules would have recorded, a file for each day.
func writeHistory(ctx context.Context, f *flags, stdout, stderr io.Writer) error {
	o := &f.history
	if err := o.check(); err != nil {
		return err
	}
	f.fabric.Start, f.telemetryPath = o.start.Time, metricsURL.Path
	for _, i := range f.incidents {
		if length := o.end.Sub(o.start.Time); i.after >= length {
			return fmt.Errorf("incident %s begins %s after the start, and the history is %s long", i.name, i.after, length)
		}
	}
	fabric, err := newFabric(f)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "roce_exporter-history-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	h, err := newHistorian(f, dir, fabric)
	if err != nil {
		return err
	}
	defer h.demo.close()
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	show := newProgress(stderr, o.start.Time, o.end.Time)
	defer show.end()
	h.written = show.advance
	for from := o.start.Time; from.Before(o.end.Time); {
		if err := ctx.Err(); err != nil {
			return err
		}
		until := from.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
		if until.After(o.end.Time) {
			until = o.end.Time
		}
		name := filepath.Join(o.out, from.UTC().Format(time.DateOnly)+"."+o.what+".om")
		samples, err := h.writeDay(ctx, name, from, until)
		if err != nil {
			return fmt.Errorf("history: %s: %w", name, err)
		}
		if _, err := fmt.Fprintf(stdout, "%s: %d samples\n", name, samples); err != nil {
			return err
		}
		steps := (until.Sub(from) + o.step - 1) / o.step
		from = from.Add(steps * o.step)
	}
	return nil
}

// historyOptions are those of demo history.
type historyOptions struct {
	start, end moment
	step       time.Duration
	what, out  string
	families   pattern
}

// The histories that there are.
const (
	rawHistory      = "raw"
	recordedHistory = "recorded"
)

func (o *historyOptions) check() error {
	if o.end.IsZero() {
		o.end.Time = time.Now()
	}
	o.end.Time = o.end.Truncate(time.Second)
	if o.start.IsZero() {
		o.start.Time = o.end.Add(-24 * time.Hour)
	}
	if o.step == 0 {
		o.step = 15 * time.Second
		if o.what == recordedHistory {
			o.step = recordedStep
		}
	}
	switch {
	case !o.start.Before(o.end.Time):
		return errors.New("--start must be before --end")
	case o.step < time.Second:
		return errors.New("--step must be at least 1s")
	case o.what == recordedHistory && o.families.regexp != nil:
		return errors.New("--families chooses what is scraped: with --what=recorded it has no meaning")
	}
	return nil
}

// A moment is a time on the command line: RFC 3339, seconds since the epoch, or
// how long ago.
type moment struct{ time.Time }

func (m *moment) String() string { return m.Format(time.RFC3339) }

func (m *moment) Set(text string) error {
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		m.Time = time.Unix(seconds, 0)
		return nil
	}
	before, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		before = time.Duration(n) * 24 * time.Hour
	}
	if err == nil && before > 0 {
		m.Time = time.Now().Add(-before).Truncate(time.Second)
		return nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("%q is no time: give 2026-01-31T12:00:00Z, seconds since the epoch, or 36h, 90d for so long ago", text)
	}
	m.Time = t
	return nil
}

// A historian writes the past of a made-up fabric. It does not map the raw
// numbers itself. For each stretch of time in which nothing but numbers changes
// it lets the exporter read each node twice, with numbers that are all
// different, and so learns which number a series shows, and with which scale.
type historian struct {
	options *historyOptions
	fabric  *demo.Fabric
	demo    *demoFabric
	moment  demo.Moment // What the exporters see.
	probe   time.Time   // The last time at which they were made to look.
	known   map[string]known
	types   map[string]string // Of families.
	written func(until time.Time)
}

// A known is what was learned of a node.
type known struct {
	at    demo.Moment
	lines []line
}

// A line is a series, and how its values follow.
type line struct {
	family, labels string
	number         *demo.Number // nil: the value is always the same, or that of a clock.
	scale, divisor float64
	text           string                                    // The value that is always the same.
	clock          func(m demo.Moment, n *demo.Node) float64 // nil: it is no clock.
	node           *demo.Node
}

func newHistorian(f *flags, dir string, fabric *demo.Fabric) (*historian, error) {
	h := &historian{options: &f.history, fabric: fabric, probe: fabric.Start, known: map[string]known{}, types: map[string]string{}}
	h.moment = fabric.At(fabric.Start)
	var err error
	h.demo, err = newDemo(f, slog.New(slog.DiscardHandler), dir, fabric, func() demo.Moment { return h.moment })
	return h, err
}

// learn returns the series of a node at a moment.
func (h *historian) learn(ctx context.Context, n *demo.Node, m demo.Moment) ([]line, error) {
	if k, ok := h.known[n.Name]; ok && k.at.Same(m, n) {
		return k.lines, nil
	}
	lines, err := h.ask(ctx, n, m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n.Name, err)
	}
	h.known[n.Name] = known{m, lines}
	return lines, nil
}

// A pair is two numbers for one thing.
type pair struct {
	number *demo.Number
	a, b   float64
}

// ask lets the exporter read a node twice.
func (h *historian) ask(ctx context.Context, n *demo.Node, m demo.Moment) ([]line, error) {
	if m.Node(n).Gone {
		return ofScrape("0", "0.001", 0), nil
	}
	e := h.demo.exporters[n.Name]
	if err := e.Reload(); err != nil { // What it remembers is of another stretch.
		return nil, err
	}
	numbers := m.Numbers(n)
	pairs := make([]pair, 0, len(numbers))
	var seen [2]map[string]string
	var values [2][]float64
	// Some tables of a switch come with later scrapes: one is walked at a time.
	for same, tries := 0, 0; same < settled; tries++ {
		before := seen[0]
		var err error
		if seen[0], values[0], err = h.scrape(ctx, e, m, numbers, 0); err != nil {
			return nil, err
		}
		if same++; !sameKeys(before, seen[0]) {
			same = 0
		}
		if tries > 10*settled {
			return nil, errors.New("each scrape has other series than the one before")
		}
	}
	var err error
	if seen[1], values[1], err = h.scrape(ctx, e, m, numbers, 1); err != nil {
		return nil, err
	}
	for j := range numbers {
		if values[0][j] > 0 {
			pairs = append(pairs, pair{&numbers[j], values[0][j], values[1][j]})
		}
	}
	lines := ofScrape("1", "0.021", len(seen[1]))
	slices.SortFunc(pairs, func(x, y pair) int { return cmp.Compare(x.a/x.b, y.a/y.b) })
	for _, series := range slices.Sorted(maps.Keys(seen[1])) {
		l, err := follow(series, seen[0][series], seen[1][series], pairs)
		if err != nil {
			return nil, err
		}
		if l.family == "roce_scrape_source_success" && l.text != "1" {
			return nil, fmt.Errorf("%s is %s: the exporter could not read what it was given", series, l.text)
		}
		l.node = n
		lines = append(lines, l)
	}
	return lines, nil
}

// settled is how many scrapes must have the series of the one before until all
// tables are read.
const settled = 5

// scrape scrapes an exporter of a fabric with numbers that are all different,
// and again others for another probe.
func (h *historian) scrape(ctx context.Context, e *exporter.Exporter, m demo.Moment, numbers []demo.Number, probe int) (map[string]string, []float64, error) {
	h.probe = h.probe.Add(time.Second)
	h.moment = m.Pretend(h.probe, func(p *demo.Port, q demo.Quantity) uint64 { return different(p, q, probe) })
	var body bytes.Buffer
	e.Handler().ServeHTTP(textOf{&body}, (&http.Request{Method: http.MethodGet, URL: metricsURL, Header: http.Header{}}).WithContext(ctx))
	seen, err := h.parse(&body)
	values := make([]float64, len(numbers))
	for i := range numbers {
		values[i] = float64(numbers[i].Value(h.moment))
	}
	return seen, values, err
}

func sameKeys(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for key := range a {
		if _, ok := b[key]; !ok {
			return false
		}
	}
	return true
}

// different is a number that no other thing has.
func different(p *demo.Port, q demo.Quantity, probe int) uint64 {
	return 1<<40 + uint64(float64(1<<40)*p.Unit(uint64(q), uint64(probe)))
}

// follow says how the values of a series follow, by the two that it had.
func follow(series, a, b string, pairs []pair) (line, error) {
	l := line{family: series, text: b}
	if i := strings.IndexByte(series, '{'); i >= 0 {
		l.family, l.labels = series[:i], series[i+1:len(series)-1]+","
	}
	if clock := clocks[l.family]; clock != nil {
		l.clock = clock
		return l, nil
	}
	if fixed, ok := ofProcess[l.family]; ok {
		l.text = fixed
		return l, nil
	}
	if a == b {
		return l, nil
	}
	x, errA := strconv.ParseFloat(a, 64)
	y, errB := strconv.ParseFloat(b, 64)
	if errA != nil || errB != nil {
		return l, fmt.Errorf("%s is %q once and %q then", series, a, b)
	}
	const tolerance = 1e-12
	ratio := x / y
	i, _ := slices.BinarySearchFunc(pairs, ratio*(1-tolerance), func(p pair, r float64) int { return cmp.Compare(p.a/p.b, r) })
	for ; i < len(pairs) && math.Abs(pairs[i].a/pairs[i].b-ratio) <= ratio*tolerance; i++ {
		if l.number == nil || pairs[i].a == x { // Of bytes and packets of the same, the one that it is.
			l.number = pairs[i].number
			l.scale, l.divisor = math.Round(x/pairs[i].a), 1
			if l.scale == 0 {
				l.scale, l.divisor = 1, math.Round(pairs[i].a/x)
			}
		}
	}
	if l.number == nil {
		return l, fmt.Errorf("%s shows no number of the node: %s, then %s", series, a, b)
	}
	return l, nil
}

// clocks are the families that show a time.
var clocks = map[string]func(m demo.Moment, n *demo.Node) float64{
	"roce_node_time_seconds": func(m demo.Moment, n *demo.Node) float64 { return seconds(m.Time.Add(m.Node(n).Skew)) },
	"roce_counters_last_change_timestamp_seconds": func(m demo.Moment, n *demo.Node) float64 {
		if m.Node(n).Frozen {
			return seconds(m.Since())
		}
		return seconds(m.Time)
	},
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1e3 }

// ofProcess are the families that tell of the exporter's process.
var ofProcess = map[string]string{
	"roce_scrape_collector_duration_seconds":                     "0.02",
	"roce_exporter_config_last_reload_success_timestamp_seconds": "0",
}

// ofScrape are the series that Prometheus makes of a scrape.
func ofScrape(up, seconds string, samples int) []line {
	return []line{
		{family: "up", text: up},
		{family: "scrape_duration_seconds", text: seconds},
		{family: "scrape_samples_scraped", text: strconv.Itoa(samples)},
	}
}

// parse reads the text format: series and their values.
func (h *historian) parse(body *bytes.Buffer) (map[string]string, error) {
	all := map[string]string{}
	for text := range strings.Lines(body.String()) {
		text = strings.TrimSuffix(text, "\n")
		if kind, ok := strings.CutPrefix(text, "# TYPE "); ok {
			name, kind, _ := strings.Cut(kind, " ")
			h.types[name] = kind
		}
		if text == "" || text[0] == '#' {
			continue
		}
		i := strings.LastIndexByte(text, ' ')
		if i < 0 {
			return nil, fmt.Errorf("no sample: %q", text)
		}
		all[text[:i]] = text[i+1:]
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no samples: %s", body)
	}
	return all, nil
}

// metricsURL is what the exporters are asked for.
var metricsURL = &url.URL{Path: "/metrics"}

// A textOf keeps the text of an answer.
type textOf struct{ *bytes.Buffer }

func (textOf) Header() http.Header { return http.Header{} }
func (textOf) WriteHeader(int)     {}

// A span is a series for some of a day's steps.
type span struct {
	from, until int
	line        *line
}

// writeDay writes the file of a day, or of a part of one.
func (h *historian) writeDay(ctx context.Context, file string, from, until time.Time) (samples int, err error) {
	var moments []demo.Moment
	for t := from; t.Before(until); t = t.Add(h.options.step) {
		moments = append(moments, h.fabric.At(t))
	}
	if _, err := os.Lstat(file); err == nil {
		return 0, errors.New("is there already: give another directory")
	}
	out, err := os.Create(file + ".part") // Until it is whole.
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(out, 1<<20)
	if h.options.what == recordedHistory {
		samples, err = h.writeRecorded(ctx, w, moments)
	} else {
		samples, err = h.writeRaw(ctx, w, moments)
	}
	if samples == 0 && err == nil {
		err = fmt.Errorf("no samples: no family is called like %s", h.options.families.text)
	}
	_, end := w.WriteString("# EOF\n")
	if err := errors.Join(ctx.Err(), err, end, w.Flush(), out.Close()); err != nil {
		_ = os.Remove(out.Name())
		return samples, err
	}
	return samples, os.Rename(out.Name(), file)
}

// series finds the series of all nodes at some moments, by family and labels.
func (h *historian) series(ctx context.Context, moments []demo.Moment) (map[string]map[string][]span, error) {
	all := map[string]map[string][]span{}
	for _, n := range h.fabric.Nodes {
		for i := 0; i < len(moments); {
			next := i + 1
			for next < len(moments) && moments[next].Since().Equal(moments[i].Since()) {
				next++
			}
			lines, err := h.learn(ctx, n, moments[i])
			if err != nil {
				return nil, err
			}
			for j := range lines {
				l := &lines[j]
				if h.options.families.regexp != nil && !h.options.families.regexp.MatchString(l.family) {
					continue
				}
				if all[l.family] == nil {
					all[l.family] = map[string][]span{}
				}
				labels := l.labels + `instance="` + n.Name + `",job="roce"`
				spans := all[l.family][labels]
				if last := len(spans) - 1; last >= 0 && spans[last].line == l && spans[last].until == i {
					spans[last].until = next
				} else {
					all[l.family][labels] = append(spans, span{i, next, l})
				}
			}
			i = next
		}
	}
	return all, nil
}

// writeRaw writes the samples of all series, family by family as OpenMetrics
// wants it.
func (h *historian) writeRaw(ctx context.Context, w *bufio.Writer, moments []demo.Moment) (samples int, err error) {
	all, err := h.series(ctx, moments)
	if err != nil {
		return 0, err
	}
	times := make([][]byte, len(moments))
	for i, m := range moments {
		times[i] = fmt.Appendf(nil, " %.3f\n", seconds(m.Time))
	}
	var text []byte
	first, last := moments[0].Time, moments[len(moments)-1].Time
	for i, family := range slices.Sorted(maps.Keys(all)) {
		h.written(first.Add(last.Sub(first) * time.Duration(i+1) / time.Duration(len(all))))
		kind := cmp.Or(h.types[family], "gauge")
		if _, err := fmt.Fprintf(w, "# TYPE %s %s\n", strings.TrimSuffix(family, "_total"), kind); err != nil {
			return samples, err
		}
		for _, labels := range slices.Sorted(maps.Keys(all[family])) {
			text = append(append(append(append(text[:0], family...), '{'), labels...), "} "...)
			prefix := len(text)
			for _, s := range all[family][labels] {
				for i := s.from; i < s.until; i++ {
					text = append(s.line.append(text[:prefix], moments[i]), times[i]...)
					if _, err := w.Write(text); err != nil {
						return samples, err
					}
					samples++
				}
			}
		}
	}
	return samples, nil
}

// append appends the value of a moment.
func (l *line) append(text []byte, m demo.Moment) []byte {
	switch {
	case l.number == nil && l.clock == nil:
		return append(text, l.text...)
	case l.number != nil && l.scale == l.divisor:
		return strconv.AppendUint(text, l.number.Value(m), 10)
	}
	return strconv.AppendFloat(text, l.value(m), 'g', -1, 64)
}

// value is the value of a moment.
func (l *line) value(m demo.Moment) float64 {
	switch {
	case l.clock != nil:
		return l.clock(m, l.node)
	case l.number != nil:
		return float64(l.number.Value(m)) * l.scale / l.divisor
	}
	value, _ := strconv.ParseFloat(l.text, 64) // The exporter wrote it.
	return value
}
