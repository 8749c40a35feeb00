// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"roce_exporter/collectors"
)

// What the success metrics say in each situation.
func TestSuccess(t *testing.T) {
	lost := errors.New("connection refused")
	notFound := fmt.Errorf("%w: no databases", collectors.ErrNotFound)
	for _, test := range []struct {
		situation string
		enabled   Enabled
		want      string
	}{
		{
			"all sources read",
			Enabled{Collector: always("switch", sources(good("redis")), nil)},
			lines(`roce_scrape_collector_success{collector="switch"} 1`, `roce_scrape_source_success{collector="switch",source="redis"} 1`),
		},
		{
			"one of two sources read",
			Enabled{Collector: always("switch", sources(good("asic0"), bad("asic1", lost)), lost)},
			lines(
				`roce_scrape_collector_success{collector="switch"} 1`, `roce_scrape_source_success{collector="switch",source="asic0"} 1`,
				`roce_scrape_source_success{collector="switch",source="asic1"} 0`,
			),
		},
		{
			"no source read",
			Enabled{Collector: always("switch", sources(bad("redis", lost)), lost)},
			lines(`roce_scrape_collector_success{collector="switch"} 0`, `roce_scrape_source_success{collector="switch",source="redis"} 0`),
		},
		{
			"it could not look",
			Enabled{Collector: always("switch", collectors.Reading{}, lost), Auto: true},
			`roce_scrape_collector_success{collector="switch"} 0`,
		},
		{
			"nothing is there and that is all right: a host without RDMA",
			Enabled{Collector: always("host", collectors.Reading{}, nil)},
			`roce_scrape_collector_success{collector="host"} 1`,
		},
		{"looked for and not found", Enabled{Collector: always("switch", collectors.Reading{}, notFound), Auto: true}, ""},
		{
			"asked for and not found",
			Enabled{Collector: always("switch", collectors.Reading{}, notFound)},
			`roce_scrape_collector_success{collector="switch"} 0`,
		},
		{
			"panics",
			Enabled{Collector: &fake{"switch", func(context.Context) (collectors.Reading, error) { panic("index out of range") }}},
			`roce_scrape_collector_success{collector="switch"} 0`,
		},
	} {
		t.Run(test.situation, func(t *testing.T) {
			o, _ := options(t, test.enabled)
			got := scrape(t, start(t, o))
			expect(t, "success", got.only("roce_scrape_collector_success", "roce_scrape_source_success"), test.want)
			skipped := ""
			if test.want != "" {
				c := test.enabled.Collector.Name()
				skipped = lines(
					`roce_scrape_series_dropped_total{collector="`+c+`"} 0`,
					`roce_scrape_skipped{collector="`+c+`",reason="duplicate"} 0`, `roce_scrape_skipped{collector="`+c+`",reason="missing"} 0`,
					`roce_scrape_skipped{collector="`+c+`",reason="raced"} 0`, `roce_scrape_skipped{collector="`+c+`",reason="unparsable"} 0`,
					`roce_scrape_skipped{collector="`+c+`",reason="unreadable"} 0`,
				)
			}
			expect(t, "skipped and dropped", got.only("roce_scrape_skipped", "roce_scrape_series_dropped"), skipped)
			if duration := got.only("roce_scrape_collector_duration_seconds"); (duration == "") != (test.want == "") {
				t.Errorf("duration: %q", duration)
			}
		})
	}
}

