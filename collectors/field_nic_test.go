// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"roce_exporter/collectors/host"
	"roce_exporter/collectors/host/hosttest"
)

// What operators met on hosts. The devices are composed.

// A card is a PCI function with its network and its RDMA device.
type card struct {
	netdev, rdma string // Names; empty: it has none.
	driver       string
	statistics   []string // "name: value"
	ib           []string // "path = text" below class/infiniband/<rdma>.
	net          []string // The same below class/net/<netdev>.
	pci          []string // The same below the function.
}

// hostOf composes a host of cards.
func hostOf(t testing.TB, cards ...card) fstest.MapFS {
	t.Helper()
	var b strings.Builder
	for i, c := range cards {
		dir := fmt.Sprintf("devices/pci0000:00/0000:%02x:00.0", i+1)
		fmt.Fprintf(&b, "sys/%s/driver -> ../../../bus/pci/drivers/%s\n", dir, c.driver)
		for _, line := range c.pci {
			fmt.Fprintf(&b, "sys/%s/%s\n", dir, line)
		}
		if c.netdev != "" {
			fmt.Fprintf(&b, "sys/class/net/%s -> ../../%s/net/%[1]s\nsys/%[2]s/net/%[1]s/device -> ../../../0000:%02[3]x:00.0\n", c.netdev, dir, i+1)
			fmt.Fprintf(&b, "ethtool/%s/driver = driver: %s\nethtool/%[1]s/statistics = NIC statistics:\n", c.netdev, c.driver)
			for _, line := range c.statistics {
				fmt.Fprintf(&b, "ethtool/%s/statistics + %s\n", c.netdev, line)
			}
			for _, line := range c.net {
				fmt.Fprintf(&b, "sys/%s/net/%s/%s\n", dir, c.netdev, line)
			}
		}
		if c.rdma != "" {
			fmt.Fprintf(&b, "sys/class/infiniband/%s -> ../../%s/infiniband/%[1]s\nsys/%[2]s/infiniband/%[1]s/device -> ../../../0000:%02[3]x:00.0\n", c.rdma, dir, i+1)
			for _, line := range c.ib {
				fmt.Fprintf(&b, "sys/%s/infiniband/%s/%s\n", dir, c.rdma, line)
			}
		}
	}
	return hosttest.Parse(t, b.String())
}

func readHost(t testing.TB, capture fs.FS) (series, Reading) {
	t.Helper()
	reading, out := collectHost(t, capturedHost(t, testCatalog(t), capture, hostOptions()))
	for _, s := range reading.Sources {
		if s.Err != nil {
			t.Errorf("%s: %v", s.Name, s.Err)
		}
	}
	return parse(t, out), reading
}

// Old drivers fill counter files with a text, and used to fail all devices.
func TestCounterFilesHoldAText(t *testing.T) {
	got, reading := readHost(t, hostOf(t,
		card{rdma: "i40iw0", driver: "i40e", ib: []string{
			"ports/1/link_layer = Ethernet", "ports/1/state = 4: ACTIVE", "ports/1/counters/port_rcv_data = N/A (no PMA)",
			"ports/1/counters/link_downed = N/A (no PMA)", "ports/1/counters/port_rcv_packets = N/A (no PMA)",
		}},
		card{rdma: "mlx5_0", driver: "mlx5_core", ib: []string{
			"ports/1/link_layer = Ethernet", "ports/1/state = 4: ACTIVE", "ports/1/counters/link_downed = 2", "ports/1/hw_counters/np_cnp_sent = 7",
		}},
	))
	got.has(t, `roce_rdma_port_up{device="i40iw0",rdma_port="1"}`, 1)
	got.lacks(t, "_total", "i40iw0")
	got.has(t, `roce_rdma_link_down_events_total{device="mlx5_0",rdma_port="1"}`, 2)
	got.has(t, `roce_rdma_cnp_sent_packets_total{device="mlx5_0",rdma_port="1"}`, 7)
	if reading.Skipped != (Skipped{}) {
		t.Errorf("%+v: a driver that has no such counters is in no trouble", reading.Skipped)
	}
}

