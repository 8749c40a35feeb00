// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roce_exporter/collectors/sonic"
	"roce_exporter/collectors/sonic/sonictest"
)

// within collects under a deadline and checks that the collector kept it.
func within(t *testing.T, s *Switch, limit time.Duration) (series, Reading, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	begin := time.Now()
	reading, err := s.Collect(ctx)
	if took := time.Since(begin); took > limit+2*time.Second {
		t.Errorf("took %v of %v", took, limit)
	}
	return parse(t, text(t, s.catalog, reading)), reading, err
}

// wants checks the one source of a switch with one server.
func wants(t *testing.T, reading Reading, words ...string) {
	t.Helper()
	if len(reading.Sources) != 1 || reading.Sources[0].Err == nil {
		t.Fatalf("sources %+v, want one that failed", reading.Sources)
	}
	for _, w := range words {
		if !strings.Contains(reading.Sources[0].Err.Error(), w) {
			t.Errorf("the error does not say %q: %v", w, reading.Sources[0].Err)
		}
	}
}

func TestDatabasesAppearAfterTheExporter(t *testing.T) {
	dir := t.TempDir()
	source := sonic.NewLive(dir, sonic.LiveOptions{Timeout: time.Second})
	t.Cleanup(source.Close)
	s := NewSwitch(testCatalog(t), source, testOptions())
	if _, _, err := within(t, s, time.Second); !errors.Is(err, ErrNotFound) {
		t.Errorf("an empty machine: %v, want ErrNotFound", err)
	}
	server := sonictest.Start(t)
	server.Load(t, nvidia(t))
	if err := os.Symlink(filepath.Join(server.Dir, "database_config.json"), filepath.Join(dir, "database_config.json")); err != nil {
		t.Fatal(err)
	}
	got, reading, err := within(t, s, time.Second)
	if err != nil || reading.Sources[0].Err != nil {
		t.Errorf("%v %+v", err, reading.Sources)
	}
	got.some(t, "roce_pfc_receive_frames_total")
	if via := reading.Sources[0].Via; via != "unix "+server.Socket {
		t.Errorf("reached over %q, want the socket", via)
	}
}

func TestServerDiesAndComesBack(t *testing.T) {
	server := sonictest.Start(t)
	server.Load(t, nvidia(t))
	s := live(t, server, testOptions())
	read(t, s)
	server.Process.Kill()
	server.Process.Wait()
	got, reading, err := within(t, s, time.Second)
	if err == nil {
		t.Error("nothing could be read, want an error")
	}
	wants(t, reading, "COUNTERS_DB")
	got.has(t, `roce_redis_up{database="COUNTERS_DB"}`, 0)
	got.has(t, `roce_redis_up{database="CONFIG_DB"}`, 0)
	got.lacks(t, "port=") // What is remembered of a dead server is not served.
	server.Run(t)
	server.Load(t, nvidia(t))
	got, reading, err = within(t, s, time.Second)
	if err != nil || reading.Sources[0].Err != nil {
		t.Errorf("%v %+v", err, reading.Sources)
	}
	got.some(t, "roce_pfc_receive_frames_total")
}

func TestServerRefuses(t *testing.T) {
	server := sonictest.Start(t)
	s := live(t, server, testOptions())
	server.Process.Kill()
	server.Process.Wait() // The socket's file stays.
	_, reading, err := within(t, s, time.Second)
	if err == nil {
		t.Error("want an error")
	}
	wants(t, reading, "COUNTERS_DB", server.Socket, "connection refused")
}

func TestServerAcceptsAndNeverAnswers(t *testing.T) {
	d := nvidia(t)
	server := sonictest.Start(t)
	server.Load(t, d)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	silent := &sonictest.Server{Port: listener.Addr().(*net.TCPAddr).Port}
	for _, c := range []struct {
		name   string
		silent []string
		some   string
	}{
		{"the server of CONFIG_DB", []string{"CONFIG_DB"}, "roce_pfc_receive_frames_total"},
		{"the server of STATE_DB and APPL_DB", []string{"STATE_DB", "APPL_DB"}, "roce_pfc_receive_frames_total"},
		{"the server of COUNTERS_DB", []string{"COUNTERS_DB"}, "roce_pfc_enabled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			of := map[string]*sonictest.Server{}
			for _, name := range sonic.Databases() {
				of[name] = server
			}
			for _, name := range c.silent {
				of[name] = silent
			}
			source := sonic.NewLive(writeInstances(t, of), sonic.LiveOptions{Timeout: 2 * time.Second})
			t.Cleanup(source.Close)
			s := NewSwitch(testCatalog(t), source, testOptions())
			got, reading, err := within(t, s, time.Second)
			if err != nil {
				t.Errorf("one of two answers: %v", err)
			}
			got.some(t, c.some)
			failed := 0
			for _, source := range reading.Sources {
				if source.Err != nil {
					failed++
				}
			}
			if failed != 1 || len(reading.Sources) != 2 {
				t.Errorf("%+v, want one of two failed", reading.Sources)
			}
			for _, name := range c.silent {
				got.has(t, `roce_redis_up{database="`+name+`"}`, 0)
			}
		})
	}
}

