// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"roce_exporter/collectors/sonic"
	"roce_exporter/collectors/sonic/sonictest"
)

// The tests of this file read dumps of real and mocked switches, which are not
// part of the repository: ROCE_SHARED names the folder that has them.

func dumps(t testing.TB) string {
	t.Helper()
	return shared(t, "sonic-dumps")
}

// shared is a folder of what is not part of the repository.
func shared(t testing.TB, folder string) string {
	t.Helper()
	root := os.Getenv("ROCE_SHARED")
	if root == "" {
		t.Skip("needs dumps: set ROCE_SHARED to the folder that has " + folder)
	}
	return filepath.Join(root, folder)
}

// dumpFile takes the name of a dump's file apart: what tells it from others in
// its folder, and the database.
var dumpFile = regexp.MustCompile(`^(.*?)(appl|asic|config|flex_counter|counters|state)_db(.*)\.json$`)

// dumpFolder reads the databases of a folder, by what tells several dumps in
// one folder apart.
func dumpFolder(t testing.TB, dir string) map[string]sonictest.Databases {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]sonictest.Databases{}
	for _, e := range entries {
		m := dumpFile.FindStringSubmatch(e.Name())
		if m == nil || m[1] == "gb_" || m[1] == "chassis_" { // Databases of a gearbox and of a chassis.
			continue
		}
		if found[m[1]+m[3]] == nil {
			found[m[1]+m[3]] = sonictest.Databases{}
		}
		found[m[1]+m[3]][strings.ToUpper(m[2])+"_DB"] = dumpHashes(t, filepath.Join(dir, e.Name()))
	}
	for variant, databases := range found { // What a variant does not have is that of all.
		for name, hashes := range found[""] {
			if databases[name] == nil && variant != "" {
				databases[name] = hashes
			}
		}
	}
	return found
}

// dumpHashes reads one database in any of the forms in which dumps are written:
// {key: {field: value}}, redis-dump's {key: {"type", "value"}}, and that of
// config_db.json, {table: {key: {field: value}}}.
func dumpHashes(t testing.TB, path string) map[string]map[string]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&raw); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if isConfigFile(raw) {
		flat := map[string]any{}
		for table, rows := range raw {
			for key, row := range rows.(map[string]any) {
				flat[table+"|"+key] = row
			}
		}
		raw = flat
	}
	hashes := map[string]map[string]string{}
	for key, value := range raw {
		row, ok := value.(map[string]any)
		if !ok {
			continue // A key that is no hash.
		}
		if inner, ok := row["value"]; ok && row["type"] != nil {
			if row, ok = inner.(map[string]any); !ok {
				continue
			}
		}
		hash := map[string]string{}
		for field, v := range row {
			if list, ok := v.([]any); ok {
				words := make([]string, len(list))
				for i, w := range list {
					words[i] = fmt.Sprint(w)
				}
				hash[strings.TrimSuffix(field, "@")+"@"] = strings.Join(words, ",")
				continue
			}
			hash[field] = fmt.Sprint(v)
		}
		if len(hash) == 0 {
			hash["NULL"] = "NULL" // Redis has no empty hash.
		}
		hashes[key] = hash
	}
	return hashes
}

func isConfigFile(raw map[string]any) bool {
	for key, value := range raw {
		rows, ok := value.(map[string]any)
		if !ok || len(rows) == 0 || strings.ContainsAny(key, "|:") {
			return false
		}
		for _, row := range rows {
			if _, ok := row.(map[string]any); !ok {
				return false
			}
		}
	}
	return len(raw) > 0
}

// dumpSwitch is the collector of a switch, of which each folder is an ASIC.
func dumpSwitch(t testing.TB, options SwitchOptions, asics ...sonictest.Databases) *Switch {
	t.Helper()
	if len(asics) == 1 {
		return memory(t, asics[0], options)
	}
	all := &sonic.Switch{}
	for i, databases := range asics {
		s, err := sonic.OpenCapture(captureFS(t, databases))
		if err != nil {
			t.Fatal(err)
		}
		s.Namespaces[0].Name = "asic" + strconv.Itoa(i)
		all.Namespaces, all.Files = append(all.Namespaces, s.Namespaces...), s.Files
	}
	return NewSwitch(testCatalog(t), sonic.Fixed{Read: all}, options)
}

// dump reads the databases of one folder with one dump.
func dump(t testing.TB, folder string) sonictest.Databases {
	t.Helper()
	d := dumpFolder(t, filepath.Join(dumps(t), folder))[""]
	if d == nil {
		t.Fatalf("no databases in %s", folder)
	}
	return d
}

