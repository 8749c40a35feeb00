// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/pprof"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/exporter-toolkit/web"
	"gopkg.in/yaml.v3"
)

// WebOptions say what is served over HTTP, and how.
type WebOptions struct {
	TelemetryPath string
	MaxRequests   int  // Scrapes at a time; 0: no limit.
	Lifecycle     bool // Reloading over HTTP is allowed.
	Pprof         bool
	Listen        *web.FlagConfig
}

const (
	// shutdownTime is for running scrapes to end, so that the process is gone
	// within five seconds.
	shutdownTime = 4500 * time.Millisecond
	// probeTime is what a readiness probe may take: a kubelet gives a second.
	probeTime = 900 * time.Millisecond
	// probeRest is the time between two probes that look for something.
	probeRest = 5 * time.Second
	// writeTime is how long a client may take to read an answer; until then it
	// takes up one of the requests that are allowed at a time.
	writeTime = 30 * time.Second
)

func (o WebOptions) check() error {
	p := o.TelemetryPath
	if !strings.HasPrefix(p, "/") || path.Clean(p) != p || strings.ContainsAny(p, "{} ") {
		return fmt.Errorf("the telemetry path must be like /metrics, not %q", p)
	}
	if p == "/config" || strings.HasPrefix(p+"/", "/-/") || strings.HasPrefix(p+"/", "/debug/") {
		return fmt.Errorf("the telemetry path %s has another use: choose a different one", p)
	}
	if o.MaxRequests < 0 {
		return fmt.Errorf("the limit of requests must not be negative: %d", o.MaxRequests)
	}
	return nil
}

// Handler serves all routes.
func (e *Exporter) Handler() http.Handler {
	mux := http.NewServeMux()
	var metrics http.Handler = http.HandlerFunc(e.serveMetrics)
	if e.web.MaxRequests > 0 {
		metrics = limitRequests(metrics, e.web.MaxRequests)
	}
	if e.self {
		metrics = promhttp.InstrumentMetricHandler(e.registry, metrics)
	}
	if e.web.TelemetryPath == "/" {
		mux.Handle("GET /{$}", metrics)
	} else {
		mux.Handle("GET "+e.web.TelemetryPath, metrics)
	}
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "roce_exporter is healthy.")
	})
	mux.HandleFunc("GET /-/ready", e.serveReady)
	mux.HandleFunc("GET /config", e.serveConfig)
	// A page of another site must not reload the exporter through a browser.
	reload := http.NewCrossOriginProtection().Handler(http.HandlerFunc(e.serveReload))
	mux.Handle("POST /-/reload", reload)
	mux.Handle("PUT /-/reload", reload)
	if e.web.TelemetryPath != "/" {
		mux.Handle("GET /{$}", e.landing())
	}
	if e.web.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// newServer has the limits that keep a slow or a hostile client from taking the
// exporter away from others.
func newServer(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       20 * time.Second, // No request has a body that anybody reads.
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}

// Serve serves until ctx ends, then lets the running scrapes end.
func (e *Exporter) Serve(ctx context.Context) error {
	return Serve(ctx, e.Handler(), e.web.Listen, e.logger)
}

// Serve serves a handler until ctx ends, then lets the running requests end.
func Serve(ctx context.Context, handler http.Handler, listen *web.FlagConfig, logger *slog.Logger) error {
	server := newServer(handler, logger)
	failed := make(chan error, 1)
	go func() { failed <- web.ListenAndServe(server, listen, logger) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	logger.Info("shutting down")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		logger.Warn("some requests did not end in time", "err", err)
		_ = server.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// limitRequests answers 503 beyond the limit.
func limitRequests(next http.Handler, limit int) http.Handler {
	slots := make(chan struct{}, limit)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		default:
			http.Error(w, fmt.Sprintf("%d scrapes are running, which is the limit (--web.max-requests): try again later", limit), http.StatusServiceUnavailable)
		}
	})
}

