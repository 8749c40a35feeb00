// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// Devices are the devices of a machine, with the reads of them that may run.
// They outlive a configuration: one that hangs costs one goroutine however
// often the exporter is reloaded.
type Devices struct {
	machines  []*machine // One, but of a capture.
	inventory flight[listing]
	facts     flight[host.Host]

	mu            sync.Mutex
	netdevs, rdma map[string]*device
}

// A machine is this one, or what a sample of a capture has of one, with what is
// remembered of it.
type machine struct {
	reader *host.Reader

	// Under the lock of the Devices.
	last  *host.Inventory  // The last that was whole.
	masks map[string]uint8 // Of a NIC, the lossless priorities that it had last, whatever anybody wants.
}

// NewDevices returns the devices that the sources have. Where samples of a
// capture follow, each is read once, and the last one stays.
func NewDevices(sources host.Sources, later ...host.Sources) *Devices {
	d := &Devices{netdevs: map[string]*device{}, rdma: map[string]*device{}}
	for _, s := range append([]host.Sources{sources}, later...) {
		d.machines = append(d.machines, &machine{reader: host.NewReader(s, host.Options{}), masks: map[string]uint8{}})
	}
	return d
}

// A Host is the collector of a host's NICs.
type Host struct {
	*Devices
	catalog *Catalog
	options HostOptions

	// Under the lock of the Devices.
	views                 []*view         // The first is in use.
	netdevsSeen, rdmaSeen map[string]bool // Names that this configuration has seen.

	mapping sync.Mutex
	builder *Builder // Held while a reading is mapped.
}

// A view is a machine as one configuration reads it.
type view struct {
	machine *machine
	reader  *host.Reader // With the options of the configuration.
}

type listing struct {
	host.Inventory
	err  error
	none error // Why nothing is listed.
}

// A device is a device known since the start. A network device is read in two
// parts: what the kernel tells itself, and what it has to be asked.
type device struct {
	name           string
	here           bool // This and the next under the lock of the Devices.
	lastHere       time.Time
	files, answers flight[told[*host.Netdev]]
	rdma           flight[told[*host.RDMA]]
}

func (d *device) reads() bool { return d.files.reads() || d.answers.reads() || d.rdma.reads() }

// A seen is a device as one scrape found it.
type seen struct {
	*device
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

// maxGone is how many devices that have gone are remembered, but for those that
// are being read: the functions of containers come and go under new names.
const maxGone = 64

var errGone = errors.New("the device has gone")

// errOthers says that answers came too late for the device that they are of.
var errOthers = errors.New("what came is of the device that had the name before")

// errNotAsked says which part of a network device is missing.
var errNotAsked = errors.New("no statistics of the driver, no DCB, no speed")

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

// NewHost returns the collector.
func NewHost(catalog *Catalog, devices *Devices, options HostOptions) *Host {
	h := &Host{
		Devices: devices, catalog: catalog, options: options, builder: catalog.NewBuilder(),
		netdevsSeen: map[string]bool{}, rdmaSeen: map[string]bool{},
	}
	for _, m := range devices.machines {
		h.views = append(h.views, &view{machine: m, reader: m.reader.With(options.Reader(catalog))})
	}
	return h
}

// begin returns what one reading is of.
func (h *Host) begin() *view {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.views[0]
	if len(h.views) > 1 {
		h.views = h.views[1:]
	}
	return v
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
	v := h.begin()
	list, notListed := h.list(ctx, v)
	if notListed != nil && len(list.Netdevs)+len(list.RDMA) == 0 {
		return Reading{}, notListed
	}
	none := list.none
	if len(list.Netdevs) > 0 {
		list.Netdevs = slices.DeleteFunc(slices.Clone(list.Netdevs), func(name string) bool { return ports[name] })
		none = fmt.Errorf("%w but the switch's own ports", host.ErrNoDevice)
	}
	if len(list.Netdevs)+len(list.RDMA) > 0 {
		none = nil
	} else if !h.options.Required {
		return Reading{}, fmt.Errorf("%w: %w", ErrNotFound, none)
	}
	h.mu.Lock()
	netdevs, rdma := know(h.netdevs, h.netdevsSeen, list.Netdevs), know(h.rdma, h.rdmaSeen, list.RDMA)
	before := maps.Clone(v.machine.masks)
	h.mu.Unlock()

	var wg sync.WaitGroup
	var facts host.Host
	wg.Go(func() {
		facts, _, _ = h.facts.get(ctx, h.options.Timeout, v.machine, func(context.Context) host.Host { return v.reader.ReadHost() })
	})
	netdevReads := readAll(&wg, netdevs, func(d *device) heard[*host.Netdev] { return h.readNetdev(ctx, v, d) })
	rdmaReads := readAll(&wg, rdma, func(d *device) heard[*host.RDMA] {
		return hear(ctx, h.options.Timeout, v, &d.rdma, func() (*host.RDMA, error) { return v.reader.ReadRDMA(d.name) })
	})
	wg.Wait()

	h.mapping.Lock()
	defer h.mapping.Unlock()
	h.builder.Reset()
	out := Reading{Node: Node{Name: facts.Hostname, OSVersion: facts.OSVersion}}
	if none != nil {
		out.None = none.Error()
	}
	m := hostMapper{b: h.builder, options: &h.options, masks: map[string]uint8{}, ofRDMA: map[string]bool{}}
	if !isSwitch {
		m.addHost(&facts, v.reader.Clock())
	}
	for _, r := range rdmaReads {
		m.learn(r.value)
	}
	for i, r := range netdevReads {
		note := ""
		if mask, ok := before[netdevs[i].name]; ok && r.err != nil && netdevs[i].here {
			m.masks[netdevs[i].name] = mask // Its RDMA device goes on as before.
		}
		if r.value != nil {
			m.addNetdev(r.value)
			note = r.value.Note
			out.Skipped.addHost(r.value.Skipped)
		}
		out.Sources = append(out.Sources, Source{Name: netdevs[i].name, Err: r.err, Age: r.age, Via: "ethtool and " + v.reader.At("class/net"), Note: note})
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
		out.Sources = append(out.Sources, Source{Name: name, Err: r.err, Age: r.age, Via: v.reader.At("class/infiniband"), Note: note})
	}
	h.remember(v.machine, m.masks)
	if notListed != nil {
		out.Skipped.Unreadable++ // Of what is not in the list, there is nothing to say.
	}
	var duplicates int
	out.Samples, duplicates, out.Dropped = h.builder.Samples(h.options.SeriesLimit)
	out.Skipped.Duplicate += duplicates
	errs := []error{notListed}
	for _, s := range out.Sources {
		if s.Err == nil {
			return out, notListed
		}
		if !errors.Is(s.Err, errGone) {
			errs = append(errs, fmt.Errorf("%s: %w", s.Name, s.Err))
		}
	}
	return out, errors.Join(errs...)
}

// list finds the devices. If that takes too long, for which a device that
// hangs can be the cause, or if a class cannot be listed, they are those of the
// last whole list, and until there is one, those that were found: what is
// missing in a list that is not whole has not gone. The error says so.
func (h *Host) list(ctx context.Context, v *view) (listing, error) {
	found, _, err := h.inventory.get(ctx, h.options.Timeout, v, func(context.Context) listing {
		l := listing{none: host.ErrNoDevice}
		if l.Inventory, l.err = v.reader.List(); l.err == nil && len(l.Netdevs)+len(l.RDMA) == 0 {
			l.none = v.reader.None()
		}
		return l
	})
	if err != nil {
		err = fmt.Errorf("list of devices: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err = errors.Join(err, found.err); err == nil {
		v.machine.last = &found.Inventory
		return found, nil
	}
	if last := v.machine.last; last != nil {
		found.Inventory = host.Inventory{Netdevs: v.selected(last.Netdevs), RDMA: v.selected(last.RDMA)}
	}
	found.none = cmp.Or(found.none, host.ErrNoDevice)
	return found, err
}

// remember notes the masks of a reading. Those of other devices are for other
// configurations, as long as anything is known of them.
func (h *Host) remember(m *machine, masks map[string]uint8) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.Copy(m.masks, masks)
	maps.DeleteFunc(m.masks, func(name string, _ uint8) bool { return h.netdevs[name] == nil })
}

func (s *Skipped) addHost(o host.Skipped) {
	s.Add(Skipped{Unreadable: o.Unreadable, Unparsable: o.Unparsable, Missing: o.Missing, Raced: o.Raced})
}

// selected are those names that this configuration chooses: the list may be
// that of another.
func (v *view) selected(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !v.reader.Selects(name) })
}

