// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"roce_exporter/collectors/host"
	"roce_exporter/collectors/host/hosttest"
)

// hanging is a file system of which one directory blocks in open(2).
type hanging struct {
	fstest.MapFS
	dir     string
	release chan struct{}
	opens   atomic.Int32 // That are waiting.
}

func (h *hanging) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, h.dir) {
		h.opens.Add(1)
		<-h.release
		h.opens.Add(-1)
	}
	return h.MapFS.Open(name)
}

func twoCards(t testing.TB) fstest.MapFS {
	t.Helper()
	return hostOf(t,
		card{netdev: "ens1f0np0", rdma: "mlx5_0", driver: "mlx5_core", statistics: []string{"rx_bytes_phy: 1"}, ib: []string{"ports/1/state = 4: ACTIVE", "ports/1/hw_counters/np_cnp_sent = 7"}},
		card{netdev: "ens2f0np0", rdma: "mlx5_1", driver: "mlx5_core", statistics: []string{"rx_bytes_phy: 2"}, ib: []string{"ports/1/state = 4: ACTIVE", "ports/1/hw_counters/np_cnp_sent = 8"}},
	)
}

// A device that hangs costs its own series and one goroutine, until it comes
// back.
func TestADeviceHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sources, err := host.ReadCapture(twoCards(t))
		if err != nil {
			t.Fatal(err)
		}
		files := &hanging{MapFS: sysOf(twoCards(t)), dir: "class/infiniband/mlx5_0/ports/1/hw_counters", release: make(chan struct{})}
		sources.Sys = files
		h := NewHost(testCatalog(t), NewDevices(sources), hostOptions())
		scrape := func() (series, map[string]error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			reading, err := h.Collect(ctx)
			if err != nil || ctx.Err() != nil && reading.Sources == nil {
				t.Fatal(err)
			}
			failed := map[string]error{}
			for _, s := range reading.Sources {
				if s.Err != nil {
					failed[s.Name] = s.Err
				}
			}
			return parse(t, text(t, h.catalog, reading)), failed
		}
		for i := range 3 {
			got, failed := scrape()
			if len(failed) != 1 || failed["mlx5_0"] == nil {
				t.Errorf("scrape %d: %v failed", i, failed)
			}
			got.lacks(t, `device="mlx5_0"`)
			got.has(t, `roce_port_receive_bytes_total{port="ens1f0np0"}`, 1)
			got.has(t, `roce_port_receive_bytes_total{port="ens2f0np0"}`, 2)
			got.has(t, `roce_rdma_cnp_sent_packets_total{device="mlx5_1",rdma_port="1"}`, 8)
			if n := files.opens.Load(); n != 1 {
				t.Errorf("scrape %d: %d reads hang", i, n)
			}
		}
		close(files.release)
		synctest.Wait()
		time.Sleep(time.Minute) // Too late for what it brought.
		got, failed := scrape()
		if len(failed) != 0 {
			t.Errorf("it came back: %v", failed)
		}
		got.has(t, `roce_rdma_cnp_sent_packets_total{device="mlx5_0",rdma_port="1"}`, 7)
	})
}

// A reload begins no second read of a device that hangs, and what the
// configuration leaves out has not gone.
func TestReloadsWhileADeviceHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := &hanging{MapFS: sysOf(twoCards(t)), dir: "class/net/ens1f0np0/speed", release: make(chan struct{})}
		devices := NewDevices(host.Sources{Sys: files, Ethtool: host.ReadEthtool(twoCards(t))})
		reload := func(rawStats ...string) func() (series, string) {
			options := hostOptions()
			options.RawStats, options.Exclude = rawStats, regexp.MustCompile("^mlx5_0$")
			return scrapes(t, NewHost(testCatalog(t), devices, options))
		}
		all := scrapes(t, NewHost(testCatalog(t), devices, hostOptions()))
		if _, failed := all(); failed != "ens1f0np0" {
			t.Errorf("%s failed", failed)
		}
		var last func() (series, string)
		for i := range 3 {
			last = reload("rx_bytes_phy")
			got, failed := last()
			if n := files.opens.Load(); n != 1 || failed != "ens1f0np0" {
				t.Errorf("reload %d: %d reads hang, %s failed", i, n, failed)
			}
			got.has(t, `roce_nic_raw_stat{name="rx_bytes_phy",port="ens2f0np0"}`, 2)
			got.lacks(t, "roce_nic_", "ens1f0np0")
			got.lacks(t, "mlx5_0")
		}
		close(files.release)
		synctest.Wait()
		got, failed := last() // What the first configuration read has no raw statistics.
		if failed != "" {
			t.Errorf("it came back: %s failed", failed)
		}
		got.has(t, `roce_nic_raw_stat{name="rx_bytes_phy",port="ens1f0np0"}`, 1)
	})
}

