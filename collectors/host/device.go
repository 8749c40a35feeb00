// SPDX-License-Identifier: Apache-2.0

package host

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// knownDrivers are those whose statistics are known: their devices are read
// even where no RDMA device names them.
var knownDrivers = []string{"mlx5_core", "ice", "i40e", "bnxt_en", "ionic", "hns3", "qede", "mana", "cxgb4", "idpf"}

var pciAddress = regexp.MustCompile(`^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// A device is what class/net/<name>/device or class/infiniband/<name>/device
// points to.
type device struct {
	dir    string // Without links; empty: the device is virtual.
	driver string // Empty: unknown.
	kind   string
	pci    string
	slot   string // Directory of the port above it; empty: none is known.
}

// findDevice looks at the links of a device. They are in the kernel's memory:
// no device can keep it waiting.
func findDevice(files fs.FS, link string) device {
	if !exists(files, link) {
		return device{}
	}
	d := device{dir: resolve(files, link), kind: Physical}
	if target, err := fs.ReadLink(files, path.Join(d.dir, "driver")); err == nil {
		d.driver = driverName(path.Base(target))
	}
	// A sub-function lies beneath its PCI device, the PCI device beneath its slot.
	for dir := d.dir; dir != "."; dir = path.Dir(dir) {
		if pciAddress.MatchString(path.Base(dir)) {
			d.pci = path.Base(dir)
			if above := path.Dir(dir); pciAddress.MatchString(path.Base(above)) {
				d.slot = above
			}
			break
		}
	}
	if d.driver == "" || d.pci == "" { // A copy without links, or a device of another bus.
		uevent, _ := readText(files, path.Join(d.dir, "uevent"))
		for line := range strings.Lines(uevent) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch {
			case key == "DRIVER" && d.driver == "":
				d.driver = driverName(value)
			case key == "PCI_SLOT_NAME" && d.pci == "":
				d.pci = value
			}
		}
	}
	switch {
	case exists(files, path.Join(d.dir, "sfnum")):
		d.kind = SF
	case isThere(files, path.Join(d.dir, "physfn")) || isGuestVF(files, d.dir):
		d.kind = VF
	}
	return d
}

// isThere says whether there is a link or a file, wherever the link leads: a
// copy of /sys may lack the function that a virtual one belongs to.
func isThere(files fs.FS, name string) bool {
	_, err := fs.ReadLink(files, name)
	return err == nil || exists(files, name)
}

// driverName takes the driver out of that of an auxiliary device,
// "mlx5_core.sf".
func driverName(name string) string {
	name, _, _ = strings.Cut(name, ".")
	return name
}

// mellanoxVFs are the virtual functions of drivers/net/ethernet/mellanox/mlx5/
// core/main.c. In a virtual machine they have no physfn, and only these
// numbers tell that the counters of the port, all 0, are not theirs.
var mellanoxVFs = []string{"0x1012", "0x1014", "0x1016", "0x1018", "0x101a", "0x101c", "0x101e", "0xa2d3"}

func isGuestVF(files fs.FS, dir string) bool {
	vendor, _ := readText(files, path.Join(dir, "vendor"))
	if vendor != "0x15b3" {
		return false
	}
	id, _ := readText(files, path.Join(dir, "device"))
	return slices.Contains(mellanoxVFs, id)
}

// representor is the phys_port_name of what stands for a function of the card
// within the host: "pf0vf1", "c1pf0vf0", "pf0hpf", "pf0sf88". The card's own
// ports are "p0", "p0s1".
var representor = regexp.MustCompile(`^(c\d+)?pf\d`)

// keepRole is how long it is kept whether a device is a representor, which it
// is from its birth on. The kernel takes the RTNL lock to tell, which another
// device that hangs may hold.
const keepRole = time.Hour

func (r *Reader) isRepresentor(netdev string) bool {
	dir := path.Join("class/net", netdev)
	if siblings, _ := list(r.Sys, path.Join(dir, "device/net")); len(siblings) < 2 {
		return false
	}
	is, _ := keep(r, r.roles, netdev+" "+r.index(netdev), keepRole, func() (bool, error) {
		name, err := readText(r.Sys, path.Join(dir, "phys_port_name"))
		if err != nil && !isNone(err) {
			return false, err
		}
		return representor.MatchString(name), nil
	})
	return is
}

// index tells a device from another that had its name before.
func (r *Reader) index(netdev string) string {
	text, _ := readText(r.Sys, path.Join("class/net", netdev, "ifindex"))
	return text
}

// members lists those of a bond. The links are asked first: for the file the
// kernel takes the RTNL lock.
func members(files fs.FS, netdev string) []string {
	dir := path.Join("class/net", netdev)
	if !exists(files, path.Join(dir, "bonding")) {
		return nil
	}
	var names []string
	links, _ := list(files, dir)
	for _, link := range links {
		if name, ok := strings.CutPrefix(link, "lower_"); ok {
			names = append(names, name)
		}
	}
	if names == nil {
		text, _ := readText(files, path.Join(dir, "bonding/slaves"))
		names = strings.Fields(text)
	}
	slices.Sort(names)
	return names
}

// portNetdev finds the network device of an RDMA port.
func (r *Reader) portNetdev(rdma string, port, ports int) string {
	dir := path.Join("class/infiniband", rdma)
	own, _ := list(r.Sys, path.Join(dir, "device/net"))
	virtual := len(own) == 0 && !exists(r.Sys, path.Join(dir, "device"))
	if len(own) == 0 && !virtual {
		return "" // It is in another network namespace.
	}
	// The GIDs name devices without a look at their network namespace: a name
	// counts only where the device beneath has it too, or a bond over it.
	gids := path.Join(dir, "ports", strconv.Itoa(port), "gid_attrs/ndevs")
	named := func(index string) (string, bool) {
		name, err := readText(r.Sys, path.Join(gids, index))
		if err != nil || name == "" || strings.Contains(name, "/") {
			return "", false
		}
		return name, slices.Contains(own, name) || virtual && exists(r.Sys, path.Join("class/net", name)) ||
			slices.ContainsFunc(members(r.Sys, name), func(m string) bool { return slices.Contains(own, m) })
	}
	if name, ok := named("0"); ok { // Nearly always, and it spares the list of 256.
		return name
	}
	indexes, _ := list(r.Sys, gids)
	slices.SortFunc(indexes, compareIndex)
	for _, index := range indexes[:min(len(indexes), gidLimit)] {
		if name, ok := named(index); ok {
			return name
		}
	}
	if virtual { // Soft RoCE tells.
		name, _ := readText(r.Sys, path.Join(dir, "parent"))
		return name
	}
	if len(own) > 1 { // One alone is none.
		own = slices.DeleteFunc(own, r.isRepresentor)
	}
	if len(own) == 1 && ports == 1 {
		return own[0]
	}
	for _, name := range own { // A card whose ports share one PCI function.
		if at, _ := readText(r.Sys, path.Join("class/net", name, "dev_port")); ports > 1 && at == strconv.Itoa(port-1) {
			return name
		}
	}
	return ""
}

// gidLimit is how many GIDs are looked at: no table is larger.
const gidLimit = 256

func compareIndex(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
