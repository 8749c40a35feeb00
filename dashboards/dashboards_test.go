// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"gopkg.in/yaml.v3"

	"roce_exporter/collectors"
)

// A read is what the tests want to know of a dashboard's file.
type read struct {
	ID            *int
	UID           string
	Title         string
	Tags          []string
	Editable      bool
	SchemaVersion int
	Panels        []readPanel
	Links         []map[string]any
	Templating    struct {
		List []struct {
			Name, Type string
			Query      any
			Hide       int
			Multi      bool
			Regex      string
			Datasource *struct{ UID string }
		}
	}
	Annotations struct {
		List []struct {
			Name, Expr, TitleFormat string
			Datasource              struct{ UID string }
		}
	}
	text string
}

type readPanel struct {
	ID                       int
	Type, Title, Description string
	Interval                 string
	Datasource               *struct{ Type, UID string }
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []readTarget
	Options                  map[string]any
	Transformations          []struct {
		ID      string
		Options map[string]any
	}
	FieldConfig struct {
		Defaults struct {
			Unit, NoValue string
			Links         []struct{ URL string }
			Color         map[string]any
			Thresholds    map[string]any
			Custom        map[string]any
		}
		Overrides []struct {
			Matcher    struct{ ID, Options any }
			Properties []struct {
				ID    string
				Value any
			}
		}
	}
}

type readTarget struct {
	RefID, Expr, LegendFormat, Format string
	Instant, Range                    bool
	Datasource                        struct{ UID string }
}

func readAll(t *testing.T) []read {
	t.Helper()
	names, err := filepath.Glob("*.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []read
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		r := read{text: string(text)}
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if name != r.UID+".json" {
			t.Errorf("%s has the uid %s", name, r.UID)
		}
		all = append(all, r)
	}
	return all
}

// TestReadBack: Grafana's own schema knows every field.
func TestReadBack(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	for _, r := range readAll(t) {
		var d Classic
		// Without faults it returns a list of none, which is not nil.
		var faults cog.BuildErrors
		if err := d.UnmarshalJSONStrict([]byte(r.text)); err != nil && (!errors.As(err, &faults) || len(faults) > 0) {
			t.Errorf("%s: %v", r.UID, err)
			continue
		}
		// The strict reader checks panels and forgets them; the other keeps them.
		d = Classic{}
		if err := json.Unmarshal([]byte(r.text), &d); err != nil {
			t.Fatalf("%s: %v", r.UID, err)
		}
		again, err := marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(anything(t, r.text), anything(t, string(again))); diff != "" {
			t.Errorf("%s is not the same after reading and writing: %s", r.UID, diff)
		}
	}
}

