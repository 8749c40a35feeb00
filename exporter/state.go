// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"roce_exporter/collectors"
)

// states is what is remembered of the collectors between scrapes, reloads
// included: it makes log lines of changes only, and counters of what was
// dropped.
type states struct {
	logger *slog.Logger

	mu   sync.Mutex
	of   map[string]*state
	last time.Time // Of the last run.
}

type state struct {
	found    bool // Something to read was there once, and is expected since.
	ready    bool // A source was read once.
	failing  bool // As logged.
	dropped  int
	node     collectors.Node
	last     outcome
	at       time.Time
	sources  map[string]collectors.Source
	searched bool // It was logged that nothing was there yet.
}

func newStates(logger *slog.Logger) *states {
	return &states{logger: logger, of: map[string]*state{}}
}

// get returns the state of a collector; the caller holds the lock.
func (s *states) get(collector string) *state {
	if s.of[collector] == nil {
		s.of[collector] = &state{sources: map[string]collectors.Source{}}
	}
	return s.of[collector]
}

func (s *states) found(collector string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(collector).found
}

func (s *states) node(collector string) collectors.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(collector).node
}

// ready says whether any collector has read something yet.
func (s *states) ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.of {
		if one.ready {
			return true
		}
	}
	return false
}

// lastRun is when a collector ran last.
func (s *states) lastRun() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// absent says whether the collector counts as not enabled: it was only looked
// for, and was never there.
func (s *state) absent(o outcome) bool { return o.silent && !s.found }

// success says whether at least one source could be read. A collector without
// any source has read all there is.
func (o outcome) success() bool {
	if o.broken || errors.Is(o.err, collectors.ErrNotFound) {
		return false
	}
	for _, source := range o.reading.Sources {
		if source.Err == nil {
			return true
		}
	}
	return len(o.reading.Sources) == 0 && o.err == nil
}

// record remembers how a run ended and logs what is new about it.
func (s *states) record(collector string, o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, logger := s.get(collector), s.logger.With("collector", collector)
	one.last, one.at, s.last = o, time.Now(), time.Now()
	one.last.reading.Samples = collectors.Samples{} // Large, and served already.
	if o.silent && errors.Is(o.err, collectors.ErrIsSwitch) {
		one.found, one.sources = false, nil // What was found before the switch's databases were there is not its business.
	}
	if one.absent(o) {
		one.search(logger, o.err.Error())
		return
	}
	if !o.broken {
		one.see(logger, o)
	}
	failing := !o.success()
	logged := failing || o.err != nil && !slices.ContainsFunc(o.reading.Sources, func(s collectors.Source) bool { return s.Err != nil })
	switch {
	case logged && !one.failing:
		attributes := []any{"err", o.err}
		if o.stack != "" {
			attributes = append(attributes, "stack", o.stack)
		}
		if failing {
			logger.Warn("the collector could read nothing", attributes...)
		} else {
			logger.Warn("the collector could not read everything", attributes...)
		}
	case !logged && one.failing:
		logger.Info("the collector works again")
	}
	one.failing = logged
}

// search logs that a collector has found nothing, the first time.
func (s *state) search(logger *slog.Logger, reason string) {
	if !s.searched {
		logger.Info("nothing found yet, looking at every scrape", "reason", reason)
		s.searched = true
	}
	logger.Debug("nothing found", "reason", reason)
}

