// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roce_exporter/collectors/sonic"
	"roce_exporter/collectors/sonic/sonictest"
)

// asic returns the databases of one ASIC of a switch: a front port and a
// backplane port, with object ids that the other ASICs have too.
func asic(front, backplane string, frames string) sonictest.Databases {
	port := func(role string) map[string]string {
		return map[string]string{"role": role, "mtu": "9100", "speed": "400000", "admin_status": "up"}
	}
	counters := func(frames string) map[string]string {
		return map[string]string{"SAI_PORT_STAT_PFC_3_RX_PKTS": frames, "SAI_PORT_STAT_IF_IN_OCTETS": frames}
	}
	qos := map[string]string{"pfc_enable": "3,4", "pfcwd_sw_enable": "3,4"}
	return sonictest.Databases{
		"CONFIG_DB": {
			"PORT|" + front: port("Ext"), "PORT|" + backplane: port("Int"),
			"PORT_QOS_MAP|" + front: qos, "PORT_QOS_MAP|" + backplane: qos,
			"DEVICE_METADATA|localhost": {"hostname": "leaf-m", "asic_name": "asic0", "sub_role": "FrontEnd"},
		},
		"COUNTERS_DB": {
			"COUNTERS_PORT_NAME_MAP":               {front: "oid:0x1000000000002", backplane: "oid:0x1000000000006"},
			"COUNTERS:oid:0x1000000000002":         counters(frames),
			"COUNTERS:oid:0x1000000000006":         counters("9" + frames),
			"COUNTERS_BUFFER_POOL_NAME_MAP":        {"ingress_lossless_pool": "oid:0x18000000000001"},
			"USER_WATERMARKS:oid:0x18000000000001": {"SAI_BUFFER_POOL_STAT_WATERMARK_BYTES": frames},
		},
		"ASIC_DB": {
			"ASIC_STATE:SAI_OBJECT_TYPE_PORT:oid:0x1000000000002": {"SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL": "24"},
			"ASIC_STATE:SAI_OBJECT_TYPE_PORT:oid:0x1000000000006": {"NULL": "NULL"},
		},
		"STATE_DB":        {"ALL_SERVICE_STATUS|swss": {"service_status": "OK"}},
		"APPL_DB":         {"PORT_TABLE:" + front: {"oper_status": "up", "admin_status": "up"}},
		"FLEX_COUNTER_DB": {"FLEX_COUNTER_GROUP_TABLE:PORT_STAT_COUNTER": {"FLEX_COUNTER_STATUS": "enable", "POLL_INTERVAL": "1000"}},
	}
}

// hostDatabases are those of the host's namespace: no ports.
func hostDatabases() sonictest.Databases {
	return sonictest.Databases{
		"CONFIG_DB": {"DEVICE_METADATA|localhost": {"hostname": "leaf-m.example", "platform": "x86_64-multi-r0", "hwsku": "Multi"}},
		"STATE_DB":  {"SYSTEM_READY|SYSTEM_STATE": {"Status": "UP"}},
	}
}

