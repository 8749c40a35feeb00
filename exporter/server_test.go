// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"roce_exporter/collectors"
)

func twoCollectors(t *testing.T) *Exporter {
	t.Helper()
	o, _ := options(t, Enabled{Collector: always("switch", sources(good("redis")), nil)}, Enabled{Collector: always("host", collectors.Reading{}, nil)})
	return start(t, o)
}

func TestChoiceOfCollectors(t *testing.T) {
	e := twoCollectors(t)
	both := lines(`roce_scrape_collector_success{collector="host"} 1`, `roce_scrape_collector_success{collector="switch"} 1`)
	for query, want := range map[string]string{
		"":                                   both,
		"collect[]=switch":                   `roce_scrape_collector_success{collector="switch"} 1`,
		"collect[]=switch&collect[]=host":    both,
		"exclude[]=switch":                   `roce_scrape_collector_success{collector="host"} 1`,
		"exclude[]=switch&exclude[]=host":    "",
		"collect[]=switch&collect[]=switch":  `roce_scrape_collector_success{collector="switch"} 1`,
		"collect%5B%5D=host&something=other": `roce_scrape_collector_success{collector="host"} 1`,
	} {
		got := scrapeURL(t, e, "/metrics?"+query)
		expect(t, query, got.only("roce_scrape_collector_success"), want)
		if n := strings.Count(got.only("roce_node_info"), "roce_node_info"); n != 1 {
			t.Errorf("%s: the node has %d identities", query, n)
		}
	}
	for query, want := range map[string]string{
		"collect[]=switch&exclude[]=host": "collect[] and exclude[] exclude each other: give one of them\n",
		"collect[]=optics":                "unknown collector \"optics\"; those that are enabled: switch, host\n",
		"exclude[]=":                      "unknown collector \"\"; those that are enabled: switch, host\n",
	} {
		w := ask(e.Handler(), http.MethodGet, "/metrics?"+query)
		if w.Code != http.StatusBadRequest || w.Body.String() != want {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}

func TestFamilyFilter(t *testing.T) {
	got := scrapeURL(t, twoCollectors(t), "/metrics?name[]=roce_scrape_source_success&name[]=roce_exporter_config_last_reload_successful")
	expect(t, "filtered", got.only(""), lines("roce_exporter_config_last_reload_successful 1", `roce_scrape_source_success{collector="switch",source="redis"} 1`))
}

func TestFormats(t *testing.T) {
	e := twoCollectors(t)
	for accept, want := range map[string]string{
		"":                         "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
		"text/plain;version=0.0.4": "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
		"application/openmetrics-text;version=1.0.0":                                                 "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited": "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=underscores",
	} {
		w := ask(e.Handler(), http.MethodGet, "/metrics", "Accept", accept)
		if got := w.Header().Get("Content-Type"); got != want {
			t.Errorf("%q: got %s, want %s", accept, got, want)
		}
		if strings.Contains(want, "openmetrics") && !strings.HasSuffix(w.Body.String(), "# EOF\n") {
			t.Errorf("OpenMetrics without its end")
		}
		if strings.Contains(want, "openmetrics") {
			continue // expfmt does not read it.
		}
		var names []string
		decoder := expfmt.NewDecoder(w.Body, expfmt.ResponseFormat(w.Header()))
		for {
			var mf dto.MetricFamily
			if err := decoder.Decode(&mf); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%q: %v", accept, err)
			}
			names = append(names, mf.GetName())
		}
		if !slices.Contains(names, "roce_node_info") || !slices.Contains(names, "go_goroutines") {
			t.Errorf("%q: got %v", accept, names)
		}
	}
	w := ask(e.Handler(), http.MethodGet, "/metrics", "Accept-Encoding", "gzip")
	if w.Header().Get("Content-Encoding") != "gzip" {
		t.Error("not compressed though asked for")
	}
}

// What a registry would have refused, promhttp would too.
func TestFamiliesAreSortedAndClean(t *testing.T) {
	e := twoCollectors(t)
	scrape(t, e) // So that promhttp has something to say.
	g := e.acquire()
	defer g.release()
	families, _, err := e.gather(t.Context(), g, g.runners)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(families, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) }) {
		t.Error("not sorted")
	}
	// Gatherers checks what a registry checks: types, labels, duplicates.
	if _, err := (prometheus.Gatherers{prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return families, nil })}).Gather(); err != nil {
		t.Error(err)
	}
	families = slices.DeleteFunc(families, func(mf *dto.MetricFamily) bool { return !strings.HasPrefix(mf.GetName(), "roce_") })
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}

