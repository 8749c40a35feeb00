// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"roce_exporter/collectors"
	"roce_exporter/collectors/host/hosttest"
	"roce_exporter/exporter"
)

// asMain makes the test binary the exporter itself.
const asMain = "TEST_AS_ROCE_EXPORTER"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Every flag has a variable: a SONiC package can set nothing else.
func TestEnvironment(t *testing.T) {
	want := []string{
		"ROCE_EXPORTER_COLLECTOR_DISABLE_DEFAULTS",
		"ROCE_EXPORTER_COLLECTOR_HOST",
		"ROCE_EXPORTER_COLLECTOR_SWITCH",
		"ROCE_EXPORTER_CONFIG_CHECK",
		"ROCE_EXPORTER_CONFIG_ENABLE_AUTO_RELOAD",
		"ROCE_EXPORTER_CONFIG_FILE",
		"ROCE_EXPORTER_HOST_DEVICE_EXCLUDE",
		"ROCE_EXPORTER_HOST_DEVICE_INCLUDE",
		"ROCE_EXPORTER_LOG_FORMAT",
		"ROCE_EXPORTER_LOG_LEVEL",
		"ROCE_EXPORTER_PATH_PROCFS",
		"ROCE_EXPORTER_PATH_SYSFS",
		"ROCE_EXPORTER_REPLAY",
		"ROCE_EXPORTER_RUNTIME_GOMAXPROCS",
		"ROCE_EXPORTER_RUNTIME_MEMORY_LIMIT",
		"ROCE_EXPORTER_SONIC_DATABASE_DIR",
		"ROCE_EXPORTER_VERSION",
		"ROCE_EXPORTER_WEB_CONFIG_FILE",
		"ROCE_EXPORTER_WEB_DISABLE_EXPORTER_METRICS",
		"ROCE_EXPORTER_WEB_ENABLE_LIFECYCLE",
		"ROCE_EXPORTER_WEB_ENABLE_PPROF",
		"ROCE_EXPORTER_WEB_LISTEN_ADDRESS",
		"ROCE_EXPORTER_WEB_MAX_REQUESTS",
		"ROCE_EXPORTER_WEB_SYSTEMD_SOCKET",
		"ROCE_EXPORTER_WEB_TELEMETRY_PATH",
	}
	got := variables(t)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// variables are those that set flags; kingpin knows them once it has parsed.
func variables(t *testing.T) []string {
	t.Helper()
	app, _ := newApp()
	if _, err := app.Parse(nil); err != nil {
		t.Fatal(err)
	}
	return environment(app)
}

func parseFlags(t *testing.T, args ...string) (*flags, error) {
	t.Helper()
	app, f := newApp()
	app.UsageWriter(io.Discard).ErrorWriter(io.Discard)
	command, err := app.Parse(args)
	if err == nil && command != serveCommand {
		t.Errorf("%v: command %q", args, command)
	}
	return f, err
}

func TestDefaultFlags(t *testing.T) {
	got, err := parseFlags(t)
	want := &flags{
		listen: []string{":14791"}, telemetryPath: "/metrics", maxRequests: 40, databaseDir: "/var/run/redis/sonic-db", sysPath: "/sys", procPath: "/proc",
		memoryLimit: 48 << 20, maxProcs: 1, logLevel: "info", logFormat: "logfmt",
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

// All flags at another value than their default, once as arguments and once by
// the environment, in which a SONiC package has no blanks, quotes, * or $.
func TestFlagsByArgumentAndByEnvironment(t *testing.T) {
	set := [][2]string{
		{"collector.disable-defaults", "true"},
		{"collector.host", "true"},
		{"collector.switch", "true"},
		{"config.check", "true"},
		{"config.enable-auto-reload", "true"},
		{"config.file", "/etc/roce_exporter/roce_exporter.yml"},
		{"host.device-exclude", "lo"},
		{"host.device-include", "mlx5_.+|ens.+"},
		{"log.format", "json"},
		{"log.level", "debug"},
		{"path.procfs", "/host/proc"},
		{"path.sysfs", "/host/sys"},
		{"replay", "/tmp/capture"},
		{"runtime.gomaxprocs", "2"},
		{"runtime.memory-limit", "64MiB"},
		{"sonic.database-dir", "/run/sonic-db"},
		{"version", "true"},
		{"web.config.file", "/etc/roce_exporter/web.yml"},
		{"web.disable-exporter-metrics", "true"},
		{"web.enable-lifecycle", "true"},
		{"web.enable-pprof", "true"},
		{"web.listen-address", "127.0.0.1:1,[::1]:2"},
		{"web.max-requests", "7"},
		{"web.systemd-socket", "true"},
		{"web.telemetry-path", "/m"},
	}
	want := flags{
		listen: []string{"127.0.0.1:1", "[::1]:2"}, webConfig: "/etc/roce_exporter/web.yml", systemdSocket: true, telemetryPath: "/m", maxRequests: 7,
		noSelf: true, lifecycle: true, pprof: true, config: "/etc/roce_exporter/roce_exporter.yml", check: true, autoReload: true,
		switchMode: on, hostMode: on, sysPath: "/host/sys", procPath: "/host/proc",
		include: pattern{"mlx5_.+|ens.+", regexp.MustCompile("^(?:mlx5_.+|ens.+)$")}, exclude: pattern{"lo", regexp.MustCompile("^(?:lo)$")},
		disableDefaults: true, databaseDir: "/run/sonic-db", replay: "/tmp/capture",
		memoryLimit: 64 << 20, maxProcs: 2, logLevel: "debug", logFormat: "json", version: true,
	}
	var args []string
	for _, s := range set {
		if s[1] == "true" {
			args = append(args, "--"+s[0])
		} else {
			args = append(args, "--"+s[0]+"="+s[1])
		}
	}
	check := func(how string, got *flags, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		got.listen = splitAddresses(got.listen)
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", how, *got, want)
		}
	}
	got, err := parseFlags(t, args...)
	// kingpin leaves the other defaults out once it sees --version: they are all given here.
	check("arguments", got, err)
	got, err = parseFlags(t, append([]string{"serve"}, args...)...)
	check("arguments of the command", got, err)
	if n := len(variables(t)); n != len(set) {
		t.Errorf("%d flags, %d of them tested", n, len(set))
	}
	for _, s := range set {
		if strings.ContainsAny(s[1], " \t\"'*$") {
			t.Errorf("%s: a SONiC package cannot pass %q", s[0], s[1])
		}
		t.Setenv("ROCE_EXPORTER_"+strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(s[0])), s[1])
	}
	got, err = parseFlags(t)
	check("environment", got, err)
}

func TestSwitchMode(t *testing.T) {
	for _, test := range []struct {
		args []string
		env  string
		want mode
	}{
		{nil, "", auto},
		{nil, "auto", auto},
		{nil, "true", on},
		{nil, "false", off},
		{[]string{"--collector.switch"}, "", on},
		{[]string{"--no-collector.switch"}, "", off},
		{[]string{"--no-collector.switch"}, "true", off},
		{[]string{"--collector.switch"}, "false", on},
	} {
		t.Setenv("ROCE_EXPORTER_COLLECTOR_SWITCH", test.env)
		got, err := parseFlags(t, test.args...)
		if err != nil || got.switchMode != test.want {
			t.Errorf("%v, environment %q: got %q, %v, want %q", test.args, test.env, got.switchMode, err, test.want)
		}
	}
	catalog, err := collectors.NewDefaultCatalog()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		mode            mode
		disableDefaults bool
		want            string
	}{
		{auto, false, "looked for"},
		{on, false, "forced"},
		{off, false, "none"},
		{auto, true, "none"},
		{on, true, "forced"},
		{off, true, "none"},
	} {
		b := builder{flags: &flags{switchMode: test.mode, hostMode: off, disableDefaults: test.disableDefaults}, catalog: catalog}
		enabled, err := b.build(exporter.DefaultConfig())
		got := "none"
		if len(enabled) > 0 {
			got = "forced"
			if enabled[0].Auto {
				got = "looked for"
			}
		}
		if err != nil || got != test.want {
			t.Errorf("%q, disabled defaults %v: %s, %v, want %s", test.mode, test.disableDefaults, got, err, test.want)
		}
	}
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]byteSize{"0": 0, "1024": 1024, "1024B": 1024, "64KiB": 64 << 10, "64MiB": 64 << 20, "2GiB": 2 << 30} {
		var got byteSize
		if err := got.Set(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "1.5MiB", "64MB", "64M", "MiB", "99999999999GiB", "1 MiB"} {
		var got byteSize
		if err := got.Set(text); err == nil {
			t.Errorf("%q: got %d, want an error", text, got)
		}
	}
}

