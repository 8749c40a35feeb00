// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the trees give")

// Everything that is read of each tree, whole.
func TestTrees(t *testing.T) {
	for _, name := range []string{"connectx", "e810", "others", "bond", "trouble"} {
		t.Run(name, func(t *testing.T) {
			got := describe(t, newReader(t, readTree(t, name+".txt"), Options{}))
			file := filepath.Join("testdata", name+".want")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHostWithoutRDMA(t *testing.T) {
	r := newReader(t, parseTree(t, `
sys/class/net/lo/mtu = 65536
sys/class/net/eth0/device/uevent + DRIVER=virtio_net
sys/class/net/eth0/mtu = 1500
`), Options{})
	found, err := r.List()
	if err != nil || len(found.Netdevs)+len(found.RDMA) != 0 {
		t.Errorf("found %v, %v", found, err)
	}
	if found, err = NewReader(Sources{Sys: fstest.MapFS{}, Proc: fstest.MapFS{}}, Options{}).List(); err != nil || found.Netdevs != nil {
		t.Errorf("without any class: found %v, %v", found, err)
	}
}

// Where nothing is read, people are told what is there.
func TestWhatIsThereInstead(t *testing.T) {
	many := ""
	for i := range 10 {
		many += fmt.Sprintf("sys/class/net/eth%d/device/uevent = DRIVER=igb\n", i)
	}
	nics := "sys/class/net/ens1/device/uevent = DRIVER=ice\nsys/class/infiniband/mlx5_0/node_guid = 0\n"
	const none = "no RDMA device and no NIC of a known driver"
	for _, test := range []struct {
		situation, tree string
		options         Options
		want            string
	}{
		{"virtual devices only", "sys/class/net/lo/mtu = 65536", Options{}, none + " below the capture's sys"},
		{"a driver that is not known", "sys/class/net/lo/mtu = 65536\nsys/class/net/eth0/device/uevent = DRIVER=virtio_net", Options{}, none + " below the capture's sys, but of others: eth0 (virtio_net)"},
		{"many of them", many, Options{}, none + " below the capture's sys, but of others: eth0 (igb), eth1 (igb), eth2 (igb), eth3 (igb), eth4 (igb), eth5 (igb), eth6 (igb), eth7 (igb), and 2 more"},
		{"no sysfs", "proc/stat = btime 1", Options{}, none + " below the capture's sys: there is no class/net: is that where sysfs is mounted (--path.sysfs)?"},
		{
			"all are left out", nics,
			Options{Include: regexp.MustCompile("^eth.*$")},
			none + " is chosen below the capture's sys: host.device_include and host.device_exclude, or the flags, leave out all there are: ens1, mlx5_0",
		},
	} {
		r := newReader(t, parseTree(t, test.tree), test.options)
		if err := r.None(); !errors.Is(err, ErrNoDevice) || err.Error() != test.want {
			t.Errorf("%s: got %v, want %s", test.situation, err, test.want)
		}
	}
	r := NewReader(NewLive("/host/sys", "/host/proc"), Options{})
	if err := r.None(); !strings.Contains(err.Error(), "/host/sys:") {
		t.Errorf("mounted elsewhere: %v", err)
	}
}

func TestClassCannotBeListed(t *testing.T) {
	f := readTree(t, "bond.txt")
	f.errors["sys/class/infiniband"] = syscall.EACCES
	found, err := newReader(t, f, Options{}).List()
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("error %v", err)
	}
	if !slices.Equal(found.Netdevs, []string{"ens1f0np0", "ens1f1np1"}) {
		t.Errorf("found %v", found)
	}
}

func TestSelection(t *testing.T) {
	r := newReader(t, readTree(t, "others.txt"), Options{
		Include: regexp.MustCompile("^(broad.*|.*re0|hns_0|huawei)$"), Exclude: regexp.MustCompile("^h"),
	})
	found, err := r.List()
	if want := (Inventory{Netdevs: []string{"broadcom"}, RDMA: []string{"bnxt_re0"}}); err != nil || !cmp.Equal(found, want) {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestDeviceIsGone(t *testing.T) {
	r := newReader(t, readTree(t, "bond.txt"), Options{})
	if n, err := r.ReadNetdev("ens7"); n != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("network device: %v, %v", n, err)
	}
	if d, err := r.ReadRDMA("mlx5_7"); d != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("RDMA device: %v, %v", d, err)
	}
}

// A card that is pulled takes its files with it one after the other: what is
// not found then is not what the card does not have.
func TestDeviceIsPulledWhileItIsRead(t *testing.T) {
	f := readTree(t, "bond.txt")
	f.opened = func(name string) {
		if strings.HasSuffix(name, "/rate") || strings.HasSuffix(name, "/operstate") {
			f.remove("sys/class/infiniband/mlx5_bond_0")
			f.remove("sys/class/net/ens1f0np0")
		}
	}
	r := newReader(t, f, Options{})
	if d, err := r.ReadRDMA("mlx5_bond_0"); d != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("RDMA device: %v, %v", d, err)
	}
	f = readTree(t, "bond.txt")
	f.opened = func(name string) {
		if strings.HasSuffix(name, "/operstate") {
			f.remove("sys/class/net/ens1f0np0")
		}
	}
	if n, err := newReader(t, f, Options{}).ReadNetdev("ens1f0np0"); n != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("network device: %v, %v", n, err)
	}
}

// A card whose firmware does not answer keeps those waiting who ask it, and
// nobody else.
func TestDeviceHangs(t *testing.T) {
	f := readTree(t, "trouble.txt")
	release := make(chan struct{})
	f.opened = func(name string) {
		if strings.Contains(name, "mlx5_0/ports/1/hw_counters/") {
			<-release
		}
	}
	r := newReader(t, f, Options{})
	came := make(chan error, 1)
	go func() {
		_, err := r.ReadRDMA("mlx5_0")
		came <- err
	}()
	if d, err := r.ReadRDMA("mlx5_1"); err != nil || d.Ports[0].HWCounters[index(t, wanted.HWCounters, "np_cnp_sent")] != 3 {
		t.Errorf("the other RDMA device: %v, %v", d, err)
	}
	if n, err := r.ReadNetdev("ens1"); err != nil || n.Ethtool[index(t, wanted.Ethtool, "rx_bytes_phy")] != 5 {
		t.Errorf("the network device: %v, %v", n, err)
	}
	if _, err := r.List(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-came:
		t.Errorf("a read that hangs came back: %v", err)
	default:
	}
	close(release)
	if err := <-came; err != nil {
		t.Error(err)
	}
}

// While a device hangs in the kernel it may hold the RTNL lock. List, RDMA
// devices and the files of network devices do without those that need it.
func TestLockOfTheKernelIsHeld(t *testing.T) {
	for _, name := range []string{"connectx", "bond"} {
		f := readTree(t, name+".txt")
		r := newReader(t, f, Options{})
		found, err := r.List() // Roles are known from here on.
		if err != nil {
			t.Fatal(err)
		}
		f.opened = func(name string) {
			for _, locked := range []string{"phys_port_name", "phys_switch_id", "bonding/slaves", "/carrier", "/speed", "/duplex"} {
				if strings.HasSuffix(name, locked) {
					t.Errorf("%s is read", name)
				}
			}
		}
		if _, err := r.List(); err != nil {
			t.Error(err)
		}
		for _, name := range found.Netdevs {
			if _, err := r.ReadFiles(name); err != nil {
				t.Error(err)
			}
		}
		for _, name := range found.RDMA {
			if _, err := r.ReadRDMA(name); err != nil {
				t.Error(err)
			}
		}
	}
}

// A call of ethtool, which sleeps while it waits for the lock, comes before the
// files that do not.
func TestEthtoolWaitsFirst(t *testing.T) {
	for _, name := range []string{"ens1f0np0", "ens1f0v0"} {
		f := readTree(t, "connectx.txt")
		r := newReader(t, f, Options{})
		if _, err := r.ReadNetdev(name); err != nil {
			t.Fatal(err)
		}
		asked := false
		r.Ethtool = fakeEthtool{statistics: func() map[string]uint64 { return nil }, called: func() { asked = true }}
		f.opened = func(file string) {
			if strings.HasSuffix(file, "/speed") && !asked {
				t.Errorf("%s: %s comes first", name, file)
			}
		}
		if _, err := r.ReadNetdev(name); err != nil {
			t.Fatal(err)
		}
	}
}

// Who a driver said that it is holds as long as it says nothing else.
func TestDriverIsRemembered(t *testing.T) {
	r := newReader(t, readTree(t, "bond.txt"), Options{})
	now := time.Unix(1e9, 0)
	r.now = func() time.Time { return now }
	r.Ethtool = fakeEthtool{driver: Driver{Firmware: "1.2"}}
	if n, err := r.ReadFiles("ens1f0np0"); err != nil || n.Known {
		t.Errorf("before it was asked: %+v, %v", n, err)
	}
	if _, err := r.ReadNetdev("ens1f0np0"); err != nil {
		t.Fatal(err)
	}
	for range 15 {
		now = now.Add(time.Minute)
		if _, err := r.ReadNetdev("ens1f1np1"); err != nil {
			t.Fatal(err)
		}
		if n, err := r.With(Options{}).ReadFiles("ens1f0np0"); err != nil || !n.Known || n.Firmware != "1.2" {
			t.Fatalf("%+v, %v", n, err)
		}
	}
	if n, err := r.ReadFiles("ens1f1np1"); err != nil || n.Firmware != "1.2" {
		t.Errorf("%+v, %v", n, err)
	}
	now = now.Add(time.Hour)
	if _, err := r.ReadNetdev("ens1f1np1"); err != nil || len(r.drivers) != 1 {
		t.Errorf("%d remembered, %v", len(r.drivers), err)
	}
}

// In a container without the host's network /sys shows the device, and its
// driver cannot be asked.
func TestDriverDoesNotAnswer(t *testing.T) {
	f := readTree(t, "connectx.txt")
	r := newReader(t, f, Options{})
	r.Ethtool = fakeEthtool{err: syscall.ENODEV}
	n, err := r.ReadNetdev("ens1f0np0")
	if !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), "namespace of the exporter, which must be the host's (--network=host, in a pod hostNetwork: true)") {
		t.Errorf("error %v", err)
	}
	if n == nil || n.MTU == nil || *n.MTU != 9000 || n.Netdev[0] != 777 || n.Ethtool != nil || n.Frames != nil {
		t.Errorf("%+v", n)
	}
	if d, err := r.ReadRDMA("mlx5_0"); err != nil || d.Ports[0].Counters[0] != 250 {
		t.Errorf("RDMA device: %v, %v", d, err)
	}
	// A virtual function is not asked for statistics, but for its driver.
	if _, err := r.ReadNetdev("ens1f0v0"); !errors.Is(err, syscall.ENODEV) {
		t.Errorf("virtual function: %v", err)
	}
}

