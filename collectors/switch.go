// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"roce_exporter/collectors/sonic"
)

// SwitchOptions say what to export of a switch.
type SwitchOptions struct {
	AllQueues         bool     // Not only lossless ones and those of the policy's DSCPs.
	AllPriorities     bool     // Pause times not only of lossless priorities.
	Windows           []string // Of watermarks: periodic, user, persistent.
	VOQ               string   // off, dropped, all.
	PauseDurationUnit string   // Of chips that give none: microseconds, quanta; empty: unknown.
	Include, Exclude  *regexp.Regexp
	AttachedMACLimit  int
	FullNames         bool          // Do not cut names at the first dot.
	RefreshConfig     time.Duration // How long tables that change rarely are kept.
	RefreshFDB        time.Duration // The same for learned addresses; 0: never read.
	Timeout           time.Duration // The longest that a reading may take.
	SeriesLimit       int           // 0: none.
	Policy            *Policy       // nil: nothing intended.
}

// A SwitchSource finds the switch.
type SwitchSource interface {
	// Switch returns the switch, or an error that is sonic.ErrNotFound where
	// there is none.
	Switch() (*sonic.Switch, error)
	// Suspect asks to look again at the next call.
	Suspect()
}

// A Switch is the collector of a SONiC switch.
type Switch struct {
	catalog *Catalog
	source  SwitchSource
	options SwitchOptions

	mu         sync.Mutex
	current    *sonic.Switch
	namespaces []*namespace

	mapping sync.Mutex
	builder *Builder // Held while a reading is mapped.
	ports   atomic.Pointer[map[string]bool]
}

// A namespace is a namespace of the switch with its reader.
type namespace struct {
	*sonic.Namespace
	reader *sonic.Reader
	flight flight[*sonic.Reading]
}

// NewSwitch returns the collector.
func NewSwitch(catalog *Catalog, source SwitchSource, options SwitchOptions) *Switch {
	return &Switch{catalog: catalog, source: source, options: options, builder: catalog.NewBuilder()}
}

// Name is the collector's label value.
func (*Switch) Name() string { return "switch" }

// leastPatience is how long a server may take for one round trip, however
// little time a scrape has.
const leastPatience = 250 * time.Millisecond

// Collect reads all namespaces side by side.
func (s *Switch) Collect(ctx context.Context) (Reading, error) {
	namespaces, err := s.open()
	if err != nil {
		return Reading{}, err
	}
	patience := s.options.Timeout / 4
	if deadline, ok := ctx.Deadline(); ok {
		// The read may be shared by a scrape that has more time.
		patience = min(patience, max(time.Until(deadline)/4, leastPatience))
	}
	type outcome struct {
		reading *sonic.Reading
		age     time.Duration
		err     error
	}
	outcomes := make([]outcome, len(namespaces))
	var wg sync.WaitGroup
	for i, n := range namespaces {
		wg.Go(func() {
			o := &outcomes[i]
			o.reading, o.age, o.err = n.flight.get(ctx, s.options.Timeout, nil, func(ctx context.Context) *sonic.Reading {
				return n.reader.Read(ctx, patience)
			})
		})
	}
	wg.Wait()

	s.mapping.Lock()
	defer s.mapping.Unlock()
	s.builder.Reset()
	m := newMapper(s.builder, &s.options)
	var out Reading
	var errs []error
	ports := map[string]bool{}
	read := false
	for i, n := range namespaces {
		o := outcomes[i]
		names := sourceNames(n.Namespace, len(namespaces))
		if o.err != nil {
			for _, name := range slices.Sorted(maps.Values(names)) {
				out.Sources = append(out.Sources, Source{Name: name, Err: o.err})
			}
			errs = append(errs, o.err)
			continue
		}
		for _, instance := range o.reading.Instances {
			out.Sources = append(out.Sources, Source{
				Name: names[instance.Name], Err: instance.Err, Age: o.age, Via: instance.Via, Note: instance.Note,
			})
			if instance.Err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", names[instance.Name], instance.Err))
				s.source.Suspect()
			} else {
				read = true
			}
		}
		m.add(o.reading, len(namespaces) > 1)
		for i := range o.reading.Ports {
			ports[o.reading.Ports[i].Name] = true
		}
		if d := o.reading.Device; out.Node.Name == "" {
			out.Node = Node{Name: d.Hostname, Platform: d.Platform, HWSKU: d.HWSKU, OSVersion: d.OSVersion}
		}
		out.Skipped.Add(Skipped{
			Unreadable: o.reading.Skipped.Unreadable, Unparsable: o.reading.Skipped.Unparsable,
			Missing: o.reading.Skipped.Missing, Raced: o.reading.Skipped.Raced,
		})
	}
	if len(errs) == 0 || s.ports.Load() == nil {
		s.ports.Store(&ports) // What a server did not tell is not gone.
	}
	var duplicates int
	out.Samples, duplicates, out.Dropped = m.b.Samples(s.options.SeriesLimit)
	out.Skipped.Duplicate += duplicates
	if err := errors.Join(errs...); err != nil && !read {
		return out, err
	}
	return out, nil
}