// Every exit before serving, as a user meets it.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good, bad := write("good.yml", "node: {fabric: a}"), write("bad.yml", "scrape:\n  timeout: 5\n")
	const badReason = ":2: scrape.timeout: must be a duration with its unit (10s, 500ms, 5m), not an integer\n"
	for _, test := range []struct {
		situation      string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"version", []string{"--version"}, 0, "roce_exporter, version ", ""},
		{"good file", []string{"--config.check", "--config.file", good}, 0, good + ": ok\n", ""},
		{"bad file", []string{"--config.check", "--config.file", bad}, 1, "", "roce_exporter: " + bad + badReason},
		{"no file", []string{"--config.check", "--config.file", dir + "/none"}, 1, "", "roce_exporter: open " + dir + "/none: no such file or directory\n"},
		{"nothing to check", []string{"--config.check"}, 1, "", "roce_exporter: --config.check: there is nothing to check without --config.file\n"},
		{"bad file at start", []string{"--config.file", bad}, 1, "", "roce_exporter: " + bad + badReason},
		{"no capture", []string{"--replay", dir}, 1, "", "roce_exporter: --replay " + dir + ": not a capture: open meta.json: no such file or directory\n"},
		{"bad telemetry path", []string{"--web.telemetry-path=metrics"}, 1, "", "roce_exporter: the telemetry path must be like /metrics, not \"metrics\"\n"},
		{"unknown flag", []string{"--web.listen=:1"}, 2, "", "roce_exporter: unknown long flag '--web.listen' (--help lists the flags)\n"},
		{"bad size", []string{"--runtime.memory-limit=1GB"}, 2, "", "roce_exporter: --runtime.memory-limit: must be a size like 64MiB, or 0, not \"1GB\" (--help lists the flags)\n"},
		{"bad expression", []string{"--host.device-include=("}, 2, "", "roce_exporter: --host.device-include: error parsing regexp: missing closing ): `(` (--help lists the flags)\n"},
		{"bad duration of a command", []string{"capture", "--every", "15", dir}, 2, "", "roce_exporter: --every: time: missing unit in duration \"15\" (--help lists the flags)\n"},
		{"bad expression of a command", []string{"demo", "history", "--out", dir, "--families", "("}, 2, "", "roce_exporter: --families: error parsing regexp: missing closing ): `(` (--help lists the flags)\n"},
		{"one of two is bad", []string{"--log.level=warn", "--log.format=xml"}, 2, "", "roce_exporter: --log.format: enum value must be one of logfmt,json, got 'xml' (--help lists the flags)\n"},
	} {
		t.Run(test.situation, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := runCommand(t.Context(), nil, test.args, &stdout, &stderr)
			if code != test.code || !strings.HasPrefix(stdout.String(), test.stdout) || stderr.String() != test.stderr {
				t.Errorf("exit %d\nstdout %s\nstderr %s", code, stdout.String(), stderr.String())
			}
		})
	}
	t.Run("a bad value in the environment is named", func(t *testing.T) {
		t.Setenv("ROCE_EXPORTER_WEB_ENABLE_PPROF", "yes")
		var stderr bytes.Buffer
		if code := runCommand(t.Context(), nil, nil, io.Discard, &stderr); code != 2 || !strings.Contains(stderr.String(), "ROCE_EXPORTER_WEB_ENABLE_PPROF=yes") {
			t.Errorf("exit %d, %s", code, stderr.String())
		}
	})
}

