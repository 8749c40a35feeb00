// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"roce_exporter/collectors/host/hosttest"
	"roce_exporter/collectors/sonic/sonictest"
)

// capture on a host: /sys and /proc are those of a composed one, ethtool and
// DCB are the kernel's, which has no such network devices, and that is said.
func TestCaptureOfAHost(t *testing.T) {
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	node := t.TempDir()
	hosttest.Write(t, hosttest.Read(t, "collectors/testdata/hosts/connectx.txt"), node)
	capture := func(dir, sys string, args ...string) (string, error) {
		args = append([]string{"capture", dir, "--sonic.database-dir=" + node + "/none", "--path.sysfs=" + sys, "--path.procfs=" + node + "/proc"}, args...)
		out, err := exec.Command(path, args...).CombinedOutput()
		return string(out), err
	}
	dir := filepath.Join(t.TempDir(), "capture")
	out, err := capture(dir, node+"/sys", "--samples=2", "--every=1ms")
	if err != nil || !strings.Contains(out, filepath.Join(dir, "0002")) || !strings.Contains(out, "  sys: ") ||
		!strings.Contains(out, "left out: driver of ens1f0np0: no such device") || !strings.Contains(out, "are replaced") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, replayed := range []string{dir, filepath.Join(dir, "0002")} {
		body := launch(t, 0, "--replay="+replayed).scrape(t)
		hasLine(t, body, `roce_rdma_cnp_sent_packets_total{device="mlx5_0",rdma_port="1"} 2014`)
		hasLine(t, body, `roce_port_mtu_bytes{port="ens1f0np0",source="kernel"} 9000`)
		if strings.Contains(body, "gpu1") || strings.Contains(body, "b8:3f:d2") {
			t.Error("the capture has the host's name or addresses")
		}
	}

	// A file system without links has tars: the replay gives the same.
	one := filepath.Join(dir, "0002")
	want := exported(launch(t, 0, "--replay="+one).scrape(t))
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	if err := errors.Join(w.AddFS(os.DirFS(one+"/sys")), w.Close(), os.WriteFile(one+"/sys.tar", packed.Bytes(), 0o644), os.RemoveAll(one+"/sys")); err != nil {
		t.Fatal(err)
	}
	if got := exported(launch(t, 0, "--replay="+one).scrape(t)); got != want || !strings.Contains(got, "roce_rdma_") {
		t.Errorf("with a tar:\n%s\nwith a directory:\n%s", got, want)
	}

	if out, err := capture(dir, node+"/sys"); err == nil || !strings.Contains(out, "not empty") {
		t.Errorf("a directory that is not empty: %v\n%s", err, out)
	}
	dir = filepath.Join(t.TempDir(), "nothing")
	if out, err := capture(dir, t.TempDir()); err == nil || !strings.Contains(out, "neither a switch nor a host") || !strings.Contains(out, "--path.sysfs") {
		t.Errorf("nothing there: %v\n%s", err, out)
	}
}

// exported are the lines of a scrape that tell of the node.
func exported(body string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(body, "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "roce_") || strings.HasPrefix(line, "roce_scrape_") || strings.HasPrefix(line, "roce_exporter_")
	}), "\n")
}