// TestDumps compares, for every dump, what is exported of PFC, the watchdog,
// watermarks and drops with a walk of the test's own over the databases.
func TestDumps(t *testing.T) {
	root, n := dumps(t), 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		for variant, d := range dumpFolder(t, path) {
			n++
			folder, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			t.Run(filepath.ToSlash(folder)+"/"+variant, func(t *testing.T) { compareWithWalk(t, d) })
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 10 {
		t.Errorf("%d dumps below %s", n, root)
	}
}

func compareWithWalk(t *testing.T, d sonictest.Databases) {
	got, reading := read(t, dumpSwitch(t, everything(), d))
	for _, source := range reading.Sources {
		if source.Err != nil {
			t.Error(source.Err)
		}
	}
	w := newWalk(d)
	w.all()
	checked := series{}
	for name, value := range got {
		family, _, _ := strings.Cut(name, "{")
		if w.families[family] {
			checked[name] = value
		}
	}
	same(t, checked, w.want)
	if w.duplicate != reading.Skipped.Duplicate {
		t.Errorf("%d duplicates, the walk finds %d", reading.Skipped.Duplicate, w.duplicate)
	}
	t.Logf("%d samples, %d of them by the walk; skipped %+v", len(got), len(checked), reading.Skipped)
}

// A walk goes from the name maps to the hashes and makes of their fields what
// has to be exported.
type walk struct {
	counters, config map[string]map[string]string
	flex             map[string]map[string]string
	families         map[string]bool // All that it ever writes.
	want             series
	seen             map[string]int
	duplicate        int
}

func newWalk(d sonictest.Databases) *walk {
	w := &walk{
		counters: d["COUNTERS_DB"], config: d["CONFIG_DB"], flex: d["FLEX_COUNTER_DB"],
		families: map[string]bool{}, want: series{}, seen: map[string]int{},
	}
	return w
}

// A stat is a field and what it becomes.
type stat struct {
	field, family string
	scale         float64
	labels        string // That come with the field.
}

func (w *walk) all() {
	w.ports()
	w.queues()
	w.groups()
	w.pools()
	w.voqs()
	for name, n := range w.seen { // Two objects of the same name: neither.
		if n > 1 {
			delete(w.want, name)
			w.duplicate += n
		}
	}
}

// dumpNumber reads what the switch writes: a decimal of 64 bits, or a float. It
// keeps away what is no number, negative, or more than 64 bits hold.
func dumpNumber(text string) (float64, bool) {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return float64(n), true
	}
	if strings.Trim(text, "0123456789.e+-E") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && !math.Signbit(f) && f < 1<<64
}

// add takes the fields of one hash; labels end the series' own.
func (w *walk) add(hash map[string]string, labels map[string]string, stats ...stat) {
	for _, s := range stats {
		w.families[s.family] = true
		value, ok := dumpNumber(hash[s.field])
		if !ok {
			continue
		}
		all := maps.Clone(labels)
		for pair := range strings.SplitSeq(s.labels, ",") {
			if name, v, ok := strings.Cut(pair, "="); ok {
				all[name] = v
			}
		}
		if s.scale != 0 {
			value /= s.scale
		}
		name := seriesName(s.family, all)
		w.want[name] = value
		w.seen[name]++
	}
}

func seriesName(family string, labels map[string]string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, name+`="`+labels[name]+`"`)
	}
	return family + "{" + strings.Join(pairs, ",") + "}"
}

// polled says whether nobody says that a group is off.
func (w *walk) polled(config, flex string) bool {
	if status, ok := w.flex["FLEX_COUNTER_GROUP_TABLE:"+flex]["FLEX_COUNTER_STATUS"]; ok {
		return status == "enable"
	}
	row := w.config["FLEX_COUNTER_TABLE|"+config]
	if status, ok := row["FLEX_COUNTER_STATUS"]; ok && status != "enable" {
		return false
	}
	return row["FLEX_COUNTER_DELAY_STATUS"] != "true"
}

// knownPorts says whether CONFIG_DB lists the ports.
func (w *walk) knownPorts() bool {
	for key := range w.config {
		if strings.HasPrefix(key, "PORT|") {
			return true
		}
	}
	return false
}

func (w *walk) isPort(name string) bool {
	if !w.knownPorts() {
		return strings.HasPrefix(name, "Ethernet")
	}
	return w.config["PORT|"+name] != nil
}

// watched says whether a priority is not known to be without the watchdog.
func (w *walk) watched(port, priority string) bool {
	if !w.knownPorts() {
		return true
	}
	if w.config["PFC_WD|"+port] == nil {
		return false
	}
	qos := w.config["PORT_QOS_MAP|"+port]
	list, ok := qos["pfcwd_sw_enable"]
	if !ok {
		list = qos["pfc_enable"]
	}
	return slices.Contains(strings.Split(list, ","), priority)
}

// queuePriority is the priority that a queue is stopped for. The dumps map
// them one to one.
func (w *walk) queuePriority(port, queue string) string {
	name := strings.Trim(w.config["PORT_QOS_MAP|"+port]["pfc_to_queue_map"], "[]")
	_, bare, ok := strings.Cut(name, "|")
	if !ok {
		bare = name
	}
	table := w.config["MAP_PFC_PRIORITY_TO_QUEUE|"+bare]
	if table == nil {
		return queue
	}
	for priority, q := range table {
		if q == queue {
			return priority
		}
	}
	return "none"
}

func isDumpOID(text string) bool { return regexp.MustCompile(`^oid:0x[0-9a-f]+$`).MatchString(text) }