// see takes over what a reading says of its sources.
func (s *state) see(logger *slog.Logger, o outcome) {
	switch {
	case o.reading.None != "":
		s.search(logger, o.reading.None)
	case !errors.Is(o.err, collectors.ErrNotFound):
		if !s.found && o.success() {
			logger.Info("found", "sources", sourceNames(o.reading.Sources))
		}
		s.found = true
	}
	if o.reading.Node != (collectors.Node{}) {
		s.node = o.reading.Node
	}
	seen := map[string]collectors.Source{}
	if !o.success() {
		seen = maps.Clone(s.sources) // What it did not come to is known all the same.
	}
	for _, source := range o.reading.Sources {
		s.ready = s.ready || source.Err == nil
		before := s.sources[source.Name]
		switch {
		case source.Err != nil && before.Err == nil:
			logger.Warn("the source could not be read", "source", source.Name, "err", source.Err)
		case source.Err == nil && before.Err != nil:
			logger.Info("the source can be read again", "source", source.Name, "via", source.Via)
		case source.Err == nil && source.Note != "" && before.Note == "":
			logger.Warn("a part of the source cannot be read", "source", source.Name, "first", source.Note)
		case source.Err == nil && source.Note == "" && before.Note != "":
			logger.Info("all of the source can be read again", "source", source.Name)
		}
		seen[source.Name] = source
	}
	s.sources = seen
}

func sourceNames(sources []collectors.Source) string {
	var names []string
	for _, source := range sources {
		name := source.Name
		if source.Via != "" {
			name += " via " + source.Via
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// add adds how the run ended; it returns false if there is nothing to say
// because the collector counts as not enabled.
func (s *states) add(b *collectors.Builder, collector string, o outcome) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.get(collector)
	if one.absent(o) {
		return false
	}
	one.dropped += o.reading.Dropped
	b.AddBool("roce_scrape_collector_success", o.success(), collector)
	b.Add("roce_scrape_collector_duration_seconds", o.duration.Seconds(), collector)
	b.Add("roce_scrape_series_dropped_total", float64(one.dropped), collector)
	skipped := o.reading.Skipped
	for _, left := range []struct {
		reason string
		count  int
	}{
		{"unreadable", skipped.Unreadable},
		{"unparsable", skipped.Unparsable},
		{"missing", skipped.Missing},
		{"duplicate", skipped.Duplicate},
		{"raced", skipped.Raced},
	} {
		b.Add("roce_scrape_skipped", float64(left.count), collector, left.reason)
	}
	sources := o.reading.Sources
	for _, source := range sources {
		b.AddBool("roce_scrape_source_success", source.Err == nil, collector, source.Name)
		if source.Err == nil {
			b.Add("roce_scrape_source_reading_age_seconds", source.Age.Seconds(), collector, source.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(one.sources)) {
		if !o.success() && !slices.ContainsFunc(sources, func(s collectors.Source) bool { return s.Name == name }) {
			b.AddBool("roce_scrape_source_success", false, collector, name)
		}
	}
	return true
}

// A collectorView is what people see of a collector.
type collectorView struct {
	Name, State, Duration, Seen string
	OK                          bool
	Sources                     []sourceView
}

type sourceView struct {
	Name, State, Via, Age string
	OK                    bool
}

// view tells how a collector fared in its last run.
func (s *states) view(r *runner) collectorView {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.get(r.name)
	v := collectorView{Name: r.name}
	switch {
	case one.at.IsZero():
		v.State = "not asked yet"
		return v
	case one.absent(one.last):
		v.State = "nothing found, looking at every scrape"
	case !one.last.success():
		v.State = "failed"
	case one.last.reading.None != "":
		v.State = "nothing to read, looking at every scrape: " + one.last.reading.None
	default:
		v.State, v.OK = "ok", true
	}
	if one.last.err != nil {
		v.State += ": " + one.last.err.Error()
	}
	v.Duration, v.Seen = one.last.duration.Round(time.Millisecond).String(), one.at.UTC().Format(time.RFC3339)
	for _, name := range slices.Sorted(maps.Keys(one.sources)) {
		source := one.sources[name]
		w := sourceView{Name: name, State: "ok", OK: source.Err == nil && !one.last.broken, Via: source.Via, Age: source.Age.Round(time.Millisecond).String()}
		switch {
		case source.Err == nil && source.Note != "" && !one.last.broken:
			w.State, w.OK = "in part: "+source.Note, false
		case source.Err != nil:
			w.State, w.Age = source.Err.Error(), ""
		case one.last.broken:
			w.State, w.Age = "not read", ""
		}
		v.Sources = append(v.Sources, w)
	}
	return v
}
