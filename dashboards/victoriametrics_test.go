// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestVictoriaMetrics: a store with a query language of its own, which only
// resembles that of Prometheus, finds what Prometheus finds.
func TestVictoriaMetrics(t *testing.T) {
	binary, err := exec.LookPath("victoria-metrics")
	if err != nil {
		t.Skip("victoria-metrics is not installed (make test-full installs it for a while)")
	}
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	p := newPast(t, 25*time.Minute, incidents("slow-receiver@10m", "mask-lost@8m", "mtu-host@8m", "exporter-gone@12m", "ecn-counters-off@10m")...)
	v := p.copied(t, binary)
	choices := map[string]map[string]string{
		"roce-switch": {"node": "leaf1"}, "roce-port": {"node": "leaf1", "port": "Ethernet4"}, "roce-nic": {"node": "gpu02"},
	}
	asked, found := 0, 0
	for _, r := range readAll(t) {
		if r.UID == "roce-review" {
			continue // Reads weeks.
		}
		values, step := p.choices(t, r, choices[r.UID])
		compare := func(where, expr string, instant bool) {
			t.Helper()
			expr = interpolate(expr, values)
			want, err := p.once(t, expr, instant, step)
			if err != nil {
				t.Fatal(err)
			}
			got, err := v.once(t, expr, instant, step)
			if err != nil {
				t.Errorf("%s: %s: %v", r.UID, where, err)
				return
			}
			asked++
			found += min(1, len(want))
			if diff := cmp.Diff(comparable(expr, want), comparable(expr, got), cmpopts.EquateApprox(1e-3, 0)); diff != "" {
				t.Errorf("%s: %s: Prometheus (-) and VictoriaMetrics (+): %s: %s", r.UID, where, expr, diff)
			}
		}
		for _, panel := range r.Panels {
			for _, target := range panel.Targets {
				compare(panel.Title+" "+target.RefID, target.Expr, target.Instant)
			}
		}
		for _, a := range r.Annotations.List {
			compare("mark "+a.Name, a.Expr, false)
		}
	}
	if found < asked/2 {
		t.Errorf("only %d of %d queries find anything", found, asked)
	}
}

var (
	chooses = regexp.MustCompile(`(top|bottom)k`)
	grows   = regexp.MustCompile(`(rate|increase|deriv)\(`)
)

// comparable is what must be the same of an answer: the series, and the last
// value of each. Among equals each store chooses others: then how many there
// are. Growth differs a little, as only Prometheus extrapolates; and what is
// not a number is nothing to VictoriaMetrics.
func comparable(expr string, answer []result) map[string]float64 {
	if chooses.MatchString(expr) {
		return map[string]float64{"series": float64(len(answer))}
	}
	all := map[string]float64{}
	for _, series := range answer {
		delete(series.Metric, "__name__")
		maps.DeleteFunc(series.Metric, func(_, value string) bool { return value == "" })
		last := series.Value
		if len(series.Values) > 0 {
			last = series.Values[len(series.Values)-1]
		}
		value, err := strconv.ParseFloat(fmt.Sprint(last[1]), 64)
		switch {
		case err != nil || math.IsNaN(value):
			continue
		case grows.MatchString(expr):
			value = 0
		}
		all[labelText(series.Metric)] = value
	}
	return all
}

// copied starts VictoriaMetrics with the same samples.
func (p *past) copied(t *testing.T, binary string) *past {
	t.Helper()
	dump, err := exec.CommandContext(t.Context(), "promtool", "tsdb", "dump", p.dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, binary, "-storageDataPath="+filepath.Join(t.TempDir(), "data"), "-httpListenAddr="+address,
		"-retentionPeriod=100y", "-search.latencyOffset=0s", "-search.disableCache", "-search.maxStalenessInterval="+p.lookback.String(), "-loggerLevel=ERROR")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	v := &past{url: "http://" + address, from: p.from, to: p.to}
	v.await(t, "/health")
	// {__name__="up", job="x"} 1 1769860800000 is up{job="x"} 1 1769860800000.
	named := regexp.MustCompile(`(?m)^\{__name__="([^"]+)"(, )?`).ReplaceAllString(string(dump), "$1{")
	answer, err := http.Post(v.url+"/api/v1/import/prometheus", "text/plain", strings.NewReader(named))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		t.Fatal(answer.Status)
	}
	_, err = get(t, v.url+"/internal/force_flush")
	if err != nil {
		t.Fatal(err)
	}
	return v
}
