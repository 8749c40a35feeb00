// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"roce_exporter/collectors/sonic"
	"roce_exporter/collectors/sonic/sonictest"
)

// One sample that is there twice costs a scraper the whole answer.
func TestTwoValuesForOneSample(t *testing.T) {
	queue := func(oid, place, index string) sonictest.Databases {
		return sonictest.Databases{"COUNTERS_DB": {
			"COUNTERS_PORT_NAME_MAP":        {"Ethernet0": "oid:0x1000000000211"},
			"COUNTERS_QUEUE_NAME_MAP":       {"Ethernet0:3": "oid:0x15000000000213", "Ethernet0:" + place: oid, "Ethernet0:7": "oid:0x15000000000217"},
			"COUNTERS_QUEUE_INDEX_MAP":      {"oid:0x15000000000213": "3", oid: index, "oid:0x15000000000217": "7"},
			"COUNTERS_QUEUE_TYPE_MAP":       {"oid:0x15000000000213": "SAI_QUEUE_TYPE_UNICAST", oid: "SAI_QUEUE_TYPE_UNICAST", "oid:0x15000000000217": "SAI_QUEUE_TYPE_UNICAST"},
			"COUNTERS:oid:0x15000000000213": {"SAI_QUEUE_STAT_PACKETS": "1"},
			"COUNTERS:oid:0x15000000000217": {"SAI_QUEUE_STAT_PACKETS": "7"},
			"COUNTERS:" + oid:               {"SAI_QUEUE_STAT_PACKETS": "2"},
		}}
	}
	port := sonictest.Databases{"COUNTERS_DB": {
		"COUNTERS_PORT_NAME_MAP": {"Ethernet0": "oid:0x1000000000211"},
		"COUNTERS:oid:0x1000000000211": {
			"SAI_PORT_STAT_PFC_3_ON2OFF_RX_PKTS": "31", "EST_PORT_STAT_PFC_3_ON2OFF_RX_PKTS": "32",
			"EST_PORT_STAT_PFC_4_ON2OFF_RX_PKTS":       "42",
			"SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US": "3000000", "EST_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US": "4000000",
			"SAI_PORT_STAT_IF_IN_UCAST_PKTS": "10", "SAI_PORT_STAT_IF_IN_NON_UCAST_PKTS": "1",
			"SAI_PORT_STAT_IF_IN_MULTICAST_PKTS": "2", "SAI_PORT_STAT_IF_IN_BROADCAST_PKTS": "3",
		},
	}}
	const packets, transitions = "roce_queue_packets_total", "roce_pfc_receive_transitions_total"
	for name, c := range map[string]struct {
		databases sonictest.Databases
		word      string
		want      series
		duplicate int
	}{
		"two raw names of one object: the better one": {port, transitions, series{
			transitions + `{port="Ethernet0",priority="3"}`: 31, transitions + `{port="Ethernet0",priority="4"}`: 42,
		}, 0},
		"a measured and an estimated time: the measured one": {port, "pause_seconds", series{
			`roce_pfc_receive_pause_seconds_total{method="measured",port="Ethernet0",priority="3"}`: 3,
		}, 0},
		"two ways to count all packets: the shorter one": {port, "_packets_total{port", series{
			`roce_port_receive_packets_total{port="Ethernet0"}`: 11,
		}, 0},
		"two objects with one number: neither, for nobody knows which is right": {
			queue("oid:0x15000000000214", "4", "3"), packets,
			series{packets + `{port="Ethernet0",queue="7",type="unicast"}`: 7},
			2,
		},
		"two objects of different numbers: both": {queue("oid:0x15000000000214", "4", "4"), packets, series{
			packets + `{port="Ethernet0",queue="3",type="unicast"}`: 1, packets + `{port="Ethernet0",queue="4",type="unicast"}`: 2,
			packets + `{port="Ethernet0",queue="7",type="unicast"}`: 7,
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // The order of a map must not decide.
				got, reading := read(t, memory(t, c.databases, everything()))
				same(t, got.about(c.word), c.want)
				if reading.Skipped.Duplicate != c.duplicate {
					t.Fatalf("%+v, want %d duplicates", reading.Skipped, c.duplicate)
				}
			}
		})
	}
}