// multiASIC writes a database_global.json that includes each server's files.
func multiASIC(t *testing.T, global string, servers map[string]*sonictest.Server) (dir string) {
	t.Helper()
	root := t.TempDir()
	for name, server := range servers {
		base := filepath.Join(root, "redis"+strings.TrimPrefix(name, "asic"), "sonic-db")
		if err := os.MkdirAll(base, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(server.Dir, "database_config.json"), filepath.Join(base, "database_config.json")); err != nil {
			t.Fatal(err)
		}
	}
	dir = filepath.Join(root, "redis", "sonic-db")
	if err := os.WriteFile(filepath.Join(dir, "database_global.json"), []byte(global), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

const global = `{"INCLUDES": [
	{"include": "database_config.json"},
	{"namespace": "asic0", "include": "../../redis0/sonic-db/database_config.json"},
	{"namespace": "asic1", "include": "../../redis1/sonic-db/database_config.json"},
	{"container_name": "dpu0", "include": "../../redisdpu0/sonic-db/database_config.json"}
], "VERSION": "1.0"}`

func startMultiASIC(t *testing.T) map[string]*sonictest.Server {
	t.Helper()
	servers := map[string]*sonictest.Server{"": sonictest.Start(t), "asic0": sonictest.Start(t), "asic1": sonictest.Start(t)}
	servers[""].Load(t, hostDatabases())
	servers["asic0"].Load(t, asic("Ethernet0", "Ethernet-BP0", "11"))
	servers["asic1"].Load(t, asic("Ethernet64", "Ethernet-BP256", "22"))
	return servers
}

func collectorOf(t *testing.T, dir string) *Switch {
	t.Helper()
	source := sonic.NewLive(dir, sonic.LiveOptions{Timeout: 2 * time.Second})
	t.Cleanup(source.Close)
	return NewSwitch(testCatalog(t), source, testOptions())
}

// Each ASIC has databases of its own, with the same object ids.
func TestSwitchWithSeveralASICs(t *testing.T) {
	s := collectorOf(t, multiASIC(t, global, startMultiASIC(t)))
	got, reading := read(t, s)
	const frames = "roce_pfc_receive_frames_total"
	got.has(t, frames+`{asic="asic0",port="Ethernet0",priority="3"}`, 11)
	got.has(t, frames+`{asic="asic0",port="Ethernet-BP0",priority="3"}`, 911)
	got.has(t, frames+`{asic="asic1",port="Ethernet64",priority="3"}`, 22)
	got.has(t, frames+`{asic="asic1",port="Ethernet-BP256",priority="3"}`, 922)
	got.some(t, `roce_port_info{`, `asic="asic0"`, `kind="front"`, `port="Ethernet0"`)
	got.some(t, `roce_port_info{`, `asic="asic1"`, `kind="backplane"`, `port="Ethernet-BP256"`)
	got.has(t, `roce_pfc_enabled{asic="asic1",port="Ethernet64",priority="3",source="asic"}`, 1)
	got.has(t, `roce_pfc_enabled{asic="asic1",port="Ethernet-BP256",priority="3",source="asic"}`, 0)
	got.has(t, `roce_buffer_pool_watermark_bytes{asic="asic0",pool="ingress_lossless_pool",window="user"}`, 11)
	got.has(t, `roce_buffer_pool_watermark_bytes{asic="asic1",pool="ingress_lossless_pool",window="user"}`, 22)
	got.has(t, `roce_redis_up{asic="asic1",database="COUNTERS_DB"}`, 1)
	got.has(t, `roce_redis_up{database="STATE_DB"}`, 1)
	got.has(t, `roce_service_up{name="system"}`, 1)
	got.has(t, `roce_service_up{asic="asic0",name="swss"}`, 1)
	if n := len(got.with("roce_node_time_seconds")); n != 1 {
		t.Errorf("%d clocks of one node", n)
	}
	got.lacks(t, "roce_node_", "asic=")
	got.lacks(t, "roce_policy_", "asic=")
	if reading.Node.Name != "leaf-m.example" || reading.Node.Platform != "x86_64-multi-r0" {
		t.Errorf("node %+v", reading.Node)
	}
	sources := map[string]bool{}
	for _, source := range reading.Sources {
		sources[source.Name] = source.Err == nil
	}
	if len(sources) != 3 || !sources["host"] || !sources["asic0"] || !sources["asic1"] {
		t.Errorf("sources %+v, want host, asic0 and asic1", reading.Sources)
	}
}

// A namespace that is dead costs its own series.
func TestOneASICIsDead(t *testing.T) {
	servers := startMultiASIC(t)
	dir := multiASIC(t, global, servers)
	s := collectorOf(t, dir)
	whole, _ := read(t, s)
	check := func() {
		t.Helper()
		got, reading, err := within(t, s, 2*time.Second)
		if err != nil {
			t.Errorf("two of three namespaces answer: %v", err)
		}
		for name, value := range whole {
			switch {
			case strings.HasPrefix(name, "roce_node_"), strings.HasPrefix(name, "roce_policy_port"):
			case !strings.Contains(name, `asic="asic1"`):
				got.has(t, name, value)
			}
		}
		got.lacks(t, `asic="asic1"`, "port=")
		got.has(t, `roce_redis_up{asic="asic1",database="COUNTERS_DB"}`, 0)
		for _, source := range reading.Sources {
			if (source.Err != nil) != (source.Name == "asic1") {
				t.Errorf("%+v", source)
			}
		}
	}
	servers["asic1"].Process.Kill()
	check()

	// Its database_config.json is gone, too: a container that does not start.
	if err := os.Remove(filepath.Join(dir, "../../redis1/sonic-db/database_config.json")); err != nil {
		t.Fatal(err)
	}
	check()
	check()
}

// The template of database_global.json leaves a comma out where a switch has
// both several ASICs and DPUs.
func TestGlobalFileIsNoJSON(t *testing.T) {
	broken := strings.Replace(global, "},\n\t{\"container_name\"", "}\n\t{\"container_name\"", 1)
	if json.Valid([]byte(broken)) {
		t.Fatal("the file is good")
	}
	dir := multiASIC(t, broken, startMultiASIC(t))
	for _, other := range []string{"redisdpu0", "redis-chassis"} {
		base := filepath.Join(dir, "../..", other, "sonic-db")
		if err := os.MkdirAll(base, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(base, "database_config.json"), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, reading := read(t, collectorOf(t, dir))
	got.has(t, `roce_pfc_receive_frames_total{asic="asic0",port="Ethernet0",priority="3"}`, 11)
	got.has(t, `roce_pfc_receive_frames_total{asic="asic1",port="Ethernet64",priority="3"}`, 22)
	got.has(t, `roce_service_up{name="system"}`, 1)
	if len(reading.Sources) != 3 {
		t.Errorf("%+v, want the host and two ASICs", reading.Sources)
	}
}

// A capture of such a switch replays as it was.
func TestCaptureOfSeveralASICs(t *testing.T) {
	dir := multiASIC(t, global, startMultiASIC(t))
	want, _ := read(t, collectorOf(t, dir))
	captured := record(t, &sonictest.Server{Dir: dir}, false)
	got, _ := read(t, capturedSwitch(t, captured, testOptions()))
	for name, value := range want {
		if !strings.HasPrefix(name, "roce_node_") {
			got.has(t, name, value)
		}
	}
}

// A port is broken out while the exporter runs: what comes and goes does so at
// the next scrape, and the rest stays.
func TestPortIsBrokenOut(t *testing.T) {
	d := nvidia(t)
	server := sonictest.Start(t)
	server.Load(t, d)
	s := live(t, server, testOptions())
	read(t, s)
	before, _ := read(t, s)
	before.some(t, `roce_queue_packets_total{port="Ethernet8"`)

	config, counters, asicDB := server.Client(t, "CONFIG_DB"), server.Client(t, "COUNTERS_DB"), server.Client(t, "ASIC_DB")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	must(config.Del(ctx, "PORT|Ethernet8", "PORT_QOS_MAP|Ethernet8", "PFC_WD|Ethernet8").Err())
	must(counters.HDel(ctx, "COUNTERS_PORT_NAME_MAP", "Ethernet8").Err())
	for name := range d["COUNTERS_DB"]["COUNTERS_QUEUE_NAME_MAP"] {
		if strings.HasPrefix(name, "Ethernet8:") {
			must(counters.HDel(ctx, "COUNTERS_QUEUE_NAME_MAP", name).Err())
		}
	}
	for i, port := range []string{"Ethernet8", "Ethernet10"} {
		oid := "oid:0x10000000007" + string(rune('0'+i))
		must(config.HSet(ctx, "PORT|"+port, "speed", "200000", "mtu", "9100", "admin_status", "up").Err())
		must(config.HSet(ctx, "PORT_QOS_MAP|"+port, "pfc_enable", "3").Err())
		must(counters.HSet(ctx, "COUNTERS_PORT_NAME_MAP", port, oid).Err())
		must(counters.HSet(ctx, "COUNTERS:"+oid, "SAI_PORT_STAT_PFC_3_RX_PKTS", 70+i).Err())
		must(asicDB.HSet(ctx, "ASIC_STATE:SAI_OBJECT_TYPE_PORT:"+oid, "SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL", 8).Err())
		queue := "oid:0x150000000007" + string(rune('0'+i))
		must(counters.HSet(ctx, "COUNTERS_QUEUE_NAME_MAP", port+":3", queue).Err())
		must(counters.HSet(ctx, "COUNTERS_QUEUE_INDEX_MAP", queue, "3").Err())
		must(counters.HSet(ctx, "COUNTERS_QUEUE_TYPE_MAP", queue, "SAI_QUEUE_TYPE_UNICAST").Err())
		must(counters.HSet(ctx, "COUNTERS:"+queue, "SAI_QUEUE_STAT_PACKETS", 700+i).Err())
	}
	got, _ := read(t, s)
	got.has(t, `roce_pfc_receive_frames_total{port="Ethernet8",priority="3"}`, 70)
	got.has(t, `roce_pfc_receive_frames_total{port="Ethernet10",priority="3"}`, 71)
	got.has(t, `roce_queue_packets_total{port="Ethernet10",queue="3",type="unicast"}`, 701)
	got.has(t, `roce_pfc_enabled{port="Ethernet10",priority="4",source="config"}`, 0)
	got.lacks(t, `roce_queue_packets_total{port="Ethernet8",queue="4"`)
	got.lacks(t, `roce_pfcwd_storm_active{port="Ethernet8"`)
	for name, value := range before {
		if strings.Contains(name, `port="Ethernet0"`) && !strings.Contains(name, "fdb") && !strings.Contains(name, "mac_info") {
			got.has(t, name, value)
		}
	}
}