func TestReadingIsServed(t *testing.T) {
	b := catalog(t).NewBuilder()
	b.Add("roce_port_oper_up", 1, "Ethernet0")
	r := sources(collectors.Source{Name: "redis", Age: 1500 * time.Millisecond})
	r.Samples, _, _ = b.Samples(0)
	r.Dropped = 7
	r.Skipped = collectors.Skipped{Unreadable: 1, Unparsable: 2, Missing: 3, Duplicate: 4, Raced: 5}
	o, _ := options(t, Enabled{Collector: always("switch", r, nil)}, Enabled{Collector: always("host", collectors.Reading{}, nil)})
	e := start(t, o)
	scrape(t, e)
	expect(t, "second scrape", scrape(t, e).only("roce_port", "roce_scrape_s"), lines(
		`roce_port_oper_up{port="Ethernet0"} 1`,
		`roce_scrape_series_dropped_total{collector="host"} 0`,
		`roce_scrape_series_dropped_total{collector="switch"} 14`,
		`roce_scrape_skipped{collector="host",reason="duplicate"} 0`, `roce_scrape_skipped{collector="host",reason="missing"} 0`,
		`roce_scrape_skipped{collector="host",reason="raced"} 0`, `roce_scrape_skipped{collector="host",reason="unparsable"} 0`,
		`roce_scrape_skipped{collector="host",reason="unreadable"} 0`,
		`roce_scrape_skipped{collector="switch",reason="duplicate"} 4`, `roce_scrape_skipped{collector="switch",reason="missing"} 3`,
		`roce_scrape_skipped{collector="switch",reason="raced"} 5`, `roce_scrape_skipped{collector="switch",reason="unparsable"} 2`,
		`roce_scrape_skipped{collector="switch",reason="unreadable"} 1`,
		`roce_scrape_source_reading_age_seconds{collector="switch",source="redis"} 1.5`,
		`roce_scrape_source_success{collector="switch",source="redis"} 1`,
	))
}

func TestNodeInfo(t *testing.T) {
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	hostname, _, _ = strings.Cut(hostname, ".")
	asSwitch := sources(good("redis"))
	asSwitch.Node = collectors.Node{Name: "leaf1.dc.example", Platform: "x86_64-sn5600", HWSKU: "SN5600", OSVersion: "SONiC.202505"}
	info := func(node, role, fabric, tier string, n collectors.Node) string {
		return fmt.Sprintf(`roce_node_info{fabric=%q,hwsku=%q,node=%q,os_version=%q,platform=%q,role=%q,tier=%q} 1`, fabric, n.HWSKU, node, n.OSVersion, n.Platform, role, tier)
	}
	for _, test := range []struct {
		situation, config string
		enabled           []Enabled
		want              string
	}{
		{"nothing enabled", "", nil, info(hostname, "host", "", "", collectors.Node{})},
		{"a switch", "", []Enabled{{Collector: always("switch", asSwitch, nil), Auto: true}}, info("leaf1", "switch", "", "", asSwitch.Node)},
		{
			"a switch that is a host too", "",
			[]Enabled{{Collector: always("host", collectors.Reading{}, nil)}, {Collector: always("switch", asSwitch, nil), Auto: true}},
			info("leaf1", "switch", "", "", asSwitch.Node),
		},
		{"full names", "node: {names: full, fabric: a, tier: leaf}", []Enabled{{Collector: always("switch", asSwitch, nil)}}, info("leaf1.dc.example", "switch", "a", "leaf", asSwitch.Node)},
		{"a name of its own", "node: {name: rack7.example}", []Enabled{{Collector: always("switch", asSwitch, nil)}}, info("rack7", "switch", "", "", asSwitch.Node)},
		{"looked for and not found", "", []Enabled{{Collector: always("switch", collectors.Reading{}, collectors.ErrNotFound), Auto: true}}, info(hostname, "host", "", "", collectors.Node{})},
		{"asked for and not found", "", []Enabled{{Collector: always("switch", collectors.Reading{}, collectors.ErrNotFound)}}, info(hostname, "switch", "", "", collectors.Node{})},
	} {
		t.Run(test.situation, func(t *testing.T) {
			o, _ := options(t, test.enabled...)
			o.ConfigFile = configFile(t, test.config)
			expect(t, "identity", scrape(t, start(t, o)).only("roce_node_info"), test.want)
		})
	}
	t.Run("kept when the switch cannot be read or is left out", func(t *testing.T) {
		fails := false
		o, _ := options(t, Enabled{Auto: true, Collector: &fake{"switch", func(context.Context) (collectors.Reading, error) {
			if fails {
				return collectors.Reading{}, collectors.ErrNotFound
			}
			return asSwitch, nil
		}}})
		e := start(t, o)
		want := info("leaf1", "switch", "", "", asSwitch.Node)
		expect(t, "read", scrape(t, e).only("roce_node_info"), want)
		expect(t, "left out", scrapeURL(t, e, "/metrics?exclude[]=switch").only("roce_node_info"), want)
		fails = true
		got := scrape(t, e)
		expect(t, "gone", got.only("roce_node_info"), want)
		expect(t, "gone", got.only("roce_scrape_collector_success", "roce_scrape_source_success"), lines(
			`roce_scrape_collector_success{collector="switch"} 0`, `roce_scrape_source_success{collector="switch",source="redis"} 0`,
		))
	})
}