// Both formats have the time once, and no second caller.
func TestLogger(t *testing.T) {
	var b bytes.Buffer
	logger := newLogger(&b, "info", "logfmt")
	logger.Debug("not wanted")
	logger.Info("a message", "err", errors.New("two\nlines"))
	line := b.String()
	if strings.Count(line, "\n") != 1 || strings.Count(line, "time=") != 1 || strings.Contains(line, "ts=") || strings.Count(line, "caller=main_test.go") != 1 ||
		!strings.Contains(line, `level=info`) || !strings.Contains(line, `msg="a message" err="two\nlines"`) {
		t.Errorf("got %s", line)
	}
	b.Reset()
	newLogger(&b, "debug", "json").Debug("a message", "n", 1)
	var object map[string]any
	if err := json.Unmarshal(b.Bytes(), &object); err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse(time.RFC3339Nano, object["time"].(string)); err != nil || object["msg"] != "a message" || object["level"] != "debug" || len(object) != 5 {
		t.Errorf("got %v", object)
	}
}

func TestRuntimeLimits(t *testing.T) {
	memory, procs := debug.SetMemoryLimit(-1), runtime.GOMAXPROCS(0)
	defer func() {
		debug.SetMemoryLimit(memory)
		runtime.GOMAXPROCS(procs)
	}()
	t.Setenv("GOMEMLIMIT", "1GiB")
	t.Setenv("GOMAXPROCS", "2")
	limitRuntime(64<<20, procs+1)
	limitRuntime(0, 0)
	if debug.SetMemoryLimit(-1) != memory || runtime.GOMAXPROCS(0) != procs {
		t.Error("the environment has precedence, and 0 sets nothing")
	}
	t.Setenv("GOMEMLIMIT", "")
	t.Setenv("GOMAXPROCS", "")
	limitRuntime(64<<20, procs+1)
	if debug.SetMemoryLimit(-1) != 64<<20 || runtime.GOMAXPROCS(0) != procs+1 {
		t.Errorf("limits: %d, %d", debug.SetMemoryLimit(-1), runtime.GOMAXPROCS(0))
	}
}

