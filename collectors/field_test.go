// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"roce_exporter/collectors/sonic/sonictest"
)

// The tests of this file each hold one situation that operators of switches
// reported in public.

// fieldOptions are everything, and the defaults without a policy.
func fieldOptions() map[string]SwitchOptions {
	defaults, everything := testOptions(), allOptions()
	defaults.Policy, everything.Policy = nil, nil
	everything.PauseDurationUnit = ""
	return map[string]SwitchOptions{"defaults": defaults, "everything": everything}
}

func everything() SwitchOptions { return fieldOptions()["everything"] }

// either runs a test with the defaults and with everything.
func either(t *testing.T, d sonictest.Databases, check func(t *testing.T, got series, reading Reading)) {
	t.Helper()
	for _, name := range []string{"defaults", "everything"} {
		t.Run(name, func(t *testing.T) {
			got, reading := read(t, memory(t, d, fieldOptions()[name]))
			check(t, got, reading)
		})
	}
}

// about are the samples that have all the words.
func (s series) about(words ...string) series {
	found := series{}
	for _, name := range s.with(words...) {
		found[name] = s[name]
	}
	return found
}

// same compares samples whole.
func same(t testing.TB, got, want series) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
}

// values lists what a label stands for, each once, sorted.
func (s series) values(label string) []string {
	found := map[string]bool{}
	for name := range s {
		for _, m := range regexp.MustCompile(`[{,]`+label+`="([^"]*)"`).FindAllStringSubmatch(name, -1) {
			found[m[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// on lists the priorities that are 1 among a port's PFC of a source.
func on(got series, port, source string) string {
	var found []string
	for name, value := range got.about(`roce_pfc_enabled{port="`+port+`",`, `source="`+source+`"`) {
		if value == 1 {
			found = append(found, series{name: 1}.values("priority")...)
		}
	}
	slices.Sort(found)
	return strings.Join(found, ",")
}

// Some builds do not have every counter, or store an empty text for it.
func TestCounterThatABuildLeavesOut(t *testing.T) {
	either(t, sonictest.Databases{"COUNTERS_DB": {
		"COUNTERS_PORT_NAME_MAP": {"Ethernet48": "oid:0x10000000000a1", "Ethernet56": "oid:0x10000000000a2"},
		"COUNTERS:oid:0x10000000000a1": {
			"SAI_PORT_STAT_IF_IN_OCTETS": "4100", "SAI_PORT_STAT_IF_OUT_OCTETS": "5200", "SAI_PORT_STAT_IF_IN_DISCARDS": "31",
			"SAI_PORT_STAT_IN_DROPPED_PKTS": "6", "SAI_PORT_STAT_PFC_3_RX_PKTS": "71", "SAI_PORT_STAT_PFC_4_RX_PKTS": "72",
		},
		"COUNTERS:oid:0x10000000000a2": {
			"SAI_PORT_STAT_IF_IN_OCTETS": "4300", "SAI_PORT_STAT_IF_OUT_OCTETS": "5400", "SAI_PORT_STAT_IF_IN_DISCARDS": "0",
			"SAI_PORT_STAT_PFC_3_RX_PKTS": "73", "SAI_PORT_STAT_PFC_4_RX_PKTS": "",
		},
	}}, func(t *testing.T, got series, reading Reading) {
		same(t, got.about("_total{"), series{
			`roce_port_receive_bytes_total{port="Ethernet48"}`:                  4100,
			`roce_port_transmit_bytes_total{port="Ethernet48"}`:                 5200,
			`roce_port_receive_discarded_packets_total{port="Ethernet48"}`:      31,
			`roce_port_receive_buffer_dropped_packets_total{port="Ethernet48"}`: 6,
			`roce_pfc_receive_frames_total{port="Ethernet48",priority="3"}`:     71,
			`roce_pfc_receive_frames_total{port="Ethernet48",priority="4"}`:     72,
			`roce_port_receive_bytes_total{port="Ethernet56"}`:                  4300,
			`roce_port_transmit_bytes_total{port="Ethernet56"}`:                 5400,
			`roce_port_receive_discarded_packets_total{port="Ethernet56"}`:      0,
			`roce_pfc_receive_frames_total{port="Ethernet56",priority="3"}`:     73,
		})
		if reading.Skipped.Unparsable != 1 {
			t.Errorf("%+v, want the empty text counted", reading.Skipped)
		}
	})
}

// Multicast queues and lossy priority groups have no watermark, or a text in
// its place; what stands in COUNTERS is the last poll's peak.
func TestWatermarkThatTheChipDoesNotKeep(t *testing.T) {
	const pg = "SAI_INGRESS_PRIORITY_GROUP_STAT_"
	d := sonictest.Databases{"COUNTERS_DB": {
		"COUNTERS_PORT_NAME_MAP":   {"Ethernet24": "oid:0x10000000000b1"},
		"COUNTERS_QUEUE_NAME_MAP":  {"Ethernet24:4": "oid:0x150000000000b4", "Ethernet24:12": "oid:0x150000000000bc"},
		"COUNTERS_QUEUE_INDEX_MAP": {"oid:0x150000000000b4": "4", "oid:0x150000000000bc": "12"},
		"COUNTERS_QUEUE_TYPE_MAP":  {"oid:0x150000000000b4": "SAI_QUEUE_TYPE_UNICAST", "oid:0x150000000000bc": "SAI_QUEUE_TYPE_MULTICAST"},
		"COUNTERS:oid:0x150000000000b4": {
			"SAI_QUEUE_STAT_PACKETS": "611", "SAI_QUEUE_STAT_BYTES": "90210", "SAI_QUEUE_STAT_DROPPED_PACKETS": "0",
			"SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES": "4096",
		},
		"COUNTERS:oid:0x150000000000bc": {"SAI_QUEUE_STAT_PACKETS": "0", "SAI_QUEUE_STAT_BYTES": "0"},
		"COUNTERS_PG_NAME_MAP":          {"Ethernet24:4": "oid:0x1a0000000000b4", "Ethernet24:0": "oid:0x1a0000000000b0"},
		"COUNTERS_PG_INDEX_MAP":         {"oid:0x1a0000000000b4": "4", "oid:0x1a0000000000b0": "0"},
		"COUNTERS:oid:0x1a0000000000b4": {pg + "SHARED_WATERMARK_BYTES": "777"},
		"COUNTERS:oid:0x1a0000000000b0": {pg + "DROPPED_PACKETS": "8"},

		"USER_WATERMARKS:oid:0x1a0000000000b4":       {pg + "SHARED_WATERMARK_BYTES": "", pg + "XOFF_ROOM_WATERMARK_BYTES": "N/A"},
		"PERSISTENT_WATERMARKS:oid:0x1a0000000000b0": {pg + "SHARED_WATERMARK_BYTES": "0"},
	}}
	got, reading := read(t, memory(t, d, everything()))
	same(t, got.about("roce_queue_"), series{
		`roce_queue_packets_total{port="Ethernet24",queue="4",type="unicast"}`:         611,
		`roce_queue_bytes_total{port="Ethernet24",queue="4",type="unicast"}`:           90210,
		`roce_queue_dropped_packets_total{port="Ethernet24",queue="4",type="unicast"}`: 0,
		`roce_queue_packets_total{port="Ethernet24",queue="12",type="multicast"}`:      0,
		`roce_queue_bytes_total{port="Ethernet24",queue="12",type="multicast"}`:        0,
	})
	same(t, got.about("roce_pg_"), series{
		`roce_pg_dropped_packets_total{pg="0",port="Ethernet24"}`:               8,
		`roce_pg_watermark_bytes{pg="0",port="Ethernet24",window="persistent"}`: 0,
	})
	if reading.Skipped.Unparsable != 2 {
		t.Errorf("%+v, want both texts counted", reading.Skipped)
	}
}

// chipQueues makes queues of one port: index and type by place.
func chipQueues(port string, queues map[int][2]string) sonictest.Databases {
	names, indices, types := map[string]string{}, map[string]string{}, map[string]string{}
	counters := map[string]map[string]string{
		"COUNTERS_PORT_NAME_MAP": {port: "oid:0x10000000000c1"}, "COUNTERS_QUEUE_NAME_MAP": names,
		"COUNTERS_QUEUE_INDEX_MAP": indices, "COUNTERS_QUEUE_TYPE_MAP": types,
	}
	for place, q := range queues {
		oid := "oid:0x15000000000c" + strconv.Itoa(10+place)
		names[port+":"+strconv.Itoa(place)], indices[oid], types[oid] = oid, q[0], "SAI_QUEUE_TYPE_"+q[1]
		counters["COUNTERS:"+oid] = map[string]string{"SAI_QUEUE_STAT_PACKETS": strconv.Itoa(3000 + place)}
	}
	return sonictest.Databases{"COUNTERS_DB": counters}
}

func TestQueueNumbersOfUnicastAndMulticast(t *testing.T) {
	for name, c := range map[string]struct {
		queues map[int][2]string
		want   series
	}{
		"multicast numbers run on past the unicast ones": {
			map[int][2]string{
				0: {"0", "UNICAST"}, 2: {"2", "UNICAST"}, 9: {"9", "UNICAST"},
				10: {"10", "MULTICAST"}, 12: {"12", "MULTICAST"}, 19: {"19", "MULTICAST"},
			},
			series{
				`roce_queue_packets_total{port="Ethernet8",queue="0",type="unicast"}`:    3000,
				`roce_queue_packets_total{port="Ethernet8",queue="2",type="unicast"}`:    3002,
				`roce_queue_packets_total{port="Ethernet8",queue="9",type="unicast"}`:    3009,
				`roce_queue_packets_total{port="Ethernet8",queue="10",type="multicast"}`: 3010,
				`roce_queue_packets_total{port="Ethernet8",queue="12",type="multicast"}`: 3012,
				`roce_queue_packets_total{port="Ethernet8",queue="19",type="multicast"}`: 3019,
			},
		},
		"the chip counts anew for each type": {
			map[int][2]string{3: {"3", "UNICAST"}, 8: {"0", "MULTICAST"}, 11: {"3", "MULTICAST"}},
			series{
				`roce_queue_packets_total{port="Ethernet8",queue="3",type="unicast"}`:   3003,
				`roce_queue_packets_total{port="Ethernet8",queue="0",type="multicast"}`: 3008,
				`roce_queue_packets_total{port="Ethernet8",queue="3",type="multicast"}`: 3011,
			},
		},
		"the chip has queues for everything": {
			map[int][2]string{3: {"3", "ALL"}},
			series{`roce_queue_packets_total{port="Ethernet8",queue="3",type="all"}`: 3003},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, reading := read(t, memory(t, chipQueues("Ethernet8", c.queues), everything()))
			same(t, got.about("roce_queue_"), c.want)
			if reading.Skipped.Duplicate != 0 {
				t.Errorf("%+v, want no duplicate", reading.Skipped)
			}
		})
	}
}

// On a chassis the same index is an egress queue of the port and a virtual
// output queue on every card that sends to it.
func TestVirtualOutputQueuesOfAChassis(t *testing.T) {
	chassis := func(fields ...string) sonictest.Databases {
		d := sonictest.Databases{"COUNTERS_DB": {
			"COUNTERS_PORT_NAME_MAP":  {"Ethernet16": "oid:0x10000000000d1"},
			"COUNTERS_QUEUE_NAME_MAP": {"Ethernet16:4": "oid:0x150000000000d4"},
			"COUNTERS_VOQ_NAME_MAP": {
				"card-3|asic0|Ethernet16:4": "oid:0x150000000001d4",
				"card-5|asic0|Ethernet16:4": "oid:0x150000000002d4",
				"card-5|asic0|Ethernet24:4": "oid:0x150000000003d4", // Its hash is in another namespace.
			},
			"COUNTERS_QUEUE_TYPE_MAP": {
				"oid:0x150000000000d4": "SAI_QUEUE_TYPE_UNICAST", "oid:0x150000000001d4": "SAI_QUEUE_TYPE_UNICAST_VOQ",
				"oid:0x150000000002d4": "SAI_QUEUE_TYPE_UNICAST_VOQ", "oid:0x150000000003d4": "SAI_QUEUE_TYPE_UNICAST_VOQ",
			},
			"COUNTERS_QUEUE_INDEX_MAP": {
				"oid:0x150000000000d4": "4", "oid:0x150000000001d4": "4", "oid:0x150000000002d4": "4", "oid:0x150000000003d4": "4",
			},
			"COUNTERS:oid:0x10000000000d1":  {"SAI_PORT_STAT_PFC_4_RX_PKTS": "1"},
			"COUNTERS:oid:0x150000000000d4": {"SAI_QUEUE_STAT_PACKETS": "900", "SAI_QUEUE_STAT_DROPPED_PACKETS": "0"},
			"COUNTERS:oid:0x150000000001d4": {"SAI_QUEUE_STAT_PACKETS": "900", "SAI_QUEUE_STAT_DROPPED_PACKETS": "14"},
			"COUNTERS:oid:0x150000000002d4": {"SAI_QUEUE_STAT_PACKETS": "55", "SAI_QUEUE_STAT_DROPPED_PACKETS": "27"},
		}}
		if len(fields) > 0 {
			d["CONFIG_DB"] = map[string]map[string]string{"DEVICE_METADATA|localhost": {"hostname": fields[0], "asic_name": fields[1]}}
		}
		return d
	}
	const packets, dropped = `roce_voq_packets_total{queue="4",system_port=`, `roce_voq_dropped_packets_total{queue="4",system_port=`
	for name, c := range map[string]struct {
		databases sonictest.Databases
		voq       string
		want      series
	}{
		"nobody says which card is this one": {chassis(), "all", series{
			packets + `"card-3|asic0|Ethernet16"}`: 900, dropped + `"card-3|asic0|Ethernet16"}`: 14,
			packets + `"card-5|asic0|Ethernet16"}`: 55, dropped + `"card-5|asic0|Ethernet16"}`: 27,
		}},
		"this is card 5": {chassis("card-5", "Asic0"), "all", series{
			packets + `"card-5|asic0|Ethernet16"}`: 55, dropped + `"card-5|asic0|Ethernet16"}`: 27,
		}},
		"drops only": {chassis(), "dropped", series{
			dropped + `"card-3|asic0|Ethernet16"}`: 14, dropped + `"card-5|asic0|Ethernet16"}`: 27,
		}},
		"not wanted": {chassis(), "off", series{}},
	} {
		t.Run(name, func(t *testing.T) {
			options := everything()
			options.VOQ = c.voq
			got, reading := read(t, memory(t, c.databases, options))
			same(t, got.about("roce_voq_"), c.want)
			same(t, got.about("roce_queue_"), series{
				`roce_queue_packets_total{port="Ethernet16",queue="4",type="unicast"}`:         900,
				`roce_queue_dropped_packets_total{port="Ethernet16",queue="4",type="unicast"}`: 0,
			})
			if reading.Skipped.Duplicate+reading.Skipped.Unparsable != 0 {
				t.Errorf("%+v, want neither duplicates nor rubbish", reading.Skipped)
			}
		})
	}
}

// What is configured and what is programmed may differ in both directions;
// each port's mask stands for itself.
func TestPFCMaskThatDiffersFromTheConfiguration(t *testing.T) {
	const pfc, port = "SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL", "ASIC_STATE:SAI_OBJECT_TYPE_PORT:"
	d := sonictest.Databases{
		"COUNTERS_DB": {"COUNTERS_PORT_NAME_MAP": {
			"Ethernet0": "oid:0x10000000000e0", "Ethernet8": "oid:0x10000000000e1", "Ethernet16": "oid:0x10000000000e2",
			"Ethernet24": "oid:0x10000000000e3", "Ethernet32": "oid:0x10000000000e4",
		}},
		"CONFIG_DB": {
			"PORT_QOS_MAP|Ethernet0": {"pfc_enable": "2,5"}, "PORT_QOS_MAP|Ethernet8": {"pfc_enable": "2,5"},
			"PORT_QOS_MAP|Ethernet16": {"pfc_enable": ""}, "PORT_QOS_MAP|Ethernet24": {"pfc_enable": "5,2"},
		},
		"ASIC_DB": {
			port + "oid:0x10000000000e0": {pfc: "36"}, port + "oid:0x10000000000e1": {"NULL": "NULL", "SAI_PORT_ATTR_ADMIN_STATE": "true"},
			port + "oid:0x10000000000e2": {pfc: "32"}, port + "oid:0x10000000000e3": {pfc: "36"}, port + "oid:0x10000000000e4": {"NULL": "NULL"},
		},
	}
	situations := map[string]struct{ configured, programmed string }{
		"Ethernet0":  {"2,5", "2,5"}, // As configured.
		"Ethernet8":  {"2,5", ""},    // Never programmed.
		"Ethernet16": {"", "5"},      // Taken out of the configuration, but not out of the chip.
		"Ethernet24": {"2,5", "2,5"}, // The order does not matter.
		"Ethernet32": {"", ""},       // Never had PFC.
	}
	check := func(t *testing.T, got series, rows map[string]int) {
		t.Helper()
		for name, c := range situations {
			if configured, programmed := on(got, name, "config"), on(got, name, "asic"); configured != c.configured || programmed != c.programmed {
				t.Errorf("%s: %q configured, %q programmed, want %q and %q", name, configured, programmed, c.configured, c.programmed)
			}
			for _, source := range []string{"config", "asic"} {
				want := 8
				if n, ok := rows[name+" "+source]; ok {
					want = n
				}
				if n := len(got.with(`roce_pfc_enabled{port="`+name+`",`, source)); n != want {
					t.Errorf("%s: %d priorities of source %s, want %d", name, n, source, want)
				}
			}
		}
	}
	t.Run("nobody says which ports there are", func(t *testing.T) {
		either(t, d, func(t *testing.T, got series, _ Reading) { check(t, got, map[string]int{"Ethernet32 config": 0}) })
	})
	t.Run("all ports are configured", func(t *testing.T) {
		for name := range situations {
			d["CONFIG_DB"]["PORT|"+name] = map[string]string{"mtu": "9100"}
		}
		either(t, d, func(t *testing.T, got series, _ Reading) { check(t, got, nil) })
	})
}

// The status field goes away with the watchdog, the counters stay.
func TestWatchdogThatWasStopped(t *testing.T) {
	const stats = "PFC_WD_QUEUE_STATS_"
	either(t, sonictest.Databases{
		"COUNTERS_DB": {
			"COUNTERS_PORT_NAME_MAP": {"Ethernet40": "oid:0x10000000000f1"},
			"COUNTERS_QUEUE_NAME_MAP": {
				"Ethernet40:2": "oid:0x150000000000f2", "Ethernet40:3": "oid:0x150000000000f3",
				"Ethernet40:4": "oid:0x150000000000f4", "Ethernet40:5": "oid:0x150000000000f5",
			},
			"COUNTERS_QUEUE_INDEX_MAP": {"oid:0x150000000000f2": "2", "oid:0x150000000000f3": "3", "oid:0x150000000000f4": "4", "oid:0x150000000000f5": "5"},
			"COUNTERS_QUEUE_TYPE_MAP": {
				"oid:0x150000000000f2": "SAI_QUEUE_TYPE_UNICAST", "oid:0x150000000000f3": "SAI_QUEUE_TYPE_UNICAST",
				"oid:0x150000000000f4": "SAI_QUEUE_TYPE_UNICAST", "oid:0x150000000000f5": "SAI_QUEUE_TYPE_UNICAST",
			},
			"COUNTERS:oid:0x150000000000f2": {"PFC_WD_STATUS": "operational", "PFC_WD_DETECTION_TIME": "300000", "PFC_WD_RESTORATION_TIME": "400000", "PFC_WD_ACTION": "drop"},
			"COUNTERS:oid:0x150000000000f3": {
				"PFC_WD_STATUS": "stormed", "PFC_WD_DETECTION_TIME": "300000", "PFC_WD_RESTORATION_TIME": "400000", "PFC_WD_ACTION": "drop",
				stats + "DEADLOCK_DETECTED": "12", stats + "DEADLOCK_RESTORED": "11",
				stats + "TX_DROPPED_PACKETS": "710", stats + "RX_DROPPED_PACKETS": "720", stats + "TX_DROPPED_PACKETS_LAST": "9",
			},
			"COUNTERS:oid:0x150000000000f4": {stats + "DEADLOCK_DETECTED": "6", stats + "DEADLOCK_RESTORED": "6", stats + "TX_DROPPED_PACKETS": "810"},
			"COUNTERS:oid:0x150000000000f5": {"SAI_QUEUE_STAT_PACKETS": "33"},
		},
		"CONFIG_DB": {"PFC_WD|Ethernet40": {"action": "drop", "detection_time": "300", "restoration_time": "400"}},
	}, func(t *testing.T, got series, _ Reading) {
		same(t, got.about("roce_pfcwd_"), series{
			`roce_pfcwd_action_info{action="drop",port="Ethernet40"}`:                            1,
			`roce_pfcwd_detection_time_seconds{port="Ethernet40"}`:                               0.3,
			`roce_pfcwd_restoration_time_seconds{port="Ethernet40"}`:                             0.4,
			`roce_pfcwd_storm_active{port="Ethernet40",queue="2"}`:                               0,
			`roce_pfcwd_storms_detected_total{port="Ethernet40",queue="2"}`:                      0,
			`roce_pfcwd_storms_restored_total{port="Ethernet40",queue="2"}`:                      0,
			`roce_pfcwd_storm_active{port="Ethernet40",queue="3"}`:                               1,
			`roce_pfcwd_storms_detected_total{port="Ethernet40",queue="3"}`:                      12,
			`roce_pfcwd_storms_restored_total{port="Ethernet40",queue="3"}`:                      11,
			`roce_pfcwd_dropped_packets_total{direction="transmit",port="Ethernet40",queue="3"}`: 710,
			`roce_pfcwd_dropped_packets_total{direction="receive",port="Ethernet40",queue="3"}`:  720,
			`roce_pfcwd_storms_detected_total{port="Ethernet40",queue="4"}`:                      6,
			`roce_pfcwd_storms_restored_total{port="Ethernet40",queue="4"}`:                      6,
			`roce_pfcwd_dropped_packets_total{direction="transmit",port="Ethernet40",queue="4"}`: 810,
		})
	})
}

// Dual-ToR has four lossless priorities and the watchdog on two of them.
func TestWatchdogOnSomeOfTheLosslessPriorities(t *testing.T) {
	dualToR := func(qos map[string]string) sonictest.Databases {
		return sonictest.Databases{
			"CONFIG_DB": {
				"PORT_QOS_MAP|Ethernet72": qos,
				"PFC_WD|Ethernet72":       {"action": "drop", "detection_time": "200", "restoration_time": "200"},
			},
			"COUNTERS_DB": {"COUNTERS_PORT_NAME_MAP": {"Ethernet72": "oid:0x1000000000111"}},
			"ASIC_DB":     {"ASIC_STATE:SAI_OBJECT_TYPE_PORT:oid:0x1000000000111": {"SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL": "92"}},
		}
	}
	for name, c := range map[string]struct {
		qos      map[string]string
		expected series
	}{
		"the watchdog has a list of its own": {map[string]string{"pfc_enable": "2,3,4,6", "pfcwd_sw_enable": "3,4"}, series{
			`roce_pfcwd_enabled{port="Ethernet72",queue="3"}`: 1, `roce_pfcwd_enabled{port="Ethernet72",queue="4"}`: 1,
		}},
		"it has none": {map[string]string{"pfc_enable": "2,3,4,6"}, series{
			`roce_pfcwd_enabled{port="Ethernet72",queue="2"}`: 1, `roce_pfcwd_enabled{port="Ethernet72",queue="3"}`: 1,
			`roce_pfcwd_enabled{port="Ethernet72",queue="4"}`: 1, `roce_pfcwd_enabled{port="Ethernet72",queue="6"}`: 1,
		}},
		"its list is empty": {map[string]string{"pfc_enable": "2,3,4,6", "pfcwd_sw_enable": ""}, series{}},
	} {
		t.Run(name, func(t *testing.T) {
			either(t, dualToR(c.qos), func(t *testing.T, got series, _ Reading) {
				for _, source := range []string{"config", "asic"} {
					if mask := on(got, "Ethernet72", source); mask != "2,3,4,6" {
						t.Errorf("source %s has priorities %s, want 2,3,4,6", source, mask)
					}
				}
				if queues := got.about("roce_queue_lossless").values("queue"); !slices.Equal(queues, []string{"2", "3", "4", "6"}) {
					t.Errorf("lossless queues %q", queues)
				}
				same(t, got.about("roce_pfcwd_enabled"), c.expected)
			})
		})
	}
}

// Keys of CONFIG_DB may name several ports, a range of queues, or all ports.
func TestKeysThatNameSeveralPortsAndQueues(t *testing.T) {
	either(t, sonictest.Databases{"CONFIG_DB": {
		"PORT|Ethernet80": {"mtu": "9100"}, "PORT|Ethernet88": {"mtu": "9100"}, "PORT|Ethernet96": {"mtu": "9100"},
		"PORT_QOS_MAP|global":                 {"dscp_to_tc_map": "FABRIC"},
		"PORT_QOS_MAP|Ethernet80,Ethernet88":  {"pfc_enable": "4,5", "tc_to_queue_map": "FABRIC"},
		"QUEUE|Ethernet80,Ethernet88|4-5":     {"wred_profile": "MARKING"},
		"BUFFER_PG|Ethernet80,Ethernet88|4-5": {"profile": "NULL"},
		"BUFFER_PG|Ethernet80|0":              {"profile": "lossy"},
		"DSCP_TO_TC_MAP|FABRIC":               {"26": "4"},
		"TC_TO_QUEUE_MAP|FABRIC":              {"4": "4", "5": "5"},
		"WRED_PROFILE|MARKING":                {"ecn": "ecn_all", "wred_green_enable": "true", "green_min_threshold": "300000", "green_max_threshold": "900000"},
	}}, func(t *testing.T, got series, reading Reading) {
		want := series{}
		for _, port := range []string{"Ethernet80", "Ethernet88"} {
			for _, n := range []string{"4", "5"} {
				want[`roce_queue_lossless{port="`+port+`",priority="`+n+`",queue="`+n+`",type="unicast"}`] = 1
				want[`roce_queue_ecn_enabled{port="`+port+`",queue="`+n+`"}`] = 1
				want[`roce_queue_ecn_threshold_bytes{bound="min",color="green",port="`+port+`",queue="`+n+`"}`] = 300000
				want[`roce_queue_ecn_threshold_bytes{bound="max",color="green",port="`+port+`",queue="`+n+`"}`] = 900000
				want[`roce_pg_lossless{pg="`+n+`",port="`+port+`",priority="`+n+`"}`] = 1
			}
			want[`roce_port_dscp_info{dscp="26",port="`+port+`",priority="4",queue="4"}`] = 1
			if mask := on(got, port, "config"); mask != "4,5" {
				t.Errorf("%s: PFC for %q, want 4,5", port, mask)
			}
		}
		for _, family := range []string{"roce_queue_", "roce_pg_", "roce_port_dscp_info"} {
			same(t, got.about(family), want.about(family))
		}
		if mask := on(got, "Ethernet96", "config"); mask != "" {
			t.Errorf("Ethernet96: PFC for %q, want none", mask)
		}
		if ports := got.values("port"); !slices.Equal(ports, []string{"Ethernet80", "Ethernet88", "Ethernet96"}) {
			t.Errorf("ports %q", ports)
		}
		if reading.Skipped != (Skipped{}) {
			t.Errorf("%+v, want nothing skipped", reading.Skipped)
		}
	})
}

// Pause time comes measured, estimated, or in the unknown unit of the chip.
func TestPauseTimeInThreeSpellings(t *testing.T) {
	const frames = `roce_pfc_receive_frames_total{port=`
	either(t, sonictest.Databases{"COUNTERS_DB": {
		"COUNTERS_PORT_NAME_MAP":       {"Ethernet104": "oid:0x1000000000121", "Ethernet112": "oid:0x1000000000122", "Ethernet120": "oid:0x1000000000123"},
		"COUNTERS:oid:0x1000000000121": {"SAI_PORT_STAT_PFC_4_RX_PKTS": "61", "SAI_PORT_STAT_PFC_4_RX_PAUSE_DURATION_US": "30500007"},
		"COUNTERS:oid:0x1000000000122": {
			"SAI_PORT_STAT_PFC_4_RX_PKTS": "62", "EST_PORT_STAT_PFC_4_RX_PAUSE_DURATION_US": "7500000", "EST_PORT_STAT_PFC_4_ON2OFF_RX_PKTS": "15",
			"EST_PORT_STAT_PFC_4_RECENT_PAUSE_TIMESTAMP": "1700000000000000", "EST_PORT_STAT_PFC_4_RECENT_PAUSE_TIME_US": "400000",
		},
		"COUNTERS:oid:0x1000000000123": {"SAI_PORT_STAT_PFC_4_RX_PKTS": "63", "SAI_PORT_STAT_PFC_4_RX_PAUSE_DURATION": "91234"},
	}}, func(t *testing.T, got series, _ Reading) {
		same(t, got.about("roce_pfc_"), series{
			frames + `"Ethernet104",priority="4"}`: 61, frames + `"Ethernet112",priority="4"}`: 62, frames + `"Ethernet120",priority="4"}`: 63,
			`roce_pfc_receive_pause_seconds_total{method="measured",port="Ethernet104",priority="4"}`:  30.500007,
			`roce_pfc_receive_pause_seconds_total{method="estimated",port="Ethernet112",priority="4"}`: 7.5,
			`roce_pfc_receive_transitions_total{port="Ethernet112",priority="4"}`:                      15,
			`roce_pfc_receive_pause_raw_total{port="Ethernet120",priority="4"}`:                        91234,
		})
	})
}

// Watermarks are kept for each kind of reader and go back at its wish: gauges,
// each under the label of its window.
func TestWatermarksOfSeveralReaders(t *testing.T) {
	const pg, pool = "SAI_INGRESS_PRIORITY_GROUP_STAT_", "SAI_BUFFER_POOL_STAT_"
	d := sonictest.Databases{"COUNTERS_DB": {
		"COUNTERS_PORT_NAME_MAP":                     {"Ethernet128": "oid:0x1000000000131"},
		"COUNTERS_PG_NAME_MAP":                       {"Ethernet128:5": "oid:0x1a000000000135"},
		"COUNTERS_PG_INDEX_MAP":                      {"oid:0x1a000000000135": "5"},
		"COUNTERS:oid:0x1a000000000135":              {pg + "DROPPED_PACKETS": "42"},
		"USER_WATERMARKS:oid:0x1a000000000135":       {pg + "SHARED_WATERMARK_BYTES": "510", pg + "XOFF_ROOM_WATERMARK_BYTES": "52"},
		"PERSISTENT_WATERMARKS:oid:0x1a000000000135": {pg + "SHARED_WATERMARK_BYTES": "610", pg + "XOFF_ROOM_WATERMARK_BYTES": "62"},
		"COUNTERS_BUFFER_POOL_NAME_MAP":              {"ingress_lossless_pool": "oid:0x18000000000139"},
		"USER_WATERMARKS:oid:0x18000000000139":       {pool + "WATERMARK_BYTES": "7100"},
		"PERIODIC_WATERMARKS:oid:0x18000000000139":   {pool + "WATERMARK_BYTES": "0"},
	}}
	_, out := collect(t, memory(t, d, everything()))
	got := parse(t, out)
	same(t, got.about("roce_pg_"), series{
		`roce_pg_dropped_packets_total{pg="5",port="Ethernet128"}`:                        42,
		`roce_pg_watermark_bytes{pg="5",port="Ethernet128",window="user"}`:                510,
		`roce_pg_watermark_bytes{pg="5",port="Ethernet128",window="persistent"}`:          610,
		`roce_pg_headroom_watermark_bytes{pg="5",port="Ethernet128",window="user"}`:       52,
		`roce_pg_headroom_watermark_bytes{pg="5",port="Ethernet128",window="persistent"}`: 62,
	})
	same(t, got.about("roce_buffer_pool_"), series{
		`roce_buffer_pool_watermark_bytes{pool="ingress_lossless_pool",window="user"}`:     7100,
		`roce_buffer_pool_watermark_bytes{pool="ingress_lossless_pool",window="periodic"}`: 0,
	})
	onlyCountersEndInTotal(t, out)
}

// A group that is off has no name map, or leaves its last values there.
func TestCounterGroupThatIsOff(t *testing.T) {
	ports := func() sonictest.Databases {
		return sonictest.Databases{
			"CONFIG_DB": {
				"FLEX_COUNTER_TABLE|PORT":           {"FLEX_COUNTER_STATUS": "enable"},
				"FLEX_COUNTER_TABLE|QUEUE":          {"FLEX_COUNTER_STATUS": "enable"},
				"FLEX_COUNTER_TABLE|WRED_ECN_QUEUE": {"FLEX_COUNTER_STATUS": "enable"},
				"PORT|Ethernet136":                  {"mtu": "9100"},
				"PORT_QOS_MAP|Ethernet136":          {"pfc_enable": "3"},
			},
			"COUNTERS_DB": {
				"COUNTERS_PORT_NAME_MAP":       {"Ethernet136": "oid:0x1000000000141"},
				"COUNTERS:oid:0x1000000000141": {"SAI_PORT_STAT_PFC_3_RX_PKTS": "88"},
			},
		}
	}
	queues := func() sonictest.Databases {
		d := ports()
		maps.Copy(d["COUNTERS_DB"], map[string]map[string]string{
			"COUNTERS_QUEUE_NAME_MAP":  {"Ethernet136:3": "oid:0x15000000000143"},
			"COUNTERS_QUEUE_INDEX_MAP": {"oid:0x15000000000143": "3"},
			"COUNTERS_QUEUE_TYPE_MAP":  {"oid:0x15000000000143": "SAI_QUEUE_TYPE_UNICAST"},
			"COUNTERS:oid:0x15000000000143": {
				"SAI_QUEUE_STAT_PACKETS": "1", "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS": "2", "SAI_QUEUE_STAT_WRED_DROPPED_PACKETS": "3",
			},
		})
		return d
	}
	const labels = `{port="Ethernet136",queue="3",type="unicast"}`
	packets := series{"roce_queue_packets_total" + labels: 1}
	marks := series{"roce_queue_ecn_marked_packets_total" + labels: 2, "roce_queue_wred_dropped_packets_total" + labels: 3}
	both := series{}
	maps.Copy(both, packets)
	maps.Copy(both, marks)
	for name, c := range map[string]struct {
		databases sonictest.Databases
		off       []string
		want      series
	}{
		"all are on":                             {queues(), nil, both},
		"queues are off and have no name map":    {ports(), []string{"QUEUE", "WRED_ECN_QUEUE"}, series{}},
		"queues are off and left their values":   {queues(), []string{"QUEUE", "WRED_ECN_QUEUE"}, series{}},
		"marks are off and left their values":    {queues(), []string{"WRED_ECN_QUEUE"}, packets},
		"queues are off while marks are polled":  {queues(), []string{"QUEUE"}, marks},
		"queues are on but have no name map yet": {ports(), nil, series{}},
	} {
		t.Run(name, func(t *testing.T) {
			states := series{
				`roce_flex_counter_enabled{group="PORT"}`: 1, `roce_flex_counter_enabled{group="QUEUE"}`: 1,
				`roce_flex_counter_enabled{group="WRED_ECN_QUEUE"}`: 1,
			}
			for _, group := range c.off {
				c.databases["CONFIG_DB"]["FLEX_COUNTER_TABLE|"+group]["FLEX_COUNTER_STATUS"] = "disable"
				states[`roce_flex_counter_enabled{group="`+group+`"}`] = 0
			}
			either(t, c.databases, func(t *testing.T, got series, reading Reading) {
				same(t, got.about("roce_queue_", `type="unicast"}`, "_total{"), c.want)
				same(t, got.about("roce_flex_counter_enabled"), states)
				got.has(t, `roce_pfc_receive_frames_total{port="Ethernet136",priority="3"}`, 88)
				if reading.Skipped != (Skipped{}) || len(reading.Sources) != 1 || reading.Sources[0].Err != nil {
					t.Errorf("%+v %+v, want success and nothing skipped", reading.Skipped, reading.Sources)
				}
			})
		})
	}
}

// While a port is down its speed is a text or what it was before.
func TestSpeedOfAPortThatIsDown(t *testing.T) {
	const configured, operating = "roce_port_configured_speed_bytes_per_second", "roce_port_speed_bytes_per_second"
	d := sonictest.Databases{"CONFIG_DB": {}, "APPL_DB": {}, "STATE_DB": {}}
	want := series{}
	for port, c := range map[string]struct {
		admin, oper, speed string
		want               float64 // 0: absent.
	}{
		"Ethernet144": {"up", "up", "400000", 50e9},
		"Ethernet152": {"up", "up", "100000", 12.5e9}, // Slower than configured.
		"Ethernet160": {"up", "up", "N/A", 0},
		"Ethernet168": {"up", "up", "", 0},
		"Ethernet176": {"up", "up", "4294967295", 0},
		"Ethernet184": {"up", "down", "400000", 0},
		"Ethernet192": {"down", "down", "100000", 0},
	} {
		d["CONFIG_DB"]["PORT|"+port] = map[string]string{"speed": "400000", "admin_status": c.admin}
		d["APPL_DB"]["PORT_TABLE:"+port] = map[string]string{"speed": "400000", "admin_status": c.admin, "oper_status": c.oper}
		d["STATE_DB"]["PORT_TABLE|"+port] = map[string]string{"netdev_oper_status": c.oper, "speed": c.speed}
		labels := `{port="` + port + `"}`
		want[configured+labels] = 50e9
		if c.want != 0 {
			want[operating+labels] = c.want
		}
		number := map[string]float64{"up": 1, "down": 0}
		want["roce_port_admin_up"+labels], want["roce_port_oper_up"+labels] = number[c.admin], number[c.oper]
	}
	either(t, d, func(t *testing.T, got series, reading Reading) {
		for _, word := range []string{"speed", "_up{port="} {
			same(t, got.about("roce_port_", word), want.about(word))
		}
		if reading.Skipped.Unparsable != 0 {
			t.Errorf("%+v: no speed is no rubbish", reading.Skipped)
		}
	})
}

// Neighbours that send a MAC as port id put the port's name elsewhere, and
// the management port has neighbours of its own.
func TestNeighboursThatSayLittle(t *testing.T) {
	ports, names := map[string]map[string]string{}, map[string]string{}
	for i, port := range []string{"Ethernet200", "Ethernet208", "Ethernet216", "Ethernet224"} {
		ports["PORT|"+port] = map[string]string{"mtu": "9100"}
		names[port] = "oid:0x10000000001" + strconv.Itoa(50+i)
	}
	appl := map[string]map[string]string{
		"LLDP_ENTRY_TABLE:Ethernet200": {
			"lldp_rem_sys_name": "spine-7", "lldp_rem_port_id_subtype": "3", "lldp_rem_port_id": "02:AB:00:00:00:01", "lldp_rem_port_desc": "Ethernet64",
		},
		"LLDP_ENTRY_TABLE:Ethernet208": {
			"lldp_rem_sys_name": "spine-8", "lldp_rem_port_id_subtype": "7", "lldp_rem_port_id": "etp9b", "lldp_rem_port_desc": "to leaf-3",
		},
		"LLDP_ENTRY_TABLE:Ethernet216": {"lldp_rem_sys_name": "", "lldp_rem_port_id_subtype": "3", "lldp_rem_port_id": "02:ab:00:00:00:03", "lldp_rem_port_desc": ""},
		"LLDP_ENTRY_TABLE:eth0":        {"lldp_rem_sys_name": "management", "lldp_rem_port_id_subtype": "7", "lldp_rem_port_id": "17", "lldp_rem_port_desc": "17"},
	}
	neighbor := func(port, name, at, id string) string {
		return `roce_port_neighbor_info{neighbor="` + name + `",neighbor_kind="unknown",neighbor_port="` + at + `",neighbor_port_id="` + id + `",port="` + port + `"}`
	}
	want := series{
		neighbor("Ethernet200", "spine-7", "Ethernet64", "02:ab:00:00:00:01"): 1,
		neighbor("Ethernet208", "spine-8", "etp9b", "etp9b"):                  1,
		neighbor("Ethernet216", "", "02:ab:00:00:00:03", "02:ab:00:00:00:03"): 1,
	}
	for name, d := range map[string]sonictest.Databases{
		"the configuration names the ports": {"CONFIG_DB": ports, "APPL_DB": appl},
		"the counters name the ports":       {"COUNTERS_DB": {"COUNTERS_PORT_NAME_MAP": names}, "APPL_DB": appl},
		"nobody else names the ports":       {"APPL_DB": appl},
	} {
		t.Run(name, func(t *testing.T) {
			either(t, d, func(t *testing.T, got series, _ Reading) {
				same(t, got.about("roce_port_neighbor_info"), want)
				got.lacks(t, "eth0")
			})
		})
	}
}

// A restart of swss gives all objects other ids and lets the counters begin
// again; what the CLI saved at a "clear" is no matter of the exporter's.
func TestCountersBeginAgainAfterARestart(t *testing.T) {
	const frames = `roce_pfc_receive_frames_total{port="Ethernet232",priority="5"}`
	load := func(server *sonictest.Server, oid, value string) {
		server.Load(t, sonictest.Databases{"COUNTERS_DB": {
			"COUNTERS_PORT_NAME_MAP": {"Ethernet232": oid}, "COUNTERS:" + oid: {"SAI_PORT_STAT_PFC_5_RX_PKTS": value},
		}})
	}
	for _, name := range []string{"defaults", "everything"} {
		t.Run(name, func(t *testing.T) {
			server := sonictest.Start(t)
			s := live(t, server, fieldOptions()[name])
			load(server, "oid:0x1000000000161", "98765")
			got, _ := read(t, s)
			same(t, got.about("roce_pfc_"), series{frames: 98765})
			load(server, "oid:0x1000000000f61", "4") // The hash of the old id stays.
			got, _ = read(t, s)
			same(t, got.about("roce_pfc_"), series{frames: 4})
			got.lacks(t, "oid:")
		})
	}
}

// Port-channels and the ports of the CPU and of the management stand beside
// the Ethernet ports.
func TestPortsThatAreNoEthernetPorts(t *testing.T) {
	d := sonictest.Databases{
		"COUNTERS_DB": {
			"COUNTERS_PORT_NAME_MAP": {
				"Ethernet240": "oid:0x1000000000171", "Ethernet248": "oid:0x1000000000172", "Cpu0": "oid:0x1000000000173",
				"PortChannel12": "oid:0x2000000000174", "eth0": "oid:0x1000000000175",
			},
			"COUNTERS_LAG_NAME_MAP":        {"": "", "PortChannel12": "oid:0x2000000000174"},
			"COUNTERS:oid:0x1000000000171": {"SAI_PORT_STAT_IF_OUT_OCTETS": "1100"},
			"COUNTERS:oid:0x1000000000172": {"SAI_PORT_STAT_IF_OUT_OCTETS": "2200"},
			"COUNTERS:oid:0x1000000000173": {"SAI_PORT_STAT_IF_OUT_OCTETS": "9"},
			"COUNTERS:oid:0x2000000000174": {"SAI_PORT_STAT_IF_OUT_OCTETS": "3300"},
			"COUNTERS:oid:0x1000000000175": {"SAI_PORT_STAT_IF_OUT_OCTETS": "9"},
		},
		"CONFIG_DB": {
			"PORTCHANNEL|PortChannel12":                    {"mtu": "9100"},
			"PORTCHANNEL_MEMBER|PortChannel12|Ethernet240": {"NULL": "NULL"},
			"PORTCHANNEL_MEMBER|PortChannel12|Ethernet248": {"NULL": "NULL"},
			"MGMT_PORT|eth0":                               {"alias": "eth0", "admin_status": "up"},
		},
		"APPL_DB": {"PORT_TABLE:PortInitDone": {"lanes": "0"}, "PORT_TABLE:PortConfigDone": {"count": "2"}},
	}
	check := func(t *testing.T, got series, _ Reading) {
		same(t, got.about("roce_port_transmit_bytes_total"), series{
			`roce_port_transmit_bytes_total{port="Ethernet240"}`: 1100, `roce_port_transmit_bytes_total{port="Ethernet248"}`: 2200,
		})
		same(t, got.about("roce_port_lag_member_info"), series{
			`roce_port_lag_member_info{lag="PortChannel12",port="Ethernet240"}`: 1,
			`roce_port_lag_member_info{lag="PortChannel12",port="Ethernet248"}`: 1,
		})
		if ports := got.values("port"); !slices.Equal(ports, []string{"Ethernet240", "Ethernet248"}) {
			t.Errorf("ports %q", ports)
		}
	}
	t.Run("the counters name the ports", func(t *testing.T) { either(t, d, check) })
	t.Run("the configuration names the ports", func(t *testing.T) {
		for _, port := range []string{"Ethernet240", "Ethernet248"} {
			d["CONFIG_DB"]["PORT|"+port] = map[string]string{"mtu": "9100"}
		}
		either(t, d, check)
	})
}
