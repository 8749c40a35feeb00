// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/exporter-toolkit/web"

	"roce_exporter/collectors"
)

// A fake is a collector that does what a test says.
type fake struct {
	name    string
	collect func(ctx context.Context) (collectors.Reading, error)
}

func (f *fake) Name() string { return f.name }

func (f *fake) Collect(ctx context.Context) (collectors.Reading, error) { return f.collect(ctx) }

// always returns the same reading.
func always(name string, r collectors.Reading, err error) *fake {
	return &fake{name, func(context.Context) (collectors.Reading, error) { return r, err }}
}

func sources(s ...collectors.Source) collectors.Reading { return collectors.Reading{Sources: s} }

func good(name string) collectors.Source {
	return collectors.Source{Name: name, Via: "unix /run/" + name}
}

func bad(name string, err error) collectors.Source { return collectors.Source{Name: name, Err: err} }

func catalog(t *testing.T) *collectors.Catalog {
	t.Helper()
	c, err := collectors.NewDefaultCatalog()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A logBook keeps what is logged.
type logBook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// take returns the lines since it was last called.
func (l *logBook) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimSpace(l.b.String())
	l.b.Reset()
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func (l *logBook) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// options are those of a test with these collectors.
func options(t *testing.T, enabled ...Enabled) (Options, *logBook) {
	book := &logBook{}
	none, no := []string{"127.0.0.1:0"}, ""
	return Options{
		Catalog: catalog(t), Logger: book.logger(),
		Build: func(Config) ([]Enabled, error) { return enabled, nil },
		Web:   WebOptions{TelemetryPath: "/metrics", Listen: &web.FlagConfig{WebListenAddresses: &none, WebSystemdSocket: new(bool), WebConfigFile: &no}},
	}, book
}

func start(t *testing.T, o Options) *Exporter {
	t.Helper()
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// configFile writes a configuration for a test.
func configFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "roce_exporter.yml")
	rewrite(t, file, text)
	return file
}

func rewrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func ask(h http.Handler, method, url string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, url, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A series set is what a scrape gave, value by series.
type seriesSet map[string]string

func scrape(t *testing.T, e *Exporter, header ...string) seriesSet {
	t.Helper()
	return scrapeURL(t, e, "/metrics", header...)
}

func scrapeURL(t *testing.T, e *Exporter, url string, header ...string) seriesSet {
	t.Helper()
	w := ask(e.Handler(), http.MethodGet, url, header...)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", url, w.Code, w.Body)
	}
	return parse(t, w.Body.String())
}

func parse(t *testing.T, text string) seriesSet {
	t.Helper()
	set := seriesSet{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		line = strings.TrimSpace(line)
		cut := strings.LastIndexByte(line, ' ')
		if _, twice := set[line[:cut]]; twice {
			t.Errorf("%s stands twice", line[:cut])
		}
		set[line[:cut]] = line[cut+1:]
	}
	return set
}

// only are the series whose names begin so.
func (s seriesSet) only(prefixes ...string) string {
	var lines []string
	for _, series := range slices.Sorted(maps.Keys(s)) {
		for _, prefix := range prefixes {
			if strings.HasPrefix(series, prefix) {
				lines = append(lines, series+" "+s[series])
			}
		}
	}
	return strings.Join(lines, "\n")
}

func lines(text ...string) string { return strings.Join(text, "\n") }

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\ngot\n%s\nwant\n%s", what, got, want)
	}
}
