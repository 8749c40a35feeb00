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
	shared := os.Getenv("ROCE_SHARED")
	if shared == "" {
		t.Skip("needs dumps of switches: set ROCE_SHARED to the folder that has sonic-dumps")
	}
	return filepath.Join(shared, "sonic-dumps")
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
	options := allOptions()
	options.PauseDurationUnit = "" // The walk knows no units.
	got, reading := read(t, dumpSwitch(t, options, d))
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
