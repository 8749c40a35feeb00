// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"roce_exporter/collectors/host/hosttest"
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
	if out, err := capture(dir, node+"/sys"); err == nil || !strings.Contains(out, "not empty") {
		t.Errorf("a directory that is not empty: %v\n%s", err, out)
	}
	dir = filepath.Join(t.TempDir(), "nothing")
	if out, err := capture(dir, t.TempDir()); err == nil || !strings.Contains(out, "neither a switch nor a host") || !strings.Contains(out, "--path.sysfs") {
		t.Errorf("nothing there: %v\n%s", err, out)
	}
}
