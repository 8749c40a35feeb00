// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// ReadRDMA reads an RDMA device.
func (r *Reader) ReadRDMA(name string) (*RDMA, error) {
	dir := path.Join("class/infiniband", name)
	if _, err := fs.Stat(r.Sys, dir); err != nil {
		return nil, fmt.Errorf("RDMA device: %w", err)
	}
	device := &RDMA{Name: name}
	t := tally{r.Sys, &device.Skipped, &device.Note}
	d := findDevice(r.Sys, path.Join(dir, "device"))
	device.Kind, device.Driver, device.PCI = d.kind, d.driver, d.pci
	if d.dir == "" && (exists(r.Sys, path.Join(dir, "parent")) || t.text(path.Join(dir, "node_desc")) == "rxe") {
		device.Driver = softRoCE
	}
	device.Firmware = t.text(path.Join(dir, "fw_ver"))
	device.BoardID = t.text(path.Join(dir, "board_id"))
	device.NodeGUID = t.text(path.Join(dir, "node_guid"))
	device.IWARP = strings.HasPrefix(t.text(path.Join(dir, "node_type")), "4:") // "4: RNIC"
	numbers, err := portNumbers(r.Sys, name)
	for _, number := range numbers {
		// In switchdev mode mlx5 has a port for each representor besides its own.
		netdev := r.portNetdev(name, number, len(numbers))
		if len(numbers) > 1 && r.isRepresentor(netdev) {
			continue
		}
		device.Ports = append(device.Ports, r.readPort(device, number, netdev, t))
	}
	if len(device.Ports) == 1 && device.Ports[0].HWCounters != nil {
		r.addDeviceCounters(device, t)
	}
	if _, gone := fs.Stat(r.Sys, dir); gone != nil { // What else is missing says nothing.
		return nil, fmt.Errorf("RDMA device: pulled while it was read: %w", gone)
	}
	if err != nil {
		return device, fmt.Errorf("RDMA device %s: %w", name, err)
	}
	return device, nil
}

// addDeviceCounters reads the counters of a device of one port: a card in
// switchdev mode, and some drivers always, have there what others have among
// those of the port. What the port has a file of is the port's, whatever is in
// that file.
func (r *Reader) addDeviceCounters(device *RDMA, t tally) {
	port := &device.Ports[0]
	dir := path.Join("class/infiniband", device.Name)
	if !exists(r.Sys, path.Join(dir, "hw_counters")) {
		return
	}
	own, err := list(r.Sys, path.Join(dir, "ports", strconv.Itoa(port.Number), "hw_counters"))
	if err != nil && !isNone(err) {
		return // It was counted when the port was read.
	}
	wanted := slices.Clone(r.options.Wanted.HWCounters)
	for i, name := range wanted {
		if slices.Contains(own, name) {
			wanted[i] = ""
		}
	}
	t.counters(path.Join(dir, "hw_counters"), wanted, port.HWCounters, device.Driver)
}

// softRoCE is the driver of an RDMA device that is made of software.
const softRoCE = "rdma_rxe"