type fakeEthtool struct {
	driver     Driver
	statistics func() map[string]uint64
	called     func() // nil: nothing happens.
	err        error
}

func (f fakeEthtool) call() {
	if f.called != nil {
		f.called()
	}
}

func (f fakeEthtool) Driver(string) (Driver, error) {
	f.call()
	return f.driver, f.err
}

func (f fakeEthtool) Statistics(string) (map[string]uint64, error) {
	f.call()
	if f.err != nil || f.statistics == nil {
		return nil, f.err
	}
	return f.statistics(), nil
}

// The driver's statistics could not be paired: those of DCB do not stand in for
// them, and the device is not failed.
func TestStatisticsRaced(t *testing.T) {
	r := newReader(t, readTree(t, "connectx.txt"), Options{})
	r.Ethtool = racedEthtool{}
	n, err := r.ReadNetdev("ens1f0np0")
	if err != nil || n.Skipped != (Skipped{Raced: 1, Unreadable: 1}) || !strings.Contains(n.Note, "rp_filter") { // Which is unreadable in the tree.
		t.Fatalf("%+v, %v", n, err)
	}
	if n.Ethtool != nil || n.Frames != nil || n.PauseSeen != nil {
		t.Errorf("values %+v", n)
	}
	if n.Firmware != "1.2" || n.DCB == nil {
		t.Errorf("facts %+v", n)
	}
}

