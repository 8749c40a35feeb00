// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"roce_exporter/collectors"
)

// fabric is what shows which configuration is in force.
func fabric(t *testing.T, e *Exporter) string {
	t.Helper()
	info := scrape(t, e).only("roce_node_info")
	_, rest, _ := strings.Cut(info, `fabric="`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

func reloads(t *testing.T, e *Exporter) string {
	t.Helper()
	return scrape(t, e).only("roce_exporter_config_")
}

func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stamp := func() string {
			return fmt.Sprintf("roce_exporter_config_last_reload_success_timestamp_seconds %v", float64(time.Now().Unix()))
		}
		o, book := options(t)
		o.ConfigFile = configFile(t, "node: {fabric: a}")
		e := start(t, o)
		first := stamp()
		expect(t, "at start", reloads(t, e), lines(first, "roce_exporter_config_last_reload_successful 1"))

		time.Sleep(time.Hour)
		rewrite(t, o.ConfigFile, "node: {fabric: b}\nlimits: {series: 1.5}")
		if err := e.Reload(); err == nil || err.Error() != o.ConfigFile+":2: limits.series: must be an integer from 0 to 10000000, not a fraction" {
			t.Errorf("got %v", err)
		}
		expect(t, "bad: the old one stays, whole", fabric(t, e), "a")
		expect(t, "bad: the old time stays", reloads(t, e), lines(first, "roce_exporter_config_last_reload_successful 0"))
		if got := book.take(); len(got) != 1 || !strings.HasPrefix(got[0], "level=ERROR") || !strings.Contains(got[0], ":2: limits.series") {
			t.Errorf("logged %q", got)
		}

		if err := os.Remove(o.ConfigFile); err != nil {
			t.Fatal(err)
		}
		if err := e.Reload(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file is gone: %v", err)
		}
		expect(t, "gone: the old one stays", fabric(t, e), "a")

		rewrite(t, o.ConfigFile, "node: {fabric: b}")
		if err := e.Reload(); err != nil {
			t.Error(err)
		}
		expect(t, "good again", fabric(t, e), "b")
		expect(t, "good again", reloads(t, e), lines(stamp(), "roce_exporter_config_last_reload_successful 1"))
	})
}

func TestBadConfigAtStart(t *testing.T) {
	o, _ := options(t)
	o.ConfigFile = configFile(t, "nodes: {}")
	if _, err := New(o); err == nil || err.Error() != o.ConfigFile+":1: nodes: unknown key: did you mean node?" {
		t.Errorf("got %v", err)
	}
	o.ConfigFile = ""
	o.Build = func(Config) ([]Enabled, error) { return nil, errors.New("no such capture") }
	if _, err := New(o); err == nil || err.Error() != "no such capture" {
		t.Errorf("got %v", err)
	}
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, book := options(t)
		o.ConfigFile = configFile(t, "node: {fabric: a}")
		e := start(t, o)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			e.Watch(ctx, 30*time.Second)
		}()
		for _, step := range []struct {
			situation, write, want string
			logged                 int
		}{
			{"as it was", "node: {fabric: a}", "a", 0},
			{"changed", "node: {fabric: b}", "b", 1},
			{"not again", "node: {fabric: b}", "b", 0},
			{"bad", "node: {fabric: [c]}", "b", 1},
			{"bad, said once", "node: {fabric: [c]}", "b", 0},
			{"gone", "", "b", 1},
			{"gone, said once", "", "b", 0},
			{"mended", "node: {fabric: d}", "d", 1},
		} {
			if step.write == "" {
				_ = os.Remove(o.ConfigFile)
			} else {
				rewrite(t, o.ConfigFile, step.write)
			}
			time.Sleep(31 * time.Second)
			synctest.Wait()
			expect(t, step.situation, fabric(t, e), step.want)
			if got := book.take(); len(got) != step.logged {
				t.Errorf("%s: logged %q", step.situation, got)
			}
		}
		stop()
		<-ended
	})
}