func (w *walk) ports() {
	for port, oid := range w.counters["COUNTERS_PORT_NAME_MAP"] {
		hash, labels := w.counters["COUNTERS:"+oid], map[string]string{"port": port}
		if !w.isPort(port) {
			hash = nil
		}
		perPort, drops := hash, hash
		if !w.polled("PORT", "PORT_STAT_COUNTER") {
			perPort = nil
		}
		if !w.polled("PORT_BUFFER_DROP", "PORT_BUFFER_DROP_STAT") {
			drops = nil
		}
		const sai = "SAI_PORT_STAT_"
		w.add(perPort, labels,
			stat{field: sai + "PAUSE_RX_PKTS", family: "roce_pause_receive_frames_total"},
			stat{field: sai + "PAUSE_TX_PKTS", family: "roce_pause_transmit_frames_total"},
			stat{field: sai + "IF_IN_DISCARDS", family: "roce_port_receive_discarded_packets_total"},
			stat{field: sai + "IF_OUT_DISCARDS", family: "roce_port_transmit_discarded_packets_total"},
			stat{field: sai + "IF_IN_ERRORS", family: "roce_port_receive_errors_total"},
			stat{field: sai + "IF_OUT_ERRORS", family: "roce_port_transmit_errors_total"},
			stat{field: sai + "IF_IN_OCTETS", family: "roce_port_receive_bytes_total"},
			stat{field: sai + "IF_OUT_OCTETS", family: "roce_port_transmit_bytes_total"},
			stat{field: sai + "IF_IN_FEC_CORRECTABLE_FRAMES", family: "roce_port_fec_corrected_codewords_total"},
			stat{field: sai + "IF_IN_FEC_NOT_CORRECTABLE_FRAMES", family: "roce_port_fec_uncorrectable_codewords_total"},
			stat{field: sai + "IF_IN_FEC_SYMBOL_ERRORS", family: "roce_port_fec_symbol_errors_total"},
		)
		w.add(drops, labels,
			stat{field: sai + "IN_DROPPED_PKTS", family: "roce_port_receive_buffer_dropped_packets_total"},
			stat{field: sai + "OUT_DROPPED_PKTS", family: "roce_port_transmit_buffer_dropped_packets_total"},
		)
		for i := range 8 {
			n := strconv.Itoa(i)
			pfc, labels := sai+"PFC_"+n+"_", map[string]string{"port": port, "priority": n}
			w.add(perPort, labels,
				stat{field: pfc + "RX_PKTS", family: "roce_pfc_receive_frames_total"},
				stat{field: pfc + "TX_PKTS", family: "roce_pfc_transmit_frames_total"},
			)
			watchdog := hash
			if !w.polled("PFCWD", "PFC_WD") || !w.watched(port, n) {
				watchdog = nil
			}
			// The chip's own word comes before the estimate.
			transitions, method := pfc+"ON2OFF_RX_PKTS", "method=measured"
			if _, ok := dumpNumber(watchdog[transitions]); !ok {
				transitions = "EST_PORT_STAT_PFC_" + n + "_ON2OFF_RX_PKTS"
			}
			duration := pfc + "RX_PAUSE_DURATION_US"
			if _, ok := dumpNumber(watchdog[duration]); !ok {
				duration, method = "EST_PORT_STAT_PFC_"+n+"_RX_PAUSE_DURATION_US", "method=estimated"
			}
			w.add(watchdog, labels,
				stat{field: transitions, family: "roce_pfc_receive_transitions_total"},
				stat{field: duration, family: "roce_pfc_receive_pause_seconds_total", scale: 1e6, labels: method},
				stat{field: pfc + "RX_PAUSE_DURATION", family: "roce_pfc_receive_pause_raw_total"},
			)
		}
	}
}

// windows are the watermark tables and their labels.
var windows = map[string]string{"USER_WATERMARKS:": "user", "PERSISTENT_WATERMARKS:": "persistent", "PERIODIC_WATERMARKS:": "periodic"}

func (w *walk) queues() {
	for name, oid := range w.counters["COUNTERS_QUEUE_NAME_MAP"] {
		at := strings.LastIndex(name, ":")
		if at < 0 || !isDumpOID(oid) || !w.isPort(name[:at]) {
			continue
		}
		port, index := name[:at], w.counters["COUNTERS_QUEUE_INDEX_MAP"][oid]
		kind := map[string]string{
			"SAI_QUEUE_TYPE_UNICAST": "unicast", "SAI_QUEUE_TYPE_MULTICAST": "multicast", "SAI_QUEUE_TYPE_ALL": "all",
		}[w.counters["COUNTERS_QUEUE_TYPE_MAP"][oid]]
		if index == "" || kind == "" {
			continue
		}
		hash, labels := w.counters["COUNTERS:"+oid], map[string]string{"port": port, "queue": index, "type": kind}
		const sai = "SAI_QUEUE_STAT_"
		if w.polled("QUEUE", "QUEUE_STAT_COUNTER") {
			w.add(hash, labels,
				stat{field: sai + "PACKETS", family: "roce_queue_packets_total"},
				stat{field: sai + "BYTES", family: "roce_queue_bytes_total"},
				stat{field: sai + "DROPPED_PACKETS", family: "roce_queue_dropped_packets_total"},
				stat{field: sai + "DROPPED_BYTES", family: "roce_queue_dropped_bytes_total"},
			)
		}
		if w.polled("WRED_ECN_QUEUE", "WRED_ECN_QUEUE_STAT_COUNTER") {
			w.add(hash, labels,
				stat{field: sai + "WRED_ECN_MARKED_PACKETS", family: "roce_queue_ecn_marked_packets_total"},
				stat{field: sai + "WRED_ECN_MARKED_BYTES", family: "roce_queue_ecn_marked_bytes_total"},
				stat{field: sai + "WRED_DROPPED_PACKETS", family: "roce_queue_wred_dropped_packets_total"},
			)
		}
		if w.polled("PFCWD", "PFC_WD") && w.watched(port, w.queuePriority(port, index)) {
			w.add(hash, labels, stat{field: sai + "CURR_OCCUPANCY_BYTES", family: "roce_queue_occupancy_bytes"})
		}
		if w.polled("QUEUE_WATERMARK", "QUEUE_WATERMARK_STAT_COUNTER") {
			for table, window := range windows {
				w.add(w.counters[table+oid], labels, stat{field: sai + "SHARED_WATERMARK_BYTES", family: "roce_queue_watermark_bytes", labels: "window=" + window})
			}
		}
		w.watchdog(hash, map[string]string{"port": port, "queue": index})
	}
}

