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
	"time"

	"roce_exporter/collectors/host"
)

// HostOptions say what to export of a host.
type HostOptions struct {
	AllPriorities    bool // Drops and ECN not only of lossless priorities.
	RawStats         []string
	Include, Exclude *regexp.Regexp
	Timeout          time.Duration // The longest that a reading may take.
	SeriesLimit      int           // 0: none.
	Policy           *Policy       // nil: nothing intended.

	// Required says that the operator asked for the collector: a host without
	// any device is no error then, and none to be silent about.
	Required bool
	// IsSwitch says that the machine is a switch: its own collector speaks for
	// the node and for the ports that it lists, and unless this one is
	// required there is nothing left to say. nil: it is none.
	IsSwitch func() bool
	Ports    func(ctx context.Context) map[string]bool // Of that switch; nil: none.
}

// A Host is the collector of a host's NICs.
type Host struct {
	catalog *Catalog
	options HostOptions

	inventory flight[listing]
	facts     flight[host.Host]

	mu      sync.Mutex
	readers []*host.Reader  // The first is in use; samples of a capture follow.
	last    *host.Inventory // The last that was whole.
	netdevs map[string]*device[*host.Netdev]
	rdma    map[string]*device[*host.RDMA]

	mapping sync.Mutex
	builder *Builder // Held while a reading is mapped.
}

type listing struct {
	host.Inventory
	err error
}

// A device is a device known since the start, with the one read of it that may
// run.
type device[T any] struct {
	name   string
	here   bool // Under the lock of the Host.
	flight flight[told[T]]
}

// A seen is a device as one scrape found it.
type seen[T any] struct {
	*device[T]
	here bool
}

// A told is what a device said; both may be set.
type told[T any] struct {
	value T
	err   error
}

// A heard is what a scrape got of it.
type heard[T any] struct {
	told[T]
	age time.Duration
}

// maxGone is how many devices that have gone are remembered: the functions of
// containers come and go under new names.
const maxGone = 64

var errGone = errors.New("the device has gone")

// Reader are the options of the reader: what a catalogue wants of the chosen
// devices.
func (o HostOptions) Reader(c *Catalog) host.Options {
	return host.Options{
		Include: o.Include, Exclude: o.Exclude, RawStats: o.RawStats,
		Wanted: host.Wanted{
			Ethtool: c.Wanted("ethtool"), Netdev: c.Wanted("netdev"), DCB: c.Wanted("dcb"),
			Counters: c.Wanted("counters"), HWCounters: c.Wanted("hw_counters"),
		},
	}
}

// NewHost returns the collector. Where samples of a capture follow, each is
// read once, and the last one stays.
func NewHost(catalog *Catalog, sources host.Sources, options HostOptions, later ...host.Sources) *Host {
	h := &Host{
		catalog: catalog, options: options, builder: catalog.NewBuilder(),
		netdevs: map[string]*device[*host.Netdev]{}, rdma: map[string]*device[*host.RDMA]{},
	}
	for _, s := range append([]host.Sources{sources}, later...) {
		h.readers = append(h.readers, host.NewReader(s, options.Reader(catalog)))
	}
	return h
}

// begin returns the reader of one reading.
func (h *Host) begin() *host.Reader {
	h.mu.Lock()
	defer h.mu.Unlock()
	reader := h.readers[0]
	if len(h.readers) > 1 {
		h.readers = h.readers[1:]
	}
	return reader
}

// Name is the collector's label value.
func (*Host) Name() string { return "host" }