func anything(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// builtIn are the panels that Grafana 11 to 13 have of themselves and that
// these dashboards use.
var builtIn = []string{"timeseries", "stat", "bargauge", "table", "state-timeline", "heatmap", "text", "row"}

// TestConsistent: what refers to something finds it.
func TestConsistent(t *testing.T) {
	all := readAll(t)
	uids := map[string]read{}
	for _, r := range all {
		uids[r.UID] = r
	}
	want := []string{"roce-compliance", "roce-exporter", "roce-fabric", "roce-nic", "roce-port", "roce-review", "roce-switch"}
	if got := slices.Sorted(maps.Keys(uids)); !slices.Equal(got, want) {
		t.Errorf("dashboards %v, want %v: alerts lead to them", got, want)
	}
	offered := []string{"datasource", "fabric", "tier", "node", "port", "priority"}
	seen := map[string]string{} // What a panel asks: where it is.
	for _, r := range all {
		fault := func(format string, args ...any) {
			t.Helper()
			t.Errorf(r.UID+": "+format, args...)
		}
		if r.ID != nil || r.Editable || !slices.Contains(r.Tags, "roce") || r.SchemaVersion < 39 {
			fault("id %v, editable %v, tags %v, schema %d", r.ID, r.Editable, r.Tags, r.SchemaVersion)
		}
		for _, never := range []string{"__inputs", "${DS_", "__requires"} {
			if strings.Contains(r.text, never) {
				fault("%s: does not load by provisioning", never)
			}
		}
		if strings.Contains(r.text, `inControlsMenu`) {
			fault("something is in a menu that Grafana does not show")
		}
		variables := []string{}
		for _, v := range r.Templating.List {
			variables = append(variables, v.Name)
			if v.Hide == 0 && !slices.Contains(offered, v.Name) {
				fault("offers %s, which the others do not know", v.Name)
			}
			for _, name := range usedVariables(fmt.Sprint(v.Query)) {
				if !slices.Contains(variables, name) {
					fault("variable %s is asked with %s, which comes later or never", v.Name, name)
				}
			}
		}
		if len(variables) == 0 || variables[0] != "datasource" {
			fault("variables %v", variables)
		}
		for _, name := range usedVariables(r.text) {
			if !slices.Contains(variables, name) {
				fault("uses $%s", name)
			}
		}
		for _, name := range variables {
			if !slices.Contains(usedVariables(r.text), name) {
				fault("nobody uses $%s", name)
			}
		}
		for _, url := range regexp.MustCompile(`"/d/[^"]*"`).FindAllString(r.text, -1) {
			uid, query, _ := strings.Cut(strings.TrimPrefix(strings.Trim(url, `"`), "/d/"), "?")
			to, found := uids[uid]
			if !found || !strings.Contains(query, "${__url_time_range}") || !strings.Contains(query, "${datasource:queryparam}") {
				fault("link %s", url)
			}
			const priority = "${priority:queryparam}"
			if both := strings.Contains(r.text, `"name": "priority"`) && strings.Contains(to.text, `"name": "priority"`); both != strings.Contains(query, priority) {
				fault("link %s: carries the priority: %v, want %v", url, !both, both)
			}
			for _, m := range regexp.MustCompile(`var-(\w+)=`).FindAllStringSubmatch(query, -1) {
				if !strings.Contains(to.text, `"name": "`+m[1]+`"`) {
					fault("link %s: %s has no %s", url, uid, m[1])
				}
			}
		}
		ids, at := map[int]bool{}, map[[2]int]string{}
		for _, p := range r.Panels {
			fault := func(format string, args ...any) {
				t.Helper()
				fault("%q: "+format, append([]any{p.Title}, args...)...)
			}
			if ids[p.ID] || p.ID == 0 {
				fault("id %d", p.ID)
			}
			ids[p.ID] = true
			if !slices.Contains(builtIn, p.Type) {
				fault("type %s", p.Type)
			}
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := at[[2]int{x, y}]; other != "" {
						fault("lies on %q", other)
					}
					at[[2]int{x, y}] = p.Title
				}
			}
			if p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W == 0 || p.GridPos.H == 0 {
				fault("place %+v", p.GridPos)
			}
			if p.Type == "row" {
				continue
			}
			if p.Title == "" || p.Type != "text" && (len(p.Description) < 40 || !strings.Contains(p.Description, "ormal")) {
				fault("description %q does not say what is normal", p.Description)
			}
			if p.Type == "text" {
				continue
			}
			d := p.FieldConfig.Defaults
			if p.Type == "table" {
				if d.Unit != "" {
					fault("takes a firmware 4.40 for a number")
				}
			} else if d.Unit == "" {
				fault("has no unit")
			}
			if p.Datasource == nil || p.Datasource.UID != "${datasource}" || p.Interval == "" || d.Color == nil || d.Thresholds == nil {
				fault("data source, interval, color and thresholds must be there: Grafana's defaults change")
			}
			switch p.Type {
			case "timeseries":
				for _, name := range []string{"drawStyle", "lineWidth", "fillOpacity", "spanNulls", "showPoints", "stacking"} {
					if _, found := d.Custom[name]; !found {
						fault("does not say %s", name)
					}
				}
				if d.Custom["spanNulls"] != false {
					fault("draws a line over a hole")
				}
			case "stat", "bargauge":
				if o, _ := p.Options["orientation"].(string); o == "" {
					fault("has no orientation")
				}
			}
			if d.NoValue == "" && p.Type != "timeseries" && p.Type != "heatmap" {
				fault("does not say what it means to have no value")
			}
			asked := p.Type
			for i, target := range p.Targets {
				if want := string(rune('A' + i)); target.RefID != want {
					fault("refId %s, want %s", target.RefID, want)
				}
				if target.Datasource.UID != "${datasource}" {
					fault("%s has another data source", target.RefID)
				}
				if target.Instant == target.Range {
					fault("%s: instant %v, range %v", target.RefID, target.Instant, target.Range)
				}
				if target.LegendFormat == "" && slices.Contains([]string{"timeseries", "state-timeline"}, p.Type) {
					fault("%s has no legend", target.RefID)
				}
				asked += "\n" + target.Expr
			}
			if len(p.Targets) == 0 {
				fault("asks nothing")
			}
			if other := seen[asked]; other != "" {
				fault("is the same as %s", other)
			}
			seen[asked] = r.UID + " " + p.Title
		}
	}
}

