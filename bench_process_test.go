// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"roce_exporter/collectors"
	"roce_exporter/collectors/sonic"
	"roce_exporter/collectors/sonic/sonictest"
	"roce_exporter/exporter"
)

// A subject is a process whose cost is measured.
type subject struct {
	cmd     *exec.Cmd
	started time.Time
	// pass does its work once; it returns how long that took and what came.
	pass func() (time.Duration, []byte)
}

func (s *subject) pid() int { return s.cmd.Process.Pid }

func (s *subject) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *subject) warm(passes int) {
	for range passes {
		s.pass()
	}
}

// peak is the most memory that the process ever had resident, in MiB.
func (s *subject) peak(t *testing.T) float64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid()))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(status), "VmHWM:")
	text, _, _ = strings.Cut(text, "kB")
	kib, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	return float64(kib) / 1024
}

// start starts a process with none of the settings that this one may have.
func start(t *testing.T, cmd *exec.Cmd, variables ...string) *subject {
	t.Helper()
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GOMEMLIMIT=") && !strings.HasPrefix(v, "GOMAXPROCS=") && !strings.HasPrefix(v, "GOGC=") &&
			!strings.HasPrefix(v, "ROCE_EXPORTER_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, variables...)
	s := &subject{cmd: cmd, started: time.Now()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

// startExporter starts the binary on a switch.
func startExporter(t *testing.T, binary, databaseDir, config string) *subject {
	t.Helper()
	args := []string{"--sonic.database-dir=" + databaseDir}
	if config != "" {
		file := filepath.Join(t.TempDir(), "roce_exporter.yml")
		if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config.file="+file)
	}
	return startCollector(t, binary, "switch", args...)
}

// startCollector starts the binary with a collector that has to succeed. A pass
// is a scrape.
func startCollector(t *testing.T, binary, collector string, args ...string) *subject {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	cmd := exec.Command(binary, append([]string{"--web.listen-address=" + address}, args...)...)
	var log bytes.Buffer
	cmd.Stderr = &log
	s := start(t, cmd)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	var body bytes.Buffer
	get := func(path string) error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			return err
		}
		request.Header.Set("Accept-Encoding", "identity")
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body.Reset()
		if _, err := io.Copy(&body, response.Body); err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", path, response.Status)
		}
		return nil
	}
	for tries := 0; get("/-/healthy") != nil; tries++ {
		if tries == 500 {
			s.stop()
			t.Fatalf("the exporter does not answer:\n%s", log.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.pass = func() (time.Duration, []byte) {
		begin := time.Now()
		if err := get("/metrics"); err != nil {
			t.Fatal(err)
		}
		took := time.Since(begin)
		for _, metric := range []string{`roce_scrape_collector_success{collector=%q} 1`, `roce_scrape_series_dropped_total{collector=%q} 0`} {
			want := fmt.Sprintf(metric, collector)
			if !bytes.Contains(body.Bytes(), []byte(want)) {
				t.Fatalf("no %s in the answer", want)
			}
		}
		return took, body.Bytes()
	}
	return s
}

// A batch is what the reader asks in one round trip.
type batch struct {
	Database string
	Queries  []sonic.Query // nil: asks for the time.
}

// A recorder is a DB that notes what is asked, but for walks.
type recorder struct {
	sonic.DB
	batches []batch
}

func (r *recorder) Read(ctx context.Context, database string, queries []sonic.Query) ([]sonic.Reply, error) {
	r.batches = append(r.batches, batch{database, queries})
	return r.DB.Read(ctx, database, queries)
}

func (r *recorder) Time(ctx context.Context) (time.Time, error) {
	r.batches = append(r.batches, batch{})
	return r.DB.Time(ctx)
}

// openDatabases opens the databases as the binary does.
func openDatabases(t *testing.T, dir, config string) (exporter.Config, *sonic.Switch) {
	t.Helper()
	c, err := exporter.ReadConfig(strings.NewReader(config), "the test")
	if err != nil {
		t.Fatal(err)
	}
	live := sonic.NewLive(dir, liveOptions(c))
	t.Cleanup(live.Close)
	found, err := live.Switch()
	if err != nil {
		t.Fatal(err)
	}
	return c, found
}

// record returns what the first scrapes ask, one after the other.
func record(t *testing.T, dir, config string) [costWarm + 1][]batch {
	t.Helper()
	c, found := openDatabases(t, dir, config)
	namespace := *found.Namespaces[0]
	r := &recorder{DB: namespace.DB}
	namespace.DB = r
	catalog, err := collectors.NewDefaultCatalog()
	if err != nil {
		t.Fatal(err)
	}
	source := sonic.Fixed{Read: &sonic.Switch{Namespaces: []*sonic.Namespace{&namespace}, Files: found.Files}}
	collector := collectors.NewSwitch(catalog, source, switchOptions(c))
	var scrapes [costWarm + 1][]batch
	for i := range scrapes {
		if _, err := collector.Collect(t.Context()); err != nil {
			t.Fatal(err)
		}
		scrapes[i], r.batches = r.batches, nil
	}
	return scrapes
}

// floorFile names the file with a floorTask, and makes TestFloor a process of
// its own.
const floorFile = "FLOOR_TASK_FILE"

type floorTask struct {
	Dir     string
	Batches []batch
}

const floorDone = "the floor took "

// startFloor starts TestFloor. A pass reads all batches.
func startFloor(t *testing.T, databaseDir string, batches []batch) *subject {
	t.Helper()
	file := filepath.Join(t.TempDir(), "floor.json")
	data, err := json.Marshal(floorTask{databaseDir, batches})
	if err == nil {
		err = os.WriteFile(file, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFloor$", "-test.v")
	input, err1 := cmd.StdinPipe()
	output, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	s := start(t, cmd, floorFile+"="+file)
	lines := bufio.NewScanner(output)
	s.pass = func() (time.Duration, []byte) {
		if _, err := io.WriteString(input, "\n"); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), floorDone); ok {
				took, err := time.ParseDuration(text)
				if err != nil {
					t.Fatal(err)
				}
				return took, nil
			}
		}
		t.Fatal("the floor does not answer")
		return 0, nil
	}
	return s
}

// TestFloor is a process of its own: for each line of its input it reads all
// batches and drops what comes.
func TestFloor(t *testing.T) {
	file := os.Getenv(floorFile)
	if file == "" {
		t.Skip("TestCost runs it")
	}
	var task floorTask
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &task)
	}
	if err != nil {
		t.Fatal(err)
	}
	app, defaults := newApp()
	if _, err := app.Parse(nil); err != nil {
		t.Fatal(err)
	}
	limitRuntime(defaults.memoryLimit, defaults.maxProcs)
	_, found := openDatabases(t, task.Dir, "")
	db := found.Namespaces[0].DB
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		begin := time.Now()
		for _, b := range task.Batches {
			if b.Queries == nil {
				_, err = db.Time(t.Context())
			} else {
				_, err = db.Read(t.Context(), b.Database, b.Queries)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		fmt.Println(floorDone + time.Since(begin).String())
	}
}

// A probe asks Redis how much it has done, over a connection of its own.
type probe struct {
	t      *testing.T
	client *redis.Client
	pid    int
}

type redisCounts struct {
	calls       map[string]int // Since Redis started, by command.
	connections int
}

func newProbe(t *testing.T, server *sonictest.Server) *probe {
	t.Helper()
	p := &probe{t, server.Client(t, "APPL_DB"), server.Process.Pid}
	p.ask() // The connection is there from now on.
	return p
}

func (p *probe) ask() redisCounts {
	p.t.Helper()
	text, err := p.client.Info(p.t.Context(), "commandstats", "stats").Result()
	if err != nil {
		p.t.Fatal(err)
	}
	counts := redisCounts{calls: map[string]int{}}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		if verb, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			rest, _, _ = strings.Cut(strings.TrimPrefix(rest, "calls="), ",")
			counts.calls[verb] = p.number(rest)
		}
		if name == "total_connections_received" {
			counts.connections = p.number(rest)
		}
	}
	return counts
}

func (p *probe) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// cpuClock is the CPU time that a process has used, in all its threads, by the
// clock that clock_getcpuclockid(3) names: exact where /proc counts in hundredths of a second.
func cpuClock(t *testing.T, pid int) time.Duration {
	t.Helper()
	const scheduler = 2 // CPUCLOCK_SCHED
	clock := ^pid<<3 | scheduler
	var at syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&at)), 0); errno != 0 {
		t.Fatal(errno)
	}
	return time.Duration(at.Nano())
}
