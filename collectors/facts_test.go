// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"math"
	"strings"
	"testing"
	"time"

	"roce_exporter/collectors/sonic"
	"roce_exporter/collectors/sonic/sonictest"
)

// The tests of this file each hold one fact of SONiC's databases that misleads
// a reader who does not know it.

// A poll group that is off leaves its last values in COUNTERS_DB for ever.
func TestFact01GroupThatIsOffLeavesItsLastValues(t *testing.T) {
	server := sonictest.Start(t)
	server.Load(t, nvidia(t))
	s := live(t, server, testOptions())
	group := func(name, status string) {
		key := "FLEX_COUNTER_GROUP_TABLE:" + name
		if err := server.Client(t, "FLEX_COUNTER_DB").HSet(t.Context(), key, "FLEX_COUNTER_STATUS", status).Err(); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := read(t, s)
	got.some(t, "roce_pfc_receive_frames_total")
	got.some(t, "roce_queue_packets_total")
	got.has(t, `roce_flex_counter_enabled{group="PORT"}`, 1)

	group("PORT_STAT_COUNTER", "disable")
	got, _ = read(t, s)
	got.has(t, `roce_flex_counter_enabled{group="PORT"}`, 0)
	got.lacks(t, "roce_pfc_receive_frames_total")
	got.lacks(t, "roce_port_receive_bytes_total")
	got.some(t, "roce_queue_packets_total")
	got.some(t, "roce_pfc_receive_pause_seconds_total") // Another group polls it.

	group("PFC_WD", "disable")
	got, _ = read(t, s)
	got.lacks(t, "roce_pfc_receive_pause_seconds_total")
	got.lacks(t, "roce_queue_occupancy_bytes")

	group("PORT_STAT_COUNTER", "enable")
	got, _ = read(t, s)
	got.some(t, "roce_pfc_receive_frames_total")
}

// With no word on a group from FLEX_COUNTER_DB what CONFIG_DB asks for
// counts, and with no word from either the values are exported.
func TestFact01WhoSaysThatAGroupIsOff(t *testing.T) {
	for name, c := range map[string]struct {
		flex, config map[string]string
		polled       bool
		state        float64 // NaN: absent.
	}{
		"both silent":             {nil, nil, true, math.NaN()},
		"CONFIG_DB disables":      {nil, map[string]string{"FLEX_COUNTER_STATUS": "disable"}, false, 0},
		"CONFIG_DB delays":        {nil, map[string]string{"FLEX_COUNTER_STATUS": "enable", "FLEX_COUNTER_DELAY_STATUS": "true"}, false, 0},
		"CONFIG_DB enables":       {nil, map[string]string{"FLEX_COUNTER_STATUS": "enable"}, true, 1},
		"syncd has the last word": {map[string]string{"FLEX_COUNTER_STATUS": "disable"}, map[string]string{"FLEX_COUNTER_STATUS": "enable"}, false, 0},
		"syncd polls already":     {map[string]string{"FLEX_COUNTER_STATUS": "enable"}, map[string]string{"FLEX_COUNTER_DELAY_STATUS": "true"}, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := nvidia(t)
			delete(d["FLEX_COUNTER_DB"], "FLEX_COUNTER_GROUP_TABLE:QUEUE_STAT_COUNTER")
			delete(d["CONFIG_DB"], "FLEX_COUNTER_TABLE|QUEUE")
			if c.flex != nil {
				d["FLEX_COUNTER_DB"]["FLEX_COUNTER_GROUP_TABLE:QUEUE_STAT_COUNTER"] = c.flex
			}
			if c.config != nil {
				d["CONFIG_DB"]["FLEX_COUNTER_TABLE|QUEUE"] = c.config
			}
			got, _ := read(t, memory(t, d, testOptions()))
			if polled := len(got.with("roce_queue_packets_total")) > 0; polled != c.polled {
				t.Errorf("queue counters exported: %v, want %v", polled, c.polled)
			}
			if math.IsNaN(c.state) {
				got.lacks(t, `roce_flex_counter_enabled{group="QUEUE"}`)
			} else {
				got.has(t, `roce_flex_counter_enabled{group="QUEUE"}`, c.state)
			}
		})
	}
}