// The devices are those of the last list while a new one does not come, less
// those that a new configuration leaves out.
func TestReloadWhileTheListHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := &hanging{MapFS: sysOf(twoCards(t)), dir: "nowhere", release: make(chan struct{})}
		devices := NewDevices(host.Sources{Sys: files, Ethtool: host.ReadEthtool(twoCards(t))})
		scrapes(t, NewHost(testCatalog(t), devices, hostOptions()))()
		files.dir = "class/net/ens1f0np0/type"
		options := hostOptions()
		options.Timeout, options.Exclude = time.Second, regexp.MustCompile("^ens1f0np0$")
		all := NewHost(testCatalog(t), devices, hostOptions())
		if _, failed := scrapes(t, all)(); failed != "ens1f0np0 ens2f0np0 mlx5_0 mlx5_1" { // The list took all the time.
			t.Errorf("%s failed", failed)
		}
		got, failed := scrapes(t, NewHost(testCatalog(t), devices, options))()
		if failed != "" || files.opens.Load() != 1 {
			t.Errorf("%s failed, %d reads hang", failed, files.opens.Load())
		}
		got.has(t, `roce_port_receive_bytes_total{port="ens2f0np0"}`, 2)
		got.lacks(t, "roce_port_", "ens1f0np0")
		close(files.release)
	})
}

// A reload while a NIC hangs leaves the series of its RDMA device as they are:
// which priorities it has lossless is known, and each configuration adds those
// that it wants.
func TestReloadKeepsLosslessPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		capture := hostOf(t, card{
			netdev: "ens1f0np0", rdma: "mlx5_0", driver: "mlx5_core", statistics: []string{"rx_prio5_pause: 1"},
			net: []string{"ecn/roce_np/enable/0 = 1", "ecn/roce_np/enable/3 = 1", "ecn/roce_np/enable/5 = 1", "ecn/roce_np/enable/6 = 1"}, ib: []string{"ports/1/gid_attrs/ndevs/0 = ens1f0np0"},
		})
		lock := &rtnl{MapFS: sysOf(capture), Ethtool: host.ReadEthtool(capture), release: make(chan struct{})}
		devices := NewDevices(host.Sources{Sys: lock, Ethtool: lock})
		reload := func(lossless ...int) (ecn, failed string) {
			options := hostOptions()
			options.Policy = &Policy{LosslessPriorities: lossless}
			got, failed := scrapes(t, NewHost(testCatalog(t), devices, options))()
			for _, p := range "01234567" {
				if len(got.with("roce_rdma_ecn_enabled{", fmt.Sprintf("priority=%q", string(p)))) > 0 {
					ecn += string(p)
				}
			}
			return ecn, failed
		}
		if ecn, failed := reload(3); ecn != "35" || failed != "" {
			t.Fatalf("ECN of %s, %s failed", ecn, failed)
		}
		lock.held.Store(true)
		for range 2 {
			if ecn, failed := reload(3); ecn != "35" || failed != "ens1f0np0" {
				t.Errorf("the NIC hangs: ECN of %s, %s failed", ecn, failed)
			}
		}
		if ecn, _ := reload(6); ecn != "56" {
			t.Errorf("another policy: ECN of %s", ecn)
		}
		close(lock.release)
	})
}

