// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	pictures = flag.String("pictures", "", "directory for the pictures of the preview")
	keep     = flag.String("keep", "", "keep the data of the past in this directory")
	all      = flag.Bool("all", false, "look at the dashboards in every situation")
)

// A situation is a past that the dashboards are looked at in.
type situation struct {
	name    string
	lasting time.Duration
	args    []string
	boards  map[string]map[string]string // What is looked at, and the choices made.
	review  bool                         // Only what the rules of the review record.
	all     bool                         // Only with -all.
}

func incidents(all ...string) []string {
	var args []string
	for _, i := range all {
		args = append(args, "--incident", i)
	}
	return args
}

// Every dashboard is seen quiet and under incidents that concern it.
var situations = []situation{
	{"quiet", 25 * time.Minute, nil, map[string]map[string]string{
		"roce-fabric": nil, "roce-switch": {"node": "leaf1"}, "roce-port": {"node": "leaf1", "port": "Ethernet4"},
		"roce-nic": {"node": "gpu02"}, "roce-compliance": nil, "roce-exporter": nil,
	}, false, false},
	{"slow-receiver", 30 * time.Minute, incidents("slow-receiver@10m"), map[string]map[string]string{
		"roce-fabric": nil, "roce-switch": {"node": "leaf1"}, "roce-port": {"node": "leaf1", "port": "Ethernet4"}, "roce-nic": {"node": "gpu02"},
	}, false, false},
	{"deadlock", 25 * time.Minute, incidents("deadlock@10m"), map[string]map[string]string{
		"roce-fabric": nil, "roce-switch": {"node": "spine1"}, "roce-port": {"node": "leaf1", "port": "Ethernet32"},
	}, false, false},
	{"loss", 30 * time.Minute, incidents("nic-storm@10m", "lossless-drops@10m", "crc-errors@10m", "nic-drops@10m"), map[string]map[string]string{
		"roce-fabric": nil, "roce-switch": {"node": "leaf1"}, "roce-port": {"node": "leaf1", "port": "Ethernet24"}, "roce-nic": {"node": "gpu03"},
	}, false, false},
	{"settings", 30 * time.Minute, incidents("mask-lost@8m", "mtu-host@8m", "half-speed@10m", "trust-pcp@10m", "firmware-skew@10m", "cnp-firmware@10m", "ecn-too-late@12m"), map[string]map[string]string{
		"roce-compliance": nil, "roce-nic": {"node": "gpu08"}, "roce-fabric": nil,
	}, false, false},
	{"frames", 25 * time.Minute, incidents("slow-receiver-unmeasured@8m", "nic-drops@8m", "global-pause@8m"), map[string]map[string]string{
		"roce-fabric": nil, "roce-nic": {"node": "gpu07"}, "roce-port": {"node": "gpu06", "port": "ens2f0"},
	}, false, false},
	{"links", 25 * time.Minute, incidents("pcie-downgraded@8m", "link-flaps@8m", "crc-errors@8m", "neighbor-missing@8m", "fdb-empty@8m"), map[string]map[string]string{
		"roce-compliance": nil, "roce-nic": {"node": "gpu04"}, "roce-port": {"node": "leaf1", "port": "Ethernet16"}, "roce-switch": {"node": "leaf1"},
	}, false, true},
	{"policy", 25 * time.Minute, incidents("mask-missing@8m", "mtu-switch@8m", "dscp-mismatch@8m", "watchdog-off@8m", "gid-missing@8m", "device-renamed@8m"), map[string]map[string]string{
		"roce-compliance": nil, "roce-switch": {"node": "leaf1"}, "roce-fabric": nil,
	}, false, true},
	{"silence", 25 * time.Minute, incidents("exporter-gone@10m", "ecn-counters-off@10m"), map[string]map[string]string{
		"roce-exporter": nil, "roce-fabric": nil, "roce-port": {"node": "leaf3", "port": "Ethernet12"}, "roce-nic": {"node": "gpu12"},
	}, false, false},
	{"frozen", 25 * time.Minute, incidents("orchagent-dead@10m", "slow-receiver@8m"), map[string]map[string]string{
		"roce-exporter": nil, "roce-fabric": nil, "roce-switch": {"node": "leaf2"}, "roce-port": {"node": "leaf2", "port": "Ethernet4"},
	}, false, false},
	{"clock", 25 * time.Minute, incidents("clock-skew@8m", "control-plane-down@10m"), map[string]map[string]string{
		"roce-exporter": nil, "roce-switch": {"node": "leaf1"},
	}, false, true},
	{"quiet-quarter", 30 * 24 * time.Hour, nil, map[string]map[string]string{"roce-review": {"node": "leaf1"}}, true, true},
	{"creeping-quarter", 40 * 24 * time.Hour, incidents("pause-creep@24h", "cnp-firmware@600h"), map[string]map[string]string{"roce-review": {"node": "leaf1"}}, true, false},
	{"marking-quarter", 30 * 24 * time.Hour, incidents("ecn-too-early@400h"), map[string]map[string]string{"roce-review": {"node": "leaf1"}}, true, true},
	{"pausing-quarter", 30 * 24 * time.Hour, incidents("pause-elevated@300h", "exporter-gone@500h"), map[string]map[string]string{"roce-review": {"node": "gpu04"}}, true, true},
}