// watchdog takes the PFC watchdog's fields of a queue. A queue that it watches
// has its two counters from the start.
func (w *walk) watchdog(hash, labels map[string]string) {
	hash = maps.Clone(hash)
	const stats = "PFC_WD_QUEUE_STATS_"
	if status, ok := hash["PFC_WD_STATUS"]; ok {
		hash["state"] = map[string]string{"operational": "0", "stormed": "1"}[status]
		for _, field := range []string{stats + "DEADLOCK_DETECTED", stats + "DEADLOCK_RESTORED"} {
			if _, ok := hash[field]; !ok {
				hash[field] = "0"
			}
		}
	}
	w.add(hash, labels,
		stat{field: "state", family: "roce_pfcwd_storm_active"},
		stat{field: stats + "DEADLOCK_DETECTED", family: "roce_pfcwd_storms_detected_total"},
		stat{field: stats + "DEADLOCK_RESTORED", family: "roce_pfcwd_storms_restored_total"},
		stat{field: stats + "RX_DROPPED_PACKETS", family: "roce_pfcwd_dropped_packets_total", labels: "direction=receive"},
		stat{field: stats + "TX_DROPPED_PACKETS", family: "roce_pfcwd_dropped_packets_total", labels: "direction=transmit"},
	)
}

func (w *walk) groups() {
	for name, oid := range w.counters["COUNTERS_PG_NAME_MAP"] {
		at := strings.LastIndex(name, ":")
		index := w.counters["COUNTERS_PG_INDEX_MAP"][oid]
		if at < 0 || !isDumpOID(oid) || !w.isPort(name[:at]) || index == "" {
			continue
		}
		labels := map[string]string{"port": name[:at], "pg": index}
		const sai = "SAI_INGRESS_PRIORITY_GROUP_STAT_"
		if w.polled("PG_DROP", "PG_DROP_STAT_COUNTER") {
			w.add(w.counters["COUNTERS:"+oid], labels, stat{field: sai + "DROPPED_PACKETS", family: "roce_pg_dropped_packets_total"})
		}
		if w.polled("PG_WATERMARK", "PG_WATERMARK_STAT_COUNTER") {
			for table, window := range windows {
				w.add(w.counters[table+oid], labels,
					stat{field: sai + "SHARED_WATERMARK_BYTES", family: "roce_pg_watermark_bytes", labels: "window=" + window},
					stat{field: sai + "XOFF_ROOM_WATERMARK_BYTES", family: "roce_pg_headroom_watermark_bytes", labels: "window=" + window},
				)
			}
		}
	}
}

func (w *walk) pools() {
	const sai = "SAI_BUFFER_POOL_STAT_"
	for pool, oid := range w.counters["COUNTERS_BUFFER_POOL_NAME_MAP"] {
		if !w.polled("BUFFER_POOL_WATERMARK", "BUFFER_POOL_WATERMARK_STAT_COUNTER") || !isDumpOID(oid) {
			continue
		}
		for table, window := range windows {
			w.add(w.counters[table+oid], map[string]string{"pool": pool},
				stat{field: sai + "WATERMARK_BYTES", family: "roce_buffer_pool_watermark_bytes", labels: "window=" + window},
				stat{field: sai + "XOFF_ROOM_WATERMARK_BYTES", family: "roce_buffer_pool_headroom_watermark_bytes", labels: "window=" + window},
			)
		}
	}
}

// voqs takes the virtual output queues of this card, or of all where nobody
// says which is this one.
func (w *walk) voqs() {
	const sai = "SAI_QUEUE_STAT_"
	device := w.config["DEVICE_METADATA|localhost"]
	for name, oid := range w.counters["COUNTERS_VOQ_NAME_MAP"] {
		at := strings.LastIndex(name, ":")
		parts := strings.Split(name, "|")
		foreign := len(parts) < 2 || parts[0] != device["hostname"] || !strings.EqualFold(parts[1], device["asic_name"])
		if at < 0 || !isDumpOID(oid) || device["hostname"] != "" && device["asic_name"] != "" && foreign {
			continue
		}
		hash, labels := w.counters["COUNTERS:"+oid], map[string]string{"system_port": name[:at], "queue": name[at+1:]}
		if w.polled("QUEUE", "QUEUE_STAT_COUNTER") {
			w.add(hash, labels,
				stat{field: sai + "PACKETS", family: "roce_voq_packets_total"},
				stat{field: sai + "BYTES", family: "roce_voq_bytes_total"},
				stat{field: sai + "DROPPED_PACKETS", family: "roce_voq_dropped_packets_total"},
				stat{field: sai + "DROPPED_BYTES", family: "roce_voq_dropped_bytes_total"},
				stat{field: sai + "CREDIT_WD_DELETED_PACKETS", family: "roce_voq_credit_watchdog_deleted_packets_total"},
			)
		}
		if w.polled("WRED_ECN_QUEUE", "WRED_ECN_QUEUE_STAT_COUNTER") {
			w.add(hash, labels, stat{field: sai + "WRED_DROPPED_PACKETS", family: "roce_voq_wred_dropped_packets_total"})
		}
	}
}

