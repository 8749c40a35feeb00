// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
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

	"gopkg.in/yaml.v3"
)

// Files for promtool know no stale marks: a series that ends would be seen for
// as long as Prometheus looks back, beside the one that follows it. So all rules
// are evaluated at every sample, and it looks back no further than to the last.
const each = 15 * time.Second

// noon is when every past begins.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// A past is a Prometheus that has scraped the demo's fabric and evaluated the
// rules of this repository all the time.
type past struct {
	url      string
	from, to time.Time // All that there is.
	dir      string
	lookback time.Duration
	stop     func()
}

// command returns the path of a command that a test needs, and skips the test
// where it is missing.
func command(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed (Debian: apt-get install prometheus)", name)
	}
	return path
}

var exporterOnce = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "dashboards-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "roce_exporter")
	out, err := exec.Command("go", "build", "-ldflags", "-X github.com/prometheus/common/version.Version=1.0.0", "-o", path, "roce_exporter").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := exporterOnce(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}

func (p *past) loadAll(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.om"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		p.load(t, file)
	}
}

// newReviewPast has what the rules of the review would have recorded.
func newReviewPast(t *testing.T, lasting time.Duration, args ...string) *past {
	t.Helper()
	p := &past{from: noon, to: noon.Add(lasting), dir: t.TempDir(), lookback: 5 * time.Minute}
	command(t, "prometheus")
	command(t, "promtool")
	exporter, err := exporterOnce()
	if err != nil {
		t.Fatal(err)
	}
	recorded := t.TempDir()
	run(t, exporter, append([]string{
		"demo", "history", "--what", "recorded", "--out", recorded,
		"--start", p.from.Format(time.RFC3339), "--end", p.to.Add(time.Second).Format(time.RFC3339), // The end is not in it.
	}, args...)...)
	p.loadAll(t, recorded)
	p.serve(t)
	return p
}

// newPast lets a fabric live for a while from noon on.
func newPast(t *testing.T, lasting time.Duration, args ...string) *past {
	t.Helper()
	p := &past{from: noon, to: noon.Add(lasting), dir: t.TempDir(), lookback: each - time.Second}
	if *keep != "" {
		p.dir = filepath.Join(*keep, filepath.Base(t.Name()))
	}
	command(t, "prometheus")
	command(t, "promtool")
	exporter, err := exporterOnce()
	if err != nil {
		t.Fatal(err)
	}
	raw := t.TempDir()
	run(t, exporter, append([]string{
		"demo", "history", "--out", raw,
		"--start", p.from.Format(time.RFC3339), "--end", p.to.Add(time.Second).Format(time.RFC3339), // The end is not in it.
	}, args...)...)
	// The demo calls instances as their nodes, which real ones are not.
	run(t, "sh", "-c", `sed -i 's/instance="\([^"]*\)"/instance="\1:14791"/' "$1"/*.om`, "sh", raw)
	p.loadAll(t, raw)
	for _, level := range levels(t, readRules(t)) {
		p.evaluate(t, level)
	}
	p.serve(t)
	return p
}

// load adds the samples of a file.
func (p *past) load(t *testing.T, file string) {
	t.Helper()
	run(t, "promtool", "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=24h", file, p.dir)
	_ = os.Remove(file)
}

// serve starts Prometheus on what there is.
func (p *past) serve(t *testing.T) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(config, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, "prometheus", "--config.file="+config, "--storage.tsdb.path="+p.dir, "--web.listen-address="+address, "--storage.tsdb.retention.time=10y", "--query.lookback-delta="+p.lookback.String(), "--log.level=error")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	p.url = "http://" + address
	p.stop = sync.OnceFunc(func() {
		cancel()
		_ = cmd.Wait()
		_ = os.Remove(filepath.Join(p.dir, "lock"))
	})
	t.Cleanup(p.stop)
	p.await(t, "/-/ready")
}

// await waits until a server says that it is ready.
func (p *past) await(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		answer, err := http.Get(p.url + path)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not answer", p.url)
		}
	}
}

// freeAddress is one that nobody listens on yet.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// A result is one series of an answer.
type result struct {
	Metric map[string]string
	Value  [2]any
	Values [][2]any
}

