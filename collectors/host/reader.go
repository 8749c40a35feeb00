// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// keepFor is how long facts are kept that change only when somebody works on
// the host, and that cost the device something to tell.
const keepFor = time.Minute

// forgetAfter is when a device has gone that nobody asked for.
const forgetAfter = 10 * time.Minute

// A Reader reads the devices of a host, over and over. Different devices may
// be read at the same time, and one that hangs keeps no other waiting.
type Reader struct {
	Sources
	options Options
	now     func() time.Time
	*memory
}

// A memory is what is not read at every scrape. It is the same whatever the
// options.
type memory struct {
	mu      sync.Mutex // Never held while something is read.
	drivers map[string]kept[Driver]
	payload map[string]kept[*float64]
	gids    map[string]kept[*GIDs]
	roles   map[string]kept[bool]
}

type kept[T any] struct {
	value       T
	since, used time.Time
}

// NewReader returns a Reader.
func NewReader(sources Sources, options Options) *Reader {
	if sources.Clock == nil {
		sources.Clock = time.Now
	}
	return &Reader{Sources: sources, options: options, now: time.Now, memory: &memory{
		drivers: map[string]kept[Driver]{}, payload: map[string]kept[*float64]{}, gids: map[string]kept[*GIDs]{}, roles: map[string]kept[bool]{},
	}}
}

// With returns a Reader of other options, which remembers what this one does.
func (r *Reader) With(options Options) *Reader {
	return &Reader{Sources: r.Sources, options: options, now: r.now, memory: r.memory}
}

// Selects says whether the options choose a name.
func (r *Reader) Selects(name string) bool { return r.options.selected(name) }

// recall returns what is remembered under a key, however old.
func recall[T any](r *Reader, all map[string]kept[T], key string) (k kept[T], ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k, ok = all[key]; ok {
		k.used = r.now()
		all[key] = k
	}
	return k, ok
}

// keep returns what is remembered under a key, or reads it. Errors are not
// remembered.
func keep[T any](r *Reader, all map[string]kept[T], key string, every time.Duration, read func() (T, error)) (T, error) {
	now := r.now()
	if k, ok := recall(r, all, key); ok && now.Sub(k.since) < every {
		return k.value, nil
	}
	value, err := read()
	if err != nil {
		return value, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all[key] = kept[T]{value, now, now}
	for other, k := range all {
		if now.Sub(k.used) > forgetAfter {
			delete(all, other)
		}
	}
	return value, nil
}

// List finds the devices that are there now. It reads nothing that a device
// has to answer, and nothing new for which the kernel takes the RTNL lock: a
// device that hangs may hold it.
func (r *Reader) List() (Inventory, error) {
	var found Inventory
	var failed []error
	look := func(dir string) []string {
		names, err := list(r.Sys, dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, fmt.Errorf("list of devices: %w", err))
		}
		slices.Sort(names)
		return names
	}
	named := map[string]bool{}
	for _, name := range look("class/infiniband") {
		if !r.Selects(name) {
			continue
		}
		found.RDMA = append(found.RDMA, name)
		ports, _ := portNumbers(r.Sys, name)
		for _, port := range ports {
			netdev := r.portNetdev(name, port, len(ports))
			named[netdev] = true
			for _, member := range members(r.Sys, netdev) {
				named[member] = true
			}
		}
	}
	for _, name := range look("class/net") {
		if !r.Selects(name) || !named[name] && !r.isKnown(name) || r.isRepresentor(name) || !r.isEthernet(name) {
			continue
		}
		found.Netdevs = append(found.Netdevs, name)
	}
	return found, errors.Join(failed...)
}

// At is where a path below sysfs is, for people.
func (r *Reader) At(name string) string { return path.Join(cmp.Or(r.SysPath, "/sys"), name) }

// namesOfNone is how many network devices are named where none is read.
const namesOfNone = 8

// None is an ErrNoDevice that says what is there instead, for people, where
// List finds nothing.
func (r *Reader) None() error {
	at := r.At("")
	if all, _ := r.With(Options{}).List(); len(all.Netdevs)+len(all.RDMA) > 0 {
		return fmt.Errorf("%w is chosen below %s: host.device_include and host.device_exclude, or the flags, leave out all there are: %s",
			ErrNoDevice, at, someOf(slices.Concat(all.Netdevs, all.RDMA)))
	}
	names, err := list(r.Sys, "class/net")
	if err != nil {
		return fmt.Errorf("%w below %s: there is no class/net: is that where sysfs is mounted (--path.sysfs)?", ErrNoDevice, at)
	}
	var others []string
	for _, name := range names {
		if d := findDevice(r.Sys, path.Join("class/net", name, "device")); d.driver != "" && !slices.Contains(knownDrivers, d.driver) {
			others = append(others, name+" ("+d.driver+")")
		}
	}
	if others == nil {
		return fmt.Errorf("%w below %s", ErrNoDevice, at)
	}
	return fmt.Errorf("%w below %s, but of others: %s", ErrNoDevice, at, someOf(others))
}

// someOf lists names, but not hundreds.
func someOf(names []string) string {
	slices.Sort(names)
	if more := len(names) - namesOfNone; more > 0 {
		names = append(names[:namesOfNone:namesOfNone], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// isEthernet says whether the device is none of InfiniBand, whose cards have
// the same drivers.
func (r *Reader) isEthernet(netdev string) bool {
	kind, err := readText(r.Sys, path.Join("class/net", netdev, "type"))
	return err != nil || kind == "1" // ARPHRD_ETHER; a copy of /sys may lack it.
}

// isKnown says whether the device's driver is one that the table knows.
func (r *Reader) isKnown(netdev string) bool {
	return slices.Contains(knownDrivers, findDevice(r.Sys, path.Join("class/net", netdev, "device")).driver)
}