// in checks a row of a table: values by number, NaN for none.
func (s series) in(t testing.TB, format string, from int, values ...float64) {
	t.Helper()
	for i, want := range values {
		if name := fmt.Sprintf(format, from+i); math.IsNaN(want) {
			s.lacks(t, name)
		} else {
			s.has(t, name, want)
		}
	}
}

// upwards is a first value and those that follow from a second.
func upwards(first, second float64, n int) []float64 {
	values := []float64{first}
	for i := range n - 1 {
		values = append(values, second+float64(i))
	}
	return values
}

// everythingOf reads a dump with everything that can be exported.
func everythingOf(t testing.TB, asics ...sonictest.Databases) series {
	t.Helper()
	got, _ := read(t, dumpSwitch(t, everything(), asics...))
	return got
}

// What SONiC's command line prints of the same databases, by its own tests
// (sonic-utilities tests/mock_tables).
func TestDumpOfOneASICSaysWhatTheCommandLineSays(t *testing.T) {
	d := dump(t, "utilities-single")
	got := everythingOf(t, d)
	none := math.NaN()

	t.Run("show pfc counters", func(t *testing.T) {
		for port, first := range map[string][2]float64{"Ethernet0": {1200, 201}, "Ethernet4": {1400, 401}, "Ethernet8": {1800, 801}} {
			got.in(t, `roce_pfc_receive_frames_total{port="`+port+`",priority="%d"}`, 0, upwards(first[0], first[1], 8)...)
			got.in(t, `roce_pfc_transmit_frames_total{port="`+port+`",priority="%d"}`, 0, upwards(first[0]+10, first[1]+10, 8)...)
		}
	})
	t.Run("show pfc counters --history", func(t *testing.T) {
		const transitions, pause = `roce_pfc_receive_transitions_total{port="`, `roce_pfc_receive_pause_seconds_total{method="estimated",port="`
		// The configuration puts two priorities under the watchdog.
		got.in(t, transitions+`Ethernet0",priority="%d"}`, 0, none, none, none, 23, 24, none, none, none)
		got.in(t, pause+`Ethernet0",priority="%d"}`, 0, none, none, none, 20.000003, 20.000004, none, none, none)
		// Where nobody knows the configuration all of them are there.
		unknown := maps.Clone(d)
		delete(unknown, "CONFIG_DB")
		all := everythingOf(t, unknown)
		all.in(t, transitions+`Ethernet0",priority="%d"}`, 0, upwards(12, 21, 8)...)
		all.in(t, pause+`Ethernet0",priority="%d"}`, 0, 12, 20.000001, 20.000002, 20.000003, 20.000004, 20.000005, 20.000006, 20.000007)
		all.has(t, transitions+`Ethernet8",priority="7"}`, 87)
		all.has(t, pause+`Ethernet8",priority="7"}`, 80.000007)
	})
	t.Run("pfcwd show stats", func(t *testing.T) {
		want := series{}
		row := func(port, queue string, storm, detected, restored, transmit, receive float64) {
			labels := `port="` + port + `",queue="` + queue + `"}`
			want[`roce_pfcwd_storm_active{`+labels] = storm
			want[`roce_pfcwd_storms_detected_total{`+labels] = detected
			want[`roce_pfcwd_storms_restored_total{`+labels] = restored
			want[`roce_pfcwd_dropped_packets_total{direction="transmit",`+labels] = transmit
			want[`roce_pfcwd_dropped_packets_total{direction="receive",`+labels] = receive
		}
		row("Ethernet0", "3", 1, 1, 0, 300, 300)
		row("Ethernet4", "3", 0, 2, 2, 100, 100)
		row("Ethernet8", "4", 1, 3, 2, 300, 300)
		for name, value := range want {
			got.has(t, name, value)
		}
		for name, value := range got { // The other rows have nothing to show.
			if _, ok := want[name]; !ok && value != 0 && (strings.HasPrefix(name, "roce_pfcwd_storm") || strings.HasPrefix(name, "roce_pfcwd_dropped")) {
				t.Errorf("%s is %v, want 0 or nothing", name, value)
			}
		}
	})
	t.Run("pfcwd show config", func(t *testing.T) {
		for _, port := range []string{"Ethernet0", "Ethernet4", "Ethernet8"} {
			got.has(t, `roce_pfcwd_action_info{action="drop",port="`+port+`"}`, 1)
			got.has(t, `roce_pfcwd_detection_time_seconds{port="`+port+`"}`, 0.6)
			got.has(t, `roce_pfcwd_restoration_time_seconds{port="`+port+`"}`, 0.6)
		}
	})
	t.Run("show queue counters and wredcounters", func(t *testing.T) {
		for queue, row := range map[string][4]float64{
			`queue="0",type="unicast"`: {0, 0, 0, 0}, `queue="1",type="unicast"`: {60, 43, 39, 1}, `queue="3",type="unicast"`: {52, 70, 19, 76},
			`queue="4",type="unicast"`: {11, 59, 12, 94}, `queue="10",type="multicast"`: {83, 96, 74, 9},
		} {
			labels := `{port="Ethernet0",` + queue + `}`
			got.has(t, "roce_queue_packets_total"+labels, row[0])
			got.has(t, "roce_queue_bytes_total"+labels, row[1])
			got.has(t, "roce_queue_dropped_packets_total"+labels, row[2])
			got.has(t, "roce_queue_dropped_bytes_total"+labels, row[3])
			// The mock has the same numbers once more.
			got.has(t, "roce_queue_wred_dropped_packets_total"+labels, row[0])
			got.has(t, "roce_queue_ecn_marked_packets_total"+labels, row[2])
			got.has(t, "roce_queue_ecn_marked_bytes_total"+labels, row[3])
		}
		got.lacks(t, "_total{", `type="all"`)
	})
	t.Run("show priority-group watermark", func(t *testing.T) {
		for port, first := range map[string]float64{"Ethernet0": 100, "Ethernet4": 400, "Ethernet8": 800} {
			const end = `",window="user"}`
			got.in(t, `roce_pg_watermark_bytes{pg="%d",port="`+port+end, 0, upwards(first, first+1, 8)...)
			got.in(t, `roce_pg_headroom_watermark_bytes{pg="%d",port="`+port+end, 0, upwards(first, first+1, 8)...)
			got.in(t, `roce_pg_watermark_bytes{pg="%d",port="`+port+`",window="persistent"}`, 0, upwards(first+100, first+101, 8)...)
		}
	})
	t.Run("show queue watermark", func(t *testing.T) {
		const end = `,window="user"}`
		for port, row := range map[string][]float64{
			"Ethernet0": {2057328, 2056704, 0, 0, 0, 0, 0, 2704, 416, 20},
			"Ethernet4": {0, 0, 0, 1986, 2567, 0, 0, 0, 0, 0},
			"Ethernet8": {0, 0, 1040, 0, 0, 0, 0, 0, 8528, 7696},
		} {
			got.in(t, `roce_queue_watermark_bytes{port="`+port+`",queue="%d",type="unicast"`+end, 0, row...)
		}
		got.lacks(t, "roce_queue_watermark_bytes", `type="multicast"`, end)
		got.in(t, `roce_queue_watermark_bytes{port="Ethernet0",queue="%d",type="all"`+end, 20, 1234567, 7654321, 0, 0, 0, 20, 500, 200, 0, 10)
	})
	t.Run("show buffer_pool and headroom-pool watermark", func(t *testing.T) {
		for pool, row := range map[string][2]float64{
			"egress_lossless_pool": {1000, 2000}, "egress_lossy_pool": {2000, 3000}, "ingress_lossless_pool": {3000, 4000},
		} {
			got.has(t, `roce_buffer_pool_watermark_bytes{pool="`+pool+`",window="user"}`, row[0])
			got.has(t, `roce_buffer_pool_watermark_bytes{pool="`+pool+`",window="persistent"}`, row[1])
		}
		got.has(t, `roce_buffer_pool_headroom_watermark_bytes{pool="ingress_lossless_pool",window="user"}`, 432640)
		got.has(t, `roce_buffer_pool_headroom_watermark_bytes{pool="ingress_lossless_pool",window="persistent"}`, 863616)
	})
	t.Run("show priority-group drop counters", func(t *testing.T) {
		for port, first := range map[string]float64{"Ethernet0": 800, "Ethernet4": 400, "Ethernet8": 100} {
			got.in(t, `roce_pg_dropped_packets_total{pg="%d",port="`+port+`"}`, 0, upwards(first, first+1, 8)...)
		}
	})
	t.Run("ecnconfig -l", func(t *testing.T) {
		for _, color := range []string{"green", "yellow", "red"} {
			for _, queue := range []string{"3", "4"} {
				end := `,color="` + color + `",port="Ethernet0",queue="` + queue + `"}`
				got.has(t, `roce_queue_ecn_threshold_bytes{bound="min"`+end, 1048576)
				got.has(t, `roce_queue_ecn_threshold_bytes{bound="max"`+end, 2097152)
				got.has(t, `roce_queue_ecn_enabled{port="Ethernet0",queue="`+queue+`"}`, 1)
			}
		}
	})
}