// Broadcom has no directory counters and two spellings of the CNPs.
func TestBroadcomSpellsCNPsTwice(t *testing.T) {
	spelled := func(lines ...string) series {
		for i := range lines {
			lines[i] = "ports/1/hw_counters/" + lines[i]
		}
		got, _ := readHost(t, hostOf(t, card{rdma: "bnxt_re0", driver: "bnxt_en", ib: append(lines, "ports/1/state = 4: ACTIVE")}))
		return got
	}
	const labels = `_packets_total{device="bnxt_re0",rdma_port="1"}`
	for _, got := range []series{
		spelled("tx_cnp_pkts = 40", "rx_cnp_pkts = 41", "rx_ecn_marked_pkts = 42", "rx_bytes = 7521781137064"),
		spelled("np_cnp_sent = 40", "rp_cnp_handled = 41", "np_ecn_marked_roce_packets = 42", "rx_bytes = 7521781137064"),
		spelled("tx_cnp_pkts = 40", "np_cnp_sent = 40", "rx_cnp_pkts = 41", "rx_ecn_marked_pkts = 42", "rx_bytes = 7521781137064"),
	} {
		got.has(t, "roce_rdma_cnp_sent"+labels, 40)
		got.has(t, "roce_rdma_cnp_handled"+labels, 41)
		got.has(t, "roce_rdma_ecn_marked"+labels, 42)
		got.has(t, `roce_rdma_receive_bytes_total{device="bnxt_re0",rdma_port="1"}`, 7521781137064) // No words of 4 bytes here.
	}
}

// A card without board_id and counters costs the one beside it nothing.
func TestIntelBesideMellanox(t *testing.T) {
	got, _ := readHost(t, hostOf(t,
		card{rdma: "irdma0", driver: "ice", ib: []string{
			"fw_ver = 1.69", "ports/1/state = 4: ACTIVE", "ports/1/link_layer = Ethernet", "ports/1/hw_counters/cnpSent = 7",
			"ports/1/hw_counters/cnpHandled = 12", "ports/1/hw_counters/cnpIgnored = 1", "ports/1/hw_counters/RxECNMrkd = 30",
		}},
		card{rdma: "mlx5_0", driver: "mlx5_core", ib: []string{
			"board_id = MT_0000000222", "ports/1/state = 4: ACTIVE", "ports/1/hw_counters/np_cnp_sent = 3", "ports/1/hw_counters/rp_cnp_handled = 4",
			"ports/1/hw_counters/np_ecn_marked_roce_packets = 5",
		}},
	))
	for name, want := range map[string][2]float64{"cnp_sent": {7, 3}, "cnp_handled": {12, 4}, "ecn_marked": {30, 5}} {
		got.has(t, "roce_rdma_"+name+`_packets_total{device="irdma0",rdma_port="1"}`, want[0])
		got.has(t, "roce_rdma_"+name+`_packets_total{device="mlx5_0",rdma_port="1"}`, want[1])
	}
	got.has(t, `roce_rdma_cnp_ignored_packets_total{device="irdma0",rdma_port="1"}`, 1)
	got.lacks(t, "cnp_ignored", "mlx5_0")
}