// sysOf is the part of a capture that is /sys.
func sysOf(capture fstest.MapFS) fstest.MapFS {
	files := fstest.MapFS{}
	for name, f := range capture {
		if name, ok := strings.CutPrefix(name, "sys/"); ok {
			files[name] = f
		}
	}
	return files
}

// scrapes collects with a second for each scrape, and says which sources
// failed.
func scrapes(t *testing.T, h *Host) func() (series, string) {
	return func() (series, string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		reading, _ := h.Collect(ctx)
		if took := time.Since(begin); took > time.Second {
			t.Errorf("the scrape took %s", took)
		}
		var failed []string
		for _, s := range reading.Sources {
			if s.Err != nil {
				failed = append(failed, s.Name)
			}
		}
		return parse(t, text(t, h.catalog, reading)), strings.Join(failed, " ")
	}
}

// A rtnl is the lock of the kernel that ethtool takes, and some files do.
type rtnl struct {
	fstest.MapFS
	host.Ethtool
	held    atomic.Bool
	release chan struct{}
	waiting atomic.Int32
}

func (r *rtnl) wait() {
	if r.held.Load() {
		r.waiting.Add(1)
		<-r.release
		r.waiting.Add(-1)
	}
}

func (r *rtnl) Driver(name string) (host.Driver, error) { r.wait(); return r.Ethtool.Driver(name) }

func (r *rtnl) Statistics(name string) (map[string]uint64, error) {
	r.wait()
	return r.Ethtool.Statistics(name)
}

func (r *rtnl) Open(name string) (fs.File, error) {
	for _, locked := range []string{"/carrier", "/speed", "/duplex", "/phys_port_name", "/phys_switch_id", "/phys_port_id", "/bonding/slaves"} {
		if strings.HasSuffix(name, locked) {
			r.wait()
		}
	}
	return r.MapFS.Open(name)
}

// A NIC whose firmware hangs does so in a call of ethtool that holds the
// kernel's lock of network devices. The others get no answers then, but what
// needs none goes on, of all of them.
func TestLockOfTheKernelIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		capture := hosttest.Rails(t, "testdata/hosts/connectx.txt", 8, 100)
		lock := &rtnl{MapFS: sysOf(capture), Ethtool: host.ReadEthtool(capture), release: make(chan struct{})}
		devices := NewDevices(host.Sources{Sys: lock, Ethtool: lock, DCB: host.ReadDCB(capture), Clock: func() time.Time { return time.Time{} }})
		ports := func(format string) (names []string) {
			for i := range 8 {
				names = append(names, fmt.Sprintf(format, i+1))
			}
			return names
		}
		nics := strings.Join(ports("ens%df0np0"), " ")
		asked := func(s series) series { // Those that hang on the answers.
			found := series{}
			for name, value := range s {
				if strings.HasPrefix(name, "roce_nic_") || strings.HasPrefix(name, "roce_pfc_") || strings.HasPrefix(name, "roce_pause_") ||
					strings.HasPrefix(name, "roce_pcie_stall_") || strings.HasPrefix(name, "roce_port_") && (strings.Contains(name, "_total{") && !strings.HasPrefix(name, "roce_port_receive_errors_total{") ||
					strings.HasPrefix(name, "roce_port_speed_") || strings.HasPrefix(name, "roce_port_dscp_")) {
					found[name] = value
				}
			}
			return found
		}
		lock.held.Store(true) // Already when the exporter starts.
		scrape := scrapes(t, NewHost(testCatalog(t), devices, hostOptions()))
		got, failed := scrape()
		got.lacks(t, "roce_port_info")
		if failed != nics {
			t.Errorf("from the start: %s failed", failed)
		}
		lock.held.Store(false)
		close(lock.release)
		synctest.Wait()
		time.Sleep(time.Minute)
		whole, failed := scrape()
		if failed != "" {
			t.Fatalf("%s failed", failed)
		}

		lock.release = make(chan struct{})
		lock.held.Store(true)
		want := maps.Clone(whole)
		for name := range asked(whole) {
			delete(want, name)
		}
		for i := range 20 { // Longer than the facts are kept.
			got, failed := scrape()
			if failed != nics || lock.waiting.Load() != 8 {
				t.Errorf("scrape %d: %s failed, %d wait", i, failed, lock.waiting.Load())
			}
			same(t, got, want)
			for _, port := range ports("ens%df0np0") {
				got.some(t, "roce_port_receive_errors_total{", port)
				got.some(t, "roce_port_mtu_bytes{", port)
				got.some(t, "roce_port_oper_up{", port)
				got.some(t, "roce_pcie_link_width_lanes{", port)
				got.some(t, "roce_port_info{", port)
			}
			time.Sleep(time.Minute)
		}
		lock.held.Store(false)
		close(lock.release)
		synctest.Wait()
		time.Sleep(time.Minute)
		got, failed = scrape()
		if failed != "" || lock.waiting.Load() != 0 {
			t.Errorf("%s failed, %d wait", failed, lock.waiting.Load())
		}
		same(t, got, whole)
	})
}

