// SPDX-License-Identifier: Apache-2.0

// Package exporter answers one scrape: it runs the collectors within the time
// that Prometheus gives and serves what came.
package exporter

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	prom "github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/collectors/version"
	dto "github.com/prometheus/client_model/go"

	"roce_exporter/collectors"
)

// An Enabled is a collector to run.
type Enabled struct {
	Collector collectors.Collector
	Auto      bool   // Looked for, not asked for: it may find nothing.
	Close     func() // Gives its resources back; nil: it has none.
}

// Options say what an Exporter is made of.
type Options struct {
	Catalog *collectors.Catalog
	Logger  *slog.Logger
	// Build makes the collectors of a configuration, at start and at every
	// reload.
	Build                  func(Config) ([]Enabled, error)
	ConfigFile             string // Empty: the defaults.
	Web                    WebOptions
	DisableExporterMetrics bool   // No go_*, process_*, promhttp_*.
	AfterScrape            func() // Called when a scrape is answered; nil: nothing.
}

// An Exporter serves the metrics of its collectors.
type Exporter struct {
	catalog  *collectors.Catalog
	logger   *slog.Logger
	build    func(Config) ([]Enabled, error)
	file     string
	web      WebOptions
	registry *prometheus.Registry
	self     bool // Metrics of the exporter itself are wanted.
	after    func()
	states   *states

	reloading sync.Mutex // Held while a configuration is read.
	probing   sync.Mutex // Held while a readiness probe looks for something.

	mu      sync.Mutex
	current *generation
	reload  reloadState
}

// New reads the configuration and builds the collectors.
func New(o Options) (*Exporter, error) {
	if err := o.Web.check(); err != nil {
		return nil, err
	}
	e := &Exporter{
		catalog: o.Catalog, logger: o.Logger, build: o.Build, file: o.ConfigFile, web: o.Web,
		registry: prometheus.NewRegistry(), self: !o.DisableExporterMetrics,
		states: newStates(o.Logger), after: o.AfterScrape,
	}
	if e.after == nil {
		e.after = func() {}
	}
	e.registry.MustRegister(version.NewCollector("roce_exporter"))
	if e.self {
		e.registry.MustRegister(prom.NewGoCollector(), prom.NewProcessCollector(prom.ProcessCollectorOpts{}))
	}
	if err := e.load(); err != nil {
		return nil, err
	}
	return e, nil
}

// Close gives back the resources of the collectors once the last scrape has
// ended.
func (e *Exporter) Close() {
	e.mu.Lock()
	old := e.current
	e.current = &generation{config: old.config}
	e.mu.Unlock()
	old.retire()
}

// acquire returns the collectors in force; they stay open until release.
func (e *Exporter) acquire() *generation {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.current.acquire()
	return e.current
}

// gather runs the chosen collectors and returns everything there is to say,
// sorted by name. The families are the caller's until release.
func (e *Exporter) gather(ctx context.Context, g *generation, chosen []*runner) (families []*dto.MetricFamily, release func(), err error) {
	outcomes := e.collect(ctx, g, chosen)
	own := e.catalog.NewBuilder()
	samples := make([]collectors.Samples, 0, len(chosen)+1)
	for i, r := range chosen {
		if e.states.add(own, r.name, outcomes[i]) {
			samples = append(samples, outcomes[i].reading.Samples)
		}
	}
	e.addNode(own, g)
	g.policy.AddNode(own)
	e.reloadState().add(own)
	made, _, _ := own.Samples(0) // All of them are the exporter's own: no duplicates, no limit.
	families, release = e.catalog.Gather(append(samples, made)...)
	more, err := e.registry.Gather()
	families = append(families, more...)
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return families, release, err
}

// collect runs collectors side by side and remembers how it went.
func (e *Exporter) collect(ctx context.Context, g *generation, chosen []*runner) []outcome {
	outcomes := make([]outcome, len(chosen))
	var wg sync.WaitGroup
	for i, r := range chosen {
		wg.Go(func() {
			start := time.Now()
			outcomes[i] = r.run(ctx, g)
			outcomes[i].duration = time.Since(start)
		})
	}
	wg.Wait()
	// A client that hung up says nothing about the devices.
	if !errors.Is(ctx.Err(), context.Canceled) {
		for i, r := range chosen {
			e.states.record(r.name, outcomes[i])
		}
	}
	return outcomes
}

// switchCollector is the one that makes a node a switch.
const switchCollector = "switch"

// addNode adds the identity of the node, once a process whatever it runs.
func (e *Exporter) addNode(b *collectors.Builder, g *generation) {
	role, node := "host", collectors.Node{}
	for _, r := range g.runners {
		switch {
		case r.auto && !e.states.found(r.name):
		case r.name == switchCollector:
			role, node = "switch", e.states.node(r.name)
		case role == "host":
			node = e.states.node(r.name)
		}
	}
	name := cmp.Or(g.config.Node.Name, node.Name)
	if name == "" {
		name, _ = os.Hostname() // Empty if the kernel does not know.
	}
	if g.config.Node.Names != "full" {
		name = collectors.ShortName(name)
	}
	b.Add("roce_node_info", 1, name, role, g.config.Node.Fabric, g.config.Node.Tier, node.Platform, node.HWSKU, node.OSVersion)
}