// Names with blanks, indented and twice, of a NIC that has nothing of RoCE but a
// device that names it: none becomes a metric, and if all are wanted as they
// are, none that is there twice becomes two series.
func TestStatisticsWithBlanksAndTwice(t *testing.T) {
	capture := hostOf(t,
		card{
			netdev: "ens192", rdma: "vmw_pvrdma0", driver: "vmxnet3", ib: []string{"ports/1/gid_attrs/ndevs/0 = ens192"},
			statistics: []string{"     Tx Queue#: 7", "       giant hdr: 8", "          giant hdr: 9", "       err: 10", "tx timeout count: 11"},
		},
		card{netdev: "ens1f0", driver: "cxgb4", statistics: []string{"tx_ppp3_frames          : 17", "rx_ppp3_frames: 18"}},
	)
	got, _ := readHost(t, capture)
	got.some(t, "roce_port_info{", `port="ens192"`)
	got.lacks(t, "_total{", `port="ens192"`)
	options := hostOptions()
	options.RawStats = []string{"*"}
	reading, out := collectHost(t, capturedHost(t, testCatalog(t), capture, options))
	raw := parse(t, out)
	for name, value := range map[string]float64{"Tx Queue#": 7, "err": 10, "tx timeout count": 11} {
		raw.has(t, fmt.Sprintf(`roce_nic_raw_stat{name=%q,port="ens192"}`, name), value)
	}
	raw.lacks(t, "giant hdr") // Whose value is whose nobody can tell.
	for name := range raw {
		if family, _, _ := strings.Cut(name, "{"); strings.ContainsAny(family, " #") {
			t.Errorf("no name of a metric: %s", name)
		}
	}
	if reading.Skipped.Duplicate != 0 {
		t.Errorf("%+v", reading.Skipped)
	}
	got.has(t, `roce_pfc_transmit_frames_total{port="ens1f0",priority="3"}`, 17)
	got.has(t, `roce_pfc_receive_frames_total{port="ens1f0",priority="3"}`, 18)
}

// Names with dots are not read by a cleaned name.
func TestStatisticsWithDots(t *testing.T) {
	got, _ := readHost(t, hostOf(t, card{netdev: "ens2f0", driver: "ice", statistics: []string{
		"rx_bytes: 6913362843215", "tx_priority_3_xon.nic: 55", "tx_priority_3_xoff.nic: 44", "rx_priority_3_xon.nic: 12346",
		"rx_priority_3_xoff.nic: 12345", "port.rx_dropped: 12028",
	}}))
	const labels = `{port="ens2f0",priority="3"}`
	got.has(t, "roce_pfc_receive_frames_total"+labels, 12345)
	got.has(t, "roce_pfc_transmit_frames_total"+labels, 44)
	got.has(t, "roce_pfc_receive_xon_frames_total"+labels, 12346)
	got.has(t, "roce_pfc_transmit_xon_frames_total"+labels, 55)
	got.lacks(t, "roce_port_receive_bytes_total")             // Those of the host's share of the port are not the port's.
	got.lacks(t, "roce_port_receive_discarded_packets_total") // That name is another driver's.
}

// Pause times are microseconds; where a priority has none, nothing is booked
// on it.
func TestPauseTimesOfConnectX(t *testing.T) {
	got, _ := readHost(t, hostOf(t,
		card{netdev: "ens1f0np0", driver: "mlx5_core", statistics: []string{
			"rx_prio3_pause: 1234", "rx_prio3_pause_duration: 85558", "rx_prio3_pause_transition: 617", "tx_prio3_pause: 9", "tx_prio3_pause_duration: 70", "rx_prio3_discards: 0",
		}},
		card{netdev: "ens2f0np0", driver: "mlx5_core", statistics: []string{"rx_pause_ctrl_phy: 202", "tx_pause_ctrl_phy: 0", "rx_prio0_bytes: 6913362843215", "rx_prio3_bytes: 100"}},
	))
	const labels, measured = `{port="ens1f0np0",priority="3"}`, `{method="measured",port="ens1f0np0",priority="3"}`
	got.has(t, "roce_pfc_receive_frames_total"+labels, 1234)
	got.has(t, "roce_pfc_transmit_frames_total"+labels, 9)
	got.has(t, "roce_pfc_receive_pause_seconds_total"+measured, 0.085558)
	got.has(t, "roce_pfc_transmit_pause_seconds_total"+measured, 0.00007)
	got.has(t, "roce_pfc_receive_transitions_total"+labels, 617)
	got.has(t, `roce_nic_priority_dropped_packets_total{port="ens1f0np0",priority="3",reason="buffer"}`, 0)
	got.lacks(t, "roce_pfc_", "ens2f0np0")
	got.has(t, `roce_pause_receive_frames_total{port="ens2f0np0"}`, 202)
	got.has(t, `roce_pause_transmit_frames_total{port="ens2f0np0"}`, 0)
}

