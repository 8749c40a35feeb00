// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseDriver(t *testing.T) {
	got := ParseDriver(`driver: mlx5_core
version: 6.12.0
firmware-version: 28.39.1002 (MT_0000000838)
expansion-rom-version:
bus-info: 0000:3b:00.0
supports-statistics: yes
`)
	want := Driver{Name: "mlx5_core", Version: "6.12.0", Firmware: "28.39.1002 (MT_0000000838)", Bus: "0000:3b:00.0"}
	if got != want {
		t.Errorf("%+v", got)
	}
}

func TestParseStatistics(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       map[string]uint64
		err        string
	}{
		{"plain", "NIC statistics:\n     rx_prio3_pause: 7\n     rx_priority_3_xon.nic: 18446744073709551615\n", map[string]uint64{"rx_prio3_pause": 7, "rx_priority_3_xon.nic": 1<<64 - 1}, ""},
		{"rings", "NIC statistics:\n     [0]: rx_ucast_packets: 5\n", map[string]uint64{"[0]: rx_ucast_packets": 5}, ""},
		{"blanks around names", "NIC statistics:\n     rx_ppp3_frames         : 21\n            TSO pkts tx: 4\n", map[string]uint64{"rx_ppp3_frames": 21, "TSO pkts tx": 4}, ""},
		{"a name twice, thrice", "NIC statistics:\n  a: 1\n  giant hdr: 0\n  giant hdr: 1\n  giant hdr: 2\n", map[string]uint64{"a": 1}, ""},
		{"nothing", "no stats available\n", map[string]uint64{}, ""},
		{"broken lines", "NIC statistics:\n  a: 1\n  b: -1\n  c\n  d: 2\n", map[string]uint64{"a": 1, "d": 2}, `no statistic: "b: -1"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseStatistics(c.text)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if err == nil && c.err != "" || err != nil && err.Error() != c.err {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Every recorded dump that is at hand is read to its last line.
func TestRecordedDumps(t *testing.T) {
	shared := os.Getenv("ROCE_SHARED")
	if shared == "" {
		t.Skip("ROCE_SHARED is not set")
	}
	files, err := filepath.Glob(filepath.Join(shared, "nic-dumps/ethtool-*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dumps: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "-driver.txt") {
			if ParseDriver(string(text)).Name == "" {
				t.Errorf("%s: no driver", file)
			}
			continue
		}
		s, err := ParseStatistics(string(text))
		if err != nil || len(s) == 0 {
			t.Errorf("%s: %d statistics, %v", file, len(s), err)
		}
	}
	for _, tree := range []string{"procfs", "node_exporter", "telegraf"} {
		dir := filepath.Join(shared, "nic-dumps/sysfs", tree)
		r := NewReader(Sources{Sys: os.DirFS(dir), Proc: os.DirFS(dir)}, Options{Wanted: wanted})
		found, err := r.List()
		if err != nil || len(found.RDMA) == 0 {
			t.Errorf("%s: %v, %v", tree, found, err)
		}
		for _, name := range found.RDMA {
			if d, err := r.ReadRDMA(name); err != nil || d.Skipped != (Skipped{}) {
				t.Errorf("%s %s: %+v, %v", tree, name, d, err)
			}
		}
	}
}
