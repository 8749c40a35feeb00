// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"roce_exporter/collectors/host/hosttest"
)

// The exporter on a host as a user without any right: /sys and /proc are those
// of a composed host, ethtool and DCB are the kernel's, which has a network
// device of the name of one of its NICs, a veth, and none of the other. So it
// has what ethtool tells of the one, and says that it has nothing of the other.
func TestHostAsNobody(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to start the exporter as another user")
	}
	if !hosttest.Elsewhere(t, hosttest.NewNetwork()) {
		return
	}
	if err := hosttest.SetUp("lo", true); err != nil {
		t.Fatal(err)
	}
	if err := hosttest.AddLink("veth", "ens1f0np0", 1); err != nil {
		t.Skip("no veth: ", err)
	}
	dir, err := os.MkdirTemp("", "roce-host") // Of which others may see the content.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	hosttest.Write(t, hosttest.Read(t, "collectors/testdata/hosts/connectx.txt"), dir)
	if err := os.WriteFile(dir+"/config.yml", []byte("host: {raw_stats: [peer_ifindex]}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := launch(t, 65534, "--config.file="+dir+"/config.yml", "--path.sysfs="+dir+"/sys", "--path.procfs="+dir+"/proc", "--sonic.database-dir="+dir+"/none")
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"CapPrm", "CapEff"} {
		if !strings.Contains(string(status), set+":\t0000000000000000\n") {
			t.Errorf("%s is not empty:\n%s", set, status)
		}
	}
	got := p.scrape(t)
	for _, line := range []string{
		`roce_node_info{fabric="",hwsku="",node="gpu1",os_version="6.12.0",platform="",role="host",tier=""} 1`,
		`roce_scrape_collector_success{collector="host"} 1`,
		`roce_scrape_source_success{collector="host",source="ens1f0np0"} 1`,
		`roce_scrape_source_success{collector="host",source="ens2f0np0"} 0`,
		`roce_scrape_source_success{collector="host",source="mlx5_0"} 1`,
		`roce_rdma_cnp_sent_packets_total{device="mlx5_0",rdma_port="1"} 2014`,
		`roce_rdma_mtu_bytes{device="mlx5_1",rdma_port="1"} 1024`,
		`roce_port_mtu_bytes{port="ens1f0np0",source="kernel"} 9000`,
		`roce_pcie_link_width_lanes{pci_address="0000:1a:00.0",port="ens1f0np0"} 16`,
	} {
		hasLine(t, got, line)
	}
	// That of the veth, which no file tells.
	if !strings.Contains(got, `roce_nic_raw_stat{name="peer_ifindex",port="ens1f0np0"} `) {
		t.Error("ethtool -S told nothing to nobody")
	}
	if strings.Contains(got, `collector="switch"`) {
		t.Error("a host is no switch, and nobody asked for one")
	}
	if lines := p.log.lines(1, "source=ens2f0np0", "ens2f0np0", "no such device"); len(lines) != 1 {
		t.Errorf("want one line with the device and the reason: %q", lines)
	}
}

// A capture of a host is replayed.
func TestReplayOfAHost(t *testing.T) {
	dir := t.TempDir()
	hosttest.Write(t, hosttest.Read(t, "collectors/testdata/hosts/connectx.txt"), dir)
	if err := os.WriteFile(dir+"/meta.json", []byte(`{"format": 1, "clock": "2026-01-01T00:00:00Z"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	got := launch(t, 0, "--replay="+dir).scrape(t)
	hasLine(t, got, `roce_pfc_receive_frames_total{port="ens1f0np0",priority="3"} 2.600105e+06`)
	hasLine(t, got, `roce_node_time_seconds 1.7672256e+09`)
}

// A machine that is both, with both collectors asked for: a port is exported by
// the switch's, once.
func TestSwitchAndHost(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("collectors/testdata/nvidia")); err != nil {
		t.Fatal(err)
	}
	rename := strings.NewReplacer("ens1f0np0", "Ethernet0")
	for name, file := range hosttest.Read(t, "collectors/testdata/hosts/connectx.txt") {
		file.Data = []byte(rename.Replace(string(file.Data)))
		hosttest.Write(t, fstest.MapFS{rename.Replace(name): file}, dir)
	}
	got := launch(t, 0, "--replay="+dir, "--collector.host").scrape(t)
	for _, series := range []string{`roce_port_info{`, `roce_port_receive_bytes_total{`, `roce_port_oper_up{`} {
		n := 0
		for line := range strings.Lines(got) {
			if strings.HasPrefix(line, series) && strings.Contains(line, `port="Ethernet0"`) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d series of %s of Ethernet0", n, series)
		}
	}
	for _, name := range []string{"roce_node_info{", "roce_node_time_seconds ", "roce_node_boot_time_seconds "} {
		if n := strings.Count(got, "\n"+name); n > 1 {
			t.Errorf("%d series of %s", n, name)
		}
	}
	hasLine(t, got, `roce_scrape_collector_success{collector="host"} 1`)
	hasLine(t, got, `roce_scrape_collector_success{collector="switch"} 1`)
	hasLine(t, got, `roce_port_mtu_bytes{port="ens2f0np0",source="kernel"} 1500`)
	if !strings.Contains(got, `role="switch"`) {
		t.Error("a switch with NICs is a switch")
	}

	got = launch(t, 0, "--replay="+dir).scrape(t)
	if strings.Contains(got, `collector="host"`) {
		t.Error("on a switch nobody looks for NICs unless asked to")
	}
}