// portNumbers lists the ports of an RDMA device.
func portNumbers(files fs.FS, rdma string) ([]int, error) {
	names, err := list(files, path.Join("class/infiniband", rdma, "ports"))
	var numbers []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n > 0 {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, err
}

func (r *Reader) readPort(device *RDMA, number int, netdev string, t tally) RDMAPort {
	p := RDMAPort{Number: number}
	of := strconv.Itoa(number)
	dir := path.Join("class/infiniband", device.Name, "ports", of)
	p.LinkLayer = t.text(path.Join(dir, "link_layer"))
	if !p.IsEthernet() {
		return p
	}
	p.readState(t, dir)
	// One file read makes the driver refresh all of a port's counters, for the
	// 10 ms that follow: they are read back to back.
	p.Counters, p.HWCounters = newValues(r.options.Wanted.Counters), newValues(r.options.Wanted.HWCounters)
	t.counters(path.Join(dir, "counters"), r.options.Wanted.Counters, p.Counters, device.Driver)
	t.counters(path.Join(dir, "hw_counters"), r.options.Wanted.HWCounters, p.HWCounters, device.Driver)

	p.Netdev = netdev
	if p.Netdev != "" {
		p.Members = members(r.Sys, p.Netdev)
		if mtu := t.number(path.Join("class/net", p.Netdev, "mtu")); mtu != nil && !device.IWARP {
			p.MTU = roceMTU(device.Driver, *mtu)
		}
		p.ECN = readECN(t, p.Netdev, p.Members)
	}
	p.GIDs, _ = keep(r, r.gids, dir+" "+device.NodeGUID, keepFor, func() (*GIDs, error) { return countGIDs(t, dir) })
	p.DefaultTOS = t.number(path.Join("kernel/config/rdma_cm", device.Name, "ports", of, "default_roce_tos"))
	p.TrafficClass = trafficClass(t, path.Join("class/infiniband", device.Name, "tc", of, "traffic_class"))
	return p
}

// IsEthernet says whether the port may be one of RoCE: all but Ethernet is left
// unread.
func (p *RDMAPort) IsEthernet() bool { return p.LinkLayer == "Ethernet" || p.LinkLayer == "" }

// readState reads whether the port is up, and how fast.
func (p *RDMAPort) readState(t tally, dir string) {
	if state := t.text(path.Join(dir, "state")); state != "" {
		number, _, ok := strings.Cut(state, ":")
		if n, err := strconv.Atoi(number); ok && err == nil {
			p.Up = new(n == 4) // "4: ACTIVE"
		} else {
			t.unparsable(path.Join(dir, "state"), state)
		}
	}
	if p.Up != nil && !*p.Up {
		return // mlx5 gives 40 Gb/s for a port that is down.
	}
	if rate := t.text(path.Join(dir, "rate")); rate != "" {
		number, unit, _ := strings.Cut(rate, " ")
		speed, err := strconv.ParseFloat(number, 64)
		if err != nil || !strings.HasPrefix(unit, "Gb/sec") || !(speed >= 0 && speed < 1e6) {
			t.unparsable(path.Join(dir, "rate"), rate)
		} else if speed > 0 {
			p.Speed = new(speed * 1e9 / 8)
		}
	}
}

// counters reads the wanted files of a directory into those values that have
// none yet.
func (t tally) counters(dir string, wanted Fields, values Values, driver string) {
	there := t.list(dir)
	if len(there) == 0 {
		return
	}
	slices.Sort(there)
	for i, name := range wanted {
		if !math.IsNaN(values[i]) {
			continue
		}
		if _, ok := slices.BinarySearch(there, name); !ok {
			continue
		}
		v := t.number(dir + "/" + name)
		if v == nil || driver == "ionic" && *v == math.MaxUint64 { // Its way to say that there is none.
			continue
		}
		values[i] = *v
	}
}

// roceMTU is the largest MTU of RoCE that a driver fits into the network
// device's (include/rdma/ib_addr.h iboe_get_mtu, include/rdma/ib_verbs.h
// ib_mtu_int_to_enum). The kernel has no file for it.
func roceMTU(driver string, mtu float64) *float64 {
	floor := 256.0
	switch driver {
	case "mlx5_core", "mlx4_core", "bnxt_en", "qede":
		mtu -= 96 // All headers that a packet may have.
		floor = 0
	case "hns3", "hns_roce_hw_v2":
		mtu -= 96
	case softRoCE:
		mtu -= 80
	case "ice", "i40e", "idpf", "mana", "erdma":
	default:
		return nil
	}
	for _, size := range []float64{4096, 2048, 1024, 512, 256} {
		if size <= mtu {
			return &size
		}
	}
	return &floor
}

// countGIDs counts the addresses of a port. An index without one answers
// EINVAL. nil: none can be counted.
func countGIDs(t tally, dir string) (*GIDs, error) {
	types := path.Join(dir, "gid_attrs/types")
	indexes := t.list(types)
	if len(indexes) == 0 {
		return nil, nil
	}
	before := t.skipped.Unreadable
	var gids GIDs
	for _, index := range indexes[:min(len(indexes), gidLimit)] {
		switch kind := t.text(path.Join(types, index)); kind {
		case "":
		case "RoCE v2":
			gids.V2++
		case "IB/RoCE v1":
			gids.V1++
		default:
			t.unparsable(path.Join(types, index), kind)
		}
	}
	if t.skipped.Unreadable > before {
		return nil, errUnreadable // How many there are is not known.
	}
	return &gids, nil
}

var errUnreadable = errors.New("a part could not be read")

// trafficClass reads "Global tclass=106"; -1 is none.
func trafficClass(t tally, name string) *float64 {
	text := t.text(name)
	if text == "" {
		return nil
	}
	first, _, _ := strings.Cut(text, "\n") // More lines are of single addresses.
	_, value, ok := cutLast(first, "=")
	if !ok {
		value = first
	}
	class, err := strconv.Atoi(strings.TrimSpace(value))
	switch {
	case err != nil || class > 255:
		t.unparsable(name, text)
		return nil
	case class < 0:
		return nil
	}
	return new(float64(class))
}

// readECN reads which priorities take part in congestion control. On a bond a
// priority does where it does on all members.
func readECN(t tally, netdev string, members []string) []ECN {
	if len(members) == 0 {
		members = []string{netdev}
	}
	if !slices.ContainsFunc(members, func(member string) bool { return exists(t.files, path.Join("class/net", member, "ecn")) }) {
		return nil
	}
	var all []ECN
	for _, of := range []struct{ dir, role string }{{"roce_np", "notification"}, {"roce_rp", "reaction"}} {
		for priority := range 8 {
			var enabled *bool
			for _, member := range members {
				v := t.number(path.Join("class/net", member, "ecn", of.dir, "enable", strconv.Itoa(priority)))
				if v != nil {
					enabled = new(*v != 0 && (enabled == nil || *enabled))
				}
			}
			if enabled != nil {
				all = append(all, ECN{priority, of.role, *enabled})
			}
		}
	}
	return all
}