// usedVariables finds $name and ${name} in a text, but those of Grafana.
func usedVariables(text string) []string {
	var names []string
	for _, m := range regexp.MustCompile(`\$\{?([a-z]\w*)`).FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// What Prometheus, and not the exporter or a rule, gives.
var ofPrometheus = []string{"up", "scrape_duration_seconds", "scrape_samples_scraped", "ALERTS", "ALERTS_FOR_STATE", "prometheus_rule_evaluation_failures_total"}

var (
	metricName = regexp.MustCompile(`[a-zA-Z_][a-zA-Z0-9_:]*`)
	selector   = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_:]*)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"`)
	grouping   = regexp.MustCompile(`\b(?:by|on|ignoring|group_left|group_right|without)\s*\(([^)]*)\)`)
	renamed    = regexp.MustCompile(`label_(?:replace|join)`)
	rateWindow = regexp.MustCompile(`\b(rate|increase|changes|deriv)\(`)
	quoted     = regexp.MustCompile(`"[^"]*"`)
)

// TestNames: every series and label is in the table of the exporter or comes
// from a rule, and windows are wide enough. Whether the queries can be parsed
// is for Prometheus to say: TestQueries.
func TestNames(t *testing.T) {
	families := map[string][]string{}
	labels := map[string]bool{}
	for _, l := range []string{
		"instance", "job", "asic", "fabric", "tier", "role", "node", "peer", "peer_port", "peer_role", "peer_tier",
		"alertname", "alertstate", "severity", "layer", "rule_group", "basis", "le", "version",
	} {
		labels[l] = true
	}
	for _, f := range collectors.AllFamilies() {
		families[f.Name] = f.Labels
		for _, l := range f.Labels {
			labels[l] = true
		}
	}
	families["roce_exporter_build_info"] = []string{"version", "revision", "branch", "goversion"}
	recorded := map[string]bool{}
	for _, r := range readRules(t) {
		recorded[r.Record] = true
	}
	check := func(where, expr string) {
		bare := quoted.ReplaceAllString(expr, `""`)
		own := maps.Clone(labels)
		if renamed.MatchString(expr) || strings.Contains(expr, "count_values") { // Their new labels are in quotes.
			for _, q := range quoted.FindAllString(expr, -1) {
				own[strings.Trim(q, `"`)] = true
			}
		}
		for _, m := range selector.FindAllStringSubmatch(quoted.ReplaceAllString(expr, `"x"`), -1) {
			for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
				family, raw := families[m[1]]
				if raw && l[1] != "instance" && l[1] != "job" && !slices.Contains(family, l[1]) || !labels[l[1]] {
					t.Errorf("%s: %s has no label %s", where, m[1], l[1])
				}
			}
		}
		for _, m := range grouping.FindAllStringSubmatch(bare, -1) {
			for _, l := range metricName.FindAllString(m[1], -1) {
				if !own[l] {
					t.Errorf("%s: there is no label %s", where, l)
				}
			}
		}
		// What is left after functions, labels and words of the language.
		names := grouping.ReplaceAllString(bare, "")
		names = regexp.MustCompile(`\{[^}]*\}|\[[^]]*\]`).ReplaceAllString(names, " ")
		for _, at := range metricName.FindAllStringIndex(names, -1) {
			name := names[at[0]:at[1]]
			rest := strings.TrimLeft(names[at[1]:], " ")
			if strings.HasPrefix(rest, "(") || slices.Contains([]string{"and", "or", "unless", "bool", "by", "on", "e", "without", "offset", "NaN"}, name) {
				continue
			}
			if before := names[:at[0]]; strings.HasSuffix(before, "$") || len(before) > 0 && before[len(before)-1] >= '0' && before[len(before)-1] <= '9' {
				continue
			}
			if _, raw := families[name]; !raw && !recorded[name] && !slices.Contains(ofPrometheus, name) {
				t.Errorf("%s: nobody makes %s", where, name)
			}
		}
		for _, at := range rateWindow.FindAllStringIndex(expr, -1) {
			open := strings.Index(expr[at[1]:], "[")
			window := expr[at[1]+open+1:]
			window = window[:strings.IndexAny(window, "]:")]
			if strings.HasPrefix(window, "$__") {
				continue
			}
			if wide, err := time.ParseDuration(strings.NewReplacer("1d", "24h", "7d", "168h", "28d", "672h").Replace(window)); err != nil || wide < 2*time.Minute {
				t.Errorf("%s: a window of %s is shorter than 4 of the slowest scrapes", where, window)
			}
		}
	}
	for _, r := range readAll(t) {
		for _, p := range r.Panels {
			for _, target := range p.Targets {
				check(r.UID+" "+p.Title+" "+target.RefID, target.Expr)
			}
		}
		for _, a := range r.Annotations.List {
			check(r.UID+" mark "+a.Name, a.Expr)
		}
		for _, v := range r.Templating.List {
			if query, ok := v.Query.(string); ok && v.Type == "query" {
				m := labelValues.FindStringSubmatch(query)
				if m == nil {
					m = queryResult.FindStringSubmatch(query)
				}
				if m == nil {
					t.Errorf("%s: variable %s: %s", r.UID, v.Name, query)
					continue
				}
				check(r.UID+" variable "+v.Name, m[1])
			}
		}
	}
}

