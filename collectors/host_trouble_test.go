// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"context"
	"errors"
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
		files := &hanging{MapFS: fstest.MapFS{}, dir: "class/infiniband/mlx5_0/ports/1/hw_counters", release: make(chan struct{})}
		for name, f := range twoCards(t) {
			if name, ok := strings.CutPrefix(name, "sys/"); ok {
				files.MapFS[name] = f
			}
		}
		sources.Sys = files
		h := NewHost(testCatalog(t), sources, hostOptions())
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

// Functions of containers come and go under new names: not all are remembered.
func TestManyDevicesHaveGone(t *testing.T) {
	known := map[string]*device[int]{}
	for i := range 1000 {
		know(known, []string{"eth" + string(rune('0'+i%10)) + strings.Repeat("x", i/10)})
	}
	if len(known) > maxGone+1 {
		t.Errorf("%d devices are remembered", len(known))
	}
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

// A card of InfiniBand has the driver of one of Ethernet.
func TestInfiniBandIsNoEthernet(t *testing.T) {
	got, _ := readHost(t, hostOf(t,
		card{netdev: "ib0", rdma: "mlx5_0", driver: "mlx5_core", net: []string{"type = 32"}, statistics: []string{"rx_bytes_phy: 1"}, ib: []string{"ports/1/link_layer = InfiniBand", "ports/1/hw_counters/np_cnp_sent = 7"}},
		card{netdev: "ens2f0np0", driver: "mlx5_core", net: []string{"type = 1"}, statistics: []string{"rx_bytes_phy: 2"}},
	))
	got.lacks(t, "ib0")
	got.lacks(t, "mlx5_0")
	got.has(t, `roce_port_receive_bytes_total{port="ens2f0np0"}`, 2)
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
