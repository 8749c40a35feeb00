// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roce_exporter/collectors/sonic"
	"roce_exporter/collectors/sonic/sonictest"
)

// record writes a capture of a live switch and returns its directory.
func record(t *testing.T, server *sonictest.Server, anonymise bool) string {
	t.Helper()
	source := sonic.NewLive(server.Dir, sonic.LiveOptions{Timeout: 5 * time.Second})
	t.Cleanup(source.Close)
	found, err := source.Switch()
	if err != nil {
		t.Fatal(err)
	}
	recording, err := sonic.Record(t.Context(), found, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if anonymise {
		sonic.NewAnonymiser().Anonymise(recording)
	}
	return writeCapture(t, &Recording{Switch: recording})
}

// writeCapture writes a capture and returns its directory.
func writeCapture(t *testing.T, r *Recording) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "capture")
	if err := r.Write(dir, "test", time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := r.Write(dir, "test", time.Now()); err == nil {
		t.Error("a directory that is not empty is written over")
	}
	return dir
}

// A capture, replayed, gives what the live switch gave, whatever is exported.
func TestACaptureGivesWhatTheSwitchGave(t *testing.T) {
	for _, fixture := range fixtures(t) {
		t.Run(filepath.Base(fixture), func(t *testing.T) {
			d := sonictest.ReadCapture(t, fixture)
			if d["COUNTERS_DB"] != nil { // The host of a switch with several ASICs has none.
				portCounters(t, d, "Ethernet0")["SAI_PORT_STAT_IF_IN_ERRORS"] = "\xff\xfe" // No text.
			}
			server := sonictest.Start(t)
			server.Load(t, d)
			dir := record(t, server, false)
			for name, options := range map[string]SwitchOptions{"defaults": testOptions(), "everything": allOptions()} {
				s := live(t, server, options)
				read(t, s)
				read(t, s)
				want, wanted := read(t, s)
				replayed := capturedSwitch(t, dir, options)
				got, reading := read(t, replayed)
				delete(want, "roce_node_time_seconds")
				delete(got, "roce_node_time_seconds")
				delete(want, "roce_node_boot_time_seconds") // Of this machine; kept if it has one.
				delete(got, "roce_node_boot_time_seconds")
				for sample, value := range want {
					got.has(t, sample, value)
				}
				if len(got) != len(want) {
					t.Errorf("%s: %d samples of the capture, %d of the switch", name, len(got), len(want))
				}
				if reading.Skipped != wanted.Skipped {
					t.Errorf("%s: the capture skips %+v, the switch %+v", name, reading.Skipped, wanted.Skipped)
				}
			}
		})
	}
}