var (
	labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	queryResult = regexp.MustCompile(`^query_result\((.*)\)$`)
)

// TestAlertLinks: what an alert leads to exists and takes what it is given.
func TestAlertLinks(t *testing.T) {
	all := map[string]read{}
	for _, r := range readAll(t) {
		all[r.UID] = r
	}
	found := 0
	var alerts []rule
	const either = `{{ if eq $labels.role "host" }}nic{{ else }}switch{{ end }}`
	for _, r := range readRules(t) {
		if url := r.Annotations["dashboard_url"]; strings.Contains(url, either) {
			for _, one := range []string{"nic", "switch"} {
				r.Annotations = map[string]string{"dashboard_url": strings.ReplaceAll(url, either, one)}
				alerts = append(alerts, r)
			}
			continue
		}
		alerts = append(alerts, r)
	}
	for _, r := range alerts {
		url := r.Annotations["dashboard_url"]
		if r.Alert == "" || url == "" {
			continue
		}
		found++
		uid, query, _ := strings.Cut(strings.TrimPrefix(url, "/d/"), "?")
		to, exists := all[uid]
		if !exists {
			t.Errorf("%s: %s", r.Alert, url)
		}
		for _, m := range regexp.MustCompile(`var-(\w+)=`).FindAllStringSubmatch(query, -1) {
			if !slices.ContainsFunc(to.Templating.List, func(v struct {
				Name, Type string
				Query      any
				Hide       int
				Multi      bool
				Regex      string
				Datasource *struct{ UID string }
			},
			) bool {
				return v.Name == m[1]
			}) {
				t.Errorf("%s: %s has no variable %s", r.Alert, uid, m[1])
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d alerts lead to a dashboard", found)
	}
}

// TestFindings: each alert about settings is counted in one tile, and in no other.
func TestFindings(t *testing.T) {
	var tiles []*regexp.Regexp
	for _, p := range complianceBoard().rows[0].panels {
		if m := regexp.MustCompile(`alertname=~"([^"]+)"`).FindStringSubmatch(p.asks[0].expr); m != nil {
			tiles = append(tiles, regexp.MustCompile(`^(?:`+m[1]+`)$`))
		}
	}
	of := regexp.MustCompile(`layer=~"([^"]+)"`).FindStringSubmatch(setWrong)[1]
	alerts := 0
	for _, r := range readRules(t) {
		if r.Alert == "" || r.Labels["severity"] == "info" {
			continue
		}
		in := 0
		for _, tile := range tiles {
			if tile.MatchString(r.Alert) {
				in++
			}
		}
		want := 0
		if slices.Contains(strings.Split(of, "|"), r.Labels["layer"]) {
			want = 1
			alerts++
		}
		if in != want {
			t.Errorf("%s is in %d tiles, want %d", r.Alert, in, want)
		}
	}
	if alerts < 20 {
		t.Errorf("only %d alerts", alerts)
	}
}

// TestKubernetes: each dashboard is a ConfigMap that Grafana's sidecar finds.
func TestKubernetes(t *testing.T) {
	text, err := os.ReadFile("kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var k struct {
		ConfigMapGenerator []struct {
			Name  string
			Files []string
		} `yaml:"configMapGenerator"`
		GeneratorOptions struct {
			DisableNameSuffixHash bool              `yaml:"disableNameSuffixHash"`
			Labels                map[string]string `yaml:"labels"`
		} `yaml:"generatorOptions"`
	}
	if err := yaml.Unmarshal(text, &k); err != nil {
		t.Fatal(err)
	}
	if k.GeneratorOptions.Labels["grafana_dashboard"] != "1" || !k.GeneratorOptions.DisableNameSuffixHash {
		t.Errorf("%+v", k.GeneratorOptions)
	}
	var listed []string
	for _, m := range k.ConfigMapGenerator {
		listed = append(listed, m.Files...)
		if len(m.Files) != 1 || m.Files[0] != m.Name+".json" {
			t.Errorf("%s has %v", m.Name, m.Files)
		}
	}
	files, err := filepath.Glob("*.json")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(listed)
	if !slices.Equal(listed, files) {
		t.Errorf("%v, want %v", listed, files)
	}
	for _, name := range files {
		// kubectl keeps what it applied in an annotation, of 256 KiB at most.
		if info, err := os.Stat(name); err != nil || info.Size() > 200<<10 {
			t.Errorf("%s: %v, %d bytes", name, err, info.Size())
		}
	}
}

// TestPictures: a checkout stays small.
func TestPictures(t *testing.T) {
	files, err := filepath.Glob("*.png")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	size := int64(0)
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > 2<<20 {
		t.Errorf("%d bytes of pictures", size)
	}
}

// TestProvisioning: the files that Grafana reads at start.
func TestProvisioning(t *testing.T) {
	var sources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, Type, URL string
			IsDefault       bool           `yaml:"isDefault"`
			JSONData        map[string]any `yaml:"jsonData"`
		}
	}
	var providers struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Type, Folder string
			Options            map[string]any
		}
	}
	for name, into := range map[string]any{"datasources/roce.yml": &sources, "dashboards/roce.yml": &providers} {
		text, err := os.ReadFile(filepath.Join("..", "deploy", "grafana", "provisioning", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if len(sources.Datasources) != 1 || sources.Datasources[0].Type != "prometheus" || sources.Datasources[0].JSONData["timeInterval"] != "15s" {
		t.Errorf("%+v", sources)
	}
	if len(providers.Providers) != 1 || providers.Providers[0].Type != "file" || providers.Providers[0].Options["path"] == nil {
		t.Errorf("%+v", providers)
	}
}
