// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"testing"
	"time"

	"roce_exporter/collectors/sonic/sonictest"
)

func TestCountersThatStandStill(t *testing.T) {
	d := nvidia(t)
	server := sonictest.Start(t)
	server.Load(t, d)
	s := live(t, server, testOptions())
	const last = `roce_counters_last_change_timestamp_seconds{group="PORT"}`
	got, _ := read(t, s)
	got.lacks(t, last) // One reading tells nothing.
	got, _ = read(t, s)
	got.lacks(t, last)
	key := "COUNTERS:" + oidOf(t, d, "COUNTERS_PORT_NAME_MAP", "Ethernet0")
	move := func(field string) {
		if err := server.Client(t, "COUNTERS_DB").HIncrBy(t.Context(), key, field, 1).Err(); err != nil {
			t.Fatal(err)
		}
	}
	move("SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US") // Another group's.
	got, _ = read(t, s)
	got.lacks(t, last)
	move("SAI_PORT_STAT_IF_IN_OCTETS")
	got, _ = read(t, s)
	moved := got["roce_node_time_seconds"]
	got.has(t, last, moved)
	time.Sleep(2 * time.Millisecond)
	got, _ = read(t, s)
	got.has(t, last, moved)
	if got["roce_node_time_seconds"] <= moved {
		t.Error("the node's clock stands still too")
	}
	appl := server.Client(t, "APPL_DB")
	for _, port := range []string{"Ethernet0", "Ethernet8", "Ethernet16", "Ethernet24"} {
		if err := appl.HSet(t.Context(), "PORT_TABLE:"+port, "oper_status", "down").Err(); err != nil {
			t.Fatal(err)
		}
	}
	got, _ = read(t, s)
	got.lacks(t, last) // With no port up nothing has to move.
}

func TestNobodyKnowsWhichQueuesAreLossless(t *testing.T) {
	d := nvidia(t)
	delete(d, "CONFIG_DB")
	got, reading := read(t, memory(t, d, testOptions()))
	got.lacks(t, "roce_queue_lossless")
	got.lacks(t, "roce_queue_packets_total")
	got.lacks(t, "roce_pg_")
	got.some(t, "roce_pfc_receive_frames_total")
	got.some(t, "roce_pfcwd_storm_active") // Follows the queue's own fields.
	if reading.Skipped.Missing != 4 {
		t.Errorf("%+v, want the four ports counted as missing", reading.Skipped)
	}

	d = nvidia(t)
	delete(d["CONFIG_DB"], "MAP_PFC_PRIORITY_TO_QUEUE|AZURE")
	got, reading = read(t, memory(t, d, testOptions()))
	got.lacks(t, "roce_queue_lossless")
	if reading.Skipped.Missing != 4 {
		t.Errorf("%+v, want the four ports counted as missing", reading.Skipped)
	}
}

// The watchdog's series follow the queue's own fields, not the lossless set.
func TestStormOnAQueueThatIsNotLossless(t *testing.T) {
	d := nvidia(t)
	d["CONFIG_DB"]["PORT_QOS_MAP|Ethernet8"]["pfc_enable"] = "4"
	d["CONFIG_DB"]["PORT_QOS_MAP|Ethernet8"]["pfcwd_sw_enable"] = "4"
	options := testOptions()
	options.Policy = nil
	got, _ := read(t, memory(t, d, options))
	got.has(t, `roce_pfcwd_storm_active{port="Ethernet8",queue="3"}`, 1)
	got.has(t, `roce_pfcwd_storms_detected_total{port="Ethernet8",queue="3"}`, 8)
	got.lacks(t, "roce_queue_packets_total", `port="Ethernet8",queue="3"`)
	got.lacks(t, "roce_pfcwd_enabled", `port="Ethernet8",queue="3"`)
}

func TestPauseDurationWithAConfiguredUnit(t *testing.T) {
	d := sonictest.ReadCapture(t, "testdata/marvell")
	portCounters(t, d, "Ethernet48")["SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION"] = "2000000"
	const pause = `roce_pfc_receive_pause_seconds_total{method="configured",port="Ethernet48",priority="3"}`
	const raw = `roce_pfc_receive_pause_raw_total{port="Ethernet48",priority="3"}`
	for unit, want := range map[string]float64{"microseconds": 2, "quanta": 2e6 * 512 / 100e9} {
		options := testOptions()
		options.PauseDurationUnit = unit
		got, _ := read(t, memory(t, d, options))
		got.has(t, pause, want)
		got.has(t, raw, 2e6)
	}
	got, _ := read(t, memory(t, d, testOptions()))
	got.lacks(t, "roce_pfc_receive_pause_seconds_total")
	got.has(t, raw, 2e6)

	// What is measured comes before what is configured, and that before what
	// is estimated.
	h := sonictest.ReadCapture(t, "testdata/broadcom-history")
	hash := portCounters(t, h, "Ethernet0")
	hash["SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION"] = "5000000"
	hash["SAI_PORT_STAT_PFC_4_RX_PAUSE_DURATION"] = "5000000"
	hash["SAI_PORT_STAT_PFC_4_RX_PAUSE_DURATION_US"] = "6000000"
	options := testOptions()
	options.PauseDurationUnit = "microseconds"
	got, _ = read(t, memory(t, h, options))
	got.has(t, `roce_pfc_receive_pause_seconds_total{method="configured",port="Ethernet0",priority="3"}`, 5)
	got.has(t, `roce_pfc_receive_pause_seconds_total{method="measured",port="Ethernet0",priority="4"}`, 6)
	if n := len(got.with("roce_pfc_receive_pause_seconds_total", `"Ethernet0"`)); n != 2 {
		t.Errorf("%d pause times of two priorities", n)
	}
}

func TestFDBThatIsTooLargeIsNotWalked(t *testing.T) {
	d := nvidia(t)
	d["COUNTERS_DB"]["CRM:STATS"] = map[string]string{"crm_stats_fdb_entry_used": "20000"}
	got, _ := read(t, memory(t, d, testOptions()))
	got.lacks(t, "roce_port_fdb_entries")
	got.lacks(t, "roce_port_attached_mac_info", `"Ethernet0"`)
	got.some(t, "roce_port_mode_info")
}

func TestPortsThatAreLeftOut(t *testing.T) {
	options := testOptions()
	options.Exclude = testOptions().Policy.Ports[0].Match
	got, _ := read(t, capturedSwitch(t, "testdata/nvidia", options))
	got.lacks(t, `port="Ethernet`)
	got.some(t, "roce_flex_counter_enabled")
}