// What a network device answered late stands beside files that are new.
func TestAnswersAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := card{netdev: "ens1f0np0", driver: "mlx5_core", net: []string{"statistics/rx_errors = 1"}, statistics: []string{"rx_bytes_phy: 1"}}
		capture := hostOf(t, c)
		lock := &rtnl{MapFS: sysOf(capture), Ethtool: host.ReadEthtool(capture), release: make(chan struct{})}
		lock.held.Store(true)
		scrape := scrapes(t, NewHost(testCatalog(t), NewDevices(host.Sources{Sys: lock, Ethtool: lock}), hostOptions()))
		got, failed := scrape()
		got.has(t, `roce_port_receive_errors_total{port="ens1f0np0"}`, 1)
		got.lacks(t, "roce_port_receive_bytes_total")
		if failed != "ens1f0np0" {
			t.Errorf("%s failed", failed)
		}
		close(lock.release)
		synctest.Wait()
		lock.MapFS["devices/pci0000:00/0000:01:00.0/net/ens1f0np0/statistics/rx_errors"].Data = []byte("2\n")
		got, failed = scrape()
		got.has(t, `roce_port_receive_errors_total{port="ens1f0np0"}`, 2)
		got.has(t, `roce_port_receive_bytes_total{port="ens1f0np0"}`, 1)
		if failed != "" {
			t.Errorf("%s failed", failed)
		}
	})
}

// changing is a file system that tests change while it is read.
type changing struct {
	mu    sync.Mutex
	files fstest.MapFS
}

func (c *changing) now() fstest.MapFS {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.files)
}

func (c *changing) Open(name string) (fs.File, error)          { return c.now().Open(name) }
func (c *changing) ReadLink(name string) (string, error)       { return c.now().ReadLink(name) }
func (c *changing) Lstat(name string) (fs.FileInfo, error)     { return c.now().Lstat(name) }
func (c *changing) ReadDir(name string) ([]fs.DirEntry, error) { return c.now().ReadDir(name) }

func (c *changing) put(files fstest.MapFS) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files = files
}

func (c *changing) remove(part string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.files, func(name string, _ *fstest.MapFile) bool { return strings.Contains(name, part) })
}

// A device that is pulled is known as gone; the others lose nothing.
func TestADeviceIsPulled(t *testing.T) {
	files := &changing{files: twoCards(t)}
	h := capturedHost(t, testCatalog(t), files, hostOptions())
	if reading, _ := collectHost(t, h); len(reading.Sources) != 4 {
		t.Fatalf("%+v", reading.Sources)
	}
	for _, part := range []string{"0000:01:00.0", "ens1f0np0", "mlx5_0"} {
		files.remove(part)
	}
	reading, out := collectHost(t, h)
	for _, s := range reading.Sources {
		gone := s.Name == "ens1f0np0" || s.Name == "mlx5_0"
		if errors.Is(s.Err, errGone) != gone || !gone && s.Err != nil {
			t.Errorf("%s: %v", s.Name, s.Err)
		}
	}
	got := parse(t, out)
	got.lacks(t, "ens1f0np0")
	got.lacks(t, "mlx5_0")
	got.has(t, `roce_port_receive_bytes_total{port="ens2f0np0"}`, 2)
	got.has(t, `roce_rdma_cnp_sent_packets_total{device="mlx5_1",rdma_port="1"}`, 8)
}