// A switch that boots shows its NICs before its databases are there. From then
// on the host's collector has nothing to say, which is no failure.
func TestHostTurnsOutToBeASwitch(t *testing.T) {
	isSwitch := false
	o, _ := options(t,
		Enabled{Auto: true, Collector: &fake{"host", func(context.Context) (collectors.Reading, error) {
			if isSwitch {
				return collectors.Reading{}, collectors.ErrIsSwitch
			}
			return sources(good("eth0")), nil
		}}},
		Enabled{Auto: true, Collector: &fake{"switch", func(context.Context) (collectors.Reading, error) {
			if isSwitch {
				return sources(good("redis")), nil
			}
			return collectors.Reading{}, collectors.ErrNotFound
		}}},
	)
	e := start(t, o)
	families := []string{"roce_scrape_collector_success", "roce_scrape_source_success"}
	expect(t, "booting", scrape(t, e).only(families...), lines(
		`roce_scrape_collector_success{collector="host"} 1`, `roce_scrape_source_success{collector="host",source="eth0"} 1`,
	))
	isSwitch = true
	expect(t, "booted", scrape(t, e).only(families...), lines(
		`roce_scrape_collector_success{collector="switch"} 1`, `roce_scrape_source_success{collector="switch",source="redis"} 1`,
	))
}

func TestPolicyIsServedOnce(t *testing.T) {
	o, _ := options(t, Enabled{Collector: always("switch", collectors.Reading{}, nil)}, Enabled{Collector: always("host", collectors.Reading{}, nil)})
	o.ConfigFile = configFile(t, "policy: {lossless_priorities: [3], rdma_mtu: 4096, dscp: {data: [26], cnp: [48]}, congestion_control: dcqcn}")
	expect(t, "policy", scrape(t, start(t, o)).only("roce_policy"), lines(
		`roce_policy_congestion_control_info{mode="dcqcn"} 1`,
		`roce_policy_dscp{class="cnp",dscp="48"} 1`, `roce_policy_dscp{class="data",dscp="26"} 1`,
		`roce_policy_lossless_priority{priority="3"} 1`, `roce_policy_rdma_mtu_bytes 4096`,
	))
}

func TestDeadline(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"": 9 * time.Second, "1": 900 * time.Millisecond, "0.5": 450 * time.Millisecond, "60": 9 * time.Second,
		"soon": 9 * time.Second, "-1": 9 * time.Second, "0": 9 * time.Second, "NaN": 9 * time.Second, "+Inf": 9 * time.Second, "1e300": 9 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			var got time.Duration
			o, _ := options(t, Enabled{Collector: &fake{"switch", func(ctx context.Context) (collectors.Reading, error) {
				deadline, _ := ctx.Deadline()
				got = time.Until(deadline)
				return collectors.Reading{}, nil
			}}})
			scrape(t, start(t, o), "X-Prometheus-Scrape-Timeout-Seconds", header)
			if got != want {
				t.Errorf("header %q: the collector has %v, want %v", header, got, want)
			}
		})
	}
}

// A collector that returns what it has at its deadline is in time.
func TestPartialReadingAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := options(t, Enabled{Collector: &fake{"switch", func(ctx context.Context) (collectors.Reading, error) {
			<-ctx.Done()
			return sources(good("asic0"), bad("asic1", ctx.Err())), ctx.Err()
		}}})
		got := scrape(t, start(t, o), "X-Prometheus-Scrape-Timeout-Seconds", "1")
		expect(t, "success", got.only("roce_scrape_collector_"), lines(
			`roce_scrape_collector_duration_seconds{collector="switch"} 0.9`, `roce_scrape_collector_success{collector="switch"} 1`,
		))
	})
}

func TestHungCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		var hang atomic.Bool
		release := make(chan struct{})
		o, _ := options(t,
			Enabled{Collector: &fake{"switch", func(context.Context) (collectors.Reading, error) {
				calls.Add(1)
				if hang.Load() {
					<-release
				}
				return sources(good("redis")), nil
			}}},
			Enabled{Collector: always("host", collectors.Reading{}, nil)},
		)
		e := start(t, o)
		expectSuccess := func(what string, atSwitch int, within time.Duration) {
			t.Helper()
			begin := time.Now()
			got := scrape(t, e, "X-Prometheus-Scrape-Timeout-Seconds", "1")
			expect(t, what, got.only("roce_scrape_collector_success", "roce_scrape_source_success"), lines(
				`roce_scrape_collector_success{collector="host"} 1`,
				fmt.Sprintf(`roce_scrape_collector_success{collector="switch"} %d`, atSwitch),
				fmt.Sprintf(`roce_scrape_source_success{collector="switch",source="redis"} %d`, atSwitch),
			))
			if took := time.Since(begin); took > within {
				t.Errorf("%s: took %v", what, took)
			}
		}
		expectSuccess("before", 1, 0)
		hang.Store(true)
		expectSuccess("it hangs: the scrape ends before Prometheus gives up", 0, 950*time.Millisecond)
		expectSuccess("it still hangs: nobody waits", 0, 0)
		expectSuccess("it still hangs: nobody waits", 0, 0)
		if n := calls.Load(); n != 2 {
			t.Errorf("called %d times: a hung collector must not be called again", n)
		}
		hang.Store(false)
		close(release)
		synctest.Wait()
		expectSuccess("it came back", 1, 0)
	})
}

// Two scrapes at a time are no reason to think that a collector hangs.
func TestScrapesSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := options(t, Enabled{Collector: &fake{"switch", func(context.Context) (collectors.Reading, error) {
			time.Sleep(500 * time.Millisecond)
			return sources(good("redis")), nil
		}}})
		e := start(t, o)
		first := make(chan seriesSet, 1)
		go func() { first <- scrape(t, e) }()
		time.Sleep(100 * time.Millisecond)
		for _, got := range []seriesSet{scrape(t, e), <-first} {
			expect(t, "success", got.only("roce_scrape_collector_success"), `roce_scrape_collector_success{collector="switch"} 1`)
		}
	})
}

func TestMinInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		var err error
		o, _ := options(t, Enabled{Collector: &fake{"switch", func(context.Context) (collectors.Reading, error) {
			calls++
			return sources(good("redis")), err
		}}})
		o.ConfigFile = configFile(t, "scrape: {min_interval: 5s}")
		e := start(t, o)
		for _, step := range []struct {
			wait  time.Duration
			calls int
			age   string
		}{{0, 1, "0"}, {2 * time.Second, 1, "2"}, {2 * time.Second, 1, "4"}, {time.Second, 2, "0"}, {4999 * time.Millisecond, 2, "4.999"}} {
			time.Sleep(step.wait)
			got := scrape(t, e)
			expect(t, "age", got.only("roce_scrape_source_reading_age"), `roce_scrape_source_reading_age_seconds{collector="switch",source="redis"} `+step.age)
			if calls != step.calls {
				t.Errorf("called %d times, want %d", calls, step.calls)
			}
		}
		time.Sleep(time.Second)
		err = errors.New("incomplete")
		scrape(t, e)
		scrape(t, e)
		if calls != 4 {
			t.Errorf("called %d times: what is not complete must not be served again", calls)
		}
	})
}