// What the configuration says reaches the collector.
func TestOptionsOfTheConfiguration(t *testing.T) {
	password := filepath.Join(t.TempDir(), "password")
	config, err := exporter.ReadConfig(strings.NewReader(`
node: {names: full}
switch:
  {queues: all, priorities: all, windows: [user], voq: all, pause_duration_unit: quanta, ports: {include: E, exclude: F},
   attached_mac_limit: 9, redis: {username: reader, password_file: `+password+`}}
scrape: {timeout: 8s}
refresh: {config: 1s, fdb: 2s}
limits: {series: 3}
policy: {rdma_mtu: 4096}
`), "test")
	if err != nil {
		t.Fatal(err)
	}
	got := reflect.ValueOf(switchOptions(config))
	for i := range got.NumField() {
		if got.Field(i).IsZero() {
			t.Errorf("%s is not set", got.Type().Field(i).Name)
		}
	}
	live := liveOptions(config)
	if live.Timeout != 2*time.Second || live.Username != "reader" {
		t.Errorf("got %+v", live)
	}
	if _, err := live.Password(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file yet: %v", err)
	}
	for _, secret := range []string{"one", "two"} {
		if err := os.WriteFile(password, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := live.Password(); err != nil || got != secret {
			t.Errorf("got %q, %v: the file is read at each connection", got, err)
		}
	}
	if liveOptions(exporter.DefaultConfig()).Password != nil {
		t.Error("no password is asked for by default")
	}
}

// A child is the exporter as a user runs it.
type child struct {
	*exec.Cmd
	addr string
	logs chan string // The lines that it logged, closed at its end.
}

// startChild starts the exporter on a free port.
func startChild(t *testing.T, args ...string) *child {
	t.Helper()
	p := &child{Cmd: exec.CommandContext(t.Context(), os.Args[0], append(args, "--web.listen-address=127.0.0.1:0")...), logs: make(chan string, 1000)}
	p.Env = append(os.Environ(), asMain+"=1")
	stderr, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.logs)
		for s := bufio.NewScanner(stderr); s.Scan(); {
			p.logs <- s.Text()
		}
	}()
	p.addr = p.await(t, `msg="Listening on" address=(\S+)`)
	return p
}