// A slowCall is an ethtool of which one call hangs, before or after the kernel
// has looked for the device.
type slowCall struct {
	host.Ethtool
	call          string
	before, after chan struct{} // nil: it does not hang there.
}

func (s *slowCall) hang(call string, at chan struct{}) {
	if call == s.call && at != nil {
		<-at
	}
}

func (s *slowCall) Driver(name string) (host.Driver, error) {
	s.hang("driver", s.before)
	d, err := s.Ethtool.Driver(name)
	s.hang("driver", s.after)
	return d, err
}

func (s *slowCall) Statistics(name string) (map[string]uint64, error) {
	s.hang("statistics", s.before)
	all, err := s.Ethtool.Statistics(name)
	s.hang("statistics", s.after)
	return all, err
}

// While a card hangs it is pulled, and its name passes to another: nothing of
// the one is exported as the other's, whomever the kernel answered for.
func TestANamePassesToAnotherCard(t *testing.T) {
	one := hostOf(t, card{
		netdev: "eth0", driver: "mlx5_core", statistics: []string{"rx_bytes_phy: 111"},
		net: []string{"ifindex = 5", "address = 02:00:00:00:00:05", "statistics/rx_errors = 5"},
	})
	other := hostOf(t, card{}, card{
		netdev: "eth0", driver: "bnxt_en", statistics: []string{"rx_bytes_phy: 222", "rx_bytes: 444"},
		net: []string{"ifindex = 9", "address = 02:00:00:00:00:09", "statistics/rx_errors = 9"},
	})
	one["ethtool/eth0/driver"].Data = []byte("driver: mlx5_core\nfirmware-version: one\n")
	other["ethtool/eth0/driver"].Data = []byte("driver: bnxt_en\nfirmware-version: other\n")
	ofOne := []string{"mlx5_core", `firmware="one"`, "0000:01:00.0", "02:00:00:00:00:05"}
	ofOther := []string{"bnxt_en", `firmware="other"`, "0000:02:00.0", "02:00:00:00:00:09"}
	isOf := func(t *testing.T, got series, errors float64, not []string, bytes float64) {
		t.Helper()
		if v, ok := got[`roce_port_receive_errors_total{port="eth0"}`]; ok && v != errors {
			t.Fatalf("%v errors, want those of the other card", v)
		}
		for _, label := range not {
			got.lacks(t, label)
		}
		if v, ok := got[`roce_port_receive_bytes_total{port="eth0"}`]; ok && v != bytes {
			t.Errorf("%v bytes of another card", v)
		}
	}
	for _, call := range []string{"driver", "statistics"} {
		for _, when := range []string{"before", "after", "before, and it answers too late"} {
			t.Run(call+" hangs, the device is looked for "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					files := &changing{files: one}
					sources, err := host.ReadCapture(files)
					if err != nil {
						t.Fatal(err)
					}
					ethtool := &slowCall{Ethtool: sources.Ethtool, call: call}
					release := make(chan struct{})
					if ethtool.before = release; when != "after" {
						ethtool.before, ethtool.after = nil, release
					}
					sources.Ethtool = ethtool
					scrape := scrapes(t, NewHost(testCatalog(t), NewDevices(sources), hostOptions()))
					got, failed := scrape()
					isOf(t, got, 5, ofOther, 111)
					if failed != "eth0" {
						t.Fatalf("%s failed, want that it hangs", failed)
					}
					if when == "before" || when == "after" {
						files.put(other)
						got, _ = scrape()
						isOf(t, got, 9, ofOne, 444)
					}
					close(release)
					synctest.Wait()
					files.put(other)
					for range 2 { // Of which the first gets what came late.
						got, failed = scrape()
						isOf(t, got, 9, ofOne, 444)
					}
					if failed != "" {
						t.Errorf("%s failed for good", failed)
					}
					got.some(t, append(ofOther, "roce_port_info{")...)
					files.put(one) // The name goes back.
					ethtool.call, ethtool.before = "driver", make(chan struct{})
					got, _ = scrape()
					isOf(t, got, 5, ofOther, 111)
					close(ethtool.before)
				})
			})
		}
	}
}