func TestExporterMetrics(t *testing.T) {
	o, _ := options(t)
	e := start(t, o)
	h := e.Handler()
	ask(h, http.MethodGet, "/metrics")
	got := parse(t, ask(h, http.MethodGet, "/metrics").Body.String())
	for _, want := range []string{"go_goroutines", "process_resident_memory_bytes", `promhttp_metric_handler_requests_total{code="200"} 1`, "promhttp_metric_handler_errors_total", "roce_exporter_build_info"} {
		if got.only(want[:strings.IndexAny(want+"{", "{")]) == "" {
			t.Errorf("no %s", want)
		}
	}
	o.DisableExporterMetrics = true
	got = scrape(t, start(t, o))
	expect(t, "disabled", got.only("go_", "process_", "promhttp_"), "")
	if got.only("roce_exporter_build_info") == "" || got.only("roce_node_info") == "" {
		t.Error("the version and the node are wanted all the same")
	}
}

func TestMaxRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		o, _ := options(t, Enabled{Collector: &fake{"switch", func(context.Context) (collectors.Reading, error) {
			<-release
			return sources(good("redis")), nil
		}}})
		o.Web.MaxRequests = 2
		h := start(t, o).Handler()
		codes := make(chan int, 2)
		for range 2 {
			go func() { codes <- ask(h, http.MethodGet, "/metrics").Code }()
		}
		synctest.Wait()
		w := ask(h, http.MethodGet, "/metrics")
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "--web.max-requests") {
			t.Errorf("one too many: %d %s", w.Code, w.Body)
		}
		if w := ask(h, http.MethodGet, "/-/healthy"); w.Code != http.StatusOK {
			t.Errorf("healthy under load: %d", w.Code)
		}
		close(release)
		if a, b := <-codes, <-codes; a != http.StatusOK || b != http.StatusOK {
			t.Errorf("the two that were first: %d, %d", a, b)
		}
		if w := ask(h, http.MethodGet, "/metrics"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `promhttp_metric_handler_requests_total{code="503"} 1`) {
			t.Errorf("afterwards: %d", w.Code)
		}
	})
}

func TestNoLimitOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waiting int
		release, codes := make(chan struct{}), make(chan int, 100)
		o, _ := options(t, Enabled{Collector: &fake{"switch", func(context.Context) (collectors.Reading, error) {
			<-release
			return collectors.Reading{}, nil
		}}})
		h := start(t, o).Handler()
		for waiting = range 100 {
			go func() { codes <- ask(h, http.MethodGet, "/metrics").Code }()
		}
		synctest.Wait()
		close(release)
		for range waiting + 1 {
			if code := <-codes; code != http.StatusOK {
				t.Errorf("got %d", code)
			}
		}
	})
}