// The same of a switch with two ASICs, each read by itself; read together,
// every series of an ASIC has its label too.
func TestDumpOfTwoASICsSaysWhatTheCommandLineSays(t *testing.T) {
	asic0, asic1 := dump(t, "utilities-asic0"), dump(t, "utilities-asic1")
	one, other := everythingOf(t, asic0), everythingOf(t, asic1)

	t.Run("show pfc counters", func(t *testing.T) {
		for port, c := range map[string]struct {
			of            series
			first, second float64
			kind          string
		}{
			"Ethernet0": {one, 1200, 201, "front"}, "Ethernet4": {one, 1400, 401, "front"},
			"Ethernet-BP0": {one, 1600, 601, "backplane"}, "Ethernet-BP4": {one, 1800, 801, "backplane"},
			"Ethernet-BP256": {other, 1900, 901, "backplane"}, "Ethernet-BP260": {other, 1100, 101, "backplane"},
		} {
			c.of.in(t, `roce_pfc_receive_frames_total{port="`+port+`",priority="%d"}`, 0, upwards(c.first, c.second, 8)...)
			c.of.in(t, `roce_pfc_transmit_frames_total{port="`+port+`",priority="%d"}`, 0, upwards(c.first+10, c.second+10, 8)...)
			c.of.some(t, "roce_port_info", `kind="`+c.kind+`"`, `port="`+port+`"`)
		}
	})
	t.Run("show pfc counters --history", func(t *testing.T) {
		other.lacks(t, "roce_pfc_receive_transitions_total")
		other.lacks(t, "roce_pfc_receive_pause_seconds_total")
	})
	t.Run("show priority-group watermark", func(t *testing.T) {
		// The mock misspells the ports and some of the ids.
		mend := strings.NewReplacer("Enternet", "Ethernet", "oid:1", "oid:0x1").Replace
		mended := map[string]map[string]string{}
		for key, hash := range asic0["COUNTERS_DB"] {
			mended[mend(key)] = map[string]string{}
			for field, value := range hash {
				mended[mend(key)][mend(field)] = mend(value)
			}
		}
		d := maps.Clone(asic0)
		d["COUNTERS_DB"] = mended
		got := everythingOf(t, d)
		got.in(t, `roce_pg_watermark_bytes{pg="%d",port="Ethernet0",window="user"}`, 0, upwards(100, 101, 16)...)
		got.in(t, `roce_pg_watermark_bytes{pg="%d",port="Ethernet4",window="user"}`, 0, upwards(200, 201, 16)...)
		got.lacks(t, "roce_pg_watermark_bytes", `port="Ethernet4"`, `window="persistent"`)
		other.lacks(t, "roce_pg_watermark_bytes", `port="Ethernet-BP260"`, `window="persistent"`)
	})
	t.Run("pfcwd show stats", func(t *testing.T) {
		const queue = `port="Ethernet0",queue="0"}`
		one.lacks(t, "roce_pfcwd_storm_active{"+queue)
		one.has(t, "roce_pfcwd_storms_detected_total{"+queue, 0)
		one.has(t, "roce_pfcwd_storms_restored_total{"+queue, 0)
		one.has(t, `roce_pfcwd_dropped_packets_total{direction="transmit",`+queue, 11)
		one.has(t, `roce_pfcwd_dropped_packets_total{direction="receive",`+queue, 47)
	})
	t.Run("both ASICs together", func(t *testing.T) {
		want := series{}
		for i, of := range []series{one, other} {
			for name, value := range of.about("roce_pfc_receive_frames_total") {
				want[strings.Replace(name, "{", `{asic="asic`+strconv.Itoa(i)+`",`, 1)] = value
			}
		}
		same(t, everythingOf(t, asic0, asic1).about("roce_pfc_receive_frames_total"), want)
	})
}