// What a virtual function counts never was on the wire.
func TestVirtualFunction(t *testing.T) {
	got, _ := readHost(t, hostOf(t,
		card{netdev: "ens1f0np0", rdma: "mlx5_0", driver: "mlx5_core", statistics: []string{"rx_prio3_pause: 10", "rx_bytes_phy: 5000000"}, ib: []string{"ports/1/hw_counters/np_cnp_sent = 7"}},
		card{
			netdev: "ens1f0v0", rdma: "mlx5_2", driver: "mlx5_core", statistics: []string{"rx_packets: 3", "rx_bytes: 300", "rx_bytes_phy: 0"},
			pci: []string{"physfn -> ../0000:01:00.0"}, net: []string{"statistics/rx_bytes = 300"}, ib: []string{"ports/1/state = 4: ACTIVE"},
		},
	))
	got.has(t, `roce_pfc_receive_frames_total{port="ens1f0np0",priority="3"}`, 10)
	got.has(t, `roce_port_receive_bytes_total{port="ens1f0np0"}`, 5000000)
	got.has(t, `roce_rdma_cnp_sent_packets_total{device="mlx5_0",rdma_port="1"}`, 7)
	got.some(t, `roce_port_info{`, `kind="vf"`, `port="ens1f0v0"`)
	got.has(t, `roce_rdma_port_up{device="mlx5_2",rdma_port="1"}`, 1)
	got.lacks(t, "_total", "ens1f0v0")
	got.lacks(t, "_total", "mlx5_2")
}

// A bond is one RDMA device over two ports.
func TestBondOfTwoPorts(t *testing.T) {
	capture := hostOf(t,
		card{netdev: "ens1f0np0", rdma: "mlx5_bond_0", driver: "mlx5_core", statistics: []string{"rx_prio3_pause: 10"}, ib: []string{
			"ports/1/state = 4: ACTIVE", "ports/1/link_layer = Ethernet", "ports/1/rate = 200 Gb/sec (2X NDR)", "ports/1/hw_counters/rp_cnp_handled = 50",
			"ports/1/gid_attrs/ndevs/0 = bond0",
		}},
		card{netdev: "ens1f1np1", driver: "mlx5_core", statistics: []string{"rx_prio3_pause: 20"}},
	)
	maps.Copy(capture, hosttest.Parse(t, "sys/class/net/bond0/bonding/slaves = ens1f0np0 ens1f1np1\nsys/class/net/bond0/mtu = 9000\n"))
	got, _ := readHost(t, capture)
	got.has(t, `roce_rdma_cnp_handled_packets_total{device="mlx5_bond_0",rdma_port="1"}`, 50)
	got.some(t, `roce_rdma_port_info{`, `device="mlx5_bond_0"`, `port="bond0"`)
	got.has(t, `roce_pfc_receive_frames_total{port="ens1f0np0",priority="3"}`, 10)
	got.has(t, `roce_pfc_receive_frames_total{port="ens1f1np1",priority="3"}`, 20)
	got.lacks(t, "roce_pfc_", "bond0")
	got.has(t, `roce_rdma_port_speed_bytes_per_second{device="mlx5_bond_0",rdma_port="1"}`, 25e9)
}

// statisticsOf answers for one device.
type statisticsOf struct {
	host.Ethtool
	name string
	all  map[string]uint64
	err  error
}

func (s statisticsOf) Statistics(name string) (map[string]uint64, error) {
	if name != s.name {
		return s.Ethtool.Statistics(name)
	}
	return s.all, s.err
}

