// SPDX-License-Identifier: Apache-2.0

package sonictest_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"roce_exporter/collectors/sonic"
	"roce_exporter/collectors/sonic/sonictest"
)

// TestSynthetic reads a synthetic switch: nothing of it is left out.
func TestSynthetic(t *testing.T) {
	const ports, fdb = 64, 300
	databases := sonictest.Synthetic(ports, fdb)
	if !reflect.DeepEqual(databases, sonictest.Synthetic(ports, fdb)) {
		t.Error("two calls do not make the same switch")
	}
	s, err := sonic.OpenCapture(databases.Capture(t))
	if err != nil {
		t.Fatal(err)
	}
	got := sonic.NewReader(s, s.Namespaces[0], sonic.Options{
		AllQueues: true, Windows: []string{"periodic", "user"}, MACLimit: 4, RefreshConfig: time.Minute, RefreshFDB: time.Minute,
		Wanted: sonic.Wanted{Port: sonic.Fields{"SAI_PORT_STAT_IF_IN_OCTETS"}, Queue: sonic.Fields{"SAI_QUEUE_STAT_BYTES"}, PortGroup: []bool{true}},
	}).Read(t.Context(), time.Second)
	if got.Skipped != (sonic.Skipped{}) {
		t.Errorf("skipped %+v", got.Skipped)
	}
	for _, count := range []struct {
		what      string
		got, want int
	}{
		{"ports", len(got.Ports), ports},
		{"queues", len(got.Queues), ports * 20},
		{"priority groups", len(got.Groups), ports * 8},
		{"pools", len(got.Pools), 3},
		{"poll groups", len(got.PollGroups), 13},
		{"learned addresses", len(databases["STATE_DB"]) - withoutPrefix(databases["STATE_DB"], "FDB_TABLE|"), fdb},
	} {
		if count.got != count.want {
			t.Errorf("%d %s, want %d", count.got, count.what, count.want)
		}
	}
	first, last := got.Ports[0], got.Ports[ports-1]
	if len(first.LosslessQueues) != 2 || len(first.LosslessGroups) != 2 || first.Neighbor == nil || len(first.MACs) != 1 || first.Counters == nil {
		t.Errorf("port %+v", first)
	}
	if last.LAG != "PortChannel2" || last.FDB == nil || *last.FDB < 100 {
		t.Errorf("uplink %+v", last)
	}
}

func withoutPrefix(hashes map[string]map[string]string, prefix string) int {
	n := 0
	for key := range hashes {
		if !strings.HasPrefix(key, prefix) {
			n++
		}
	}
	return n
}