// await waits for a line and returns what the expression's parentheses match.
func (p *child) await(t *testing.T, expression string) string {
	t.Helper()
	re, late := regexp.MustCompile(expression), time.After(20*time.Second)
	var seen []string
	for {
		select {
		case line, ok := <-p.logs:
			if found := re.FindStringSubmatch(line); found != nil {
				return found[len(found)-1]
			}
			seen = append(seen, line)
			if ok {
				continue
			}
		case <-late:
		}
		t.Fatalf("no line like %s in\n%s", expression, strings.Join(seen, "\n"))
	}
}

func (p *child) get(t *testing.T, path string) (int, string) {
	t.Helper()
	resp, err := http.Get("http://" + p.addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestSIGHUPReloads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "roce_exporter.yml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("node: {fabric: before}")
	p := startChild(t, "--config.file="+file, "--no-collector.switch")
	write("node: {fabric: after}")
	if err := p.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.await(t, "the configuration was reloaded")
	if _, body := p.get(t, "/metrics"); !strings.Contains(body, `fabric="after"`) {
		t.Errorf("got %s", body)
	}
	write("node: {fabrik: bad}")
	if err := p.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.await(t, "did you mean fabric")
	if _, body := p.get(t, "/metrics"); !strings.Contains(body, `fabric="after"`) || !strings.Contains(body, "roce_exporter_config_last_reload_successful 0") {
		t.Errorf("got %s", body)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
}

// SIGTERM while a scrape waits for a Redis that does not answer: the scrape
// ends, the process exits with 0, all within five seconds.
func TestSIGTERMLetsAScrapeEnd(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "redis.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	config := `{"INSTANCES": {"redis": {"hostname": "127.0.0.1", "port": 1, "unix_socket_path": "` + socket + `"}},
		"DATABASES": {"COUNTERS_DB": {"id": 2, "separator": ":", "instance": "redis"}}}`
	if err := os.WriteFile(filepath.Join(dir, "database_config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startChild(t, "--sonic.database-dir="+dir)
	type answer struct {
		code int
		body string
	}
	answered := make(chan answer, 1)
	go func() {
		code, body := p.get(t, "/metrics")
		answered <- answer{code, body}
	}()
	conn, err := listener.Accept() // Now the scrape waits.
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begin := time.Now()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	got := <-answered
	if err := p.Wait(); err != nil || time.Since(begin) > 5*time.Second {
		t.Errorf("exit: %v after %v", err, time.Since(begin))
	}
	if got.code != http.StatusOK || !strings.Contains(got.body, `roce_scrape_collector_success{collector="switch"} 0`) || !strings.Contains(got.body, `role="switch"`) {
		t.Errorf("the scrape: %d\n%s", got.code, got.body)
	}
}

// Started before Redis is there, as at boot.
func TestStartsWithoutRedis(t *testing.T) {
	for args, want := range map[string]string{
		"--sonic.database-dir=/nonexistent":                    "",
		"--sonic.database-dir=/nonexistent --collector.switch": `roce_scrape_collector_success{collector="switch"} 0`,
	} {
		p := startChild(t, strings.Fields(args)...)
		code, body := p.get(t, "/metrics")
		if code != http.StatusOK || !strings.Contains(body, want) || (want == "") == strings.Contains(body, "roce_scrape_collector_success") {
			t.Errorf("%s: %d\n%s", args, code, body)
		}
		if code, _ := p.get(t, "/-/healthy"); code != http.StatusOK {
			t.Errorf("%s: healthy is %d", args, code)
		}
		if code, _ := p.get(t, "/-/ready"); code != http.StatusServiceUnavailable {
			t.Errorf("%s: ready is %d", args, code)
		}
		_ = p.Process.Signal(os.Interrupt)
		if err := p.Wait(); err != nil {
			t.Errorf("%s: exit: %v", args, err)
		}
	}
}

func TestSeveralAddresses(t *testing.T) {
	p := startChild(t, "--no-collector.switch", "--web.listen-address=127.0.0.1:0,127.0.0.1:0")
	addresses := []string{p.addr, p.await(t, `msg="Listening on" address=(\S+)`), p.await(t, `msg="Listening on" address=(\S+)`)}
	for _, p.addr = range addresses {
		if code, _ := p.get(t, "/-/healthy"); code != http.StatusOK {
			t.Errorf("%s: %d", p.addr, code)
		}
	}
}

// systemd passes its sockets from the third file on, for the process that
// LISTEN_PID names.
func TestSocketOfSystemd(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `LISTEN_PID=$$ exec "$0" --no-collector.switch`, os.Args[0])
	cmd.Env = append(os.Environ(), asMain+"=1", "LISTEN_FDS=1", "ROCE_EXPORTER_WEB_SYSTEMD_SOCKET=true")
	cmd.ExtraFiles = []*os.File{file}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	listener.Close() // The process has its own.
	resp, err := http.Get("http://" + addr + "/-/healthy")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("got %d", resp.StatusCode)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
}

// Nothing of the network is needed to say what flags there are.
func TestHelpHasEveryFlag(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--help")
	cmd.Env = append(os.Environ(), asMain+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range variables(t) {
		if !strings.Contains(string(out), "$"+name) {
			t.Errorf("%s is not in the help:\n%s", name, out)
		}
	}
}

func TestReplay(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"meta.json":              `{"format": 1, "read": "2026-01-01T00:00:00Z", "clock": "2026-01-01T00:00:00Z"}`,
		"redis/CONFIG_DB.json":   `{"DEVICE_METADATA|localhost": {"hostname": "leaf7"}, "PORT|Ethernet0": {"alias": "etp1"}}`,
		"redis/COUNTERS_DB.json": `{"COUNTERS_PORT_NAME_MAP": {"Ethernet0": "oid:0x1000000000001"}}`,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := startChild(t, "--replay="+dir)
	if _, body := p.get(t, "/metrics"); !strings.Contains(body, `node="leaf7"`) || !strings.Contains(body, `role="switch"`) {
		t.Errorf("got %s", body)
	}
	if code, _ := p.get(t, "/-/ready"); code != http.StatusOK {
		t.Errorf("ready is %d", code)
	}
}

// A replay says at its start what the machine could not read: the series are
// missing without any source that failed.
func TestReplayLacksWhatCouldNotBeRead(t *testing.T) {
	dir := t.TempDir()
	for _, sample := range []string{"0001", "0002"} {
		hosttest.Write(t, hosttest.Parse(t, `
meta.json = {"format": 1, "clock": "2026-01-01T00:00:00Z", "left_out": ["driver of ens9: no such device"]}
sys/class/net/ens9/device/uevent = DRIVER=mlx5_core
`), filepath.Join(dir, sample))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr bytes.Buffer
	if code := runCommand(ctx, nil, []string{"--web.listen-address=127.0.0.1:0", "--replay", dir}, io.Discard, &stderr); code != 0 {
		t.Errorf("exit %d", code)
	}
	if log := stderr.String(); strings.Count(log, `left_out="driver of ens9: no such device"`) != 1 {
		t.Errorf("want one line with what was left out:\n%s", log)
	}
}

// A capture whose collector is off is not called something else.
func TestReplayOfWhatIsOff(t *testing.T) {
	dir := t.TempDir()
	hosttest.Write(t, hosttest.Parse(t, `
meta.json = {"format": 1, "clock": "2026-01-01T00:00:00Z"}
sys/class/net/ens9/device/uevent = DRIVER=mlx5_core
`), dir)
	for _, test := range []struct{ dir, flag, want string }{
		{dir, "--no-collector.host", "this is a capture of a host, whose collector is off: give --collector.host\n"},
		{dir, "--collector.disable-defaults", "this is a capture of a host, whose collector is off: give --collector.host\n"},
		{"collectors/testdata/nvidia", "--no-collector.switch", "this is a capture of a switch, whose collector is off: give --collector.switch\n"},
		{t.TempDir(), "--no-collector.host", "not a capture: open meta.json: no such file or directory\n"},
	} {
		var stderr bytes.Buffer
		code := runCommand(t.Context(), nil, []string{"--web.listen-address=127.0.0.1:0", "--replay", test.dir, test.flag}, io.Discard, &stderr)
		if want := "roce_exporter: --replay " + test.dir + ": " + test.want; code != 1 || stderr.String() != want {
			t.Errorf("exit %d, got %s want %s", code, stderr.String(), want)
		}
	}
}