// unlisted is a file system of which one directory cannot be listed.
type unlisted struct {
	fstest.MapFS
	dir string // Empty: all can.
}

func (u *unlisted) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == u.dir {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return u.MapFS.ReadDir(name)
}

// A class that cannot be listed says nothing of its devices: they have not
// gone, and that they are not looked for any more is told.
func TestAClassCannotBeListed(t *testing.T) {
	for class, others := range map[string]string{"class/net": "mlx5_0 mlx5_1", "class/infiniband": "ens1f0np0 ens2f0np0"} {
		t.Run(class, func(t *testing.T) {
			files := &unlisted{MapFS: sysOf(twoCards(t))}
			h := NewHost(testCatalog(t), NewDevices(host.Sources{Sys: files, Ethtool: host.ReadEthtool(twoCards(t))}), hostOptions())
			collect := func(found string, unreadable int) {
				t.Helper()
				reading, err := h.Collect(t.Context())
				var names []string
				for _, s := range reading.Sources {
					names = append(names, s.Name)
					if s.Err != nil {
						t.Errorf("%s: %v", s.Name, s.Err)
					}
				}
				if got := strings.Join(names, " "); got != found {
					t.Errorf("read %s, want %s", got, found)
				}
				said := errors.Is(err, fs.ErrPermission) && strings.Contains(err.Error(), "list of devices: open "+class)
				if said != (unreadable > 0) || reading.Skipped != (Skipped{Unreadable: unreadable}) {
					t.Errorf("%v, %+v", err, reading.Skipped)
				}
			}
			files.dir = class
			collect(others, 1) // From the start: what the other class has.
			files.dir = ""
			collect("ens1f0np0 ens2f0np0 mlx5_0 mlx5_1", 0)
			files.dir = class
			collect("ens1f0np0 ens2f0np0 mlx5_0 mlx5_1", 1)
		})
	}
}

// Functions of containers come and go under new names: those that went last are
// remembered.
func TestManyDevicesHaveGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known, before := map[string]*device{}, map[string]bool{}
		hangs := know(known, before, []string{"hangs"})[0]
		hangs.rdma.running = &landing[told[*host.RDMA]]{}
		const all = 1000
		name := func(i int) string { return fmt.Sprint("eth", i*7919%all) } // By name they are in no order.
		for i := range all {
			know(known, before, []string{name(i)})
			time.Sleep(time.Second)
		}
		if want := maxGone + 2; len(known) != want || len(before) != want {
			t.Errorf("%d devices are remembered, %d of them by name, want %d", len(known), len(before), want)
		}
		for i := all - 1 - maxGone; i < all; i++ {
			if known[name(i)] == nil {
				t.Errorf("%s is forgotten, but went after others", name(i))
			}
		}
		if known["hangs"] != hangs.device {
			t.Error("a device is forgotten that is still being read")
		}
	})
}

// On a switch the host's collector runs only if it is asked for, and leaves out
// what the switch reports.
func TestHostOfASwitch(t *testing.T) {
	options := hostOptions()
	options.IsSwitch = func() bool { return true }
	options.Ports = func(context.Context) map[string]bool { return map[string]bool{"ens1f0np0": true} }
	_, out := collectHost(t, capturedHost(t, testCatalog(t), twoCards(t), options))
	got := parse(t, out)
	got.lacks(t, "{", `port="ens1f0np0"`, "roce_port_")
	got.lacks(t, "roce_node_") // The switch's collector speaks for the node.
	got.has(t, `roce_port_receive_bytes_total{port="ens2f0np0"}`, 2)

	options.Required = false
	options.Ports = func(context.Context) map[string]bool {
		t.Error("nobody asked, but the switch is read for its ports")
		return nil
	}
	if _, err := capturedHost(t, testCatalog(t), twoCards(t), options).Collect(t.Context()); !errors.Is(err, ErrNotFound) {
		t.Errorf("nobody asked: %v", err)
	}
}