type racedEthtool struct{}

func (racedEthtool) Driver(string) (Driver, error)                { return Driver{Firmware: "1.2"}, nil }
func (racedEthtool) Statistics(string) (map[string]uint64, error) { return nil, ErrRaced }

// PFC moves from priority 3 to 4 between the names and the values: as many
// names as before, and the value of priority 4 stands at priority 3.
func TestPFCMovesWhileStatisticsAreRead(t *testing.T) {
	f := readTree(t, "connectx.txt")
	f.files["dcb/ens1f0np0.json"] = &fstest.MapFile{Data: []byte(`{"pfc": [4]}`)}
	pause := index(t, wanted.Ethtool, "rx_prio3_pause")
	for _, c := range []struct {
		name  string
		reads []map[string]uint64
		raced int
	}{
		{"once", []map[string]uint64{{"rx_prio3_pause": 7}, {"rx_prio4_pause": 7}}, 0},
		{"for ever", []map[string]uint64{{"rx_prio3_pause": 7}, {"rx_prio3_pause": 7}}, 1},
		{"not at all", []map[string]uint64{{"rx_prio4_pause": 7}}, 0},
		{"receiving on more priorities than sending", []map[string]uint64{{"rx_prio4_pause": 7, "rx_prio5_pause": 8}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			reads := c.reads
			r := newReader(t, f, Options{})
			r.Ethtool = fakeEthtool{statistics: func() map[string]uint64 {
				read := reads[0]
				reads = reads[1:]
				return read
			}}
			n, err := r.ReadNetdev("ens1f0np0")
			if err != nil || n.Skipped.Raced != c.raced || len(reads) != 0 {
				t.Fatalf("%d raced, %d reads left, %v", n.Skipped.Raced, len(reads), err)
			}
			if c.raced == 0 && !math.IsNaN(n.Ethtool[pause]) || c.raced == 1 && n.Ethtool != nil {
				t.Errorf("values %v", n.Ethtool)
			}
		})
	}
}