// Collect reads all devices side by side: one that hangs costs what it would
// have said, and nothing else.
func (h *Host) Collect(ctx context.Context) (Reading, error) {
	isSwitch := h.options.IsSwitch != nil && h.options.IsSwitch()
	if isSwitch && !h.options.Required {
		return Reading{}, ErrIsSwitch
	}
	var ports map[string]bool
	if isSwitch && h.options.Ports != nil {
		ports = h.options.Ports(ctx)
	}
	reader := h.begin()
	list, err := h.list(ctx, reader)
	if err != nil {
		return Reading{}, fmt.Errorf("devices: %w", err)
	}
	list.Netdevs = slices.DeleteFunc(slices.Clone(list.Netdevs), func(name string) bool { return ports[name] })
	if len(list.Netdevs)+len(list.RDMA) == 0 && !h.options.Required {
		return Reading{}, fmt.Errorf("%w: no RDMA device and no NIC of a known driver", ErrNotFound)
	}
	h.mu.Lock()
	netdevs, rdma := know(h.netdevs, list.Netdevs), know(h.rdma, list.RDMA)
	h.mu.Unlock()

	var wg sync.WaitGroup
	var facts host.Host
	wg.Go(func() {
		facts, _, _ = h.facts.get(ctx, h.options.Timeout, func(context.Context) host.Host { return reader.ReadHost() })
	})
	netdevReads := readAll(ctx, &wg, netdevs, h.options.Timeout, reader.ReadNetdev)
	rdmaReads := readAll(ctx, &wg, rdma, h.options.Timeout, reader.ReadRDMA)
	wg.Wait()

	h.mapping.Lock()
	defer h.mapping.Unlock()
	h.builder.Reset()
	out := Reading{Node: Node{Name: facts.Hostname, OSVersion: facts.OSVersion}}
	m := hostMapper{b: h.builder, options: &h.options, lossless: map[string]uint8{}, ofRDMA: map[string]bool{}}
	if !isSwitch {
		m.addHost(&facts, reader.Clock())
	}
	for _, r := range rdmaReads {
		m.learn(r.value)
	}
	for i, r := range netdevReads {
		note := ""
		if r.value != nil {
			m.addNetdev(r.value)
			note = r.value.Note
			out.Skipped.addHost(r.value.Skipped)
		}
		out.Sources = append(out.Sources, Source{Name: netdevs[i].name, Err: r.err, Age: r.age, Via: "ethtool and /sys/class/net", Note: note})
	}
	for i, r := range rdmaReads {
		note := ""
		if r.value != nil {
			m.addRDMA(r.value)
			note = r.value.Note
			out.Skipped.addHost(r.value.Skipped)
		}
		name := rdma[i].name
		if h.isNetdev(name) {
			name = "infiniband/" + name // A network device has this name already.
		}
		out.Sources = append(out.Sources, Source{Name: name, Err: r.err, Age: r.age, Via: "/sys/class/infiniband", Note: note})
	}
	var duplicates int
	out.Samples, duplicates, out.Dropped = h.builder.Samples(h.options.SeriesLimit)
	out.Skipped.Duplicate += duplicates
	var errs []error
	for _, s := range out.Sources {
		if s.Err == nil {
			return out, nil
		}
		if !errors.Is(s.Err, errGone) {
			errs = append(errs, fmt.Errorf("%s: %w", s.Name, s.Err))
		}
	}
	return out, errors.Join(errs...)
}

// list finds the devices. If that takes too long, for which a device that
// hangs can be the cause, they are those of the last time.
func (h *Host) list(ctx context.Context, reader *host.Reader) (host.Inventory, error) {
	found, _, err := h.inventory.get(ctx, h.options.Timeout, func(context.Context) listing {
		found, err := reader.List()
		return listing{found, err}
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if err = errors.Join(err, found.err); err == nil {
		h.last = &found.Inventory
	}
	switch {
	case len(found.Netdevs)+len(found.RDMA) > 0:
		return found.Inventory, nil
	case h.last != nil:
		return *h.last, nil
	}
	return host.Inventory{}, err
}

func (s *Skipped) addHost(o host.Skipped) {
	s.Add(Skipped{Unreadable: o.Unreadable, Unparsable: o.Unparsable, Missing: o.Missing, Raced: o.Raced})
}

func (h *Host) isNetdev(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.netdevs[name] != nil
}

// know notes which devices are here now and returns all that are known, by
// name.
func know[T any](known map[string]*device[T], here []string) []seen[T] {
	for _, d := range known {
		d.here = false
	}
	for _, name := range here {
		d := known[name]
		if d == nil {
			d = &device[T]{name: name}
			known[name] = d
		}
		d.here = true
	}
	gone := 0
	for name, d := range known {
		if d.here {
			continue
		}
		if gone++; gone > maxGone {
			delete(known, name)
		}
	}
	all := make([]seen[T], 0, len(known))
	for _, name := range slices.Sorted(maps.Keys(known)) {
		all = append(all, seen[T]{known[name], known[name].here})
	}
	return all
}

// readAll reads the devices that are here, side by side.
func readAll[T any](ctx context.Context, wg *sync.WaitGroup, devices []seen[T], timeout time.Duration, get func(name string) (T, error)) []heard[T] {
	reads := make([]heard[T], len(devices))
	for i, d := range devices {
		if !d.here {
			reads[i].err = errGone
			continue
		}
		wg.Go(func() {
			r := &reads[i]
			var err error
			r.told, r.age, err = d.flight.get(ctx, timeout, func(context.Context) told[T] {
				value, err := get(d.name)
				return told[T]{value, err}
			})
			if err != nil {
				r.err = err
			}
		})
	}
	return reads
}