func (h *Host) isNetdev(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.netdevsSeen[name]
}

// know notes which devices are here now and returns all that one configuration
// has seen, by name.
func know(known map[string]*device, before map[string]bool, here []string) []seen {
	for _, d := range known {
		d.here = false
	}
	for _, name := range here {
		if known[name] == nil {
			known[name] = &device{name: name}
		}
		known[name].here, known[name].lastHere, before[name] = true, time.Now(), true
	}
	var gone []*device
	for _, d := range known {
		if !d.here && !d.reads() {
			gone = append(gone, d)
		}
	}
	slices.SortFunc(gone, func(a, b *device) int { return cmp.Or(b.lastHere.Compare(a.lastHere), cmp.Compare(a.name, b.name)) })
	for _, d := range gone[min(len(gone), maxGone):] { // Those that have gone longest.
		delete(known, d.name)
	}
	var all []seen
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if d := known[name]; d != nil {
			all = append(all, seen{d, d.here})
		} else {
			delete(before, name)
		}
	}
	return all
}

// readAll reads the devices that are here, side by side.
func readAll[T any](wg *sync.WaitGroup, devices []seen, read func(*device) heard[T]) []heard[T] {
	reads := make([]heard[T], len(devices))
	for i, d := range devices {
		if d.here {
			wg.Go(func() { reads[i] = read(d.device) })
		} else {
			reads[i].err = errGone
		}
	}
	return reads
}

// hear reads a device, or shares a read.
func hear[T any](ctx context.Context, timeout time.Duration, v *view, f *flight[told[T]], read func() (T, error)) heard[T] {
	var r heard[T]
	var err error
	r.told, r.age, err = f.get(ctx, timeout, v, func(context.Context) told[T] {
		value, err := read()
		return told[T]{value, err}
	})
	if err != nil {
		r.err = err
	}
	return r
}

// readNetdev reads a network device. One that hangs in the kernel keeps all
// others from answering: then there is what the kernel tells itself.
func (h *Host) readNetdev(ctx context.Context, v *view, d *device) heard[*host.Netdev] {
	files := hear(ctx, h.options.Timeout, v, &d.files, func() (*host.Netdev, error) { return v.reader.ReadFiles(d.name) })
	if files.value == nil {
		return files
	}
	answers := hear(ctx, h.options.Timeout, v, &d.answers, func() (*host.Netdev, error) { return v.reader.Ask(files.value) })
	switch {
	case answers.value != nil && answers.value.Index != files.value.Index:
		answers.err = errOthers
	case answers.value != nil:
		answers.value, answers.age = files.value.With(answers.value), max(files.age, answers.age)
		return answers
	case errors.Is(answers.err, fs.ErrNotExist) && answers.age == 0: // It was pulled; a late one was another.
		return answers
	}
	files.err = fmt.Errorf("%w: %w", errNotAsked, answers.err)
	return files
}