// A capture was edited, or broke on its way: a line that is no statistic costs
// itself.
func TestStatisticsAreBroken(t *testing.T) {
	f := readTree(t, "connectx.txt")
	f.files["ethtool/ens1f0np0/statistics"] = &fstest.MapFile{Data: []byte("NIC statistics:\n  rx_bytes_phy: 5\n  rx_prio3_pause: -7\n  module\n")}
	n, err := newReader(t, f, Options{}).ReadNetdev("ens1f0np0")
	if err != nil {
		t.Fatal(err)
	}
	if n.Ethtool[index(t, wanted.Ethtool, "rx_bytes_phy")] != 5 || !math.IsNaN(n.Ethtool[index(t, wanted.Ethtool, "rx_prio3_pause")]) || n.DCB == nil {
		t.Errorf("%+v", n)
	}
	delete(f.errors, "proc/sys/net/ipv4/conf/ens1f0np0/rp_filter")
	n, _ = newReader(t, f, Options{}).ReadNetdev("ens1f0np0")
	if want := `ethtool/ens1f0np0/statistics: no statistic: "rx_prio3_pause: -7"`; n.Skipped.Unparsable != 2 || n.Note != want {
		t.Errorf("%+v, %s", n.Skipped, n.Note)
	}
}

// A counter that the port has is the port's, also when it cannot be read: the
// device's of the same name does not stand in for it.
func TestCountersOfThePortCannotBeRead(t *testing.T) {
	const dir = "sys/class/infiniband/mlx5_0/"
	for _, c := range []struct {
		name, port string
		want       [3]float64 // np_cnp_sent, rp_cnp_handled, out_of_sequence; -1: none.
		skipped    Skipped
	}{
		{"rubbish", "ports/1/hw_counters/np_cnp_sent = seven", [3]float64{-1, 20, 30}, Skipped{Unparsable: 1}},
		{"refused", "ports/1/hw_counters/np_cnp_sent ! EIO", [3]float64{-1, 20, 30}, Skipped{Unreadable: 1}},
		{"no value", "ports/1/hw_counters/np_cnp_sent ! EOPNOTSUPP", [3]float64{-1, 20, 30}, Skipped{}},
		{"its own", "ports/1/hw_counters/np_cnp_sent = 1", [3]float64{1, 20, 30}, Skipped{}},
		{"no such file", "ports/1/hw_counters/lifespan = 10", [3]float64{10, 20, 30}, Skipped{}},
		{"none at all", "ports/1/link_layer = Ethernet", [3]float64{10, 20, 30}, Skipped{}},
		{"the directory is refused", "ports/1/hw_counters ! EIO", [3]float64{-1, -1, -1}, Skipped{Unreadable: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReader(t, parseTree(t, dir+"device/uevent + DRIVER=mlx5_core\n"+dir+"ports/1/state = 4: ACTIVE\n"+
				dir+"hw_counters/np_cnp_sent = 10\n"+dir+"hw_counters/rp_cnp_handled = 20\n"+dir+"hw_counters/out_of_sequence = 30\n"+dir+c.port+"\n"), Options{})
			d, err := r.ReadRDMA("mlx5_0")
			if err != nil {
				t.Fatal(err)
			}
			for i, name := range []string{"np_cnp_sent", "rp_cnp_handled", "out_of_sequence"} {
				got := d.Ports[0].HWCounters[index(t, wanted.HWCounters, name)]
				if math.IsNaN(got) != (c.want[i] < 0) || c.want[i] >= 0 && got != c.want[i] {
					t.Errorf("%s is %v, not %v", name, got, c.want[i])
				}
			}
			if d.Skipped != c.skipped {
				t.Errorf("%+v, %s", d.Skipped, d.Note)
			}
		})
	}
}