// TestQueries asks all that the dashboards ask a real Prometheus that is full of
// the demo's past. What is read in large type, and which queries find nothing,
// stands in testdata: read the diff.
func TestQueries(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	boards := map[string]read{}
	for _, r := range readAll(t) {
		boards[r.UID] = r
	}
	drawn := map[string]bool{}
	for _, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			if s.all && !*all {
				t.Skip("only with -all")
			}
			p := s.past(t)
			nothing := map[string]bool{} // "uid title" of panels without data.
			var found []string
			for _, uid := range slices.Sorted(maps.Keys(s.boards)) {
				for _, line := range p.look(t, boards[uid], s.boards[uid]) {
					found = append(found, uid+": "+line)
					if panel, all := strings.CutSuffix(line, ": all"); all {
						nothing[uid+" "+panel] = true
					}
				}
			}
			golden(t, s.name, strings.Join(found, "\n")+"\n")
			p.preview(t, s, boards, nothing, drawn)
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: other answers than before (-update, and see why): %s", name, diff)
	}
}

func (s situation) past(t *testing.T) *past {
	t.Helper()
	if s.review {
		return newReviewPast(t, s.lasting, s.args...)
	}
	return newPast(t, s.lasting, s.args...)
}

// look asks for everything on a dashboard. It returns what is read in large type,
// and what finds nothing: a panel and its queries, or all of them.
func (p *past) look(t *testing.T, r read, chosen map[string]string) []string {
	t.Helper()
	values, step := p.choices(t, r, chosen)
	limit := 1000 * p.trivial(t, step)
	var found []string
	for _, panel := range r.Panels {
		var empty []string
		series := 0
		for _, target := range panel.Targets {
			query := interpolate(target.Expr, values)
			began := time.Now()
			got, err := p.once(t, query, target.Instant, step)
			if err != nil {
				t.Errorf("%s: %s %s: %v", r.UID, panel.Title, target.RefID, err)
				continue
			}
			if took := time.Since(began); took > limit {
				began = time.Now()
				if _, err := p.once(t, query, target.Instant, step); err == nil && time.Since(began) > limit {
					t.Errorf("%s: %s %s takes %v, a trivial query %v", r.UID, panel.Title, target.RefID, time.Since(began), limit/1000)
				}
			}
			for _, label := range panel.linksLack(got) {
				if saysNothing.MatchString(target.LegendFormat) {
					continue
				}
				t.Errorf("%s: %s %s has no %s, which a link needs", r.UID, panel.Title, target.RefID, label)
			}
			for _, label := range panel.lacks(got) {
				t.Errorf("%s: %s %s has %s, which is no column", r.UID, panel.Title, target.RefID, label)
			}
			if panel.Type == "stat" {
				found = append(found, target.says(panel.Title, got)...)
			}
			if len(got) == 0 {
				empty = append(empty, target.RefID)
			}
			series += len(got)
		}
		if limit := map[string]int{"table": 500}[panel.Type]; series > max(20, limit) {
			t.Errorf("%s: %s has %d series", r.UID, panel.Title, series)
		}
		switch {
		case len(panel.Targets) == 0 || len(empty) == 0:
		case len(empty) == len(panel.Targets):
			found = append(found, panel.Title+": all")
		default:
			found = append(found, panel.Title+": "+strings.Join(empty, " "))
		}
	}
	for _, a := range r.Annotations.List {
		if _, err := p.once(t, interpolate(a.Expr, values), false, step); err != nil {
			t.Errorf("%s: mark %s: %v", r.UID, a.Name, err)
		}
	}
	return found
}