// An anonymised capture holds no name and no address of the switch, and its
// joins hold.
func TestACaptureTellsNotWhoseItIs(t *testing.T) {
	d := nvidia(t)
	secrets := []string{
		"leaf-1", "gpu-01", "gpu-02", "spine-1", "acme", "rack 7", "secret", "10.20.30.42", "JaneDoe7",
		"02:00:5e:10:02:01", "02:00:5E:10:02:01", "0200.5e10.0201", "10.11.12.13", "2001:db8:77::5",
	}
	lldp := d["APPL_DB"]["LLDP_ENTRY_TABLE:Ethernet0"]
	lldp["lldp_rem_sys_name"] = "gpu-01.acme.example"
	lldp["lldp_rem_man_addr"] = "10.11.12.13"
	lldp["lldp_rem_sys_desc"] = "SONiC of acme, serial secret123"
	d["APPL_DB"]["LLDP_ENTRY_TABLE:Ethernet8"] = map[string]string{
		"lldp_rem_sys_name": "gpu-02.acme.example", "lldp_rem_port_id_subtype": "3", "lldp_rem_port_id": "0200.5e10.0201",
		"lldp_rem_port_desc": "acme rack 7",
	}
	// Nodes that are called like words of the databases must not break it.
	d["APPL_DB"]["LLDP_ENTRY_TABLE:Ethernet16"]["lldp_rem_sys_name"] = "localhost"
	d["APPL_DB"]["LLDP_ENTRY_TABLE:Ethernet24"]["lldp_rem_sys_name"] = "PORT"
	d["APPL_DB"]["LLDP_ENTRY_TABLE:Ethernet24"]["lldp_rem_port_id"] = "JaneDoe7"
	d["CONFIG_DB"]["PORT|Ethernet24"]["alias"] = "JaneDoe7"
	d["CONFIG_DB"]["SCHEDULER|to_gpu-02_rack"] = map[string]string{"type": "DWRR"}
	d["CONFIG_DB"]["QUEUE|Ethernet0|5"] = map[string]string{"scheduler": "to_gpu-02_rack"}
	d["APPL_DB"]["NEIGH_TABLE:Ethernet16:::ffff:10.20.30.42"] = map[string]string{"neigh": "02:00:5e:10:02:09"}
	d["APPL_DB"]["NEIGH_TABLE:Ethernet16:2001:db8:77::5"] = map[string]string{"neigh": "02:00:5e:10:02:01"}
	d["CONFIG_DB"]["PORT|Ethernet0"]["description"] = "acme rack 7"
	d["CONFIG_DB"]["INTERFACE|Ethernet16|10.11.12.13/31"] = map[string]string{"NULL": "NULL"}
	d["CONFIG_DB"]["DEVICE_NEIGHBOR_METADATA|gpu-01"] = map[string]string{"type": "Server", "mgmt_addr": "10.11.12.13"}
	d["CONFIG_DB"]["DEVICE_METADATA|localhost"]["hostname"] = "leaf-1"
	server := sonictest.Start(t)
	server.Load(t, d)
	dir := record(t, server, true)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, secret := range secrets {
			if at := strings.Index(strings.ToLower(string(data)), strings.ToLower(secret)); at >= 0 {
				t.Errorf("%s has %q: %s", path, secret, data[max(0, at-60):min(len(data), at+60)])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := read(t, capturedSwitch(t, record(t, server, false), testOptions()))
	got, _ := read(t, capturedSwitch(t, dir, testOptions()))
	if len(got) != len(plain) {
		t.Errorf("%d samples, %d without stand-ins", len(got), len(plain))
	}
	if n := len(got.with("roce_port_neighbor_info", `port="Ethernet0"`, `neighbor_kind="host"`)); n != 1 {
		t.Errorf("%d neighbours of Ethernet0 that the configuration calls a host", n)
	}
	// The neighbour's port id is the address that was learned on the port.
	for _, name := range got.with("roce_port_neighbor_info", `port="Ethernet8"`) {
		_, id, _ := strings.Cut(name, `neighbor_port_id="`)
		id, _, _ = strings.Cut(id, `"`)
		got.some(t, `roce_port_attached_mac_info{mac="`+id+`",port="Ethernet8"}`)
	}
	got.some(t, "roce_port_neighbor_info", `port="Ethernet8"`)
}

// Samples of a capture are replayed one after the other: counters that stand
// still show in two.
func TestACaptureOfTwoSamples(t *testing.T) {
	d := nvidia(t)
	server := sonictest.Start(t)
	server.Load(t, d)
	both := t.TempDir()
	for _, sample := range []string{"0001", "0002", "0003"} {
		if err := os.Rename(record(t, server, false), filepath.Join(both, sample)); err != nil {
			t.Fatal(err)
		}
		key := "COUNTERS:" + oidOf(t, d, "COUNTERS_PORT_NAME_MAP", "Ethernet0")
		if sample == "0002" { // Nothing moved before it, something will before the third.
			if err := server.Client(t, "COUNTERS_DB").HIncrBy(t.Context(), key, "SAI_PORT_STAT_IF_IN_OCTETS", 1).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := capturedSwitch(t, both, testOptions())
	first, _ := read(t, s)
	second, _ := read(t, s)
	third, _ := read(t, s)
	fourth, _ := read(t, s)
	const clock, last = "roce_node_time_seconds", `roce_counters_last_change_timestamp_seconds{group="PORT"}`
	if first[clock] >= second[clock] || second[clock] >= third[clock] || third[clock] != fourth[clock] {
		t.Errorf("clocks %v %v %v %v", first[clock], second[clock], third[clock], fourth[clock])
	}
	first.lacks(t, last)
	second.lacks(t, last)
	third.has(t, last, third[clock])
	fourth.has(t, last, third[clock])
}

func TestWhatIsNoCapture(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"not a capture": {},
		"meta.json":     {"meta.json": "{"},
		"format 7":      {"meta.json": `{"format": 7}`},
		"no SONiC":      {"meta.json": `{"format": 1}`},
		"APPL_DB.json":  {"meta.json": `{"format": 1}`, "redis/APPL_DB.json": `{"key": {"field": ["a"]}}`},
	} {
		dir := t.TempDir()
		for name, text := range files {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := sonic.OpenCapture(os.DirFS(dir)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", files, err, want)
		}
	}
}