// An operator's choice of a driver's statistics, by pattern and as they are
// spelled.
func TestRawStatistics(t *testing.T) {
	f := readTree(t, "others.txt")
	r := newReader(t, f, Options{RawStats: []string{"rx_pfc*", "[0]: rx_ucast_packets"}})
	n, err := r.ReadNetdev("broadcom")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]uint64{"rx_pfc_ena_frames_pri3": 10, "[0]: rx_ucast_packets": 12}
	if diff := cmp.Diff(want, n.Raw); diff != "" {
		t.Error(diff)
	}
}

// One port has tens of thousands of statistics: the wanted ones are kept.
func TestManyStatistics(t *testing.T) {
	r := newReader(t, readTree(t, "connectx.txt"), Options{})
	many := map[string]uint64{"rx_bytes_phy": 1<<53 + 1}
	for i := range 19338 {
		many[fmt.Sprintf("rx%d_packets", i)] = uint64(i)
	}
	r.Ethtool = fakeEthtool{statistics: func() map[string]uint64 { return many }}
	n, err := r.ReadNetdev("ens1f0np0")
	if err != nil || len(n.Ethtool) != len(wanted.Ethtool) || n.Ethtool[0] != 9.007199254740992e15 {
		t.Errorf("%v, %v", n, err)
	}
}