// says is what is read in large type.
func (target readTarget) says(panel string, got []result) []string {
	// Among equals Prometheus chooses now these, now others.
	most := math.MaxInt
	if m := regexp.MustCompile(`^topk\((\d+)`).FindStringSubmatch(target.Expr); m != nil {
		most, _ = strconv.Atoi(m[1])
	}
	var lines []string
	for _, series := range got {
		name := regexp.MustCompile(`{{(\w+)}}`).ReplaceAllStringFunc(target.LegendFormat, func(label string) string {
			return series.Metric[strings.Trim(label, "{}")]
		})
		if len(got) >= most {
			name = "one of the worst"
		}
		value, err := strconv.ParseFloat(fmt.Sprint(series.Value[1]), 64)
		if err != nil {
			name = err.Error()
		}
		if math.Abs(value) < 5e-5 { // The noise of means.
			value = 0
		}
		number := strconv.FormatFloat(value, 'g', 3, 64)
		if value > 1e12 {
			number = time.UnixMilli(int64(value)).UTC().Format("Mon 15:04")
		}
		lines = append(lines, fmt.Sprintf("%s says %q, %s", panel, strings.TrimSpace(name), number))
	}
	slices.Sort(lines)
	return lines
}

// choices are the values of all variables, where a user chose some, and the
// step that Grafana would take.
func (p *past) choices(t *testing.T, r read, chosen map[string]string) (map[string]string, time.Duration) {
	t.Helper()
	values := map[string]string{
		"datasource": "x", "fabric": ".*", "tier": ".*", "node": ".*", "port": ".*", "priority": ".*",
		"__interval": "30s", "__rate_interval": "2m", "__range": strconv.Itoa(int(p.to.Sub(p.from).Seconds())) + "s",
	}
	maps.Copy(values, chosen)
	step := 30 * time.Second
	if r.UID == "roce-review" {
		step = 6 * time.Hour
	}
	for _, v := range r.Templating.List {
		if v.Hide == 0 || v.Type != "query" {
			continue
		}
		query := interpolate(fmt.Sprint(v.Query), values)
		if m := queryResult.FindStringSubmatch(query); m != nil {
			values[v.Name] = p.queryResult(t, m[1], v.Regex)
			continue
		}
		m := labelValues.FindStringSubmatch(query)
		all, err := p.labelValues(t, m[1], m[2])
		if err != nil {
			t.Fatalf("%s: %s: %v", r.UID, v.Name, err)
		}
		values[v.Name] = strings.Join(all, "|")
	}
	return values, step
}

// saysNothing are series that stand for nothing or for many: no link helps.
var saysNothing = regexp.MustCompile(`^(nobody|nothing|unknown|not clear|several in a circle|.*{{more}} more|hosts: .*)$`)

// linksLack are labels that a link from a series takes and the series has not.
func (p readPanel) linksLack(got []result) []string {
	var lacking []string
	for i, l := range p.FieldConfig.Defaults.Links {
		if i > 0 {
			break // Others are for another role, or need less.
		}
		for _, m := range regexp.MustCompile(`__field\.labels\.(\w+)`).FindAllStringSubmatch(l.URL, -1) {
			for _, series := range got {
				if series.Metric[m[1]] == "" {
					lacking = append(lacking, m[1])
				}
			}
		}
	}
	slices.Sort(lacking)
	return slices.Compact(lacking)
}

// lacks are the labels of an answer that the columns of a table do not expect:
// Grafana would show them all the same, under their own names.
func (p readPanel) lacks(got []result) []string {
	var labels []string
	for _, transformation := range p.Transformations {
		known, organizes := transformation.Options["indexByName"].(map[string]any)
		if !organizes {
			continue
		}
		for _, series := range got {
			for label := range series.Metric {
				if _, found := known[label]; !found {
					labels = append(labels, label)
				}
			}
		}
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}

func (p *past) once(t *testing.T, query string, instant bool, step time.Duration) ([]result, error) {
	t.Helper()
	if instant {
		return p.at(t.Context(), query, p.to)
	}
	return p.over(t.Context(), query, p.from, p.to, step)
}

// trivial is how long Prometheus takes for nothing.
func (p *past) trivial(t *testing.T, step time.Duration) time.Duration {
	t.Helper()
	best := time.Hour
	for range 10 {
		began := time.Now()
		if _, err := p.over(t.Context(), "vector(1)", p.from, p.to, step); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(began))
	}
	return best
}