// Ports are the names of the ports of the last reading, or of one that is made
// for the purpose.
func (s *Switch) Ports(ctx context.Context) map[string]bool {
	if s.ports.Load() == nil {
		_, _ = s.Collect(ctx) // What is wrong with it is for the scrape to say.
	}
	if ports := s.ports.Load(); ports != nil {
		return *ports
	}
	return nil
}

// sourceNames gives each Redis instance of a namespace the name that users
// see: the instance's on a switch with one ASIC, else the namespace's.
func sourceNames(n *sonic.Namespace, namespaces int) map[string]string {
	names := map[string]string{}
	for _, d := range n.Databases {
		names[d.Instance] = d.Instance
	}
	if namespaces == 1 {
		return names
	}
	prefix := n.Name
	if prefix == "" {
		prefix = "host"
	}
	several := len(names) > 1
	for instance := range names {
		names[instance] = prefix
		if several {
			names[instance] = prefix + "/" + instance
		}
	}
	return names
}

// open returns the namespaces as they are now, with a reader each.
func (s *Switch) open() ([]*namespace, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.source.Switch()
	if errors.Is(err, sonic.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	if err != nil {
		return nil, err
	}
	if found != s.current {
		s.current, s.namespaces = found, nil
		for _, n := range found.Namespaces {
			s.namespaces = append(s.namespaces, &namespace{Namespace: n, reader: sonic.NewReader(found, n, s.readerOptions())})
		}
	}
	return s.namespaces, nil
}

func (s *Switch) readerOptions() sonic.Options {
	wanted := sonic.Wanted{
		Port: s.catalog.Wanted("port"), Queue: s.catalog.Wanted("queue"), QueueWatermark: s.catalog.Wanted("queue watermark"),
		Group: s.catalog.Wanted("group"), GroupWatermark: s.catalog.Wanted("group watermark"),
		PoolWatermark: s.catalog.Wanted("pool watermark"), VOQ: s.catalog.Wanted("voq"),
	}
	wanted.PortGroup = make([]bool, len(wanted.Port))
	for _, r := range s.catalog.sources["counters.port"].rows {
		for _, raw := range r.raw {
			wanted.PortGroup[raw] = true
		}
	}
	return sonic.Options{
		AllQueues: s.options.AllQueues, Windows: s.options.Windows, VOQ: s.options.VOQ == "dropped" || s.options.VOQ == "all",
		Include: s.options.Include, Exclude: s.options.Exclude,
		DSCPs: s.options.Policy.DSCPs(), MACLimit: s.options.AttachedMACLimit,
		RefreshConfig: s.options.RefreshConfig, RefreshFDB: s.options.RefreshFDB,
		Wanted: wanted,
	}
}