// A card of a large host prints tens of thousands of statistics, or more than
// the library takes.
func TestTooManyStatistics(t *testing.T) {
	capture := hostOf(t,
		card{netdev: "ens1f0np0", rdma: "mlx5_0", driver: "mlx5_core", ib: []string{"ports/1/hw_counters/np_cnp_sent = 7"}},
		card{netdev: "ens2f0np0", driver: "mlx5_core", statistics: []string{"rx_bytes_phy: 5"}},
	)
	sources, err := host.ReadCapture(capture)
	if err != nil {
		t.Fatal(err)
	}
	fake := statisticsOf{Ethtool: sources.Ethtool, name: "ens1f0np0", all: map[string]uint64{"rx_bytes_phy": 1<<64 - 1, "tx_bytes_phy": 1<<53 + 1}}
	for i := range 19_338 {
		fake.all[fmt.Sprintf("rx%d_packets", i)] = 1
	}
	sources.Ethtool = fake
	h := NewHost(testCatalog(t), NewDevices(sources), hostOptions())
	_, out := collectHost(t, h)
	got := parse(t, out)
	got.has(t, `roce_port_receive_bytes_total{port="ens1f0np0"}`, 18446744073709551615)
	got.has(t, `roce_port_transmit_bytes_total{port="ens1f0np0"}`, 9007199254740992)
	if n := len(got.with("_total", "ens1f0np0")); n != 2 {
		t.Errorf("%d counters of what has two known names", n)
	}

	fake.all, fake.err = nil, errors.New("32768 strings at most")
	sources.Ethtool = fake
	reading, out := collectHost(t, NewHost(testCatalog(t), NewDevices(sources), hostOptions()))
	got = parse(t, out)
	for _, s := range reading.Sources {
		if (s.Err != nil) != (s.Name == "ens1f0np0") {
			t.Errorf("%s: %v", s.Name, s.Err)
		}
	}
	got.lacks(t, "_total", "ens1f0np0")
	got.has(t, `roce_rdma_cnp_sent_packets_total{device="mlx5_0",rdma_port="1"}`, 7)
	got.has(t, `roce_port_receive_bytes_total{port="ens2f0np0"}`, 5)
}

// A withoutModule is a file system whose rates of one RDMA device have no value.
type withoutModule struct {
	fstest.MapFS
	device string
}

func (w withoutModule) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, w.device+"/ports/1/rate") {
		return nil, &fs.PathError{Op: "read", Path: name, Err: syscall.EINVAL}
	}
	return w.MapFS.Open(name)
}

// A rate cannot be read without a module, whether the port is down or says that
// it is up, and may be a fraction.
func TestRatesOfRDMAPorts(t *testing.T) {
	capture := hostOf(t,
		card{rdma: "mlx5_0", driver: "mlx5_core", ib: []string{"ports/1/state = 4: ACTIVE", "ports/1/rate = 400 Gb/sec (4X NDR)"}},
		card{rdma: "mlx5_1", driver: "mlx5_core", ib: []string{"ports/1/state = 1: DOWN", "ports/1/rate = 40 Gb/sec (4X QDR)"}},
		card{rdma: "mlx5_2", driver: "mlx5_core", ib: []string{"ports/1/state = 4: ACTIVE", "ports/1/rate = 2.5 Gb/sec (1X SDR)"}},
	)
	got, _ := readHost(t, capture)
	got.has(t, `roce_rdma_port_speed_bytes_per_second{device="mlx5_0",rdma_port="1"}`, 50e9)
	got.has(t, `roce_rdma_port_up{device="mlx5_1",rdma_port="1"}`, 0)
	got.lacks(t, "roce_rdma_port_speed_bytes_per_second", "mlx5_1")
	got.has(t, `roce_rdma_port_speed_bytes_per_second{device="mlx5_2",rdma_port="1"}`, 312500000)
	for device, up := range map[string]float64{"mlx5_1": 0, "mlx5_2": 1} {
		sources := host.Sources{Sys: withoutModule{sysOf(capture), device}, Ethtool: host.ReadEthtool(capture)}
		reading, out := collectHost(t, NewHost(testCatalog(t), NewDevices(sources), hostOptions()))
		got := parse(t, out)
		got.lacks(t, "roce_rdma_port_speed_bytes_per_second", device)
		got.has(t, fmt.Sprintf(`roce_rdma_port_up{device=%q,rdma_port="1"}`, device), up)
		got.has(t, `roce_rdma_port_speed_bytes_per_second{device="mlx5_0",rdma_port="1"}`, 50e9)
		if reading.Skipped != (Skipped{}) {
			t.Errorf("%s: %+v", device, reading.Skipped)
		}
	}
}

