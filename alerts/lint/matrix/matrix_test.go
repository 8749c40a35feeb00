// SPDX-License-Identifier: Apache-2.0

// Package matrix lets every incident of the demo fabric happen, evaluates the
// shipped rules over it with Prometheus' own code, sends what fires to a real
// Alertmanager with the shipped routes and inhibitions, and compares whom it
// tells of what with a golden list.
package matrix

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

var (
	update = flag.Bool("update", false, "write the golden lists anew")
	all    = flag.Bool("all", false, "every incident, not only the quick ones (make test-full)")
)

const (
	root = "../../.."
	// step is the time between two scrapes and two evaluations: the slowest
	// that is supported.
	step = 30 * time.Second
	// before is how long all is quiet first.
	before = 10 * time.Minute
)

// start begins every history.
var start = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) { os.Exit(inOwnTemp(m.Run)) }

// inOwnTemp runs tests with a directory for what they leave behind, and removes
// it.
func inOwnTemp(run func() int) int {
	dir, err := os.MkdirTemp("", "roce-test-")
	if err == nil {
		err = os.Setenv("TMPDIR", dir)
	}
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	return run()
}

// exporter is built once.
var exporter = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "roce")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "roce_exporter")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// A past is a Prometheus that has scraped a fabric, and its rules.
type past struct {
	db     *tsdb.DB
	engine *promql.Engine
	groups []*rules.Group
}

// happened writes the past of a fabric to which incidents happened and loads
// it.
func happened(t *testing.T, length, every time.Duration, families string, arguments ...string) *past {
	t.Helper()
	binary, err := exporter()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	arguments = append([]string{
		"demo", "history", "--out", filepath.Join(dir, "om"), "--start", start.Format(time.RFC3339), "--end", start.Add(length).Format(time.RFC3339), "--step", every.String(),
		"--families", families,
	}, arguments...)
	if out, err := exec.CommandContext(t.Context(), binary, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v %s", arguments, err, out)
	}
	options := tsdb.DefaultOptions()
	options.MinBlockDuration, options.MaxBlockDuration = int64(1000*time.Hour/time.Millisecond), int64(1000*time.Hour/time.Millisecond)
	p := &past{}
	if p.db, err = tsdb.Open(filepath.Join(dir, "tsdb"), slog.New(slog.DiscardHandler), nil, options, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.db.Close() })
	files, err := filepath.Glob(filepath.Join(dir, "om", "*.om"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	p.load(t, files, every, start.Add(length))
	p.engine = promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true})
	p.loadRules(t)
	return p
}