// Pause time is polled by the watchdog's group alone: what stands there for a
// priority that the watchdog does not watch is a leftover.
func TestFact02PauseTimeOnlyWhereTheWatchdogWatches(t *testing.T) {
	d := nvidia(t)
	const pause = `roce_pfc_receive_pause_seconds_total{method="measured",port=`
	got, _ := read(t, memory(t, d, testOptions()))
	got.some(t, pause+`"Ethernet0",priority="3"`)
	got.some(t, pause+`"Ethernet0",priority="4"`)

	delete(d["CONFIG_DB"], "PFC_WD|Ethernet0")
	d["CONFIG_DB"]["PORT_QOS_MAP|Ethernet8"]["pfcwd_sw_enable"] = "4"
	got, _ = read(t, memory(t, d, testOptions()))
	got.lacks(t, pause+`"Ethernet0"`)
	got.lacks(t, pause+`"Ethernet8",priority="3"`)
	got.some(t, pause+`"Ethernet8",priority="4"`)
	got.lacks(t, `roce_queue_occupancy_bytes{port="Ethernet0"`)
	got.lacks(t, `roce_queue_occupancy_bytes{port="Ethernet8",queue="3"`)
	got.some(t, `roce_queue_occupancy_bytes{port="Ethernet8",queue="4"`)

	broadcom, _ := read(t, capturedSwitch(t, "testdata/broadcom", testOptions()))
	broadcom.lacks(t, "roce_pfc_receive_pause_seconds_total")
	broadcom.some(t, "roce_pfc_receive_transitions_total")
}