// Redis answers a question for a key or a field that is not there with nothing
// and no error.
func TestObjectThatRedisDoesNotHave(t *testing.T) {
	const receive, transmit = "roce_pfc_receive_frames_total", "roce_pfc_transmit_frames_total"
	names := map[string]string{}
	d := sonictest.Databases{"COUNTERS_DB": {"COUNTERS_PORT_NAME_MAP": names}, "APPL_DB": {}}
	want := series{}
	for i := range 64 {
		port, oid := "Ethernet"+strconv.Itoa(8*i), fmt.Sprintf("oid:0x1000000000%03x", 0x300+i)
		names[port] = oid
		d["APPL_DB"]["PORT_TABLE:"+port] = map[string]string{"admin_status": "up", "oper_status": "up"}
		d["COUNTERS_DB"]["COUNTERS:"+oid] = map[string]string{"SAI_PORT_STAT_PFC_3_RX_PKTS": strconv.Itoa(100 + i), "SAI_PORT_STAT_PFC_3_TX_PKTS": strconv.Itoa(200 + i)}
		want[receive+`{port="`+port+`",priority="3"}`] = float64(100 + i)
		want[transmit+`{port="`+port+`",priority="3"}`] = float64(200 + i)
		want[`roce_port_oper_up{port="`+port+`"}`] = 1
	}
	delete(d["COUNTERS_DB"], "COUNTERS:"+names["Ethernet72"])
	delete(d["COUNTERS_DB"]["COUNTERS:"+names["Ethernet80"]], "SAI_PORT_STAT_PFC_3_RX_PKTS")
	delete(d["APPL_DB"]["PORT_TABLE:Ethernet88"], "oper_status")
	delete(d["APPL_DB"], "PORT_TABLE:Ethernet96")
	for _, lost := range []string{
		receive + `{port="Ethernet72",priority="3"}`, transmit + `{port="Ethernet72",priority="3"}`,
		receive + `{port="Ethernet80",priority="3"}`,
		`roce_port_oper_up{port="Ethernet88"}`, `roce_port_oper_up{port="Ethernet96"}`,
	} {
		delete(want, lost)
	}
	for _, name := range []string{"defaults", "everything"} {
		t.Run(name, func(t *testing.T) {
			server := sonictest.Start(t)
			server.Load(t, d)
			got, reading := read(t, live(t, server, fieldOptions()[name]))
			for _, word := range []string{"_frames_total", "oper_up"} {
				same(t, got.about(word), want.about(word))
			}
			if reading.Sources[0].Err != nil {
				t.Errorf("the server is well: %v", reading.Sources[0].Err)
			}
		})
	}
}

// A command is one that a server got.
type command struct{ database, verb, key string }

