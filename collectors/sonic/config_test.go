// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReferences(t *testing.T) {
	for text, want := range map[string]string{
		"AZURE": "AZURE", "[DSCP_TO_TC_MAP|AZURE]": "AZURE", "[BUFFER_PROFILE_TABLE:pg_lossless_100000_5m_profile]": "pg_lossless_100000_5m_profile",
		"NULL": "", "": "", "[]": "",
	} {
		if got := reference(text); got != want {
			t.Errorf("%q names %q, want %q", text, got, want)
		}
	}
}

func TestKeysOfSeveralPortsAndRanges(t *testing.T) {
	c := newConfiguration()
	c.hostname, c.asic = "card-1", "Asic0"
	for _, key := range []string{
		"Ethernet0,Ethernet4|3-4", "Ethernet8|6", "card-1|asic0|Ethernet12|3", "card-2|asic0|Ethernet12|4", "card-1|asic1|Ethernet12|5",
		"Ethernet16|x", "Ethernet16|4-3", "Ethernet16", "Ethernet16|1-999",
	} {
		c.add("QUEUE", strings.Split(key, "|"), Hash{"wred_profile": "P"})
	}
	var got []string
	for at := range maps.Keys(c.queues) {
		got = append(got, at.port+":"+string(rune('0'+at.index)))
	}
	slices.Sort(got)
	want := []string{"Ethernet0:3", "Ethernet0:4", "Ethernet12:3", "Ethernet4:3", "Ethernet4:4", "Ethernet8:6"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPriorities(t *testing.T) {
	for text, want := range map[string]uint8{"": 0, "3,4": 24, "4,3": 24, "0,7": 129, " 3 , 4 ": 24, "3,": 8} {
		if got, err := parsePriorities(text); err != nil || got != want {
			t.Errorf("%q is %d %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"8", "-1", "3-4", "x", "3;4"} {
		if got, err := parsePriorities(text); err == nil {
			t.Errorf("%q is %d, want an error", text, got)
		}
	}
}

// Where a DSCP lands, under the maps that switches have.
func TestLanding(t *testing.T) {
	to := func(pairs ...int) qosMap {
		m := qosMap{to: map[int]int{}}
		for i := 0; i < len(pairs); i += 2 {
			m.to[pairs[i]] = pairs[i+1]
		}
		return m
	}
	template := to(0, 0, 1, 0, 2, 0, 3, 3, 4, 4, 5, 0, 6, 0, 7, 7)
	for name, c := range map[string]struct {
		b    binding
		dscp int
		want string
	}{
		"RoCE in the default template":          {binding{dscpBound: true, dscpToTC: to(26, 3), tcToGroup: template}, 26, "priority 3 queue 3"},
		"CNP in the default template":           {binding{dscpBound: true, dscpToTC: to(48, 6), tcToGroup: template}, 48, "priority 6 queue 6"},
		"all maps absent but the DSCP's":        {binding{dscpBound: true, dscpToTC: to(26, 3)}, 26, "priority 3 queue 3"},
		"no DSCP map":                           {binding{}, 26, "nowhere"},
		"a map that is named but not there":     {binding{dscpBound: true, dscpToTC: qosMap{unknown: true}}, 26, "nowhere"},
		"a DSCP that the map leaves out":        {binding{dscpBound: true, dscpToTC: to(24, 3)}, 26, "nowhere"},
		"lossless class in a lossy group":       {binding{dscpBound: true, dscpToTC: to(26, 3), tcToGroup: to(3, 0)}, 26, "priority 0 queue 3"},
		"a class in the group of another":       {binding{dscpBound: true, dscpToTC: to(26, 5), tcToGroup: to(5, 3)}, 26, "priority 3 queue 5"},
		"groups of other numbers":               {binding{dscpBound: true, dscpToTC: to(26, 3), tcToGroup: to(3, 1), pfcToGroup: to(3, 1, 4, 2), pfcToGroupBound: true}, 26, "priority 3 queue 3"},
		"only lossless priorities have a group": {binding{dscpBound: true, dscpToTC: to(48, 6), tcToGroup: template, pfcToGroup: to(3, 3, 4, 4), pfcToGroupBound: true}, 48, "priority 6 queue 6"},
		"another queue":                         {binding{dscpBound: true, dscpToTC: to(26, 3), tcToQueue: to(3, 1)}, 26, "priority 3 queue 1"},
	} {
		got := "nowhere"
		if d, ok := c.b.land(c.dscp, 0b11000); ok {
			got = "priority " + string(rune('0'+d.Priority)) + " queue " + string(rune('0'+d.Queue))
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestWhoTheNeighbourIs(t *testing.T) {
	c := newConfiguration()
	c.neighborTypes["known"] = "SpineRouter"
	c.neighborTypes["server-7"] = "Server"
	c.neighborTypes["storage"] = "StorageServer"
	for want, row := range map[string]Hash{
		"switch":  {"lldp_rem_sys_name": "known", "lldp_rem_sys_cap_enabled": "01 00"},
		"host":    {"lldp_rem_sys_name": "server-7", "lldp_rem_sys_desc": "SONiC"},
		" host":   {"lldp_rem_sys_name": "storage"},
		"switch ": {"lldp_rem_sys_desc": "SONiC Software Version: SONiC.202505"},
		"host ":   {"lldp_rem_sys_desc": "Ubuntu 24.04", "lldp_rem_sys_cap_enabled": "01 00"},
		"unknown": {"lldp_rem_sys_desc": "Ubuntu 24.04", "lldp_rem_sys_cap_enabled": "28 00"},
	} {
		if got := neighbor(row, c).Kind; got != strings.TrimSpace(want) {
			t.Errorf("%v is a %s, want %s", row, got, want)
		}
	}
}

func TestMACs(t *testing.T) {
	for text, want := range map[string]string{
		"02:00:5E:10:02:01": "02:00:5e:10:02:01", "02-00-5e-10-02-01": "02:00:5e:10:02:01", "0200.5e10.0201": "02:00:5e:10:02:01",
		"02005e100201": "", "Ethernet30/1": "", "": "", "02:00:5e:10:02": "", "zz:00:5e:10:02:01": "",
	} {
		if got, _ := parseMAC(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestDatabaseConfigThatIsNoGood(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"not JSON":          {`{"INSTANCES": `, "database_config.json"},
		"no databases":      {`{"INSTANCES": {}}`, "no DATABASES"},
		"unlisted instance": {`{"INSTANCES": {}, "DATABASES": {"COUNTERS_DB": {"id": 2, "separator": ":", "instance": "redis7"}}}`, `instance "redis7"`},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "database_config.json"), []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readDatabaseConfigs(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func FuzzDatabaseConfig(f *testing.F) {
	f.Add([]byte(`{"INSTANCES":{"redis":{"hostname":"127.0.0.1","port":6379,"unix_socket_path":"/var/run/redis/redis.sock"}},"DATABASES":{"COUNTERS_DB":{"id":2,"separator":":","instance":"redis"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "database_config.json"), data, 0o644); err != nil {
			t.Fatal(err)
		}
		if configs, err := readDatabaseConfigs(dir); err == nil {
			openNamespace(configs[0], LiveOptions{}).close()
		}
	})
}

func TestNaturalOrder(t *testing.T) {
	names := []string{"Ethernet16", "Ethernet8", "Ethernet-BP0", "Ethernet0", "Ethernet10/1", "Ethernet10", "Ethernet1/2", "PortChannel1"}
	slices.SortFunc(names, compareNatural)
	want := []string{"Ethernet-BP0", "Ethernet0", "Ethernet1/2", "Ethernet8", "Ethernet10", "Ethernet10/1", "Ethernet16", "PortChannel1"}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}