func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		reading, err := collectors.Reading{}, collectors.ErrNotFound
		o, _ := options(t, Enabled{Auto: true, Collector: &fake{"switch", func(ctx context.Context) (collectors.Reading, error) {
			calls++
			if deadline, _ := ctx.Deadline(); time.Until(deadline) > time.Second {
				t.Errorf("a probe that takes %v", time.Until(deadline))
			}
			return reading, err
		}}})
		h := start(t, o).Handler()
		probe := func(situation string, wantCode, wantCalls int) {
			t.Helper()
			if code := ask(h, http.MethodGet, "/-/ready").Code; code != wantCode || calls != wantCalls {
				t.Errorf("%s: %d after %d calls, want %d after %d", situation, code, calls, wantCode, wantCalls)
			}
			if code := ask(h, http.MethodGet, "/-/healthy").Code; code != http.StatusOK {
				t.Errorf("%s: healthy is %d", situation, code)
			}
		}
		time.Sleep(time.Second)
		probe("nothing there", http.StatusServiceUnavailable, 1)
		probe("probed just before", http.StatusServiceUnavailable, 1)
		reading, err = sources(bad("redis", errors.New("connection refused"))), errors.New("connection refused")
		time.Sleep(probeRest + 1)
		probe("there, but it does not answer", http.StatusServiceUnavailable, 2)
		reading, err = sources(good("redis")), nil
		time.Sleep(probeRest + 1)
		probe("it answers", http.StatusOK, 3)
		reading, err = sources(bad("redis", errors.New("connection refused"))), errors.New("connection refused")
		time.Sleep(probeRest + 1)
		probe("it does not answer any more: the exporter is ready to say so", http.StatusOK, 3)
	})
}

func TestConfigPageHidesSecrets(t *testing.T) {
	o, _ := options(t)
	o.ConfigFile = configFile(t, "switch: {redis: {username: reader, password_file: /etc/secret/place}}\nrefresh: {config: 90s}")
	w := ask(start(t, o).Handler(), http.MethodGet, "/config")
	body := w.Body.String()
	if strings.Contains(body, "secret/place") || !strings.Contains(body, "password_file: <secret>") || !strings.Contains(body, "config: 1m30s") || !strings.Contains(body, "series: 200000") {
		t.Errorf("got\n%s", body)
	}
	if w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("content type %s", w.Header().Get("Content-Type"))
	}
}

func TestLandingPage(t *testing.T) {
	o, _ := options(t,
		Enabled{Collector: always("switch", sources(collectors.Source{Name: "asic0", Via: "unix /run/redis0.sock", Age: 1200 * time.Millisecond}, bad("asic1", errors.New("<script>alert(1)</script>"))), nil)},
		Enabled{Collector: always("host", collectors.Reading{}, collectors.ErrNotFound), Auto: true},
	)
	e := start(t, o)
	before := ask(e.Handler(), http.MethodGet, "/")
	if !strings.Contains(before.Body.String(), "Last scrape: none yet") || !strings.Contains(before.Body.String(), "not asked yet") {
		t.Errorf("before the first scrape:\n%s", before.Body)
	}
	scrape(t, e)
	w := ask(e.Handler(), http.MethodGet, "/")
	body := w.Body.String()
	for _, want := range []string{
		`href="/metrics"`, `href="/config"`, `href="/-/healthy"`, `href="/-/ready"`, "Collector switch", "Collector host", "nothing found",
		"asic0", "unix /run/redis0.sock", "1.2s", "&lt;script&gt;alert(1)", "Version ",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	if found := regexp.MustCompile(`(?i)<script|https?://|src=|url\(`).FindString(body); found != "" {
		t.Errorf("the page must load and run nothing, but has %q", found)
	}
	if policy := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") {
		t.Errorf("policy %q", policy)
	}
	if w := ask(e.Handler(), http.MethodGet, "/nonsense"); w.Code != http.StatusNotFound {
		t.Errorf("an unknown path: %d", w.Code)
	}
}

func TestTelemetryPath(t *testing.T) {
	for _, path := range []string{"/", "/roce/metrics"} {
		o, _ := options(t)
		o.Web.TelemetryPath = path
		if got := scrapeURL(t, start(t, o), path); got.only("roce_node_info") == "" {
			t.Errorf("%s: no metrics", path)
		}
	}
	for _, path := range []string{"", "metrics", "/config", "/-/ready", "/-", "/debug/pprof", "/a/../b", "/{x}", "/metrics/"} {
		o, _ := options(t)
		o.Web.TelemetryPath = path
		if _, err := New(o); err == nil {
			t.Errorf("%q must be refused", path)
		}
	}
}