// A host without RDMA has nothing to say, which is no failure.
func TestHostWithoutRDMA(t *testing.T) {
	capture := hosttest.Parse(t, "sys/class/net/eth0/mtu = 1500\nproc/sys/kernel/hostname = web1\n")
	got, reading := readHost(t, capture)
	got.lacks(t, "roce_rdma_")
	got.lacks(t, "port=")
	if len(reading.Sources) != 0 || reading.Node.Name != "web1" {
		t.Errorf("%+v", reading)
	}
	options := hostOptions()
	options.Required = false
	if _, err := capturedHost(t, testCatalog(t), capture, options).Collect(t.Context()); !errors.Is(err, ErrNotFound) {
		t.Errorf("nobody asked, and nothing is there: %v", err)
	}
}

// The RoCE MTU is what fits into the network device's, by the driver's rule.
func TestRoCEMTU(t *testing.T) {
	for mtu, want := range map[int][2]float64{1500: {1024, 1024}, 2200: {2048, 2048}, 4096: {2048, 4096}, 4191: {2048, 4096}, 4192: {4096, 4096}, 4200: {4096, 4096}, 9000: {4096, 4096}} {
		net := []string{fmt.Sprintf("mtu = %d", mtu)}
		got, _ := readHost(t, hostOf(t,
			card{netdev: "a", rdma: "mlx5_0", driver: "mlx5_core", net: net, ib: []string{"ports/1/state = 4: ACTIVE", "ports/1/gid_attrs/ndevs/0 = a"}, pci: []string{"net/a/ifindex = 1"}},
			card{netdev: "b", rdma: "irdma0", driver: "ice", net: net, ib: []string{"ports/1/state = 4: ACTIVE", "ports/1/gid_attrs/ndevs/0 = b"}},
		))
		got.has(t, `roce_rdma_mtu_bytes{device="mlx5_0",rdma_port="1"}`, want[0])
		got.has(t, `roce_rdma_mtu_bytes{device="irdma0",rdma_port="1"}`, want[1])
	}
}

// In switchdev mode the counters of congestion control are the device's, and
// each representor has a port of the RDMA device.
func TestSwitchdevMode(t *testing.T) {
	capture := hostOf(t, card{
		netdev: "ens1f0np0", rdma: "mlx5_0", driver: "mlx5_core", statistics: []string{"rx_bytes_phy: 1"}, net: []string{"phys_port_name = p0"},
		ib: []string{
			"ports/1/state = 4: ACTIVE", "ports/1/gid_attrs/ndevs/0 = ens1f0np0", "ports/2/state = 4: ACTIVE", "ports/2/gid_attrs/ndevs/0 = ens1f0npf0vf0",
			"hw_counters/np_cnp_sent = 7",
		},
		pci: []string{"net/ens1f0npf0vf0/phys_port_name = pf0vf0"},
	})
	maps.Copy(capture, hosttest.Parse(t, `sys/class/net/ens1f0npf0vf0 -> ../../devices/pci0000:00/0000:01:00.0/net/ens1f0npf0vf0
sys/devices/pci0000:00/0000:01:00.0/net/ens1f0npf0vf0/device -> ../../../0000:01:00.0
`))
	got, _ := readHost(t, capture)
	got.has(t, `roce_rdma_cnp_sent_packets_total{device="mlx5_0",rdma_port="1"}`, 7)
	got.lacks(t, `rdma_port="2"`)
	got.lacks(t, "ens1f0npf0vf0")
}