func (p *past) labelValues(t *testing.T, match, label string) ([]string, error) {
	t.Helper()
	request := p.url + "/api/v1/label/" + label + "/values?" + url.Values{"match[]": {match}, "start": {seconds(p.from)}, "end": {seconds(p.to)}}.Encode()
	body, err := get(t, request)
	if err != nil {
		return nil, err
	}
	var answer struct{ Data []string }
	return answer.Data, json.Unmarshal(body, &answer)
}

// queryResult is what Grafana takes of an answer by a regular expression.
func (p *past) queryResult(t *testing.T, query, regex string) string {
	t.Helper()
	found, err := p.at(t.Context(), query, p.to)
	if err != nil {
		t.Fatal(err)
	}
	for _, series := range found {
		if m := regexp.MustCompile(strings.Trim(regex, "/")).FindStringSubmatch(labelText(series.Metric)); m != nil {
			return m[1]
		}
	}
	return ""
}

var variable = regexp.MustCompile(`\$(\w+)|\$\{(\w+)\}`)

// interpolate does what Grafana does with variables in a query.
func interpolate(text string, values map[string]string) string {
	return variable.ReplaceAllStringFunc(text, func(v string) string {
		if value, found := values[strings.Trim(v, "${}")]; found {
			return value
		}
		return v
	})
}

// preview draws the dashboards and fails on what the drawing complains about.
// The preview is no part of the repository: ROCE_SHARED names the folder that
// has it. Each is drawn once, with something to see, in dark and in light; with
// -pictures all are, in every situation.
func (p *past) preview(t *testing.T, s situation, boards map[string]read, nothing, done map[string]bool) {
	t.Helper()
	shared := os.Getenv("ROCE_SHARED")
	if shared == "" {
		return
	}
	script := filepath.Join(shared, "tools", "preview", "preview.sh")
	if _, err := os.Stat(script); err != nil {
		t.Logf("not drawn: %v", err)
		return
	}
	dir := *pictures
	if dir == "" {
		dir = t.TempDir()
	}
	draw := func(uid, theme string) {
		name := filepath.Join(t.TempDir(), uid+".json")
		values, _ := p.choices(t, boards[uid], s.boards[uid])
		if err := os.WriteFile(name, chosen(t, boards[uid].text, s.boards[uid], values), 0o644); err != nil {
			t.Fatal(err)
		}
		picture := filepath.Join(dir, uid+"-"+s.name+"-"+theme+".png")
		milliseconds := func(at time.Time) string { return strconv.FormatInt(at.UnixMilli(), 10) }
		from := p.from
		if !s.review {
			from = from.Add(warm)
		}
		out, err := exec.CommandContext(t.Context(), script, name, p.url, milliseconds(from), milliseconds(p.to), picture, theme).CombinedOutput()
		drawn := false
		for scanner := bufio.NewScanner(strings.NewReader(string(out))); scanner.Scan(); {
			line := scanner.Text()
			drawn = drawn || strings.Contains(line, "shot "+picture)
			problem, is := strings.CutPrefix(line, "problem ")
			if !is {
				continue
			}
			if m := regexp.MustCompile(`^panel \d+ "(.*)": no data$`).FindStringSubmatch(problem); m != nil && nothing[uid+" "+m[1]] {
				continue
			}
			t.Errorf("%s, %s: %s", uid, theme, problem)
		}
		if !drawn {
			t.Errorf("%s, %s: not drawn: %v: %s", uid, theme, err, out)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(s.boards)) {
		first := !done[uid] && !strings.HasPrefix(s.name, "quiet")
		if first || *pictures != "" {
			draw(uid, "dark")
		}
		if first {
			draw(uid, "light")
			done[uid] = true
		}
	}
}

// warm is how long rates need until they are of a full window.
const warm = 5 * time.Minute

// chosen sets the current values of variables, as a link would, and those that
// the preview cannot find by itself.
func chosen(t *testing.T, text string, values, all map[string]string) []byte {
	t.Helper()
	var d map[string]any
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	for _, v := range d["templating"].(map[string]any)["list"].([]any) {
		v := v.(map[string]any)
		value, found := values[v["name"].(string)]
		if query, is := v["query"].(string); is && queryResult.MatchString(query) {
			value, found = all[v["name"].(string)], true
			v["type"] = "constant"
		}
		if found {
			v["current"] = map[string]any{"selected": true, "text": value, "value": value}
		}
	}
	out, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
