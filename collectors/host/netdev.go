// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/bits"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ErrRaced says that a device's statistics changed their names while they were
// read, twice.
var ErrRaced = errors.New("the statistics changed while they were read")

// ReadNetdev reads a network device: its files, and its answers. Both may be
// returned: what came, and why its driver's statistics did not.
func (r *Reader) ReadNetdev(name string) (*Netdev, error) {
	n, err := r.ReadFiles(name)
	if err != nil {
		return nil, err
	}
	answers, err := r.Ask(n)
	if answers == nil {
		return nil, err
	}
	return n.With(answers), err
}

// ReadFiles reads what the kernel tells of a network device without its RTNL
// lock: a device that hangs may hold it, and then nobody gets an answer of any
// other. What Ask would find out is missing, but for who the driver said that
// it is when it was asked last.
func (r *Reader) ReadFiles(name string) (*Netdev, error) {
	dir := path.Join("class/net", name)
	n := &Netdev{Name: name, Index: r.index(name)}
	if n.Index == "" { // A copy of /sys may lack it.
		if _, err := fs.Stat(r.Sys, dir); err != nil {
			return nil, fmt.Errorf("network device: %w", err)
		}
	}
	t := tally{r.Sys, &n.Skipped, &n.Note}
	d := findDevice(r.Sys, path.Join(dir, "device"))
	n.Kind, n.Driver, n.PCI = d.kind, d.driver, d.pci
	if exists(r.Sys, path.Join(dir, "bonding")) {
		n.Kind, n.Members = Bond, members(r.Sys, name)
	}
	if k, ok := recall(r, r.drivers, n.key()); ok {
		n.identify(k.value)
	}
	n.readState(t, dir)
	n.readSysctls(tally{r.Proc, &n.Skipped, &n.Note})
	r.readPCIe(n, d, t)
	if n.Kind == Physical || n.Kind == "" { // Of the latter the driver may yet say what it is.
		n.Netdev = newValues(r.options.Wanted.Netdev)
		for i, name := range r.options.Wanted.Netdev {
			if v := t.number(dir + "/" + name); v != nil {
				n.Netdev[i] = *v
			}
		}
	}
	if gone := r.stillThere(n); gone != nil {
		return nil, gone
	}
	return n, nil
}

// errReplaced says that what came may be of two devices.
var errReplaced = errors.New("another device got its name while it was read")

// stillThere says that what is missing says nothing, and that what came may be
// another's: the device was pulled, or its name passed to another.
func (r *Reader) stillThere(n *Netdev) error {
	index := r.index(n.Name)
	if index != "" && index == n.Index {
		return nil
	}
	if _, err := fs.Stat(r.Sys, path.Join("class/net", n.Name)); err != nil {
		return fmt.Errorf("network device: pulled while it was read: %w", err)
	}
	if index != n.Index {
		return fmt.Errorf("network device %s: %w", n.Name, errReplaced)
	}
	return nil
}

// Ask asks a network device for what needs the RTNL lock: ethtool, DCB, and the
// files whose handlers take it (net/core/net-sysfs.c). n is what ReadFiles
// said; the answers stand in a Netdev of their own, for With. Both may be
// returned: what came, and why the driver's statistics did not.
func (r *Reader) Ask(n *Netdev) (*Netdev, error) {
	dir := path.Join("class/net", n.Name)
	a := &Netdev{Name: n.Name, Index: n.Index, Known: true, Kind: n.Kind, Driver: n.Driver, Firmware: n.Firmware, PCI: n.PCI, OperUp: n.OperUp}
	t := tally{r.Sys, &a.Skipped, &a.Note}
	err := r.readDriver(a, t)
	// DCB comes after the statistics: it is they that make mlx5 look at its
	// PFC counters again.
	if a.Kind == Physical && err == nil {
		a.DCB = r.readDCB(a, t)
		err = r.verify(a, t)
	}
	if a.Ethtool != nil && err == nil {
		a.countFrames(r.options.Wanted.DCB)
	}
	// The files come last: a call of ethtool sleeps while it waits for the lock,
	// these try again and again, on a processor of their own.
	a.readLink(t, dir)
	if gone := r.stillThere(n); gone != nil {
		return nil, gone
	}
	if errors.Is(err, syscall.ENODEV) { // A device that is being reset answers the same.
		err = fmt.Errorf("%w: it is in %s, but perhaps not in the network namespace of the exporter, which must be the host's (--network=host, in a pod hostNetwork: true)", err, r.At("class/net"))
	}
	if err != nil {
		return a, fmt.Errorf("network device %s: ethtool: %w", n.Name, err)
	}
	return a, nil
}