// capture on a machine that is a switch and has NICs beside its ports writes
// both; of a switch that has ports only, nothing of the host is written.
func TestCaptureOfASwitchWithNICs(t *testing.T) {
	server := sonictest.Start(t)
	server.Load(t, sonictest.ReadCapture(t, "collectors/testdata/nvidia"))
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	machine := hosttest.Parse(t, `
sys/class/net/Ethernet0/device/uevent = DRIVER=mlx5_core
sys/class/net/Ethernet0/mtu = 9000
proc/sys/kernel/hostname = leaf-1
`)
	capture := func() (dir, out string) {
		node := t.TempDir()
		hosttest.Write(t, machine, node)
		dir = filepath.Join(t.TempDir(), "capture")
		said, err := exec.Command(path, "capture", dir, "--sonic.database-dir="+server.Dir, "--path.sysfs="+node+"/sys", "--path.procfs="+node+"/proc").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		return dir, string(said)
	}
	is := func(dir string, want ...string) {
		t.Helper()
		var names []string
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("the capture has %q, want %q: %v", names, want, err)
		}
	}
	dir, out := capture()
	is(dir, "files", "meta.json", "redis")
	if strings.Contains(out, "  sys: ") || strings.Contains(out, "Ethernet0") {
		t.Errorf("a plain switch: %s", out)
	}

	maps.Copy(machine, hosttest.Parse(t, `
sys/class/net/ens9/device/uevent = DRIVER=mlx5_core
sys/class/net/ens9/mtu = 4200
sys/class/net/ens9/address = 02:00:5e:10:02:01
`))
	dir, out = capture()
	is(dir, "files", "meta.json", "proc", "redis", "sys")
	if !strings.Contains(out, "COUNTERS_DB: ") || !strings.Contains(out, "  sys: ") || !strings.Contains(out, "left out: /etc/sonic/sonic_version.yml") || !strings.Contains(out, "left out: driver of ens9") {
		t.Errorf("a switch with a NIC: %s", out)
	}
	meta, err := os.ReadFile(dir + "/meta.json")
	if err != nil || !strings.Contains(string(meta), "sonic_version.yml") || !strings.Contains(string(meta), "driver of ens9") {
		t.Errorf("what is left out of both is not in meta.json: %v %s", err, meta)
	}
	both := launch(t, 0, "--replay="+dir, "--collector.host").scrape(t)
	hasLine(t, both, `roce_port_mtu_bytes{port="ens9",source="kernel"} 4200`)
	hasLine(t, both, `roce_scrape_collector_success{collector="switch"} 1`)
	if strings.Contains(both, `{collector="host",source="Ethernet0"}`) {
		t.Error("a port of the switch is exported by the host's collector")
	}
	// The stand-ins of the switch are those of the host.
	hostname, err := os.ReadFile(dir + "/proc/sys/kernel/hostname")
	if err != nil || !strings.Contains(both, `node="`+strings.TrimSpace(string(hostname))+`"`) {
		t.Errorf("the host is called %q, the switch is not: %v", hostname, err)
	}
	if alone := launch(t, 0, "--replay="+dir).scrape(t); strings.Contains(alone, "ens9") || strings.Contains(alone, `collector="host"`) {
		t.Error("on a switch nobody looks for NICs unless asked to")
	}
}

// Samples of a machine that is both are replayed one a scrape, in step.
func TestReplayOfSamplesOfASwitchWithNICs(t *testing.T) {
	dir := t.TempDir()
	for i, sample := range []string{"0001", "0002", "0003"} {
		files := hosttest.Parse(t, fmt.Sprintf(`
meta.json = {"format": 1, "clock": "2026-01-01T00:00:0%[1]dZ"}
redis/CONFIG_DB.json = {"PORT|Ethernet0": {"mtu": "910%[1]d"}}
redis/COUNTERS_DB.json = {"COUNTERS_PORT_NAME_MAP": {"Ethernet0": "oid:0x1000000000001"}}
sys/class/net/Ethernet0/device/uevent = DRIVER=mlx5_core
sys/class/net/ens9/device/uevent = DRIVER=mlx5_core
sys/class/net/ens9/mtu = 420%[1]d
`, i+1))
		hosttest.Write(t, files, filepath.Join(dir, sample))
	}
	p := launch(t, 0, "--replay="+dir, "--collector.host")
	for i, want := range []int{1, 2, 3, 3} {
		body := p.scrape(t)
		t.Logf("scrape %d", i+1)
		hasLine(t, body, fmt.Sprintf(`roce_node_time_seconds 1.76722560%de+09`, want))
		hasLine(t, body, fmt.Sprintf(`roce_port_mtu_bytes{port="ens9",source="kernel"} 420%d`, want))
		if n := strings.Count(body, `roce_port_info{`); n != 2 {
			t.Errorf("%d ports, want that of the switch and the NIC", n)
		}
	}
}