// Drops of a priority and ECN are of the lossless ones, unless all are wanted
// or nobody knows which are.
func TestPrioritiesOfAHost(t *testing.T) {
	one := card{
		netdev: "ens1f0np0", rdma: "mlx5_0", driver: "mlx5_core", statistics: []string{"rx_prio0_discards: 1", "rx_prio3_discards: 2", "rx_prio5_discards: 3", "rx_prio5_pause: 4"},
		net: []string{"ecn/roce_np/enable/0 = 1", "ecn/roce_np/enable/3 = 1", "ecn/roce_np/enable/5 = 0"}, ib: []string{"ports/1/gid_attrs/ndevs/0 = ens1f0np0"},
	}
	priorities := func(options HostOptions, c card) string {
		_, out := collectHost(t, capturedHost(t, testCatalog(t), hostOf(t, c), options))
		var dropped, ecn string
		for _, p := range "01234567" {
			for series := range parse(t, out) {
				if label(series, "priority") == string(p) && strings.HasPrefix(series, "roce_nic_priority_dropped") {
					dropped += string(p)
				}
				if label(series, "priority") == string(p) && strings.HasPrefix(series, "roce_rdma_ecn_enabled") {
					ecn += string(p)
				}
			}
		}
		return dropped + " " + ecn
	}
	options := hostOptions() // The policy wants 3 and 4, the port has 5.
	if got := priorities(options, one); got != "35 35" {
		t.Errorf("got %s", got)
	}
	options.AllPriorities = true
	if got := priorities(options, one); got != "035 035" {
		t.Errorf("all: got %s", got)
	}
	options = hostOptions()
	options.Policy = nil
	if got := priorities(options, one); got != "5 5" {
		t.Errorf("without a policy: got %s", got)
	}
}

// Statistics that the configuration names are exported as they are.
func TestRawStatistics(t *testing.T) {
	options := hostOptions()
	options.RawStats = []string{"module_*", "[0-9]: rx_bytes"}
	c := card{netdev: "ens1f0np0", driver: "mlx5_core", statistics: []string{"module_unplug: 3", "other: 4"}}
	_, out := collectHost(t, capturedHost(t, testCatalog(t), hostOf(t, c), options))
	got := parse(t, out)
	got.has(t, `roce_nic_raw_stat{name="module_unplug",port="ens1f0np0"}`, 3)
	got.lacks(t, "other")
}

// A host's devices may be chosen by name.
func TestChosenDevices(t *testing.T) {
	options := hostOptions()
	options.Exclude = regexp.MustCompile("^(?:ens2.*|mlx5_0)$")
	reading, _ := collectHost(t, capturedHost(t, testCatalog(t), twoCards(t), options))
	var names []string
	for _, s := range reading.Sources {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "ens1f0np0 mlx5_1" {
		t.Errorf("got %s", got)
	}
}

// A host of which nothing is chosen says so, whether it was asked for or not.
func TestNothingIsChosen(t *testing.T) {
	options := hostOptions()
	options.Include = regexp.MustCompile("^(?:eth.*)$")
	reading, _ := collectHost(t, capturedHost(t, testCatalog(t), twoCards(t), options))
	const want = "host.device_exclude, or the flags, leave out all there are: ens1f0np0, ens2f0np0, mlx5_0, mlx5_1"
	if !strings.HasSuffix(reading.None, want) || len(reading.Sources) > 0 {
		t.Errorf("asked for: got %q of %v", reading.None, reading.Sources)
	}
	options.Required = false
	if _, err := capturedHost(t, testCatalog(t), twoCards(t), options).Collect(t.Context()); !errors.Is(err, ErrNotFound) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("looked for: got %v", err)
	}
	options = hostOptions()
	if reading, _ := collectHost(t, capturedHost(t, testCatalog(t), twoCards(t), options)); reading.None != "" {
		t.Errorf("devices are there, and it says %q", reading.None)
	}
}

