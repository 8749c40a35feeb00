// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"roce_exporter/collectors/sonic"
	"roce_exporter/collectors/sonic/sonictest"
)

// nvidia returns the databases of the composed NVIDIA switch, to be changed.
func nvidia(t testing.TB) sonictest.Databases {
	t.Helper()
	return sonictest.ReadCapture(t, "testdata/nvidia")
}

// memory returns a collector of databases in memory.
func memory(t testing.TB, databases sonictest.Databases, options SwitchOptions) *Switch {
	t.Helper()
	s, err := sonic.OpenCapture(captureFS(t, databases))
	if err != nil {
		t.Fatal(err)
	}
	return NewSwitch(testCatalog(t), sonic.Fixed{Read: s}, options)
}

func captureFS(t testing.TB, databases sonictest.Databases) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{"meta.json": {Data: []byte(`{"format": 1, "clock": "2026-01-01T00:00:00Z"}`)}}
	for name, hashes := range databases {
		data, err := json.Marshal(hashes)
		if err != nil {
			t.Fatal(err)
		}
		files["redis/"+name+".json"] = &fstest.MapFile{Data: data}
	}
	return files
}

// live returns a collector of the switch in a real Redis.
func live(t testing.TB, server *sonictest.Server, options SwitchOptions) *Switch {
	t.Helper()
	source := sonic.NewLive(server.Dir, sonic.LiveOptions{Timeout: 2 * time.Second})
	t.Cleanup(source.Close)
	return NewSwitch(testCatalog(t), source, options)
}

// series are samples by name and labels as the text format writes them.
type series map[string]float64

func read(t testing.TB, s *Switch) (series, Reading) {
	t.Helper()
	reading, out := collect(t, s)
	return parse(t, out), reading
}

func parse(t testing.TB, text string) series {
	t.Helper()
	all := series{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		line = strings.TrimSuffix(line, "\n")
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if _, twice := all[line[:at]]; twice {
			t.Errorf("%s stands there twice", line[:at])
		}
		all[line[:at]] = value
	}
	return all
}

// has checks one sample.
func (s series) has(t testing.TB, name string, want float64) {
	t.Helper()
	if got, ok := s[name]; !ok {
		t.Errorf("%s is absent, want %v", name, want)
	} else if got != want {
		t.Errorf("%s is %v, want %v", name, got, want)
	}
}

// lacks checks that no series has all the words.
func (s series) lacks(t testing.TB, words ...string) {
	t.Helper()
	if found := s.with(words...); len(found) > 0 {
		t.Errorf("%d series with %q, want none, one is %s", len(found), words, found[0])
	}
}

// some checks that there are series with all the words.
func (s series) some(t testing.TB, words ...string) {
	t.Helper()
	if len(s.with(words...)) == 0 {
		t.Errorf("no series with %q", words)
	}
}

func (s series) with(words ...string) []string {
	var found []string
next:
	for name := range s {
		for _, w := range words {
			if !strings.Contains(name, w) {
				continue next
			}
		}
		found = append(found, name)
	}
	return found
}

// oidOf finds an object of a name map.
func oidOf(t testing.TB, databases sonictest.Databases, nameMap, name string) string {
	t.Helper()
	oid := databases["COUNTERS_DB"][nameMap][name]
	if oid == "" {
		t.Fatalf("%s has no %s", nameMap, name)
	}
	return oid
}

func portCounters(t testing.TB, databases sonictest.Databases, port string) map[string]string {
	t.Helper()
	return databases["COUNTERS_DB"]["COUNTERS:"+oidOf(t, databases, "COUNTERS_PORT_NAME_MAP", port)]
}

func queueCounters(t testing.TB, databases sonictest.Databases, queue string) map[string]string {
	t.Helper()
	return databases["COUNTERS_DB"]["COUNTERS:"+oidOf(t, databases, "COUNTERS_QUEUE_NAME_MAP", queue)]
}

func asicPort(t testing.TB, databases sonictest.Databases, port string) map[string]string {
	t.Helper()
	return databases["ASIC_DB"]["ASIC_STATE:SAI_OBJECT_TYPE_PORT:"+oidOf(t, databases, "COUNTERS_PORT_NAME_MAP", port)]
}

// writeInstances writes a database_config.json that spreads the databases over
// several servers.
func writeInstances(t testing.TB, of map[string]*sonictest.Server) string {
	t.Helper()
	ids := map[string]int{"APPL_DB": 0, "ASIC_DB": 1, "COUNTERS_DB": 2, "CONFIG_DB": 4, "FLEX_COUNTER_DB": 5, "STATE_DB": 6}
	instances, databases := map[string]any{}, map[string]any{}
	for name, server := range of {
		instance := "redis" + strconv.Itoa(server.Port)
		separator := ":"
		if name == "CONFIG_DB" || name == "STATE_DB" {
			separator = "|"
		}
		instances[instance] = map[string]any{"hostname": "127.0.0.1", "port": server.Port, "unix_socket_path": server.Socket}
		databases[name] = map[string]any{"id": ids[name], "separator": separator, "instance": instance}
	}
	data, err := json.Marshal(map[string]any{"INSTANCES": instances, "DATABASES": databases})
	dir := t.TempDir()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "database_config.json"), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