// With returns the device with the answers of Ask, which may be older, but are
// of the device with the same Index.
func (n *Netdev) With(answers *Netdev) *Netdev {
	a, whole := answers, *n
	whole.Known, whole.Kind, whole.Driver, whole.Firmware, whole.PCI = true, a.Kind, a.Driver, a.Firmware, a.PCI
	whole.DCB, whole.PauseSeen, whole.Ethtool, whole.Frames, whole.Raw = a.DCB, a.PauseSeen, a.Ethtool, a.Frames, a.Raw
	if whole.OperUp == nil {
		whole.OperUp = a.OperUp
	}
	if whole.OperUp == nil || *whole.OperUp {
		whole.Speed = a.Speed
	}
	if whole.Kind != Physical {
		whole.Netdev = nil
	}
	whole.Skipped.add(a.Skipped)
	whole.Note = cmp.Or(n.Note, a.Note)
	return &whole
}

// readDriver asks the driver who it is and for its statistics.
func (r *Reader) readDriver(n *Netdev, t tally) error {
	if r.Ethtool == nil {
		return nil
	}
	hasStatistics := n.Kind == Physical || len(r.options.RawStats) > 0 && n.Kind != Bond
	every := keepFor
	if !hasStatistics {
		every = 0 // Some call of ethtool comes before the files of readLink.
	}
	driver, err := keep(r, r.drivers, n.key(), every, func() (Driver, error) {
		driver, err := r.Ethtool.Driver(n.Name)
		if err == nil {
			err = r.stillThere(n) // It is remembered as this one's.
		}
		return driver, err
	})
	switch {
	case err == nil:
		n.identify(driver)
	case !isNone(err):
		return fmt.Errorf("driver: %w", err)
	}
	if n.Kind != Physical && !hasStatistics { // Of which kind it is the driver may have said.
		return nil
	}
	return r.readEthtool(n, t)
}

// key tells a device from another that had its name before.
func (n *Netdev) key() string { return n.Name + " " + n.Index }

// identify notes who the driver says that it is.
func (n *Netdev) identify(driver Driver) {
	n.Known = true
	n.Firmware = driver.Firmware
	if n.Driver == "" {
		n.Driver = driverName(driver.Name)
	}
	if n.PCI == "" && pciAddress.MatchString(driver.Bus) {
		n.PCI = driver.Bus
		n.Kind = cmp.Or(n.Kind, Physical) // A copy of /sys without its links.
	}
}

// readEthtool reads the driver's statistics.
func (r *Reader) readEthtool(n *Netdev, t tally) error {
	n.Ethtool, n.Raw, n.PauseSeen = nil, nil, nil
	statistics, err := r.Ethtool.Statistics(n.Name)
	broken, isBroken := errors.AsType[*brokenLines](err)
	switch {
	case isBroken:
		t.skipped.Unparsable += broken.count
		t.remark("%v", err)
	case errors.Is(err, ErrRaced):
		t.skipped.Raced++
		t.remark("%v", err)
		return nil
	case err != nil && !isNone(err):
		return fmt.Errorf("statistics: %w", err)
	}
	if len(r.options.RawStats) > 0 { // There may be thousands of names.
		for name, value := range statistics {
			if r.isRaw(name) {
				if n.Raw == nil {
					n.Raw = map[string]uint64{}
				}
				n.Raw[name] = value
			}
		}
	}
	if n.Kind != Physical {
		return nil
	}
	n.Ethtool = newValues(r.options.Wanted.Ethtool)
	for i, name := range r.options.Wanted.Ethtool {
		if value, ok := statistics[name]; ok {
			n.Ethtool[i] = float64(value)
		}
	}
	if n.Driver == "mlx5_core" && len(statistics) > 0 {
		n.PauseSeen = new(uint8)
		for priority := range 8 {
			if _, ok := statistics[fmt.Sprintf("rx_prio%d_pause", priority)]; ok {
				*n.PauseSeen |= 1 << priority
			}
		}
	}
	return nil
}

func (r *Reader) isRaw(name string) bool {
	return slices.ContainsFunc(r.options.RawStats, func(pattern string) bool {
		ok, _ := path.Match(pattern, name)
		return ok || pattern == name // "[0]: rx_bytes" is a name and a pattern.
	})
}

// readDCB asks for the data center bridging state.
func (r *Reader) readDCB(n *Netdev, t tally) *DCBState {
	var state *DCBState
	if r.DCB != nil {
		s, err := r.DCB.Get(n.Name)
		switch {
		case err == nil:
			state = s
		case !isNone(err):
			t.unreadable(err)
		}
	}
	// OFED tells the trust state apart.
	if trust := t.text(path.Join("class/net", n.Name, "qos/trust")); trust == "dscp" || trust == "pcp" {
		told := DCBState{Trust: trust}
		if state != nil {
			told = *state
			told.Trust = trust
		}
		state = &told
	}
	return state
}

