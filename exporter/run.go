// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"roce_exporter/collectors"
)

// A generation is a configuration and what was built from it. A reload makes a
// new one; the old one is closed when its last scrape has ended.
type generation struct {
	config  Config
	policy  *collectors.Policy
	runners []*runner

	mu      sync.Mutex
	users   int
	retired bool
}

func newGeneration(config Config, enabled []Enabled) *generation {
	g := &generation{config: config, policy: config.Intent()}
	for _, e := range enabled {
		r := &runner{name: e.Collector.Name(), collector: e.Collector, auto: e.Auto, close: e.Close}
		r.minInterval = time.Duration(config.Scrape.MinInterval)
		g.runners = append(g.runners, r)
	}
	return g
}

func (g *generation) acquire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.users++
}

func (g *generation) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.users--
	g.closeIfIdle()
}

// retire says that no scrape will begin with this generation.
func (g *generation) retire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.retired = true
	g.closeIfIdle()
}

func (g *generation) closeIfIdle() {
	if !g.retired || g.users > 0 {
		return
	}
	for _, r := range g.runners {
		if r.close != nil {
			r.close()
		}
	}
	g.runners = nil
}

// A runner runs one collector.
type runner struct {
	name        string
	collector   collectors.Collector
	auto        bool
	close       func()
	minInterval time.Duration
	stuck       atomic.Int32 // Runs that have not come back from an earlier scrape.

	mu   sync.Mutex
	last outcome // The last complete reading.
	at   time.Time
}

// An outcome is how a run of a collector ended.
type outcome struct {
	reading  collectors.Reading
	err      error
	silent   bool // Nothing was found, and nobody asked for it.
	broken   bool // The collector itself failed: it says nothing about its sources.
	stack    string
	duration time.Duration
}

var errStuck = errors.New("has not come back from an earlier scrape")

// grace is the share of a run's time that it is waited for beyond its deadline:
// a collector returns what it has at the deadline, not before.
const grace = 20

// run runs the collector. The collector promises to return before ctx ends;
// that this is a promise only is what the rest of run is for.
func (r *runner) run(ctx context.Context, g *generation) outcome {
	if young, ok := r.young(); ok {
		return young
	}
	if r.stuck.Load() > 0 {
		return outcome{err: errStuck, broken: true}
	}
	done := make(chan outcome, 1)
	var settled atomic.Bool // Whoever sets it first decides whether the run came back in time.
	g.acquire()
	go func() {
		defer g.release()
		done <- r.call(ctx)
		if !settled.CompareAndSwap(false, true) {
			r.stuck.Add(-1)
		}
	}()
	late := time.NewTimer(patience(ctx))
	defer late.Stop()
	select {
	case o := <-done:
		return r.keep(o)
	case <-late.C:
	}
	if !settled.CompareAndSwap(false, true) {
		return r.keep(<-done)
	}
	r.stuck.Add(1)
	return outcome{err: fmt.Errorf("did not come back in time: %w", context.DeadlineExceeded), broken: true}
}

// patience is how long a run is waited for.
func patience(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return time.Minute
	}
	left := time.Until(deadline)
	return left + left/grace
}

// call calls the collector and survives it.
func (r *runner) call(ctx context.Context) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			o = outcome{err: fmt.Errorf("panic: %v", p), stack: string(debug.Stack()), broken: true}
		}
	}()
	o.reading, o.err = r.collector.Collect(ctx)
	if errors.Is(o.err, collectors.ErrNotFound) {
		o.silent = r.auto
	}
	return o
}

// keep remembers a complete reading for those who ask within min_interval.
func (r *runner) keep(o outcome) outcome {
	if r.minInterval > 0 && o.err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.last, r.at = o, time.Now()
	}
	return o
}

// young returns the last complete reading if it may be served again, with the
// age it has by now.
func (r *runner) young() (outcome, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	age := time.Since(r.at)
	if r.at.IsZero() || age >= r.minInterval {
		return outcome{}, false
	}
	o := r.last
	sources := make([]collectors.Source, len(o.reading.Sources))
	for i, s := range o.reading.Sources {
		s.Age += age
		sources[i] = s
	}
	o.reading.Sources = sources
	return o, true
}