func TestReloadOverHTTP(t *testing.T) {
	o, _ := options(t)
	o.ConfigFile = configFile(t, "node: {fabric: a}")
	closed := start(t, o)
	o.Web.Lifecycle = true
	open := start(t, o)
	rewrite(t, o.ConfigFile, "node: {fabric: b}")

	w := ask(closed.Handler(), http.MethodPost, "/-/reload")
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "--web.enable-lifecycle") {
		t.Errorf("not allowed: %d %s", w.Code, w.Body)
	}
	expect(t, "not allowed", fabric(t, closed), "a")
	if w := ask(open.Handler(), http.MethodGet, "/-/reload"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", w.Code)
	}
	if w := ask(open.Handler(), http.MethodPost, "/-/reload", "Sec-Fetch-Site", "cross-site"); w.Code != http.StatusForbidden {
		t.Errorf("from a page of another site: %d", w.Code)
	}
	expect(t, "not reloaded", fabric(t, open), "a")
	if w := ask(open.Handler(), http.MethodPost, "/-/reload"); w.Code != http.StatusOK {
		t.Errorf("POST: %d %s", w.Code, w.Body)
	}
	expect(t, "POST", fabric(t, open), "b")
	rewrite(t, o.ConfigFile, "node: {fabric: c}")
	if w := ask(open.Handler(), http.MethodPut, "/-/reload"); w.Code != http.StatusOK {
		t.Errorf("PUT: %d %s", w.Code, w.Body)
	}
	expect(t, "PUT", fabric(t, open), "c")
	rewrite(t, o.ConfigFile, "node: {fabrik: d}")
	if w := ask(open.Handler(), http.MethodPost, "/-/reload"); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "did you mean fabric?") {
		t.Errorf("bad: %d %s", w.Code, w.Body)
	}
}

// What a scrape uses must stay open until it has ended.
func TestOldCollectorsAreClosedAfterTheirScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		built, closed := 0, []int{}
		release := make(chan struct{})
		o, _ := options(t)
		o.Build = func(Config) ([]Enabled, error) {
			built++
			number := built
			return []Enabled{{Collector: &fake{"switch", func(context.Context) (collectors.Reading, error) {
				if number == 1 {
					<-release
				}
				return sources(good("redis")), nil
			}}, Close: func() { closed = append(closed, number) }}}, nil
		}
		e := start(t, o)
		ended := make(chan seriesSet, 1)
		go func() { ended <- scrape(t, e, "X-Prometheus-Scrape-Timeout-Seconds", "1") }()
		synctest.Wait()
		if err := e.Reload(); err != nil {
			t.Fatal(err)
		}
		expect(t, "the new one serves", scrape(t, e).only("roce_scrape_collector_success"), `roce_scrape_collector_success{collector="switch"} 1`)
		if len(closed) > 0 {
			t.Errorf("closed while it is read: %v", closed)
		}
		<-ended // The scrape has given up, the collector has not come back.
		if len(closed) > 0 {
			t.Errorf("closed while it hangs: %v", closed)
		}
		close(release)
		synctest.Wait()
		if fmt.Sprint(closed) != "[1]" {
			t.Errorf("after its scrape: closed %v", closed)
		}
		if err := e.Reload(); err != nil {
			t.Fatal(err)
		}
		e.Close()
		e.Close()
		if fmt.Sprint(closed) != "[1 2 3]" {
			t.Errorf("in the end: closed %v", closed)
		}
	})
}

// A reload does not make a switch a host, nor begin the counters anew.
func TestReloadRemembers(t *testing.T) {
	found := true
	o, _ := options(t, Enabled{Auto: true, Collector: &fake{"switch", func(context.Context) (collectors.Reading, error) {
		if !found {
			return collectors.Reading{}, collectors.ErrNotFound
		}
		r := sources(good("redis"))
		r.Dropped = 5
		return r, nil
	}}})
	e := start(t, o)
	scrape(t, e)
	found = false
	if err := e.Reload(); err != nil {
		t.Fatal(err)
	}
	got := scrape(t, e)
	expect(t, "after the reload", got.only("roce_scrape_collector_success", "roce_scrape_series_dropped", "roce_scrape_source_success"), lines(
		`roce_scrape_collector_success{collector="switch"} 0`,
		`roce_scrape_series_dropped_total{collector="switch"} 5`,
		`roce_scrape_source_success{collector="switch",source="redis"} 0`,
	))
	if !strings.Contains(got.only("roce_node_info"), `role="switch"`) {
		t.Errorf("got %s", got.only("roce_node_info"))
	}
}