// monitored runs do and returns the commands that the server got meanwhile.
func monitored(t *testing.T, server *sonictest.Server, do func()) []command {
	t.Helper()
	own := server.Client(t, "APPL_DB")
	if err := own.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("unix", server.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	fmt.Fprintf(conn, "MONITOR\r\n")
	if !lines.Scan() || lines.Text() != "+OK" {
		t.Fatalf("MONITOR: %q %v", lines.Text(), lines.Err())
	}
	do()
	if err := own.Echo(t.Context(), "enough").Err(); err != nil {
		t.Fatal(err)
	}
	var commands []command
	line := regexp.MustCompile(`^\+[0-9.]+ \[(\d+) [^]]*\] "([^"]*)"(?: "([^"]*)")?`)
	for lines.Scan() {
		m := line.FindStringSubmatch(lines.Text())
		if m == nil {
			t.Fatalf("MONITOR says %q", lines.Text())
		}
		if strings.EqualFold(m[2], "echo") {
			return commands
		}
		commands = append(commands, command{m[1], strings.ToUpper(m[2]), m[3]})
	}
	t.Fatalf("MONITOR ended: %v", lines.Err())
	return nil
}

// Redis has one thread, and orchagent, syncd and the PFC watchdog wait for it
// too: the exporter reads only, asks for each object once and walks seldom.
func TestWhatTheExporterAsksOfRedis(t *testing.T) {
	const ports = 64
	d := sonictest.Synthetic(ports, 500)
	for _, name := range []string{"defaults", "everything"} {
		t.Run(name, func(t *testing.T) {
			server := sonictest.Start(t)
			server.Load(t, d)
			s := live(t, server, fieldOptions()[name])
			first := monitored(t, server, func() { read(t, s) })
			settling := monitored(t, server, func() { read(t, s); read(t, s); read(t, s) })
			settled := monitored(t, server, func() { read(t, s) })

			for _, c := range slices.Concat(first, settling, settled) {
				switch c.verb {
				case "HGETALL", "HMGET", "TIME", "SELECT", "HELLO":
				case "SCAN":
					if c.database == "1" || c.database == "2" || c.database == "5" {
						t.Errorf("a walk over database %s, which is large", c.database)
					}
				default:
					t.Errorf("%s %s in database %s", c.verb, c.key, c.database)
				}
			}
			verbs := map[string]int{}
			for _, c := range settled {
				verbs[c.verb]++
			}
			if verbs["SCAN"]+verbs["SELECT"]+verbs["HELLO"] > 0 || verbs["TIME"] > 1 {
				t.Errorf("a reading asks %v: want no walk and no new connection", verbs)
			}
			for which, commands := range map[string][]command{"the first": first, "a later": settled} {
				asked := map[command]int{}
				for _, c := range commands {
					if c.verb == "HGETALL" && strings.Contains(c.key, ":oid:0x") {
						asked[c]++
					}
				}
				for c, n := range asked {
					if n > 1 {
						t.Errorf("%s reading asks %d times for %s", which, n, c.key)
					}
				}
				for _, oid := range d["COUNTERS_DB"]["COUNTERS_PORT_NAME_MAP"] {
					if asked[command{"2", "HGETALL", "COUNTERS:" + oid}] == 0 {
						t.Errorf("%s reading does not ask for %s", which, oid)
					}
				}
			}

			before := readEvents(t, server)
			read(t, s)
			if events := readEvents(t, server) - before; events > len(settled)/8 {
				t.Errorf("%d commands came in %d pieces: they are not sent together", len(settled), events)
			}
		})
	}
}

// readEvents is how often the server read from its clients.
func readEvents(t *testing.T, server *sonictest.Server) int {
	t.Helper()
	info, err := server.Client(t, "APPL_DB").Info(t.Context(), "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`total_reads_processed:(\d+)`).FindStringSubmatch(info)
	if m == nil {
		t.Skip("this redis-server does not count its reads")
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A walk may meet a key twice, while the table is being resized.
func TestKeyThatAWalkMeetsTwice(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	pages := map[string]string{ // By cursor.
		"0": "*2\r\n$1\r\n7\r\n*2\r\n$3\r\nT|a\r\n$3\r\nT|b\r\n",
		"7": "*2\r\n$1\r\n9\r\n*0\r\n",
		"9": "*2\r\n$1\r\n0\r\n*3\r\n$3\r\nT|b\r\n$3\r\nT|c\r\n$3\r\nT|a\r\n",
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go answer(conn, pages)
		}
	}()
	of := map[string]*sonictest.Server{"STATE_DB": {Port: listener.Addr().(*net.TCPAddr).Port}}
	source := sonic.NewLive(writeInstances(t, of), sonic.LiveOptions{Timeout: time.Second})
	t.Cleanup(source.Close)
	s, err := source.Switch()
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	err = s.Namespaces[0].DB.Keys(t.Context(), "STATE_DB", "T|*", 3, time.Second, func(page []string) error {
		keys = append(keys, page...)
		return nil
	})
	slices.Sort(keys)
	if err != nil || !slices.Equal(keys, []string{"T|a", "T|b", "T|c"}) {
		t.Errorf("%q %v, want each key once", keys, err)
	}
}

// answer is an old Redis that knows pages of a SCAN, and takes everything else
// but the handshake of a new one.
func answer(conn net.Conn, pages map[string]string) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		var n int
		if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
			return
		}
		words := make([]string, n)
		for i := range words {
			var size int
			if _, err := fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
				return
			}
			word := make([]byte, size+2)
			if _, err := io.ReadFull(r, word); err != nil {
				return
			}
			words[i] = string(word[:size])
		}
		reply := "+OK\r\n"
		switch strings.ToUpper(words[0]) {
		case "SCAN":
			reply = pages[words[1]]
		case "HELLO":
			reply = "-ERR unknown command `HELLO`\r\n"
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

// The two text formats name the same samples, and a counter is a counter in
// both.
func TestBothTextFormatsSayTheSame(t *testing.T) {
	s := memory(t, nvidia(t), fieldOptions()["everything"])
	reading, plain := collect(t, s)
	var open bytes.Buffer
	families, _ := s.catalog.Gather(reading.Samples)
	for _, mf := range families {
		if _, err := expfmt.MetricFamilyToOpenMetrics(&open, mf); err != nil {
			t.Fatal(err)
		}
	}
	want, got := parse(t, plain), parse(t, open.String())
	if !maps.Equal(want, got) {
		same(t, got, want)
	}
	if plain, open := kinds(plain), kinds(open.String()); len(plain) != len(families) || !maps.Equal(plain, open) {
		t.Errorf("types in the plain text %v, in OpenMetrics %v", plain, open)
	}
	for name := range kinds(plain) {
		for _, unit := range []string{"_us", "_ms", "_microseconds", "_milliseconds", "_kb", "_kilobytes", "_mbps", "_percent"} {
			if strings.Contains(name+"_", unit+"_") {
				t.Errorf("%s has %s, want a base unit", name, unit)
			}
		}
	}
	onlyCountersEndInTotal(t, plain)
}

// kinds are the types of families, by the name without a counter's ending.
func kinds(text string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); strings.HasPrefix(line, "# TYPE ") {
			found[strings.TrimSuffix(words[2], "_total")] = words[3]
		}
	}
	return found
}

func onlyCountersEndInTotal(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if strings.HasPrefix(line, "# TYPE ") && strings.HasSuffix(words[2], "_total") != (words[3] == "counter") {
			t.Errorf("%s is a %s", words[2], words[3])
		}
	}
}
