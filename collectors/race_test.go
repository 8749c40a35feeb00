// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"roce_exporter/collectors/sonic"
	"roce_exporter/collectors/sonic/sonictest"
)

// swap exchanges the objects behind two names in one step, contents and all:
// what each name stands for stays true at every moment.
const swap = `
local function exchange(map, a, b, prefixes)
  local x, y = redis.call('HGET', map, a), redis.call('HGET', map, b)
  redis.call('HSET', map, a, y, b, x)
  for _, p in ipairs(prefixes) do
    if redis.call('EXISTS', p .. x) == 1 and redis.call('EXISTS', p .. y) == 1 then
      redis.call('RENAME', p .. x, 'swap')
      redis.call('RENAME', p .. y, p .. x)
      redis.call('RENAME', 'swap', p .. y)
    end
  end
  return x, y
end
local tables = {'COUNTERS:', 'USER_WATERMARKS:', 'PERIODIC_WATERMARKS:'}
redis.call('SELECT', 2)
local x, y = exchange('COUNTERS_PORT_NAME_MAP', 'Ethernet0', 'Ethernet8', tables)
exchange('COUNTERS_QUEUE_NAME_MAP', 'Ethernet0:3', 'Ethernet8:3', tables)
exchange('COUNTERS_PG_NAME_MAP', 'Ethernet0:4', 'Ethernet8:4', tables)
exchange('COUNTERS_BUFFER_POOL_NAME_MAP', 'ingress_lossless_pool', 'egress_lossless_pool', tables)
redis.call('SELECT', 1)
local port = 'ASIC_STATE:SAI_OBJECT_TYPE_PORT:'
redis.call('RENAME', port .. x, 'swap')
redis.call('RENAME', port .. y, port .. x)
redis.call('RENAME', 'swap', port .. y)
`

// TestNeverAValueUnderAnotherObjectsLabel exchanges objects at every possible
// moment of a reading: a proxy holds one reply back meanwhile. What cannot be
// told for sure is left out; what is there is true.
func TestNeverAValueUnderAnotherObjectsLabel(t *testing.T) {
	server := sonictest.Start(t)
	d := nvidia(t)
	for _, queue := range []string{"Ethernet0:4", "Ethernet8:4"} { // Then the queue that is exchanged has the word for its port.
		delete(queueCounters(t, d, queue), "PFC_WD_DETECTION_TIME")
	}
	d["CONFIG_DB"]["PFC_WD|Ethernet0"]["detection_time"] = "200"
	server.Load(t, d)
	writer := server.Client(t, "APPL_DB")
	var hold atomic.Int64 // Replies until one is held back.
	exchange := func() {
		// An empty answer is the script's: it returns nothing.
		if err := writer.Eval(t.Context(), swap, nil).Err(); err != nil && err.Error() != "redis: nil" {
			t.Error(err)
		}
	}
	proxied := &sonictest.Server{Port: proxy(t, server.Port, func() {
		if hold.Add(-1) == 0 {
			exchange()
		}
	})}
	of := map[string]*sonictest.Server{}
	for _, name := range sonic.Databases() {
		of[name] = proxied
	}
	source := sonic.NewLive(writeInstances(t, of), sonic.LiveOptions{Timeout: 5 * time.Second})
	t.Cleanup(source.Close)
	options := testOptions()
	options.RefreshFDB = 0
	s := NewSwitch(testCatalog(t), source, options)

	truth, _ := read(t, s)
	clock := "roce_node_time_seconds"
	delete(truth, clock)
	replies := 40
	random := rand.New(rand.NewPCG(1, 2))
	raced, whole := 0, 0
	for i := range 1000 {
		hold.Store(1 + random.Int64N(int64(replies)))
		got, reading := read(t, s)
		hold.Store(0)
		delete(got, clock)
		for name, value := range got {
			want, known := truth[name]
			if strings.HasPrefix(name, "roce_pfcwd_detection_time") && value != want && reading.Skipped.Raced > 0 {
				want = map[string]float64{`Ethernet0`: 0.2, `Ethernet8`: 0.4}[strings.Split(name, `"`)[1]] // The configuration's.
			}
			if !known && name == `roce_counters_last_change_timestamp_seconds{group="PORT"}` {
				continue
			}
			if !known || value != want {
				t.Fatalf("reading %d: %s is %v, the truth is %v", i, name, value, want)
			}
		}
		if reading.Skipped.Raced > 0 {
			raced++
		}
		if len(got) >= len(truth) {
			whole++
		}
	}
	t.Logf("%d readings met the exchange, %d were whole", raced, whole)
	if raced < 100 || whole < 100 {
		t.Errorf("%d readings met the exchange, %d were whole: the test does not test", raced, whole)
	}
}

// proxy forwards to a port of this machine and calls held before each piece
// of a reply that it passes on. It returns its own port.
func proxy(t *testing.T, port int, held func()) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	t.Cleanup(func() { listener.Close() })
	wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if err != nil {
				client.Close()
				continue
			}
			wg.Go(func() { io.Copy(server, client); server.Close() })
			wg.Go(func() {
				defer client.Close()
				buffer := make([]byte, 64<<10)
				for {
					n, err := server.Read(buffer)
					if n > 0 {
						held()
						if _, err := client.Write(buffer[:n]); err != nil {
							return
						}
					}
					if err != nil {
						return
					}
				}
			})
		}
	})
	return listener.Addr().(*net.TCPAddr).Port
}