func TestRoCEMTU(t *testing.T) {
	drivers := []string{"mlx5_core", "ice", softRoCE, "hns3"}
	for _, c := range []struct {
		mtu  float64
		want [4]float64
	}{
		{300, [4]float64{0, 256, 256, 256}},
		{1280, [4]float64{1024, 1024, 1024, 1024}},
		{1500, [4]float64{1024, 1024, 1024, 1024}},
		{2048, [4]float64{1024, 2048, 1024, 1024}},
		{2144, [4]float64{2048, 2048, 2048, 2048}},
		{2200, [4]float64{2048, 2048, 2048, 2048}},
		{4096, [4]float64{2048, 4096, 2048, 2048}},
		{4176, [4]float64{2048, 4096, 4096, 2048}},
		{4191, [4]float64{2048, 4096, 4096, 2048}},
		{4192, [4]float64{4096, 4096, 4096, 4096}},
		{4200, [4]float64{4096, 4096, 4096, 4096}},
		{9000, [4]float64{4096, 4096, 4096, 4096}},
	} {
		for i, driver := range drivers {
			if got := roceMTU(driver, c.mtu); got == nil || *got != c.want[i] {
				t.Errorf("%s at %v: %v, not %v", driver, c.mtu, got, c.want[i])
			}
		}
	}
	if got := roceMTU("ionic", 9000); got != nil {
		t.Errorf("a driver whose rule is unknown: %v", *got)
	}
}

func TestPayload(t *testing.T) {
	space := func(change func(b []byte)) []byte {
		b := make([]byte, 256)
		b[0], b[1], b[0x34] = 0xb3, 0x15, 0x40
		b[0x40], b[0x41] = 0x01, 0x60 // Power management, then PCI Express.
		b[0x60], b[0x68] = 0x10, 0x50 // Payload of 512 bytes.
		change(b)
		return b
	}
	for _, c := range []struct {
		name   string
		config []byte
		want   float64 // 0: none.
	}{
		{"as root", space(func([]byte) {}), 512},
		{"not as root", space(func([]byte) {})[:64], 0},
		{"no card any more", space(func(b []byte) { b[0], b[1] = 0xff, 0xff }), 0},
		{"not PCI Express", space(func(b []byte) { b[0x60] = 5 }), 0},
		{"a list that ends in itself", space(func(b []byte) { b[0x41] = 0x40 }), 0},
		{"a list that leads out", space(func(b []byte) { b[0x41] = 0xfc }), 0},
		{"a size that is none", space(func(b []byte) { b[0x68] = 0xe0 }), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := readTree(t, "connectx.txt")
			f.files["sys/devices/pci0000:00/0000:00:01.0/0000:3b:00.0/config"] = &fstest.MapFile{Data: c.config}
			n, err := newReader(t, f, Options{}).ReadNetdev("ens1f0np0")
			if err != nil {
				t.Fatal(err)
			}
			if got := n.Link.Payload; (got == nil) != (c.want == 0) || got != nil && *got != c.want {
				t.Errorf("payload %v, not %v", got, c.want)
			}
		})
	}
}

// A virtual machine sees a virtual function as a card of its own.
func TestVirtualFunctionOfAGuest(t *testing.T) {
	f := readTree(t, "bond.txt")
	f.files["sys/class/net/ens1f0np0/device/vendor"] = &fstest.MapFile{Data: []byte("0x15b3\n")}
	f.files["sys/class/net/ens1f0np0/device/device"] = &fstest.MapFile{Data: []byte("0x101e\n")}
	n, err := newReader(t, f, Options{}).ReadNetdev("ens1f0np0")
	if err != nil || n.Kind != VF || n.Ethtool != nil {
		t.Errorf("%+v, %v", n, err)
	}
}