func TestPprofIsOffByDefault(t *testing.T) {
	for _, on := range []bool{false, true} {
		o, _ := options(t)
		o.Web.Pprof = on
		if code := ask(start(t, o).Handler(), http.MethodGet, "/debug/pprof/cmdline").Code; (code == http.StatusOK) != on {
			t.Errorf("pprof %v: %d", on, code)
		}
	}
}

// The limits against clients that are slow on purpose. Waiting for them would
// take longer than a test may.
func TestServerLimits(t *testing.T) {
	o, _ := options(t)
	s := newServer(start(t, o).Handler(), slog.New(slog.DiscardHandler))
	if s.ReadHeaderTimeout != 10*time.Second || s.IdleTimeout != 2*time.Minute || s.ReadTimeout == 0 || s.MaxHeaderBytes != 16<<10 {
		t.Errorf("limits: %v %v %v %d", s.ReadHeaderTimeout, s.IdleTimeout, s.ReadTimeout, s.MaxHeaderBytes)
	}
	if s.Handler == nil || s.Handler == http.DefaultServeMux || s.ErrorLog == nil {
		t.Error("a handler and a log of its own")
	}
}

// serving starts a server on a free port and returns its address and what
// Serve returned once the context has ended.
func serving(t *testing.T, ctx context.Context, o Options, book *logBook) (string, <-chan error) {
	t.Helper()
	e := start(t, o)
	ended := make(chan error, 1)
	go func() { ended <- e.Serve(ctx) }()
	listening := regexp.MustCompile(`msg="Listening on" address=(\S+)`)
	for range 200 {
		if found := listening.FindStringSubmatch(strings.Join(book.take(), "\n")); found != nil {
			return found[1], ended
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("it does not listen")
	return "", nil
}

func TestShutdownLetsAScrapeEnd(t *testing.T) {
	running, release := make(chan struct{}), make(chan struct{})
	o, book := options(t, Enabled{Collector: &fake{"switch", func(context.Context) (collectors.Reading, error) {
		close(running)
		<-release
		return sources(good("redis")), nil
	}}})
	ctx, stop := context.WithCancel(t.Context())
	addr, ended := serving(t, ctx, o, book)
	body := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + addr + "/metrics")
		if err != nil {
			body <- err.Error()
			return
		}
		defer resp.Body.Close()
		var b bytes.Buffer
		_, _ = b.ReadFrom(resp.Body)
		body <- b.String()
	}()
	<-running
	stop()
	for range 100 { // Until it does not listen any more.
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			break
		}
		conn.Close()
		time.Sleep(5 * time.Millisecond)
	}
	close(release)
	if got := <-body; !strings.Contains(got, `roce_scrape_source_success{collector="switch",source="redis"} 1`) {
		t.Errorf("the scrape was cut off: %s", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestShutdownWaitsFiveSecondsAtMost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes five seconds")
	}
	t.Parallel()
	running, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	o, book := options(t, Enabled{Collector: &fake{"switch", func(context.Context) (collectors.Reading, error) {
		close(running)
		<-release
		return collectors.Reading{}, nil
	}}})
	ctx, stop := context.WithCancel(t.Context())
	addr, ended := serving(t, ctx, o, book)
	go func() {
		if resp, err := http.Get("http://" + addr + "/metrics"); err == nil {
			resp.Body.Close()
		}
	}()
	<-running
	begin := time.Now()
	stop()
	if err := <-ended; err != nil || time.Since(begin) > 5*time.Second {
		t.Errorf("Serve returned %v after %v", err, time.Since(begin))
	}
}

func TestAddressInUse(t *testing.T) {
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	o, _ := options(t)
	o.Web.Listen.WebListenAddresses = &[]string{taken.Listener.Addr().String()}
	if err := start(t, o).Serve(t.Context()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
}