func TestServerAsksForAPassword(t *testing.T) {
	server := sonictest.Start(t, "--requirepass", "secret")
	for name, c := range map[string]struct {
		options sonic.LiveOptions
		fails   bool
	}{
		"none given":    {sonic.LiveOptions{}, true},
		"a wrong one":   {sonic.LiveOptions{Password: func() (string, error) { return "guess", nil }}, true},
		"the right one": {sonic.LiveOptions{Password: func() (string, error) { return "secret", nil }}, false},
		"unreadable":    {sonic.LiveOptions{Password: func() (string, error) { return "", os.ErrNotExist }}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.Timeout = time.Second
			source := sonic.NewLive(server.Dir, c.options)
			t.Cleanup(source.Close)
			got, reading, err := within(t, NewSwitch(testCatalog(t), source, testOptions()), time.Second)
			if c.fails {
				wants(t, reading, "COUNTERS_DB")
				got.has(t, `roce_redis_up{database="COUNTERS_DB"}`, 0)
			} else if err != nil || reading.Sources[0].Err != nil {
				t.Errorf("%v %+v", err, reading.Sources)
			}
		})
	}
}

func TestWrongTypeAtAKey(t *testing.T) {
	d := nvidia(t)
	want, _ := read(t, memory(t, d, testOptions()))
	server := sonictest.Start(t)
	server.Load(t, d)
	for database, key := range map[string]string{
		"COUNTERS_DB": "COUNTERS:" + oidOf(t, d, "COUNTERS_QUEUE_NAME_MAP", "Ethernet0:3"),
		"ASIC_DB":     "ASIC_STATE:SAI_OBJECT_TYPE_PORT:" + oidOf(t, d, "COUNTERS_PORT_NAME_MAP", "Ethernet8"),
		"APPL_DB":     "PORT_TABLE:Ethernet16",
	} {
		c := server.Client(t, database)
		if err := errors.Join(c.Del(t.Context(), key).Err(), c.Set(t.Context(), key, "rubbish", 0).Err()); err != nil {
			t.Fatal(err)
		}
	}
	s := live(t, server, testOptions())
	read(t, s)
	got, reading := read(t, s)
	if want := (Skipped{Unreadable: 3}); reading.Skipped != want {
		t.Errorf("%+v, want %+v", reading.Skipped, want)
	}
	if reading.Sources[0].Err != nil {
		t.Errorf("the server is well: %v", reading.Sources[0].Err)
	}
	lost := func(name string) bool {
		for _, words := range [][]string{
			{`port="Ethernet0"`, `queue="3"`, "roce_queue_", "type="},
			{`roce_pfcwd_st`, `port="Ethernet0",queue="3"`},
			{`roce_pfcwd_dropped`, `port="Ethernet0",queue="3"`},
			{`port="Ethernet8"`, `source="asic"`},
			{"roce_port_attached_mac_info"},
			{"roce_port_fdb_entries"},
		} {
			all := true
			for _, w := range words {
				all = all && strings.Contains(name, w)
			}
			if all {
				return true
			}
		}
		return strings.HasPrefix(name, "roce_node_") || strings.Contains(name, `port_oper_up{port="Ethernet16"`)
	}
	for name, value := range want {
		if !lost(name) {
			got.has(t, name, value)
		}
	}
}