// Facts are kept for a minute, counters never.
func TestFactsAreKept(t *testing.T) {
	f := readTree(t, "connectx.txt")
	r := newReader(t, f, Options{})
	now := time.Unix(1e9, 0)
	r.now = func() time.Time { return now }
	port := "sys/devices/pci0000:00/0000:00:01.0/0000:3b:00.0/infiniband/mlx5_0/ports/1/"
	read := func() (gids, counter float64) {
		d, err := r.ReadRDMA("mlx5_0")
		if err != nil {
			t.Fatal(err)
		}
		return float64(d.Ports[0].GIDs.V2), d.Ports[0].Counters[0]
	}
	read()
	f.files[port+"gid_attrs/types/3"], f.errors = &fstest.MapFile{Data: []byte("RoCE v2\n")}, nil
	f.files[port+"counters/port_rcv_data"] = &fstest.MapFile{Data: []byte("251\n")}
	if gids, counter := read(); gids != 2 || counter != 251 {
		t.Errorf("at once: %v GIDs, counter %v", gids, counter)
	}
	now = now.Add(keepFor)
	if gids, _ := read(); gids != 3 {
		t.Errorf("a minute later: %v GIDs", gids)
	}
	now = now.Add(24 * time.Hour)
	read()
	if len(r.gids) != 1 {
		t.Errorf("%d kept", len(r.gids))
	}
}

func TestTrafficClass(t *testing.T) {
	for text, want := range map[string]float64{
		"Global tclass=106\n": 106, "Global tclass=106\ntclass=0 src=10.0.0.1\n": 106, "96\n": 96, "Global tclass=-1\n": -1, "\n": -1,
		"tclass\n": -2, "Global tclass=256\n": -2,
	} {
		var skipped Skipped
		got := trafficClass(tally{fstest.MapFS{"f": {Data: []byte(text)}}, &skipped, new(string)}, "f")
		if got == nil && want >= 0 || got != nil && *got != want || skipped.Unparsable != max(0, -int(want)-1) {
			t.Errorf("%q: %v, %+v", text, got, skipped)
		}
	}
}

func TestReadHost(t *testing.T) {
	f := parseTree(t, `
proc/sys/kernel/hostname = gpu-07
proc/sys/kernel/osrelease = 6.12.0-5
proc/stat + cpu  1 2 3
proc/stat + btime 1764000000
proc/modules + mlx5_ib 495616 0 - Live 0x0000000000000000
proc/modules + nvidia_peermem 16384 0 - Live 0x0000000000000000
sys/module/ib_uverbs/refcnt = 0
`)
	h := newReader(t, f, Options{}).ReadHost()
	want := Host{
		Hostname: "gpu-07", OSVersion: "6.12.0-5", Boot: time.Unix(1764000000, 0),
		Modules: map[string]bool{"mlx5_ib": true, "nvidia_peermem": true, "ib_uverbs": true, "irdma": false, "bnxt_re": false, "rdma_cm": false},
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Error(diff)
	}
	delete(f.files, "proc/modules")
	if h := newReader(t, f, Options{}).ReadHost(); h.Modules != nil {
		t.Errorf("a kernel without modules: %v", h.Modules)
	}
}

func TestLongFileIsRefused(t *testing.T) {
	files := fstest.MapFS{"f": {Data: make([]byte, fileLimit+1)}, "g": {Data: []byte(strings.Repeat("x", 5000))}}
	if _, err := readText(files, "f"); err == nil {
		t.Error("no error")
	}
	if text, err := readText(files, "g"); err != nil || len(text) != 5000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// The live sources on whatever runs the tests.
func TestLive(t *testing.T) {
	r := NewReader(NewLive("/sys", "/proc"), Options{Wanted: wanted})
	found, err := r.List()
	if err != nil {
		t.Error(err)
	}
	for _, name := range append(found.Netdevs, "lo") {
		if _, err := r.ReadNetdev(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.ReadHost()
}
