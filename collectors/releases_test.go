// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"strings"
	"testing"

	"roce_exporter/collectors/sonic/sonictest"
)

// What a release does not have yet is absent, and costs nothing else.
func TestReleases(t *testing.T) {
	dropFields := func(d sonictest.Databases, words ...string) {
		for key, hash := range d["COUNTERS_DB"] {
			if !strings.HasPrefix(key, "COUNTERS:") {
				continue
			}
			for field := range hash {
				for _, w := range words {
					if strings.Contains(field, w) {
						delete(hash, field)
					}
				}
			}
		}
	}
	dropGroups := func(d sonictest.Databases, groups ...[2]string) {
		for _, g := range groups {
			delete(d["CONFIG_DB"], "FLEX_COUNTER_TABLE|"+g[0])
			delete(d["FLEX_COUNTER_DB"], "FLEX_COUNTER_GROUP_TABLE:"+g[1])
		}
	}
	for _, c := range []struct {
		name          string // The first release that has it.
		edit          func(sonictest.Databases)
		absent, there []string
	}{
		{"201911: drops of priority groups and of port buffers", func(d sonictest.Databases) {
			dropFields(d, "PRIORITY_GROUP_STAT_DROPPED_PACKETS", "_IN_DROPPED_PKTS", "_OUT_DROPPED_PKTS")
			dropGroups(d, [2]string{"PG_DROP", "PG_DROP_STAT_COUNTER"}, [2]string{"PORT_BUFFER_DROP", "PORT_BUFFER_DROP_STAT"})
		}, []string{"roce_pg_dropped", "buffer_dropped"}, []string{"roce_pg_watermark", "discarded"}},
		{"202012 and from 202205: a watchdog set apart from PFC", func(d sonictest.Databases) {
			for key, row := range d["CONFIG_DB"] {
				if strings.HasPrefix(key, "PORT_QOS_MAP|") {
					delete(row, "pfcwd_sw_enable")
				}
			}
			delete(d["CONFIG_DB"], "PORT_QOS_MAP|global")
		}, nil, []string{`roce_pfcwd_enabled{port="Ethernet0",queue="3"}`, `roce_pfc_receive_pause_seconds_total{method="measured",port="Ethernet0",priority="3"}`}},
		{"202205: queues and groups only where buffers are configured", func(d sonictest.Databases) {
			for _, nameMap := range []string{"COUNTERS_QUEUE_NAME_MAP", "COUNTERS_PG_NAME_MAP"} {
				for name := range d["COUNTERS_DB"][nameMap] {
					if !strings.HasSuffix(name, ":3") && !strings.HasSuffix(name, ":4") {
						delete(d["COUNTERS_DB"][nameMap], name)
					}
				}
			}
		}, []string{`queue="6",type=`}, []string{`roce_queue_packets_total{port="Ethernet0",queue="3"`, `roce_pg_dropped_packets_total{pg="4"`}},
		{"202405: corrected bits", func(d sonictest.Databases) {
			dropFields(d, "FEC_CORRECTED_BITS")
		}, []string{"fec_corrected_bits"}, []string{"fec_corrected_codewords"}},
		{"202411: poll groups by default; before, a script adds them after boot", func(d sonictest.Databases) {
			for key := range d["CONFIG_DB"] {
				if strings.HasPrefix(key, "FLEX_COUNTER_TABLE|") {
					delete(d["CONFIG_DB"], key)
				}
			}
			clear(d["FLEX_COUNTER_DB"])
			for _, nameMap := range []string{"COUNTERS_QUEUE_NAME_MAP", "COUNTERS_PG_NAME_MAP"} {
				delete(d["COUNTERS_DB"], nameMap)
			}
		}, []string{"roce_flex_counter", "roce_queue_packets", "roce_pg_dropped"}, []string{"roce_pfc_receive_frames_total"}},
		{"202505: ECN marks", func(d sonictest.Databases) {
			dropFields(d, "WRED_ECN_MARKED", "WRED_DROPPED")
			dropGroups(d, [2]string{"WRED_ECN_QUEUE", "WRED_ECN_QUEUE_STAT_COUNTER"}, [2]string{"WRED_ECN_PORT", "WRED_ECN_PORT_STAT_COUNTER"})
		}, []string{"ecn_marked", "wred_dropped"}, []string{"roce_queue_ecn_enabled"}},
		{"no speed in STATE_DB, no health of services", func(d sonictest.Databases) {
			for key, row := range d["STATE_DB"] {
				if strings.HasPrefix(key, "PORT_TABLE|") {
					delete(row, "speed")
				}
				if strings.HasPrefix(key, "ALL_SERVICE_STATUS|") || strings.HasPrefix(key, "SYSTEM_READY|") {
					delete(d["STATE_DB"], key)
				}
			}
		}, []string{"roce_port_speed_bytes", "roce_service_up"}, []string{"roce_port_configured_speed", "roce_port_oper_up"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := nvidia(t)
			c.edit(d)
			got, reading := read(t, memory(t, d, testOptions()))
			for _, word := range c.absent {
				got.lacks(t, word)
			}
			for _, word := range c.there {
				got.some(t, word)
			}
			if reading.Skipped != (Skipped{}) {
				t.Errorf("%+v, want nothing skipped", reading.Skipped)
			}
		})
	}
}

// A gearbox has names of its own for its two sides.
func TestSidesOfAGearboxAreNoPorts(t *testing.T) {
	counters := map[string]string{"SAI_PORT_STAT_IF_IN_OCTETS": "7"}
	got, _ := read(t, memory(t, sonictest.Databases{"COUNTERS_DB": {
		"COUNTERS_PORT_NAME_MAP": {
			"Ethernet0": "oid:0x1000000000001", "Ethernet0_system": "oid:0x1000000000002", "Ethernet0_line": "oid:0x1000000000003",
		},
		"COUNTERS:oid:0x1000000000001": counters, "COUNTERS:oid:0x1000000000002": counters, "COUNTERS:oid:0x1000000000003": counters,
	}}, testOptions()))
	got.has(t, `roce_port_receive_bytes_total{port="Ethernet0"}`, 7)
	got.lacks(t, "Ethernet0_")
}

// Virtual output queues are exported as far as is asked, and never as queues.
func TestVirtualOutputQueues(t *testing.T) {
	for voq, want := range map[string]struct{ there, absent []string }{
		"off":     {nil, []string{"roce_voq_"}},
		"dropped": {[]string{"roce_voq_dropped_packets_total", "roce_voq_wred_dropped", "roce_voq_credit_watchdog_deleted"}, []string{"roce_voq_packets_total", "roce_voq_bytes_total"}},
		"all":     {[]string{"roce_voq_packets_total", "roce_voq_dropped_packets_total"}, nil},
	} {
		t.Run(voq, func(t *testing.T) {
			options := testOptions()
			options.VOQ = voq
			got, _ := read(t, capturedSwitch(t, "testdata/chassis-linecard", options))
			for _, word := range want.there {
				got.some(t, word)
			}
			for _, word := range want.absent {
				got.lacks(t, word)
			}
			got.lacks(t, "roce_queue_", "card-")
			got.lacks(t, "roce_voq_", "card-2")
			got.some(t, "roce_queue_packets_total")
		})
	}
}
