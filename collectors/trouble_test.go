// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roce_exporter/collectors/sonic"
	"roce_exporter/collectors/sonic/sonictest"
)

func TestAScrapeWithoutTimeDoesNotSpoilTheNext(t *testing.T) {
	server := sonictest.Start(t)
	server.Load(t, nvidia(t))
	s := live(t, server, testOptions())
	whole, _ := read(t, s)
	for _, given := range []time.Duration{0, time.Nanosecond, 200 * time.Microsecond} {
		ctx, cancel := context.WithTimeout(t.Context(), given)
		if _, err := s.Collect(ctx); err == nil {
			t.Logf("%v were enough", given)
		}
		cancel()
		time.Sleep(50 * time.Millisecond) // While a read goes on that somebody gave up, nobody waits for it.
		got, reading, err := within(t, s, 5*time.Second)
		if err != nil || len(got) < len(whole) || reading.Sources[0].Err != nil {
			t.Errorf("after a scrape of %v: %d series of %d, %v %+v", given, len(got), len(whole), err, reading.Sources)
		}
	}
}

// Where CONFIG_DB is due at every scrape, the other tables get their turn too.
func TestEveryTableGetsItsWalk(t *testing.T) {
	server := sonictest.Start(t)
	server.Load(t, nvidia(t))
	options := testOptions()
	options.RefreshConfig = 0
	s := live(t, server, options)
	for range 4 {
		read(t, s)
	}
	got, _ := read(t, s)
	got.some(t, "roce_port_fdb_entries")
	got.some(t, "roce_port_attached_mac_info", `port="Ethernet0"`)
}

// What a row says that is there but cannot be read is unknown, not off.
func TestARowThatIsRefusedIsNotOff(t *testing.T) {
	server := sonictest.Start(t)
	server.Load(t, nvidia(t))
	c := server.Client(t, "CONFIG_DB")
	for _, key := range []string{"PORT_QOS_MAP|Ethernet0", "PFC_WD|Ethernet8", "QUEUE|Ethernet8|3", "PORT|Ethernet16"} {
		if err := errors.Join(c.Del(t.Context(), key).Err(), c.Set(t.Context(), key, "rubbish", 0).Err()); err != nil {
			t.Fatal(err)
		}
	}
	got, reading := read(t, live(t, server, testOptions()))
	got.lacks(t, "roce_pfc_enabled", `port="Ethernet0"`, `source="config"`)
	got.lacks(t, "roce_queue_lossless", `port="Ethernet0"`)
	got.lacks(t, "roce_pfcwd_enabled", `port="Ethernet8"`)
	got.some(t, "roce_pfc_receive_pause_seconds_total", `port="Ethernet8"`)
	got.lacks(t, "roce_queue_ecn_enabled", `port="Ethernet8",queue="3"`)
	got.has(t, `roce_queue_ecn_enabled{port="Ethernet8",queue="4"}`, 1)
	got.some(t, "roce_pfc_receive_frames_total", `port="Ethernet16"`)
	if want := (Skipped{Unreadable: 4, Missing: 1}); reading.Skipped != want {
		t.Errorf("%+v, want %+v", reading.Skipped, want)
	}
	if !strings.Contains(reading.Sources[0].Note, "WRONGTYPE") {
		t.Errorf("the note %q does not say why", reading.Sources[0].Note)
	}
}

// A database that the server does not let anybody into costs what is in it.
func TestOneDatabaseOfAServerFails(t *testing.T) {
	server := sonictest.Start(t)
	server.Load(t, nvidia(t))
	whole, _ := read(t, live(t, server, testOptions()))
	data, err := os.ReadFile(filepath.Join(server.Dir, "database_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	config["DATABASES"].(map[string]any)["STATE_DB"].(map[string]any)["id"] = 99
	data, err = json.Marshal(config)
	dir := t.TempDir()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "database_config.json"), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	source := sonic.NewLive(dir, sonic.LiveOptions{Timeout: time.Second})
	t.Cleanup(source.Close)
	got, reading := read(t, NewSwitch(testCatalog(t), source, testOptions()))
	got.has(t, `roce_redis_up{database="STATE_DB"}`, 0)
	got.has(t, `roce_redis_up{database="COUNTERS_DB"}`, 1)
	got.lacks(t, "roce_service_up")
	if reading.Skipped.Raced != 0 || reading.Sources[0].Err != nil || !strings.Contains(reading.Sources[0].Note, "STATE_DB") {
		t.Errorf("%+v %+v", reading.Skipped, reading.Sources)
	}
	for name, value := range whole {
		if strings.HasPrefix(name, "roce_queue_") || strings.HasPrefix(name, "roce_pfc") {
			got.has(t, name, value)
		}
	}
}

// A row that is missing once, and its return, move no counter.
func TestARowThatComesBackIsNoMovement(t *testing.T) {
	d := nvidia(t)
	server := sonictest.Start(t)
	server.Load(t, d)
	s := live(t, server, testOptions())
	read(t, s)
	c := server.Client(t, "COUNTERS_DB")
	key := "COUNTERS:" + oidOf(t, d, "COUNTERS_PORT_NAME_MAP", "Ethernet8")
	if err := c.Rename(t.Context(), key, "away").Err(); err != nil {
		t.Fatal(err)
	}
	got, _ := read(t, s)
	got.lacks(t, "roce_counters_last_change")
	if err := c.Rename(t.Context(), "away", key).Err(); err != nil {
		t.Fatal(err)
	}
	got, _ = read(t, s)
	got.lacks(t, "roce_counters_last_change")
}

func TestOnlyPortsArePorts(t *testing.T) {
	row := map[string]string{"oper_status": "up"}
	got, _ := read(t, memory(t, sonictest.Databases{"APPL_DB": {
		"PORT_TABLE:Ethernet0": row, "INTF_TABLE:Ethernet0.10": row, "BUFFER_PG_TABLE:Ethernet0,Ethernet4:3-4": row, "INTF_TABLE:Ethernet0:10.0.0.1/31": row,
	}}, testOptions()))
	if n := len(got.with("roce_port_info")); n != 1 {
		t.Errorf("%d ports: %q", n, got.with("roce_port_info"))
	}
}