// Scrapes side by side see every device that is there.
func TestScrapesSideBySide(t *testing.T) {
	h := capturedHost(t, testCatalog(t), twoCards(t), hostOptions())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				reading, err := h.Collect(t.Context())
				if err != nil || len(reading.Sources) != 4 {
					t.Errorf("%v, %d sources", err, len(reading.Sources))
				}
				for _, s := range reading.Sources {
					if s.Err != nil {
						t.Errorf("%s: %v", s.Name, s.Err)
					}
				}
			}
		})
	}
	wg.Wait()
}

// A card of InfiniBand has the driver of one of Ethernet. That it is one is all
// that is said of it.
func TestInfiniBandIsNoEthernet(t *testing.T) {
	got, _ := readHost(t, hostOf(t,
		card{netdev: "ib0", rdma: "mlx5_0", driver: "mlx5_core", net: []string{"type = 32"}, statistics: []string{"rx_bytes_phy: 1"}, ib: []string{"ports/1/link_layer = InfiniBand", "ports/1/state = 4: ACTIVE", "ports/1/rate = 400 Gb/sec (4X NDR)", "ports/1/hw_counters/np_cnp_sent = 7"}},
		card{netdev: "ens2f0np0", driver: "mlx5_core", net: []string{"type = 1"}, statistics: []string{"rx_bytes_phy: 2"}},
	))
	got.lacks(t, "ib0")
	if all := got.with("mlx5_0"); len(all) != 1 {
		t.Errorf("want the port's identity alone, got %v", all)
	}
	got.some(t, "roce_rdma_port_info{", "mlx5_0", `link_layer="InfiniBand"`)
	got.has(t, `roce_port_receive_bytes_total{port="ens2f0np0"}`, 2)
}

// The same of whatever else is no Ethernet. What is not exported is not read
// either: nothing of it can be amiss.
func TestOtherLinkLayersAreNoEthernet(t *testing.T) {
	for _, layer := range []string{"InfiniBand", "Unspecified"} {
		got, reading := readHost(t, hostOf(t, card{rdma: "mlx5_0", driver: "mlx5_core", ib: []string{"ports/1/link_layer = " + layer, "ports/1/state = garbled", "ports/1/rate = fast", "ports/1/counters/link_downed = many"}}))
		if all := got.with("mlx5_0"); len(all) != 1 || !strings.Contains(all[0], `link_layer="`+layer+`"`) {
			t.Errorf("want the port's identity alone, got %v", all)
		}
		if reading.Skipped != (Skipped{}) || reading.Sources[0].Note != "" {
			t.Errorf("%s: %+v, %s", layer, reading.Skipped, reading.Sources[0].Note)
		}
	}
}

// GIDs of which one cannot be read are not counted: how many there are is not
// known.
func TestGIDsCannotBeRead(t *testing.T) {
	c := card{rdma: "mlx5_0", driver: "mlx5_core", ib: []string{"ports/1/state = 4: ACTIVE", "ports/1/gid_attrs/types/0 = RoCE v2", "ports/1/gid_attrs/types/1/x = a directory"}}
	reading, out := collectHost(t, capturedHost(t, testCatalog(t), hostOf(t, c), hostOptions()))
	parse(t, out).lacks(t, "roce_rdma_gids")
	if reading.Skipped.Unreadable == 0 {
		t.Error("nothing is said of it")
	}
}

// An RDMA device may have the name of a network device.
func TestTwoDevicesOfOneName(t *testing.T) {
	reading, _ := collectHost(t, capturedHost(t, testCatalog(t), hostOf(t, card{netdev: "rail0", rdma: "rail0", driver: "mlx5_core"}), hostOptions()))
	if len(reading.Sources) != 2 || reading.Sources[0].Name == reading.Sources[1].Name {
		t.Errorf("%+v", reading.Sources)
	}
}