// verify reads the statistics of mlx5 again if PFC moved from one priority to
// another between their names and their values. The number of names is the
// same then, so that nothing else would show it; but they are not those of the
// priorities that have PFC now.
func (r *Reader) verify(n *Netdev, t tally) error {
	moved := func() bool {
		return n.PauseSeen != nil && n.DCB != nil && n.DCB.PFC != nil && *n.PauseSeen != *n.DCB.PFC &&
			bits.OnesCount8(*n.PauseSeen) == bits.OnesCount8(*n.DCB.PFC)
	}
	if !moved() {
		return nil
	}
	if err := r.readEthtool(n, t); err != nil {
		return err
	}
	if n.DCB = r.readDCB(n, t); moved() {
		n.Ethtool, n.Raw, n.PauseSeen = nil, nil, nil
		t.skipped.Raced++
		t.remark("%v", ErrRaced)
	}
	return nil
}

// operUnknown is the operstate of a driver that does not tell, but of its
// carrier.
const operUnknown = "unknown"

// readLink reads the files of the link for which the kernel takes RTNL.
func (n *Netdev) readLink(t tally, dir string) {
	if n.OperUp == nil {
		if state, _ := readText(t.files, path.Join(dir, "operstate")); state == operUnknown {
			if carrier := t.number(path.Join(dir, "carrier")); carrier != nil {
				n.OperUp = new(*carrier == 1)
			}
		}
	}
	if n.OperUp != nil && !*n.OperUp {
		return
	}
	if megabits := t.signed(path.Join(dir, "speed")); megabits != nil && *megabits > 0 && *megabits != math.MaxUint32 {
		n.Speed = new(*megabits * 1e6 / 8)
	}
}

// readState reads what the kernel knows of the device itself.
func (n *Netdev) readState(t tally, dir string) {
	if flags := t.text(path.Join(dir, "flags")); flags != "" {
		if bits, err := strconv.ParseUint(flags, 0, 32); err == nil {
			n.AdminUp = new(bits&1 != 0) // IFF_UP
		} else {
			t.unparsable(path.Join(dir, "flags"), flags)
		}
	}
	switch state := t.text(path.Join(dir, "operstate")); state {
	case "":
	case "up":
		n.OperUp = new(true)
	case operUnknown:
	case "down", "lowerlayerdown", "notpresent", "dormant", "testing":
		n.OperUp = new(false)
	default:
		t.unparsable(path.Join(dir, "operstate"), state)
	}
	n.MTU = t.number(path.Join(dir, "mtu"))
	n.MAC = t.text(path.Join(dir, "address"))
	if target, err := fs.ReadLink(t.files, path.Join(dir, "master")); err == nil && exists(t.files, path.Join(dir, "bonding_slave")) {
		n.Bond = path.Base(target)
		if own := t.text(path.Join(dir, "bonding_slave/perm_hwaddr")); own != "" {
			n.MAC = own // A member bears the bond's.
		}
	}
	n.MAC = strings.ToLower(n.MAC)
	for _, member := range n.Members {
		if !exists(t.files, path.Join("class/net", member)) {
			t.skipped.Missing++
			t.remark("bond %s: no %s", n.Name, member)
		}
	}
}

// readSysctls reads what decides which rail answers.
func (n *Netdev) readSysctls(t tally) {
	if t.files == nil {
		return
	}
	effective := func(name string) *float64 {
		all := t.number("sys/net/ipv4/conf/all/" + name)
		own := t.number(path.Join("sys/net/ipv4/conf", n.Name, name))
		if all == nil || own == nil {
			return nil
		}
		return new(max(*all, *own))
	}
	n.Sysctls = Sysctls{effective("arp_ignore"), effective("arp_announce"), effective("rp_filter")}
}

// countsPFC are the drivers that fill the frame counters of DCB, of all eight
// priorities, also of those that mlx5 hides in its statistics because they have
// no PFC. Other drivers leave them 0.
var countsPFC = []string{"mlx5_core", "bnxt_en", "ice", "hns3"}

// countFrames takes the frame counters of DCB. They stand in for what the
// driver does not print, so they come with its statistics or not at all: else a
// series would jump to another counter whenever the driver does not answer.
func (n *Netdev) countFrames(wanted Fields) {
	n.Frames = newValues(wanted)
	if n.DCB == nil || !slices.Contains(countsPFC, n.Driver) {
		return
	}
	for i, name := range wanted {
		counter, priority, _ := cutLast(name, "_")
		p, err := strconv.ParseUint(priority, 10, 3)
		if err != nil {
			continue
		}
		frames := n.DCB.Requests
		if counter == "pfc_indications" {
			frames = n.DCB.Indications
		}
		if frames != nil {
			n.Frames[i] = float64(frames[p])
		}
	}
}

// cutLast cuts a text at the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):], true
	}
	return text, "", false
}