func (e *Exporter) serveMetrics(w http.ResponseWriter, r *http.Request) {
	g := e.acquire()
	defer g.release()
	chosen, err := choose(g.runners, r.URL.Query()["collect[]"], r.URL.Query()["exclude[]"])
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	timeout := scrapeTime(time.Duration(g.config.Scrape.Timeout), r.Header.Get("X-Prometheus-Scrape-Timeout-Seconds"))
	// Not every writer of a test can do it, and nothing is lost then.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeout + writeTime))
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	options := promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(e.logger.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true,
	}
	if e.self {
		options.Registry = e.registry
	}
	buffered := bufferedResponse{w, bufio.NewWriterSize(w, responseBuffer)}
	promhttp.HandlerForTransactional(gatherer(func() ([]*dto.MetricFamily, func(), error) {
		return e.gather(ctx, g, chosen)
	}), options).ServeHTTP(buffered, r)
	_ = buffered.Flush() // The client has gone if it fails.
	e.after()
}

// gatherer is a prometheus.TransactionalGatherer.
type gatherer func() ([]*dto.MetricFamily, func(), error)

func (g gatherer) Gather() ([]*dto.MetricFamily, func(), error) { return g() }

// responseBuffer is how much of an answer goes out in one piece: net/http alone
// would make a system call of every 4 KiB.
const responseBuffer = 64 << 10

// A bufferedResponse collects what is written into pieces. The text encoder
// writes straight into it.
type bufferedResponse struct {
	http.ResponseWriter
	*bufio.Writer
}

// Write is the buffer's.
func (b bufferedResponse) Write(p []byte) (int, error) { return b.Writer.Write(p) }

// choose finds the collectors that a request wants.
func choose(all []*runner, collect, exclude []string) ([]*runner, error) {
	if len(collect) > 0 && len(exclude) > 0 {
		return nil, errors.New("collect[] and exclude[] exclude each other: give one of them")
	}
	for _, name := range slices.Concat(collect, exclude) {
		if !slices.ContainsFunc(all, func(r *runner) bool { return r.name == name }) {
			var names []string
			for _, r := range all {
				names = append(names, r.name)
			}
			return nil, fmt.Errorf("unknown collector %q; those that are enabled: %s", name, strings.Join(names, ", "))
		}
	}
	var chosen []*runner
	for _, r := range all {
		if slices.Contains(exclude, r.name) || len(collect) > 0 && !slices.Contains(collect, r.name) {
			continue
		}
		chosen = append(chosen, r)
	}
	return chosen, nil
}

// scrapeTime is what the collectors may take: as long as Prometheus waits but
// not longer than configured, less a tenth for mapping and text.
func scrapeTime(configured time.Duration, header string) time.Duration {
	given := configured
	seconds, err := strconv.ParseFloat(header, 64)
	if err == nil && seconds > 0 && seconds < math.MaxInt32 {
		given = min(given, time.Duration(seconds*float64(time.Second)))
	}
	return given - given/10
}

// serveReady says whether something to read was found. While it was not, a
// probe looks for it, so that an exporter that nobody scrapes before it is
// ready becomes ready.
func (e *Exporter) serveReady(w http.ResponseWriter, r *http.Request) {
	if !e.states.ready() && time.Since(e.states.lastRun()) > probeRest && e.probing.TryLock() {
		e.probe(r.Context())
		e.probing.Unlock()
	}
	if !e.states.ready() {
		http.Error(w, "roce_exporter has found nothing to read yet; the landing page says where it looks.", http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "roce_exporter is ready.")
}

func (e *Exporter) probe(ctx context.Context) {
	g := e.acquire()
	defer g.release()
	ctx, cancel := context.WithTimeout(ctx, min(probeTime, time.Duration(g.config.Scrape.Timeout)))
	defer cancel()
	e.collect(ctx, g, g.runners)
}

// serveConfig shows the configuration in force, without secrets.
func (e *Exporter) serveConfig(w http.ResponseWriter, _ *http.Request) {
	text, err := yaml.Marshal(e.config())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(text)
}

func (e *Exporter) serveReload(w http.ResponseWriter, _ *http.Request) {
	if !e.web.Lifecycle {
		http.Error(w, "Reloading over HTTP is off: start with --web.enable-lifecycle, or send SIGHUP.", http.StatusForbidden)
		return
	}
	if err := e.Reload(); err != nil {
		http.Error(w, "The configuration was not reloaded, the old one stays in force:\n"+err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = fmt.Fprintln(w, "The configuration was reloaded.")
}
