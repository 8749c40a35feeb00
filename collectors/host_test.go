// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"roce_exporter/collectors/host"
	"roce_exporter/collectors/host/hosttest"
)

func hostOptions() HostOptions {
	return HostOptions{
		Timeout: 10 * time.Second, SeriesLimit: 200_000, Policy: testPolicy(), Required: true,
	}
}

func hosts(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/hosts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	return files
}

// capturedHost is a collector of a capture.
func capturedHost(t testing.TB, c *Catalog, capture fs.FS, options HostOptions) *Host {
	t.Helper()
	sources, err := host.ReadCapture(capture)
	if err != nil {
		t.Fatal(err)
	}
	sources.Clock = func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	return NewHost(c, NewDevices(sources), options)
}

func collectHost(t testing.TB, h *Host) (Reading, string) {
	t.Helper()
	reading, err := h.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return reading, text(t, h.catalog, reading)
}

// The whole output for each composed host.
func TestHosts(t *testing.T) {
	for _, file := range hosts(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			reading, got := collectHost(t, capturedHost(t, testCatalog(t), hosttest.Read(t, file), hostOptions()))
			if reading.Skipped != (Skipped{}) {
				t.Errorf("%+v, want nothing skipped: %+v", reading.Skipped, reading.Sources)
			}
			golden(t, strings.TrimSuffix(file, ".txt")+".prom", got)
		})
	}
}

// The budget of a NIC port with its RDMA device, at defaults with a policy.
func TestSeriesOfANIC(t *testing.T) {
	for _, name := range []string{"connectx", "ofed", "e810", "broadcom-nic"} {
		_, got := collectHost(t, capturedHost(t, testCatalog(t), hosttest.Read(t, "testdata/hosts/"+name+".txt"), hostOptions()))
		all, devices := parse(t, got), map[string]string{}
		for series := range all {
			if strings.HasPrefix(series, "roce_rdma_port_info{") {
				devices[label(series, "device")] = label(series, "port")
			}
		}
		of := map[string]int{}
		for series := range all {
			port := label(series, "port")
			if device := label(series, "device"); device != "" {
				port = devices[device]
			}
			of[port]++
		}
		delete(of, "") // Of the node.
		if len(of) == 0 {
			t.Errorf("%s: no ports", name)
		}
		for port, n := range of {
			t.Logf("%s %s: %d series", name, port, n)
			if n > 160 {
				t.Errorf("%s %s: %d series, at most 160", name, port, n)
			}
		}
	}
}

// label cuts a label value out of a series.
func label(series, name string) string {
	for _, before := range []string{"{", ","} {
		if _, rest, ok := strings.Cut(series, before+name+`="`); ok {
			value, _, _ := strings.Cut(rest, `"`)
			return value
		}
	}
	return ""
}

// The README's table of what each driver gives is rendered from the composed
// hosts.
func TestTableOfDrivers(t *testing.T) {
	const begin, end = "<!-- drivers, rendered by go test ./collectors -update -->\n", "<!-- end of drivers -->\n"
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(readme), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("README.md: no place for the table")
	}
	golden(t, "../README.md", before+begin+driverTable(t)+end+after)
}

func driverTable(t *testing.T) string {
	t.Helper()
	drivers := []string{mlx5, ice, bnxt, ionic, hns3, qede, mana, cxgb4, i40e, idpf, rxe}
	gives := map[string]map[string]bool{} // Families, then drivers.
	for _, file := range hosts(t) {
		_, out := collectHost(t, capturedHost(t, testCatalog(t), hosttest.Read(t, file), hostOptions()))
		all, driverOf := parse(t, out), map[string]string{}
		for series := range all {
			if strings.HasPrefix(series, "roce_rdma_port_info{") {
				driverOf[label(series, "device")] = label(series, "driver")
			} else if strings.HasPrefix(series, "roce_port_info{") {
				driverOf[label(series, "port")] = label(series, "driver")
			}
		}
		for series := range all {
			family, _, _ := strings.Cut(series, "{")
			of := cmp.Or(label(series, "device"), label(series, "port"))
			if of == "" || strings.HasPrefix(family, "roce_policy_") {
				continue
			}
			if gives[family] == nil {
				gives[family] = map[string]bool{}
			}
			gives[family][driverOf[of]] = true
		}
	}
	var b strings.Builder
	b.WriteString("| family | " + strings.Join(drivers, " | ") + " |\n|---|" + strings.Repeat(":-:|", len(drivers)) + "\n")
	for _, family := range slices.Sorted(maps.Keys(gives)) {
		b.WriteString("| `" + family + "` |")
		for _, d := range drivers {
			mark := " |"
			if gives[family][d] {
				mark = " ✓ |"
			}
			b.WriteString(mark)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// A host of eight rails and two NICs of its storage, one of which prints
// twenty thousand statistics of its queues: they make no series.
func TestEightRails(t *testing.T) {
	capture := hosttest.Rails(t, "testdata/hosts/connectx.txt", 8, 1500)
	_, rails := collectHost(t, capturedHost(t, testCatalog(t), capture, hostOptions()))
	all := parse(t, rails)
	if n := len(all); n > 1600 || n < 8*100 {
		t.Errorf("%d series of eight rails, at most 1600", n)
	}
	for i := range 8 {
		all.some(t, "roce_pfc_receive_pause_seconds_total{", fmt.Sprintf(`port="ens%df0np0"`, i+1))
		all.some(t, "roce_rdma_cnp_handled_packets_total{", fmt.Sprintf(`device="mlx5_%d"`, i))
	}
	var queues strings.Builder
	queues.WriteString("NIC statistics:\n     rx_bytes_phy: 7\n")
	for i := range 20_000 {
		fmt.Fprintf(&queues, "     rx%d_packets: 1\n", i)
	}
	storage := hostOf(t, card{}, card{netdev: "stor0", driver: "mlx5_core"}, card{netdev: "stor1", driver: "mlx5_core", statistics: []string{"rx_bytes_phy: 8"}})
	maps.Copy(capture, storage)
	capture["ethtool/stor0/statistics"].Data = []byte(queues.String())
	_, out := collectHost(t, capturedHost(t, testCatalog(t), capture, hostOptions()))
	more := parse(t, out)
	more.has(t, `roce_port_receive_bytes_total{port="stor0"}`, 7)
	more.has(t, `roce_port_receive_bytes_total{port="stor1"}`, 8)
	if n := len(more) - len(all); n > 20 {
		t.Errorf("%d series of two NICs with one counter each", n)
	}
}