func get(t *testing.T, from string) ([]byte, error) {
	t.Helper()
	answer, err := http.Get(from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	return io.ReadAll(answer.Body)
}

// ask sends a query.
func (p *past) ask(ctx context.Context, path string, form url.Values) ([]result, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	var parsed struct {
		Status, Error string
		Data          struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &parsed); err != nil {
		return nil, fmt.Errorf("%w: %s", err, body)
	}
	if parsed.Status != "success" {
		return nil, fmt.Errorf("%s: %s", form.Get("query"), parsed.Error)
	}
	var results []result
	return results, json.Unmarshal(parsed.Data.Result, &results)
}

// over asks for a query over the whole past, or a part of it.
func (p *past) over(ctx context.Context, query string, from, to time.Time, step time.Duration) ([]result, error) {
	return p.ask(ctx, "/api/v1/query_range", url.Values{
		"query": {query}, "start": {seconds(from)}, "end": {seconds(to)}, "step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	})
}

// at asks for a query at a time.
func (p *past) at(ctx context.Context, query string, when time.Time) ([]result, error) {
	return p.ask(ctx, "/api/v1/query", url.Values{"query": {query}, "time": {seconds(when)}})
}

func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// A rule is one of the rules of this repository.
type rule struct {
	Record, Alert, Expr string
	For                 string
	Labels, Annotations map[string]string
}

func readRules(t *testing.T) []rule {
	t.Helper()
	var all []rule
	for _, name := range []string{"thresholds", "recording", "review", "alerts"} {
		text, err := os.ReadFile(filepath.Join("..", "alerts", name+".yml"))
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Groups []struct {
				Rules []rule
			}
		}
		if err := yaml.Unmarshal(text, &file); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, group := range file.Groups {
			all = append(all, group.Rules...)
		}
	}
	return all
}

// recordedName finds names that rules record: only they have a colon.
var recordedName = regexp.MustCompile(`\b[a-z_][a-z0-9_]*:[a-z0-9_:]+\b`)

// looksBack finds what was recorded before, as in x:y[1h].
var looksBack = regexp.MustCompile(`\b[a-z_][a-z0-9_]*:[a-z0-9_:]+(\{[^}]*\})?\[`)

// levels orders rules so that each reads what earlier levels have recorded. A
// rule that reads what it recorded before begins without.
func levels(t *testing.T, all []rule) [][]rule {
	t.Helper()
	var ordered [][]rule
	var alerts []rule
	waiting := map[string]bool{}
	for _, r := range all {
		waiting[r.Record] = true
	}
	delete(waiting, "")
	left := slices.DeleteFunc(slices.Clone(all), func(r rule) bool {
		if r.Alert != "" {
			alerts = append(alerts, r)
		}
		return r.Alert != ""
	})
	for len(left) > 0 {
		ready := func(r rule) bool {
			return !slices.ContainsFunc(recordedName.FindAllString(r.Expr, -1), func(name string) bool { return waiting[name] && name != r.Record })
		}
		var level []rule
		left = slices.DeleteFunc(left, func(r rule) bool {
			if ready(r) {
				level = append(level, r)
			}
			return ready(r)
		})
		if len(level) == 0 { // A circle: begin with a rule that looks back.
			i := slices.IndexFunc(left, func(r rule) bool {
				now := looksBack.ReplaceAllString(r.Expr, "") // What it needs of this moment.
				return now != r.Expr && !slices.ContainsFunc(recordedName.FindAllString(now, -1), func(name string) bool { return waiting[name] && name != r.Record })
			})
			if i < 0 {
				t.Fatalf("%s reads itself", left[0].Record)
			}
			level = append(level, left[i])
			left = slices.Delete(left, i, i+1)
		}
		for _, r := range level {
			delete(waiting, r.Record)
		}
		ordered = append(ordered, level)
	}
	return append(ordered, alerts)
}

// evaluate adds what rules would have recorded, and the alerts.
func (p *past) evaluate(t *testing.T, level []rule) {
	t.Helper()
	p.serve(t)
	defer p.stop()
	name := filepath.Join(t.TempDir(), "rules.om")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(file)
	written := 0
	for _, r := range level {
		series, err := p.over(t.Context(), r.Expr, p.from, p.to, each)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range withoutNames(series) {
			labels := s.Metric
			maps.Copy(labels, r.Labels)
			write := func(name string, at time.Time, value any) {
				written++
				_, _ = fmt.Fprintf(w, "%s%s %v %d\n", name, labelText(labels), value, at.Unix())
			}
			if r.Record != "" {
				for _, v := range s.Values {
					write(r.Record, instant(v[0]), v[1])
				}
				continue
			}
			wait := time.Duration(0)
			if r.For != "" {
				if wait, err = time.ParseDuration(r.For); err != nil {
					t.Fatal(err)
				}
			}
			labels["alertname"] = r.Alert
			var since, last time.Time
			for _, v := range s.Values {
				now := instant(v[0])
				if now.Sub(last) > each {
					since = now
				}
				last = now
				write("ALERTS_FOR_STATE", now, since.Unix())
				labels["alertstate"] = "pending"
				if now.Sub(since) >= wait {
					labels["alertstate"] = "firing"
				}
				write("ALERTS", now, 1)
				delete(labels, "alertstate")
			}
		}
	}
	_, _ = fmt.Fprintln(w, "# EOF")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	p.stop()
	if written > 0 {
		p.load(t, name)
	}
}

// withoutNames joins series that differ in their names only: what a rule makes
// has one name, whichever side of an or it comes from.
func withoutNames(series []result) []result {
	joined := map[string]result{}
	for _, s := range series {
		delete(s.Metric, "__name__")
		key := labelText(s.Metric)
		s.Values = append(joined[key].Values, s.Values...)
		slices.SortFunc(s.Values, func(a, b [2]any) int { return instant(a[0]).Compare(instant(b[0])) })
		joined[key] = s
	}
	return slices.Collect(maps.Values(joined))
}

func instant(v any) time.Time {
	f, _ := v.(float64)
	return time.Unix(int64(f), 0)
}

func labelText(labels map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, fmt.Sprintf("%s=%q", name, labels[name]))
	}
	return "{" + strings.Join(parts, ",") + "}"
}
