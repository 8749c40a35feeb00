// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"roce_exporter/collectors/sonic/sonictest"
)

// A process is the built exporter, running.
type process struct {
	url string
	cmd *exec.Cmd
	log *logBuffer
}

type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// lines are those of the log with all the words. What is logged comes through a
// pipe, later than the answer to the scrape that caused it: as many lines as
// are wanted are waited for.
func (l *logBuffer) lines(wanted int, words ...string) []string {
	found := l.now(words)
	for deadline := time.Now().Add(5 * time.Second); len(found) < wanted && time.Now().Before(deadline); found = l.now(words) {
		time.Sleep(time.Millisecond)
	}
	return found
}

func (l *logBuffer) now(words []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
next:
	for line := range strings.Lines(l.buf.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue next
			}
		}
		found = append(found, line)
	}
	return found
}

// built builds the exporter once for all tests.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "roce")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "roce_exporter")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, os.Chmod(dir, 0o755)
})

// launch runs the exporter as the user, 0 for the test's own.
func launch(t *testing.T, user uint32, args ...string) *process {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	p := &process{url: "http://" + address, log: &logBuffer{}}
	p.cmd = exec.Command(path, append(slices.Clone(args), "--web.listen-address="+address)...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if user != 0 {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		if t.Failed() {
			t.Logf("the exporter's log:\n%s", p.log.buf.String())
		}
	})
	for range 500 {
		if resp, err := http.Get(p.url + "/-/healthy"); err == nil {
			resp.Body.Close()
			return p
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the exporter does not serve: %s", p.log.buf.String())
	return nil
}

// get returns a page and its status.
func (p *process) get(t *testing.T, path string) (string, int) {
	t.Helper()
	resp, err := http.Get(p.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), resp.StatusCode
}

// scrape returns the metrics, which must come with 200.
func (p *process) scrape(t *testing.T) string {
	t.Helper()
	body, status := p.get(t, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("/metrics: %d\n%s", status, body)
	}
	return body
}

func hasLine(t *testing.T, text, line string) {
	t.Helper()
	if !strings.Contains("\n"+text, "\n"+line+"\n") {
		t.Errorf("no line %q", line)
	}
}

// The exporter reads and does nothing else: a real Redis sees only these
// verbs, and a user with no right beyond them is enough.
func TestExporterOnlyReads(t *testing.T) {
	server := sonictest.Start(t)
	server.Load(t, sonictest.ReadCapture(t, "collectors/testdata/nvidia"))
	admin := server.Client(t, "APPL_DB")
	rights := strings.Fields("ACL SETUSER exporter on >secret ~* -@all +@connection +hgetall +hmget +hget +get +exists +scan +time")
	var args []any
	for _, r := range rights {
		args = append(args, r)
	}
	if err := admin.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	before := dump(t, server)
	verbs := monitor(t, server)
	password := filepath.Join(server.Dir, "password")
	config := filepath.Join(server.Dir, "config.yml")
	for path, text := range map[string]string{
		password: "secret\n",
		config:   "switch: {queues: all, windows: [periodic, user, persistent], voq: all, redis: {username: exporter, password_file: " + password + "}}\nrefresh: {config: 1ms, fdb: 1ms}\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := launch(t, 0, "--sonic.database-dir="+server.Dir, "--config.file="+config)
	for range 5 {
		body := p.scrape(t)
		hasLine(t, body, `roce_scrape_source_success{collector="switch",source="redis"} 1`)
		hasLine(t, body, `roce_scrape_skipped{collector="switch",reason="unreadable"} 0`)
	}
	p.get(t, "/-/ready")
	p.get(t, "/")
	allowed := strings.Fields("hello auth select ping hgetall hmget hget get exists scan time")
	seen := verbs()
	for verb := range seen {
		if !slices.Contains(allowed, verb) {
			t.Errorf("the exporter sent %s", verb)
		}
	}
	for _, must := range []string{"hgetall", "hmget", "scan", "time"} {
		if seen[must] == 0 {
			t.Errorf("MONITOR saw no %s, only %v: the test does not see the exporter", must, seen)
		}
	}
	if after := dump(t, server); after != before {
		t.Error("the databases changed")
	}
}

// monitor counts the verbs that others than the test's admin send.
func monitor(t *testing.T, server *sonictest.Server) func() map[string]int {
	t.Helper()
	conn, err := net.Dial("unix", server.Socket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	if line, err := reader.ReadString('\n'); err != nil || line != "+OK\r\n" {
		t.Fatalf("MONITOR: %q %v", line, err)
	}
	verbs := map[string]int{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			line, err := reader.ReadString('\n')
			if err != nil {
				return
			}
			// +1700000000.000000 [2 unix:/…] "HGETALL" "COUNTERS:…"
			_, rest, ok := strings.Cut(line, `] "`)
			verb, _, _ := strings.Cut(rest, `"`)
			if ok {
				verbs[strings.ToLower(verb)]++
			}
		}
	}()
	return func() map[string]int {
		time.Sleep(100 * time.Millisecond) // MONITOR's own delay.
		conn.Close()
		<-done
		return maps.Clone(verbs)
	}
}

// dump is the number of keys of each database.
func dump(t *testing.T, server *sonictest.Server) string {
	t.Helper()
	info, err := server.Client(t, "APPL_DB").Info(t.Context(), "keyspace").Result()
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// The databases come after the exporter, go, and come back: 200 all the time,
// one line in the log when it begins and one when it ends.
func TestExporterOutlivesRedis(t *testing.T) {
	dir := t.TempDir()
	p := launch(t, 0, "--sonic.database-dir="+dir, "--collector.switch")
	body := p.scrape(t)
	hasLine(t, body, `roce_scrape_collector_success{collector="switch"} 0`)
	if _, status := p.get(t, "/-/ready"); status != http.StatusServiceUnavailable {
		t.Errorf("ready: %d before anything was found", status)
	}
	server := sonictest.Start(t)
	server.Load(t, sonictest.ReadCapture(t, "collectors/testdata/nvidia"))
	if err := os.Symlink(filepath.Join(server.Dir, "database_config.json"), filepath.Join(dir, "database_config.json")); err != nil {
		t.Fatal(err)
	}
	body = p.scrape(t)
	hasLine(t, body, `roce_scrape_collector_success{collector="switch"} 1`)
	hasLine(t, body, `roce_port_oper_up{port="Ethernet0"} 1`)
	if _, status := p.get(t, "/-/ready"); status != http.StatusOK {
		t.Errorf("ready: %d after the switch was found", status)
	}
	server.Process.Kill()
	for range 3 {
		time.Sleep(20 * time.Millisecond)
		body = p.scrape(t)
	}
	hasLine(t, body, `roce_scrape_collector_success{collector="switch"} 0`)
	hasLine(t, body, `roce_scrape_source_success{collector="switch",source="redis"} 0`)
	if strings.Contains(body, "roce_port_") {
		t.Error("ports of a dead Redis are served")
	}
	if lines := p.log.lines(1, "source=redis", "level=warn"); len(lines) != 1 || !strings.Contains(lines[0], server.Socket) {
		t.Errorf("want one line that names the socket: %q", lines)
	}
	server.Run(t)
	server.Load(t, sonictest.ReadCapture(t, "collectors/testdata/nvidia"))
	for range 3 {
		body = p.scrape(t)
	}
	hasLine(t, body, `roce_port_oper_up{port="Ethernet0"} 1`)
	if lines := p.log.lines(2, "source=redis"); len(lines) != 2 {
		t.Errorf("want one more line when it is back: %q", lines)
	}
}

// The socket belongs to a group. Who is not in it reaches the same server by
// TCP, and the landing page says so; where that fails too the log says what
// to do, once.
func TestExporterMayNotUseTheSocket(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to start the exporter as another user")
	}
	server := sonictest.Start(t)
	server.Load(t, sonictest.ReadCapture(t, "collectors/testdata/nvidia"))
	for path, mode := range map[string]os.FileMode{server.Dir: 0o755, server.Socket: 0o760} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	p := launch(t, 65532, "--sonic.database-dir="+server.Dir)
	hasLine(t, p.scrape(t), `roce_port_oper_up{port="Ethernet0"} 1`)
	if page, _ := p.get(t, "/"); !strings.Contains(page, "tcp 127.0.0.1") || !strings.Contains(page, "refused") {
		t.Errorf("the landing page does not say which way is taken:\n%s", page)
	}

	// Redis on the socket alone.
	admin := server.Client(t, "APPL_DB")
	if err := admin.ConfigSet(t.Context(), "port", "0").Err(); err != nil {
		t.Fatal(err)
	}
	q := launch(t, 65532, "--sonic.database-dir="+server.Dir)
	for range 3 {
		hasLine(t, q.scrape(t), `roce_scrape_collector_success{collector="switch"} 0`)
	}
	lines := q.log.lines(1, "source=redis", "permission denied", server.Socket, "join the group")
	if len(lines) != 1 {
		t.Errorf("want one line with the path, the reason and what to do: %q", lines)
	}
}

// capture writes what the exporter reads, says so, and replays.
func TestCaptureCommand(t *testing.T) {
	server := sonictest.Start(t)
	server.Load(t, sonictest.ReadCapture(t, "collectors/testdata/nvidia"))
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "capture")
	capture := func(args ...string) (string, error) {
		args = append([]string{"capture", dir, "--sonic.database-dir=" + server.Dir}, args...)
		out, err := exec.Command(path, args...).CombinedOutput()
		return string(out), err
	}
	out, err := capture("--samples=2", "--every=1ms")
	if err != nil || !strings.Contains(out, filepath.Join(dir, "0002")) || !strings.Contains(out, "COUNTERS_DB: ") ||
		!strings.Contains(out, "left out: /etc/sonic/sonic_version.yml") || !strings.Contains(out, "are replaced") {
		t.Errorf("%v\n%s", err, out)
	}
	p := launch(t, 0, "--replay="+dir)
	body := p.scrape(t)
	hasLine(t, body, `roce_pfcwd_storm_active{port="Ethernet8",queue="3"} 1`)
	if strings.Contains(body, "leaf-1") || strings.Contains(body, "spine-1") {
		t.Error("the capture has names of nodes")
	}
	if out, err := capture(); err == nil || !strings.Contains(out, "not empty") {
		t.Errorf("a directory that is not empty: %v\n%s", err, out)
	}
	if out, err := capture("--samples=0"); err == nil {
		t.Errorf("no samples: %s", out)
	}
	server.Process.Kill()
	server.Process.Wait() // It accepts connections until it is gone.
	dir = filepath.Join(t.TempDir(), "dead")
	if out, err := capture(); err == nil || !strings.Contains(out, "nothing could be read") || !strings.Contains(out, server.Socket) {
		t.Errorf("a dead server: %v\n%s", err, out)
	}
}