// While the watchdog handles a storm it clears the priority's bit in the mask
// of ASIC_DB; the storm is visible beside it.
func TestFact03WatchdogClearsTheMaskWhileItHandlesAStorm(t *testing.T) {
	d := nvidia(t)
	server := sonictest.Start(t)
	server.Load(t, d)
	s := live(t, server, testOptions())
	mask := func(value string) {
		key := "ASIC_STATE:SAI_OBJECT_TYPE_PORT:" + oidOf(t, d, "COUNTERS_PORT_NAME_MAP", "Ethernet0")
		if err := server.Client(t, "ASIC_DB").HSet(t.Context(), key, "SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL", value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	status := func(value string) {
		key := "COUNTERS:" + oidOf(t, d, "COUNTERS_QUEUE_NAME_MAP", "Ethernet0:3")
		if err := server.Client(t, "COUNTERS_DB").HSet(t.Context(), key, "PFC_WD_STATUS", value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	check := func(asic, storm float64) {
		t.Helper()
		got, _ := read(t, s)
		got.has(t, `roce_pfc_enabled{port="Ethernet0",priority="3",source="asic"}`, asic)
		got.has(t, `roce_pfc_enabled{port="Ethernet0",priority="3",source="config"}`, 1)
		got.has(t, `roce_pfc_enabled{port="Ethernet0",priority="4",source="asic"}`, 1)
		got.has(t, `roce_pfcwd_storm_active{port="Ethernet0",queue="3"}`, storm)
	}
	check(1, 0)
	mask("16")
	status("stormed")
	check(0, 1)
	mask("24")
	status("operational")
	check(1, 0)
}

// In asymmetric mode the mask moves to another attribute and the old one
// stays; the mode says which holds.
func TestFact04AsymmetricModeMovesTheMask(t *testing.T) {
	d := nvidia(t)
	row := asicPort(t, d, "Ethernet0")
	row["SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL_MODE"] = "SAI_PORT_PRIORITY_FLOW_CONTROL_MODE_SEPARATE"
	row["SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL"] = "0"
	row["SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL_TX"] = "8"
	row["SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL_RX"] = "255"
	got, _ := read(t, memory(t, d, testOptions()))
	got.has(t, `roce_pfc_enabled{port="Ethernet0",priority="3",source="asic"}`, 1)
	got.has(t, `roce_pfc_enabled{port="Ethernet0",priority="4",source="asic"}`, 0)
	for _, priority := range []string{"0", "3", "7"} {
		got.has(t, `roce_pfc_receive_enabled{port="Ethernet0",priority="`+priority+`",source="asic"}`, 1)
	}

	row["SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL_MODE"] = "SAI_PORT_PRIORITY_FLOW_CONTROL_MODE_COMBINED"
	row["SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL"] = "16"
	got, _ = read(t, memory(t, d, testOptions()))
	got.has(t, `roce_pfc_enabled{port="Ethernet0",priority="3",source="asic"}`, 0)
	got.has(t, `roce_pfc_enabled{port="Ethernet0",priority="4",source="asic"}`, 1)
	got.lacks(t, "roce_pfc_receive_enabled")
}

// A port that never had PFC has no mask in ASIC_DB: that is 0. A port that is
// not in ASIC_DB at all is unknown.
func TestFact05PortWithoutTheMaskHasNone(t *testing.T) {
	d := nvidia(t)
	delete(asicPort(t, d, "Ethernet0"), "SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL")
	delete(d["ASIC_DB"], "ASIC_STATE:SAI_OBJECT_TYPE_PORT:"+oidOf(t, d, "COUNTERS_PORT_NAME_MAP", "Ethernet16"))
	got, reading := read(t, memory(t, d, testOptions()))
	for priority := range strings.SplitSeq("01234567", "") {
		got.has(t, `roce_pfc_enabled{port="Ethernet0",priority="`+priority+`",source="asic"}`, 0)
	}
	got.lacks(t, `roce_pfc_enabled{port="Ethernet16"`, `source="asic"`)
	got.some(t, `roce_pfc_enabled{port="Ethernet16"`, `source="config"`)
	if reading.Skipped.Missing != 1 {
		t.Errorf("%+v, want one missing", reading.Skipped)
	}
}

// The ASIC's MTU has the framing in it.
func TestFact06MTUOfTheASICIncludesFraming(t *testing.T) {
	d := nvidia(t)
	asicPort(t, d, "Ethernet0")["SAI_PORT_ATTR_MTU"] = "9122"
	asicPort(t, d, "Ethernet8")["SAI_PORT_ATTR_MTU"] = "9154"
	d["CONFIG_DB"]["PORT|Ethernet8"]["macsec"] = "profile-1"
	delete(asicPort(t, d, "Ethernet16"), "SAI_PORT_ATTR_MTU")
	asicPort(t, d, "Ethernet24")["SAI_PORT_ATTR_MTU"] = "1522"
	got, _ := read(t, memory(t, d, testOptions()))
	got.has(t, `roce_port_mtu_bytes{port="Ethernet0",source="asic"}`, 9100)
	got.has(t, `roce_port_mtu_bytes{port="Ethernet8",source="asic"}`, 9100)
	got.lacks(t, `roce_port_mtu_bytes{port="Ethernet16",source="asic"}`)
	got.has(t, `roce_port_mtu_bytes{port="Ethernet24",source="asic"}`, 1500)
	got.has(t, `roce_port_mtu_bytes{port="Ethernet24",source="config"}`, 9100)
}

// The groups that count ECN marks are off by default: absent, never 0.
func TestFact07ECNMarksAreAbsentUntilTheirGroupIsOn(t *testing.T) {
	d := nvidia(t)
	d["FLEX_COUNTER_DB"]["FLEX_COUNTER_GROUP_TABLE:WRED_ECN_QUEUE_STAT_COUNTER"]["FLEX_COUNTER_STATUS"] = "disable"
	got, _ := read(t, memory(t, d, testOptions()))
	got.lacks(t, "roce_queue_ecn_marked")
	got.lacks(t, "roce_queue_wred_dropped")
	got.has(t, `roce_flex_counter_enabled{group="WRED_ECN_QUEUE"}`, 0)

	never, _ := read(t, capturedSwitch(t, "testdata/broadcom", testOptions()))
	never.lacks(t, "roce_queue_ecn_marked")
	never.some(t, "roce_queue_packets_total")
}

// COUNTERS has the peak of the last poll only; the watermark tables hold the
// windows.
func TestFact08WatermarksComeFromTheirTablesOnly(t *testing.T) {
	d := nvidia(t)
	oid := oidOf(t, d, "COUNTERS_QUEUE_NAME_MAP", "Ethernet0:3")
	const field = "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"
	d["COUNTERS_DB"]["COUNTERS:"+oid][field] = "77"
	d["COUNTERS_DB"]["USER_WATERMARKS:"+oid] = map[string]string{field: "1000"}
	d["COUNTERS_DB"]["PERSISTENT_WATERMARKS:"+oid] = map[string]string{field: "3000"}
	delete(d["COUNTERS_DB"], "PERIODIC_WATERMARKS:"+oid)
	options := testOptions()
	options.Windows = []string{"periodic", "user", "persistent"}
	got, _ := read(t, memory(t, d, options))
	const queue = `roce_queue_watermark_bytes{port="Ethernet0",queue="3",type="unicast",window=`
	got.has(t, queue+`"user"}`, 1000)
	got.has(t, queue+`"persistent"}`, 3000)
	got.lacks(t, queue+`"periodic"}`)
}

// A restart of orchagent makes all objects anew.
func TestFact09ObjectsChangeTheirIDsAtARestart(t *testing.T) {
	before, after := nvidia(t), nvidia(t)
	server := sonictest.Start(t)
	server.Load(t, before)
	s := live(t, server, testOptions())
	got, _ := read(t, s)
	want := len(got)

	for _, hashes := range []string{"COUNTERS_DB", "ASIC_DB"} {
		renamed := map[string]map[string]string{}
		for key, hash := range after[hashes] {
			fields := map[string]string{}
			for f, v := range hash {
				fields[renumber(f)] = renumber(v)
			}
			renamed[renumber(key)] = fields
		}
		after[hashes] = renamed
	}
	portCounters(t, after, "Ethernet0")["SAI_PORT_STAT_PFC_3_RX_PKTS"] = "5"
	// Leftovers under the old ids must not speak for anything.
	for _, database := range []string{"APPL_DB", "ASIC_DB", "COUNTERS_DB", "FLEX_COUNTER_DB"} {
		if err := server.Client(t, database).FlushDB(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	got, reading := read(t, s)
	got.lacks(t, "roce_pfc_receive_frames_total")
	got.some(t, `roce_port_info`)
	if reading.Sources[0].Err != nil {
		t.Errorf("an empty database is no error: %v", reading.Sources[0].Err)
	}
	server.Load(t, after)
	old := oidOf(t, before, "COUNTERS_PORT_NAME_MAP", "Ethernet0")
	if err := server.Client(t, "COUNTERS_DB").HSet(t.Context(), "COUNTERS:"+old, "SAI_PORT_STAT_PFC_3_RX_PKTS", "999").Err(); err != nil {
		t.Fatal(err)
	}
	read(t, s) // The walk over CONFIG_DB; the next makes that over the FDB.
	got, _ = read(t, s)
	got.has(t, `roce_pfc_receive_frames_total{port="Ethernet0",priority="3"}`, 5)
	if len(got) < want {
		t.Errorf("%d series after the restart, %d before", len(got), want)
	}
	got.lacks(t, "oid:0x")
}

// renumber gives an object another id.
func renumber(text string) string {
	at := strings.Index(text, "oid:0x1")
	if at < 0 || strings.Contains(text, "{") {
		return text
	}
	return text[:at] + strings.Replace(text[at:], "000", "00f", 1)
}

// Name maps appear when their group is enabled, up to minutes after boot.
func TestFact10NameMapsMayBeMissing(t *testing.T) {
	d := nvidia(t)
	delete(d["COUNTERS_DB"], "COUNTERS_QUEUE_NAME_MAP")
	delete(d["COUNTERS_DB"], "COUNTERS_PG_NAME_MAP")
	delete(d["COUNTERS_DB"], "COUNTERS_BUFFER_POOL_NAME_MAP")
	if _, ok := d["COUNTERS_DB"]["COUNTERS_LAG_NAME_MAP"][""]; !ok {
		t.Fatal("the fixture's LAG map lacks the empty field that orchagent makes")
	}
	got, reading := read(t, memory(t, d, testOptions()))
	got.lacks(t, "roce_queue_packets_total")
	got.lacks(t, "roce_pg_dropped_packets_total")
	got.lacks(t, "roce_buffer_pool")
	got.some(t, "roce_pfc_receive_frames_total")
	got.some(t, "roce_queue_lossless") // From the configuration.
	if reading.Skipped != (Skipped{}) {
		t.Errorf("%+v, want nothing skipped", reading.Skipped)
	}
}

// CONFIG_DB has milliseconds, COUNTERS_DB microseconds, and no restoration
// time is for ever.
func TestFact11WatchdogTimesHaveThreeSpellings(t *testing.T) {
	d := nvidia(t)
	for _, queue := range []string{"Ethernet0:3", "Ethernet0:4"} {
		hash := queueCounters(t, d, queue)
		hash["PFC_WD_DETECTION_TIME"], hash["PFC_WD_RESTORATION_TIME"] = "250000", ""
	}
	for _, queue := range []string{"Ethernet8:3", "Ethernet8:4"} {
		delete(queueCounters(t, d, queue), "PFC_WD_DETECTION_TIME")
		delete(queueCounters(t, d, queue), "PFC_WD_RESTORATION_TIME")
	}
	d["CONFIG_DB"]["PFC_WD|Ethernet8"]["detection_time"] = "400"
	delete(d["CONFIG_DB"]["PFC_WD|Ethernet8"], "restoration_time")
	got, reading := read(t, memory(t, d, testOptions()))
	got.has(t, `roce_pfcwd_detection_time_seconds{port="Ethernet0"}`, 0.25)
	got.has(t, `roce_pfcwd_restoration_time_seconds{port="Ethernet0"}`, math.Inf(1))
	got.has(t, `roce_pfcwd_detection_time_seconds{port="Ethernet8"}`, 0.4)
	got.has(t, `roce_pfcwd_restoration_time_seconds{port="Ethernet8"}`, math.Inf(1))
	if reading.Skipped.Unparsable != 0 {
		t.Errorf("%+v: an empty restoration time is no rubbish", reading.Skipped)
	}
}

// What Lua writes is a float in any form; RATES is not exported.
func TestFact12LuaWritesFloats(t *testing.T) {
	d := sonictest.ReadCapture(t, "testdata/broadcom-history")
	hash := portCounters(t, d, "Ethernet0")
	hash["EST_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US"] = "1.25e+07"
	hash["EST_PORT_STAT_PFC_4_RX_PAUSE_DURATION_US"] = "-5.6457002633919938e-73"
	d["COUNTERS_DB"]["RATES:"+oidOf(t, d, "COUNTERS_PORT_NAME_MAP", "Ethernet0")] = map[string]string{"RX_BPS": "-0.441249910768512"}
	got, reading := read(t, memory(t, d, testOptions()))
	got.has(t, `roce_pfc_receive_pause_seconds_total{method="estimated",port="Ethernet0",priority="3"}`, 12.5)
	got.lacks(t, `roce_pfc_receive_pause_seconds_total`, `port="Ethernet0"`, `priority="4"`)
	if reading.Skipped.Unparsable != 1 {
		t.Errorf("%+v, want the negative duration counted", reading.Skipped)
	}
}

// References are bracketed up to 202106, bare since, and a hash may have both.
func TestFact13ReferencesAreBracketedOrBare(t *testing.T) {
	bare, _ := read(t, memory(t, nvidia(t), testOptions()))
	d := nvidia(t)
	for key, row := range d["CONFIG_DB"] {
		for field, value := range row {
			table, ok := map[string]string{
				"dscp_to_tc_map": "DSCP_TO_TC_MAP", "tc_to_queue_map": "TC_TO_QUEUE_MAP", "tc_to_pg_map": "TC_TO_PRIORITY_GROUP_MAP",
				"pfc_to_queue_map": "MAP_PFC_PRIORITY_TO_QUEUE", "wred_profile": "WRED_PROFILE",
			}[field]
			if ok {
				d["CONFIG_DB"][key][field] = "[" + table + "|" + value + "]"
			}
		}
	}
	for key, row := range d["APPL_DB"] {
		if value, ok := row["profile"]; ok {
			d["APPL_DB"][key]["profile"] = "[BUFFER_PROFILE_TABLE:" + value + "]"
		}
	}
	bracketed, _ := read(t, memory(t, d, testOptions()))
	for name, value := range bare {
		bracketed.has(t, name, value)
	}
}

// Keys that are no objects stand between the objects.
func TestFact14KeysThatAreNoObjects(t *testing.T) {
	d := nvidia(t)
	for database, keys := range map[string][]string{
		"CONFIG_DB":   {"PORT_QOS_MAP|global", "PFC_WD|GLOBAL"},
		"COUNTERS_DB": {"COUNTERS:TIME_STAMP", "COUNTERS:DATAACL:RULE_1", "RATES:PORT"},
		"APPL_DB":     {"PORT_TABLE:PortInitDone"},
	} {
		for _, key := range keys {
			if d[database][key] == nil {
				t.Errorf("the fixture lacks %s %s", database, key)
			}
		}
	}
	got, reading := read(t, memory(t, d, testOptions()))
	for _, word := range []string{"global", "GLOBAL", "TIME_STAMP", "RULE_1", "PortInitDone"} {
		got.lacks(t, word)
	}
	if reading.Skipped != (Skipped{}) {
		t.Errorf("%+v, want nothing skipped", reading.Skipped)
	}
}

// The databases may live in different Redis servers.
func TestFact15DatabasesOfSeveralServers(t *testing.T) {
	d := nvidia(t)
	config, asic, counters := sonictest.Start(t), sonictest.Start(t), sonictest.Start(t)
	of := map[string]*sonictest.Server{
		"APPL_DB": config, "CONFIG_DB": config, "STATE_DB": config, "ASIC_DB": asic, "COUNTERS_DB": counters, "FLEX_COUNTER_DB": counters,
	}
	for database, server := range of {
		server.Load(t, sonictest.Databases{database: d[database]})
	}
	source := sonic.NewLive(writeInstances(t, of), sonic.LiveOptions{Timeout: time.Second})
	t.Cleanup(source.Close)
	s := NewSwitch(testCatalog(t), source, testOptions())
	want, _ := read(t, memory(t, d, testOptions()))
	read(t, s)
	read(t, s) // Walks are made one a reading: CONFIG_DB, FDB, neighbours.
	got, reading := read(t, s)
	for name, value := range want {
		if !strings.HasPrefix(name, "roce_node_") {
			got.has(t, name, value)
		}
	}
	if len(reading.Sources) != 3 {
		t.Errorf("%d sources, want one a server: %+v", len(reading.Sources), reading.Sources)
	}

	// One server that is gone costs what is in it.
	asic.Process.Kill()
	got, reading = read(t, s)
	got.lacks(t, `source="asic"`)
	got.some(t, "roce_pfc_receive_frames_total")
	got.has(t, `roce_redis_up{database="ASIC_DB"}`, 0)
	got.has(t, `roce_redis_up{database="COUNTERS_DB"}`, 1)
	failed := 0
	for _, source := range reading.Sources {
		if source.Err != nil {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d sources failed, want 1: %+v", failed, reading.Sources)
	}
}