// A line card of a chassis, as it was in the field.
func TestDumpOfALineCard(t *testing.T) {
	got := everythingOf(t, dump(t, "sairedis-voq-linecard"))
	watched := []string{"Ethernet0", "Ethernet136", "Ethernet56"}

	ports := got.about("roce_port_info").values("port")
	if len(ports) != 20 {
		t.Errorf("%d ports: %q", len(ports), ports)
	}
	for _, family := range []string{"roce_pfc_receive_frames_total", "roce_pfc_transmit_frames_total"} {
		frames := got.about(family)
		if len(frames) != 20*8 {
			t.Errorf("%d series of %s, want 8 a port", len(frames), family)
		}
		for name, value := range frames {
			if value != 0 {
				t.Errorf("%s is %v", name, value)
			}
		}
	}
	for _, port := range ports {
		mask, speed := "", 100e9/8
		if slices.Contains(watched, port) {
			mask = "3,4"
		}
		if configured, programmed := on(got, port, "config"), on(got, port, "asic"); configured != mask || programmed != mask {
			t.Errorf("%s: %q configured, %q programmed, want %q", port, configured, programmed, mask)
		}
		for _, source := range []string{"config", "asic", "kernel"} {
			got.has(t, `roce_port_mtu_bytes{port="`+port+`",source="`+source+`"}`, 9100)
		}
		if port == "Ethernet-IB0" || port == "Ethernet-Rec0" {
			speed = 10e9 / 8
			got.lacks(t, "roce_pfc_enabled", `"`+port+`"`)
			got.lacks(t, "roce_pg_", `"`+port+`"`)
		}
		got.has(t, `roce_port_configured_speed_bytes_per_second{port="`+port+`"}`, speed)
	}

	want := series{}
	for _, port := range watched {
		for _, queue := range []string{"3", "4"} {
			labels := `{port="` + port + `",queue="` + queue + `"}`
			want["roce_pfcwd_enabled"+labels] = 1
			want["roce_pfcwd_storm_active"+labels] = 0
			want["roce_pfcwd_storms_detected_total"+labels] = 0
			want["roce_pfcwd_storms_restored_total"+labels] = 0
		}
		want[`roce_pfcwd_detection_time_seconds{port="`+port+`"}`] = 0.2
		want[`roce_pfcwd_restoration_time_seconds{port="`+port+`"}`] = 0.2
		want[`roce_pfcwd_action_info{action="drop",port="`+port+`"}`] = 1
	}
	same(t, got.about("roce_pfcwd_"), want)
	transitions := got.about("roce_pfc_receive_transitions_total")
	if len(transitions) != 6 || !slices.Equal(transitions.values("priority"), []string{"3", "4"}) || !slices.Equal(transitions.values("port"), watched) {
		t.Errorf("transitions %v, want those of priorities 3 and 4 of %q", transitions, watched)
	}

	for name, value := range map[string]float64{
		`roce_port_receive_discarded_packets_total{port="Ethernet0"}`:                             2,
		`roce_port_receive_bytes_total{port="Ethernet0"}`:                                         16026,
		`roce_port_transmit_bytes_total{port="Ethernet0"}`:                                        8663076,
		`roce_port_fec_symbol_errors_total{port="Ethernet0"}`:                                     4428233,
		`roce_port_fec_corrected_codewords_total{port="Ethernet0"}`:                               3525216,
		`roce_queue_packets_total{port="Ethernet0",queue="7",type="unicast"}`:                     4717,
		`roce_queue_bytes_total{port="Ethernet0",queue="7",type="unicast"}`:                       8617480,
		`roce_queue_watermark_bytes{port="Ethernet0",queue="7",type="unicast",window="user"}`:     9216,
		`roce_queue_watermark_bytes{port="Ethernet0",queue="7",type="unicast",window="periodic"}`: 4608,
		`roce_pg_watermark_bytes{pg="4",port="Ethernet136",window="user"}`:                        848,
		`roce_pg_watermark_bytes{pg="4",port="Ethernet136",window="persistent"}`:                  848,
		`roce_pg_watermark_bytes{pg="4",port="Ethernet136",window="periodic"}`:                    0,
		`roce_buffer_pool_watermark_bytes{pool="ingress_lossless_pool",window="user"}`:            12064,
		`roce_buffer_pool_headroom_watermark_bytes{pool="ingress_lossless_pool",window="user"}`:   0,
	} {
		got.has(t, name, value)
	}
	for _, kind := range []string{"unicast", "multicast"} {
		if n := len(got.with("roce_queue_packets_total", `type="`+kind+`"`)); n != 160 {
			t.Errorf("%d %s queues, want 160", n, kind)
		}
	}
	if n := len(got.with("roce_pg_dropped_packets_total")); n != 144 {
		t.Errorf("%d priority groups, want 144", n)
	}
}