// Every kind of rubbish costs the value that it stands for, and is counted.
func TestRubbishInFieldsKeysAndNames(t *testing.T) {
	d := nvidia(t)
	want, _ := read(t, memory(t, d, testOptions()))
	fields := []string{"PFC_0_RX_PKTS", "PFC_1_RX_PKTS", "PFC_2_RX_PKTS", "PFC_3_RX_PKTS", "PFC_4_RX_PKTS", "PFC_5_RX_PKTS", "PFC_6_RX_PKTS", "PFC_7_RX_PKTS"}
	rubbish := []string{"", "N/A", "-1", "0x10", "1e20", "\xff\xfe", "12 ", "NaN"}
	hash := portCounters(t, d, "Ethernet0")
	for i, f := range fields {
		hash["SAI_PORT_STAT_"+f] = rubbish[i]
	}
	hash["\xff\xfe"] = "\xff"                                   // A field that nobody maps.
	hash["SAI_PORT_STAT_IF_IN_OCTETS"] = "18446744073709551615" // The largest counter.
	hash["SAI_PORT_STAT_IF_OUT_OCTETS"] = "9007199254740993"    // One more than a float64 holds.
	d["COUNTERS_DB"]["COUNTERS_PORT_NAME_MAP"]["\xff\xfe"] = "oid:0x1000000000099"
	d["COUNTERS_DB"]["COUNTERS_QUEUE_NAME_MAP"]["no index"] = "oid:0x15000000000999"
	d["COUNTERS_DB"]["COUNTERS_QUEUE_NAME_MAP"]["Ethernet0:99"] = "no object"
	d["COUNTERS_DB"]["COUNTERS_PG_NAME_MAP"]["Ethernet0:\xff"] = "oid:0x1a000000000999"
	d["CONFIG_DB"]["PORT_QOS_MAP|\xff\xfe"] = map[string]string{"pfc_enable": "3,4"}
	d["CONFIG_DB"]["QUEUE|Ethernet0|x-y"] = map[string]string{"wred_profile": "AZURE_LOSSLESS"}
	d["CONFIG_DB"]["QUEUE|"] = map[string]string{"wred_profile": "AZURE_LOSSLESS"}
	d["CONFIG_DB"]["PORT|Ethernet8"]["mtu"] = "jumbo"
	d["CONFIG_DB"]["PORT_QOS_MAP|Ethernet16"]["pfc_enable"] = "3,9"
	d["STATE_DB"]["FDB_TABLE|Vlan10:\xff\xfe"] = map[string]string{"port": "Ethernet0"}
	d["APPL_DB"]["LLDP_ENTRY_TABLE:Ethernet0"]["lldp_rem_sys_name"] = "evil\"\n\xff" + strings.Repeat("x", 300)
	server := sonictest.Start(t)
	server.Load(t, d)
	s := live(t, server, testOptions())
	read(t, s)
	read(t, s)
	got, reading := read(t, s)
	if want := (Skipped{Unparsable: len(rubbish) + 3 + 2, Missing: 1}); reading.Skipped != want {
		t.Errorf("%+v, want %+v", reading.Skipped, want)
	}
	got.lacks(t, "roce_pfc_receive_frames_total", `port="Ethernet0"`)
	got.has(t, `roce_port_receive_bytes_total{port="Ethernet0"}`, 1<<64)
	got.has(t, `roce_port_transmit_bytes_total{port="Ethernet0"}`, 1<<53)
	got.some(t, `neighbor="evil\"`)
	for name := range got {
		if strings.Contains(name, "\xff") || len(name) > 700 {
			t.Errorf("%q", name)
		}
	}
	for name, value := range want {
		switch {
		case strings.HasPrefix(name, "roce_node_"), strings.HasPrefix(name, "roce_port_neighbor_info"):
		case strings.Contains(name, `port="Ethernet16"`), strings.Contains(name, `_bytes_total{port="Ethernet0"}`):
		case name == `roce_port_mtu_bytes{port="Ethernet8",source="config"}`:
		case strings.HasPrefix(name, "roce_pfc_receive_frames_total") && strings.Contains(name, `port="Ethernet0"`):
		default:
			got.has(t, name, value)
		}
	}
}

// A right that is missing costs what needs it and nothing else.
func TestOneVerbIsNotPermitted(t *testing.T) {
	const all = "+hgetall +hmget +scan +time"
	for verb, lost := range map[string][]string{
		"scan":  {"roce_port_attached_mac_info", "roce_port_fdb_entries", "roce_port_mode_info", "roce_port_lag_member_info", "roce_pg_headroom_size_bytes"},
		"time":  {"roce_node_time_seconds", "roce_counters_last_change"},
		"hmget": {"roce_port_oper_up", "roce_port_speed_bytes", `source="kernel"`, "roce_service_up", `roce_flex_counter_interval_seconds{group="PFCWD"}`, "roce_port_attached_mac_info", "roce_port_fdb_entries", "roce_pg_headroom_size_bytes"},
	} {
		t.Run(verb, func(t *testing.T) {
			d := nvidia(t)
			want, _ := read(t, memory(t, d, testOptions()))
			server := sonictest.Start(t)
			server.Load(t, d)
			rights := append([]any{"ACL", "SETUSER", "exporter", "on", ">secret", "~*", "-@all", "+@connection"}, words(strings.Replace(all, "+"+verb, "", 1))...)
			if err := server.Client(t, "APPL_DB").Do(t.Context(), rights...).Err(); err != nil {
				t.Fatal(err)
			}
			source := sonic.NewLive(server.Dir, sonic.LiveOptions{
				Timeout: time.Second, Username: "exporter", Password: func() (string, error) { return "secret", nil },
			})
			t.Cleanup(source.Close)
			s := NewSwitch(testCatalog(t), source, testOptions())
			read(t, s)
			read(t, s)
			got, reading := read(t, s)
			if reading.Sources[0].Err != nil {
				t.Errorf("the server is well: %v", reading.Sources[0].Err)
			}
			if note := reading.Sources[0].Note; !strings.Contains(note, "NOPERM") || !strings.Contains(note, verb) {
				t.Errorf("the note %q does not say what is refused", note)
			}
			if reading.Skipped.Unreadable == 0 {
				t.Error("what is refused is not counted")
			}
			for _, l := range lost {
				got.lacks(t, l)
			}
		next:
			for name, value := range want {
				for _, l := range append(lost, "roce_node_") {
					if strings.Contains(name, l) {
						continue next
					}
				}
				got.has(t, name, value)
			}
		})
	}
}

func words(text string) []any {
	var out []any
	for w := range strings.FieldsSeq(text) {
		out = append(out, w)
	}
	return out
}