// used are the families that the rules of files read.
func used(t *testing.T, files ...string) string {
	t.Helper()
	names := map[string]bool{"up": true, "scrape_duration_seconds": true, "roce_node_info": true}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\broce_[a-z0-9_]+`).FindAllString(string(text), -1) {
			names[name] = true
		}
	}
	var list []string
	for name := range names {
		list = append(list, name)
	}
	slices.Sort(list)
	return strings.Join(list, "|")
}

func ruleFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, name := range []string{"thresholds.yml", "recording.yml", "alerts.yml", "review.yml"} {
		file := filepath.Join(root, "alerts", name)
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// load appends the samples of files, the day's in their order. A series that is
// not there at a scrape has ended: Prometheus marks that, a file cannot.
func (p *past) load(t *testing.T, files []string, every time.Duration, end time.Time) {
	t.Helper()
	lines := map[string][]sample{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if line[0] == '#' {
				continue
			}
			series, s := parse(t, line)
			lines[series] = append(lines[series], s)
		}
	}
	metrics := parser.NewParser(parser.Options{})
	app, pending := p.db.Appender(t.Context()), 0
	add := func(ref storage.SeriesRef, of labels.Labels, s sample) storage.SeriesRef {
		ref, err := app.Append(ref, of, s.at, s.value)
		if err != nil {
			t.Fatalf("%s: %v", of, err)
		}
		if pending++; pending == 100_000 {
			if err := app.Commit(); err != nil {
				t.Fatal(err)
			}
			app, pending = p.db.Appender(t.Context()), 0
		}
		return ref
	}
	gap := every.Milliseconds()
	for series, samples := range lines {
		of, err := metrics.ParseMetric(series)
		if err != nil {
			t.Fatal(err)
		}
		var ref storage.SeriesRef
		for i, s := range samples {
			if i > 0 && s.at > samples[i-1].at+gap {
				ref = add(ref, of, sample{samples[i-1].at + gap, stale})
			}
			ref = add(ref, of, s)
		}
		if last := samples[len(samples)-1].at; last+gap < end.UnixMilli() {
			add(ref, of, sample{last + gap, stale})
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
}

type sample struct {
	at    int64 // Milliseconds.
	value float64
}

func (p *past) loadRules(t *testing.T) {
	t.Helper()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(p.engine, p.db), Appendable: p.db, Queryable: p.db, Context: t.Context(),
		Logger: slog.New(slog.DiscardHandler), NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
	})
	groups, errs := manager.LoadGroups(step, labels.EmptyLabels(), "", nil, false, ruleFiles(t)...)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	// Recordings before the alerts that read them; Prometheus evaluates in any
	// order, one interval later at most.
	for _, file := range ruleFiles(t) {
		var of []*rules.Group
		for _, g := range groups {
			if g.File() == file {
				of = append(of, g)
			}
		}
		slices.SortFunc(of, func(a, b *rules.Group) int { return strings.Compare(b.Name(), a.Name()) }) // traffic, history, config.
		p.groups = append(p.groups, of...)
	}
}

// evaluate evaluates all groups that are due and returns what fires, by the text
// of its labels. A rule that fails fails the test.
func (p *past) evaluate(t *testing.T, at time.Time) map[string]labels.Labels {
	t.Helper()
	firing := map[string]labels.Labels{}
	for _, g := range p.groups {
		if at.Sub(start)%g.Interval() == 0 || g.Interval() < step {
			g.Eval(t.Context(), at)
		}
		for _, r := range g.Rules() {
			if err := r.LastError(); err != nil {
				t.Fatalf("%s: %s: %v", at.Sub(start), r.Name(), err)
			}
			alerting, ok := r.(*rules.AlertingRule)
			if !ok {
				continue
			}
			for _, a := range alerting.ActiveAlerts() {
				if a.State == rules.StateFiring {
					firing[a.Labels.String()] = a.Labels
				}
			}
		}
	}
	return firing
}

// stale is Prometheus' mark of a series that has ended.
var stale = math.Float64frombits(value.StaleNaN)

// parse reads a line of a history: series, value, time in seconds.
func parse(t *testing.T, line string) (series string, s sample) {
	t.Helper()
	end := strings.LastIndexByte(line, ' ')
	middle := strings.LastIndexByte(line[:end], ' ')
	v, err := strconv.ParseFloat(line[middle+1:end], 64)
	at, errAt := strconv.ParseFloat(strings.TrimSpace(line[end+1:]), 64)
	if err != nil || errAt != nil {
		t.Fatalf("no sample: %s", line)
	}
	return line[:middle], sample{int64(math.Round(at * 1000)), v}
}

// A story is an incident and how long it lasts.
type story struct {
	incident string
	lasts    time.Duration
}

// stories are all incidents that the exporter knows. Those whose alerts wait
// for long last longer.
func stories(t *testing.T) []story {
	t.Helper()
	binary, err := exporter()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), binary, "demo", "incidents").Output()
	if err != nil {
		t.Fatal(err)
	}
	list := []story{{"", 60 * time.Minute}} // All is quiet.
	for line := range strings.Lines(string(out)) {
		name := strings.Fields(line)[0]
		lasts, ok := longer[name]
		if !ok {
			lasts = 22 * time.Minute
		}
		list = append(list, story{name, lasts})
	}
	return list
}

// quick are the stories that every change must pass.
var quick = []string{"", "slow-receiver", "slow-receiver-unmeasured", "nic-storm", "deadlock", "lossless-drops", "mask-lost", "mask-missing", "mtu-host", "exporter-gone"}

// longer are the stories whose alerts wait for more than ten minutes.
var longer = map[string]time.Duration{
	"link-flaps": 70 * time.Minute, "ecn-sawtooth": 80 * time.Minute, "cnp-firmware": 50 * time.Minute, "neighbor-missing": 50 * time.Minute,
	"cnp-shared": 80 * time.Minute, "arp-flux": 80 * time.Minute, "pcie-oversubscribed": 80 * time.Minute, "firmware-skew": 7 * time.Hour, "fdb-empty": 75 * time.Minute,
	"nic-storm": 40 * time.Minute, "pause-elevated": 50 * time.Minute, "ecn-too-late": 50 * time.Minute,
}

// A timeline is what fires at each evaluation, by the text of its labels.
type timeline []map[string]labels.Labels

// play lets a story happen and evaluates the rules over it.
func play(t *testing.T, s story) timeline {
	t.Helper()
	var arguments []string
	if s.incident != "" {
		arguments = []string{"--incident", fmt.Sprintf("%s@%s", s.incident, before)}
	}
	length := before + s.lasts
	p := happened(t, length, step, used(t, ruleFiles(t)...), arguments...)
	var all timeline
	for at := start; at.Before(start.Add(length)); at = at.Add(step) {
		all = append(all, p.evaluate(t, at))
	}
	return all
}

// TestMatrix compares whom Alertmanager tells of what in each story.
func TestMatrix(t *testing.T) {
	told := &told{of: map[string]map[string]bool{}}
	alertmanager := startAlertmanager(t, told)
	lines := map[string]timeline{}
	var mu sync.Mutex
	t.Run("stories", func(t *testing.T) {
		for _, s := range stories(t) {
			if !*all && !slices.Contains(quick, s.incident) {
				continue
			}
			t.Run(s.incident, func(t *testing.T) {
				t.Parallel()
				line := play(t, s)
				mu.Lock()
				defer mu.Unlock()
				lines[s.incident] = line
			})
		}
	})
	if t.Failed() {
		return
	}
	if *all {
		firesSomewhere(t, lines)
	}
	tell(t, alertmanager, lines)
	for incident := range lines {
		name := filepath.Join("testdata", cmp.Or(incident, "quiet")+".txt")
		got := told.text(incident)
		if *update {
			if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if string(want) != got {
			t.Errorf("%s: wanted\n%s\ngot\n%s", cmp.Or(incident, "quiet"), want, got)
		}
	}
}

// proven are the alerts about pauses and about settings: each has an incident
// that makes it fire, whether it is muted or not.
const proven = `RoCEPFCStorm RoCEPFCStormApprox RoCEPFCStormOrigin RoCEPFCPausedByHost RoCEPFCSpinePersistent RoCEPFCElevated
	RoCEPFCWatchdogTriggered RoCEPFCWatchdogFlapping RoCEPFCWatchdogDisabled RoCEPFCDeadlockSuspected
	RoCENICPauseStormWarning RoCENICPauseStormError RoCEGlobalPauseActive
	RoCEPFCMaskDrift RoCEPFCMaskLost RoCEPFCNotAsIntended RoCEPFCMaskLinkMismatch RoCEDSCPNotLossless RoCETrafficInLossyPriority
	RoCETrustModeWrong RoCEMTURegression RoCEMTULinkMismatch RoCEMTUConfigDrift RoCELinkSpeedDowngraded RoCEPCIeDowngraded
	RoCEPCIeOversubscribed RoCEFirmwareSkew RoCERDMADeviceMissing RoCERDMADeviceRenamed RoCELinkLayerWrong RoCEGIDMissing
	RoCEARPFluxRisk RoCEFDBEmptyOnActivePort RoCEFloodSuspected RoCEThroughputPlateau RoCENeighborMissing`

// firesSomewhere looks whether each of the proven alerts fires in some story.
func firesSomewhere(t *testing.T, lines map[string]timeline) {
	t.Helper()
	fired := map[string]bool{}
	for _, line := range lines {
		for _, firing := range line {
			for _, of := range firing {
				fired[of.Get("alertname")] = true
			}
		}
	}
	for name := range strings.FieldsSeq(proven) {
		if !fired[name] {
			t.Errorf("%s fires in no story", name)
		}
	}
}

// scale is how much faster Alertmanager's time runs than the stories'.
const scale = 300

// tell posts what fires, evaluation by evaluation, all stories side by side:
// the fabric of a story is its incident.
func tell(t *testing.T, alertmanager string, lines map[string]timeline) {
	t.Helper()
	longest := 0
	for _, line := range lines {
		longest = max(longest, len(line))
	}
	began := map[string]time.Time{}
	for i := int(before / step); i < longest; i++ {
		next := time.Now().Add(step / scale)
		var post []map[string]any
		firing := map[string]bool{}
		for incident, line := range lines {
			if i >= len(line) {
				continue
			}
			for text, of := range line[i] {
				key := incident + text
				firing[key] = true
				if began[key].IsZero() {
					began[key] = time.Now()
				}
				post = append(post, map[string]any{"labels": named(of, incident), "startsAt": began[key], "endsAt": time.Now().Add(time.Hour)})
			}
			if i > 0 {
				for text, of := range line[i-1] {
					if key := incident + text; !firing[key] {
						post = append(post, map[string]any{"labels": named(of, incident), "startsAt": began[key], "endsAt": time.Now()})
						delete(began, key)
					}
				}
			}
		}
		body, err := json.Marshal(post)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.Post(alertmanager+"/api/v2/alerts", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", answer.Status, text)
		}
		answer.Body.Close()
		time.Sleep(time.Until(next))
	}
	time.Sleep(20 * time.Minute / scale) // The last group waits.
}

func named(of labels.Labels, fabric string) map[string]string {
	all := of.Map()
	all["fabric"] = cmp.Or(fabric, "quiet")
	return all
}

// told is what receivers are told.
type told struct {
	mu sync.Mutex
	of map[string]map[string]bool // By fabric.
}

func (r *told) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	var message struct {
		Receiver string
		Alerts   []struct {
			Status string
			Labels map[string]string
		}
	}
	if err := json.NewDecoder(q.Body).Decode(&message); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range message.Alerts {
		if a.Status != "firing" || message.Receiver == "heartbeat" {
			continue
		}
		text := message.Receiver + " " + a.Labels["alertname"]
		for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
			if !slices.Contains([]string{"alertname", "fabric", "severity", "layer", "team", "tier", "role"}, name) {
				text += " " + name + "=" + a.Labels[name]
			}
		}
		fabric := a.Labels["fabric"]
		if r.of[fabric] == nil {
			r.of[fabric] = map[string]bool{}
		}
		r.of[fabric][text] = true
	}
}

// text is what somebody was told in a story, a line for each alert.
func (r *told) text(incident string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, line := range slices.Sorted(maps.Keys(r.of[cmp.Or(incident, "quiet")])) {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// startAlertmanager starts a real one with the shipped configuration: only the
// receivers are filled in, and its times are those of the file divided by scale.
func startAlertmanager(t *testing.T, receiver http.Handler) string {
	t.Helper()
	binary, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		if binary, err = exec.LookPath("alertmanager"); err != nil {
			t.Skip("Alertmanager is not installed")
		}
	}
	hook := httptest.NewServer(receiver)
	t.Cleanup(hook.Close)
	shipped, err := os.ReadFile(filepath.Join(root, "alerts", "alertmanager.yml"))
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`http://[a-z-]+\.example\.com/`).ReplaceAllString(string(shipped), hook.URL)
	text = regexp.MustCompile(`(group_wait|group_interval|repeat_interval): (\w+)`).ReplaceAllStringFunc(text, func(line string) string {
		name, value, _ := strings.Cut(line, ": ")
		d, err := time.ParseDuration(value)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s: %dms", name, max(1, (d/scale).Milliseconds()))
	})
	dir := t.TempDir()
	file := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	var log bytes.Buffer
	command := exec.Command(binary, "--config.file="+file, "--storage.path="+dir, "--web.listen-address="+address, "--cluster.listen-address=")
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
		if t.Failed() {
			t.Logf("Alertmanager's log: %.2000s", &log)
		}
	})
	for range 500 {
		if answer, err := http.Get("http://" + address + "/-/ready"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return "http://" + address
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("Alertmanager does not become ready: %s", &log)
	return ""
}