// ASIC_DB alone has no port names; those of the kernel's interfaces make up
// the map that orchagent would have written.
func TestDumpOfAnASICAlone(t *testing.T) {
	d, names := dump(t, "sairedis-th-asic"), map[string]string{}
	for key, hash := range d["ASIC_DB"] {
		if strings.HasPrefix(key, "ASIC_STATE:SAI_OBJECT_TYPE_HOSTIF:") && strings.HasPrefix(hash["SAI_HOSTIF_ATTR_NAME"], "Ethernet") {
			names[hash["SAI_HOSTIF_ATTR_NAME"]] = hash["SAI_HOSTIF_ATTR_OBJ_ID"]
		}
	}
	if len(names) != 32 || names["Ethernet80"] != "oid:0x1000000000002" {
		t.Fatalf("%d ports, Ethernet80 is %s", len(names), names["Ethernet80"])
	}
	ports := slices.Sorted(maps.Keys(names))
	names["Cpu0"] = "oid:0x1000000000001"
	d["COUNTERS_DB"] = map[string]map[string]string{"COUNTERS_PORT_NAME_MAP": names}
	got := everythingOf(t, d)
	if found := got.values("port"); !slices.Equal(found, ports) {
		t.Errorf("ports %q, want %q", found, ports)
	}
	for _, port := range ports {
		if mask := on(got, port, "asic"); mask != "3,4" {
			t.Errorf("%s: PFC for %q", port, mask)
		}
		got.has(t, `roce_port_mtu_bytes{port="`+port+`",source="asic"}`, 9100)
	}
}

// A CONFIG_DB with bracketed references and the same with bare ones say the
// same.
func TestDumpsWithBothFormsOfReferences(t *testing.T) {
	var all []series
	for _, d := range dumpFolder(t, filepath.Join(dumps(t), "mgmt-refs")) {
		all = append(all, everythingOf(t, d))
	}
	if len(all) != 2 {
		t.Fatalf("%d dumps, want 2", len(all))
	}
	same(t, all[0], all[1])
	thresholds := all[0].about("roce_queue_ecn_threshold_bytes")
	if queues := thresholds.values("queue"); !slices.Equal(queues, []string{"3", "4"}) {
		t.Errorf("thresholds of queues %q, want 3 and 4", queues)
	}
	all[0].has(t, `roce_port_dscp_info{dscp="3",port="Ethernet0",priority="3",queue="3"}`, 1)
}

// A group that is off has nothing to show, whatever the name maps have.
func TestDumpsWhereDropsAreOff(t *testing.T) {
	for variant, d := range dumpFolder(t, filepath.Join(dumps(t), "utilities-inputs", "pgdrop")) {
		t.Run("counters"+variant, func(t *testing.T) {
			for _, oid := range d["COUNTERS_DB"]["COUNTERS_PG_NAME_MAP"] { // Leftovers.
				d["COUNTERS_DB"]["COUNTERS:"+oid] = map[string]string{"SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS": "9"}
			}
			got := everythingOf(t, d)
			got.has(t, `roce_flex_counter_enabled{group="PG_DROP"}`, 0)
			got.has(t, `roce_flex_counter_enabled{group="QUEUE"}`, 1)
			got.lacks(t, "roce_pg_dropped_packets_total")
		})
	}
}

// From a real Redis, with its walks and pipelines, comes the same.
func TestDumpInARealRedis(t *testing.T) {
	d := dump(t, "sairedis-voq-linecard")
	server := sonictest.Start(t)
	server.Load(t, d)
	s := live(t, server, everything())
	for range 3 { // One walk a reading: CONFIG_DB, FDB, neighbours.
		read(t, s)
	}
	got, reading := read(t, s)
	want := everythingOf(t, d)
	for _, other := range []string{"roce_node_time_seconds", "roce_node_boot_time_seconds"} {
		delete(got, other)
		delete(want, other)
	}
	same(t, got, want)
	if reading.Skipped != (Skipped{}) {
		t.Errorf("%+v, want nothing skipped", reading.Skipped)
	}
}