func TestLogOnceOnChange(t *testing.T) {
	lost := errors.New("connection refused")
	var now func() (collectors.Reading, error)
	o, book := options(t, Enabled{Auto: true, Collector: &fake{"switch", func(context.Context) (collectors.Reading, error) { return now() }}})
	e := start(t, o)
	answer := func(r collectors.Reading, err error) func() (collectors.Reading, error) {
		return func() (collectors.Reading, error) { return r, err }
	}
	for _, step := range []struct {
		situation string
		now       func() (collectors.Reading, error)
		want      string
	}{
		{"not there yet", answer(collectors.Reading{}, collectors.ErrNotFound), `level=INFO msg="nothing found yet, looking at every scrape" collector=switch reason="nothing to read on this machine"`},
		{"found", answer(sources(good("asic0"), good("asic1")), nil), `level=INFO msg=found collector=switch sources="asic0 via unix /run/asic0, asic1 via unix /run/asic1"`},
		{"one fails", answer(sources(good("asic0"), bad("asic1", lost)), lost), `level=WARN msg="the source could not be read" collector=switch source=asic1 err="connection refused"`},
		{"another text", answer(sources(good("asic0"), bad("asic1", errors.New("timeout"))), lost), ""},
		{
			"both fail", answer(sources(bad("asic0", lost), bad("asic1", lost)), lost),
			lines(`level=WARN msg="the source could not be read" collector=switch source=asic0 err="connection refused"`, `level=WARN msg="the collector could read nothing" collector=switch err="connection refused"`),
		},
		{"gone", answer(collectors.Reading{}, collectors.ErrNotFound), ""},
		{
			"back", answer(sources(good("asic0"), good("asic1")), nil),
			lines(
				`level=INFO msg="the source can be read again" collector=switch source=asic0 via="unix /run/asic0"`,
				`level=INFO msg="the source can be read again" collector=switch source=asic1 via="unix /run/asic1"`,
				`level=INFO msg="the collector works again" collector=switch`,
			),
		},
		{"not everything", answer(sources(good("asic0"), good("asic1")), lost), `level=WARN msg="the collector could not read everything" collector=switch err="connection refused"`},
		{"everything", answer(sources(good("asic0"), good("asic1")), nil), `level=INFO msg="the collector works again" collector=switch`},
	} {
		now = step.now
		scrape(t, e)
		expect(t, step.situation, lines(book.take()...), step.want)
		scrape(t, e)
		expect(t, step.situation+", again", lines(book.take()...), "")
	}
	now = func() (collectors.Reading, error) { panic("index out of range") }
	scrape(t, e)
	if got := book.take(); len(got) != 1 || !strings.Contains(got[0], `err="panic: index out of range"`) || !strings.Contains(got[0], "exporter_test.go") {
		t.Errorf("a panic must be logged once, with where it was: %q", got)
	}
	scrape(t, e)
	expect(t, "panic, again", lines(book.take()...), "")
}

// A client that hangs up says nothing about the switch.
// A collector that was asked for and has no device has not found anything, and
// the page does not call that ok.
func TestHostWithoutNIC(t *testing.T) {
	now := collectors.Reading{None: "no NIC below /sys"}
	o, book := options(t, Enabled{Collector: &fake{"host", func(context.Context) (collectors.Reading, error) { return now, nil }}})
	e := start(t, o)
	scrape(t, e)
	expect(t, "log", lines(book.take()...), `level=INFO msg="nothing found yet, looking at every scrape" collector=host reason="no NIC below /sys"`)
	got := scrape(t, e)
	expect(t, "log, again", lines(book.take()...), "")
	expect(t, "success", got.only("roce_scrape_collector_success"), `roce_scrape_collector_success{collector="host"} 1`)
	page := func() string { return ask(e.Handler(), http.MethodGet, "/").Body.String() }
	if body := page(); !strings.Contains(body, "nothing to read, looking at every scrape: no NIC below /sys") || strings.Contains(body, ">ok<") {
		t.Errorf("the page:\n%s", body)
	}

	now = sources(good("mlx5_0"))
	scrape(t, e)
	expect(t, "log, once there is one", lines(book.take()...), `level=INFO msg=found collector=host sources="mlx5_0 via unix /run/mlx5_0"`)
	if body := page(); !strings.Contains(body, ">ok<") {
		t.Errorf("the page, once there is one:\n%s", body)
	}
}

func TestClientHangsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, book := options(t, Enabled{Collector: &fake{"switch", func(ctx context.Context) (collectors.Reading, error) {
			<-ctx.Done()
			return collectors.Reading{}, ctx.Err()
		}}})
		e := start(t, o)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			e.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", http.NoBody))
		}()
		synctest.Wait()
		begin := time.Now()
		cancel()
		<-ended
		if took := time.Since(begin); took > 0 {
			t.Errorf("the scrape went on for %v", took)
		}
		if got := book.take(); got != nil {
			t.Errorf("logged %q", got)
		}
	})
}
