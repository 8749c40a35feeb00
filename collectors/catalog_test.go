// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"roce_exporter/collectors/host/hosttest"
	"roce_exporter/collectors/sonic"
	"roce_exporter/collectors/sonic/sonictest"
)

func fixtures(t testing.TB) []string {
	t.Helper()
	metas, err := filepath.Glob("testdata/*/meta.json")
	if err != nil || len(metas) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	dirs := make([]string, len(metas))
	for i, m := range metas {
		dirs[i] = filepath.Dir(m)
	}
	return dirs
}

// allOptions export everything that a switch can give.
func allOptions() SwitchOptions {
	o := testOptions()
	o.AllQueues, o.AllPriorities, o.VOQ = true, true, "all"
	o.Windows = []string{"periodic", "user", "persistent"}
	o.PauseDurationUnit = "quanta"
	return o
}

// The document of the metrics is rendered from the table.
func TestMetricsDocument(t *testing.T) {
	golden(t, "METRICS.md", document(testCatalog(t))+platforms(t))
}

// platforms is a table of what the switches of the fixtures give.
func platforms(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n# What each kind of switch gives\n\nOf the captures in `testdata`, with everything exported that the configuration allows (`queues: all`, all windows). What each driver of a host's NICs gives stands in the [README](../README.md#on-a-host).\n\n| family |")
	var texts []string
	for _, dir := range fixtures(t) {
		if strings.HasPrefix(filepath.Base(dir), "demo") { // No kind of its own.
			continue
		}
		b.WriteString(" " + filepath.Base(dir) + " |")
		_, got := collect(t, capturedSwitch(t, dir, allOptions()))
		texts = append(texts, got)
	}
	b.WriteString("\n|---|" + strings.Repeat(":-:|", len(texts)) + "\n")
	for _, f := range testCatalog(t).Families() {
		switch f.From[0].Source {
		case "exporter", "policy":
			continue
		}
		if f.Name == "roce_node_info" {
			continue // Made by the exporter.
		}
		fmt.Fprintf(&b, "| `%s` |", f.Name)
		for _, got := range texts {
			mark := " |"
			if strings.Contains(got, "# TYPE "+f.Name+" ") {
				mark = " ✓ |"
			}
			b.WriteString(mark)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func document(c *Catalog) string {
	var b strings.Builder
	b.WriteString("# Metrics\n\nRendered from the table in `families.go` by `go test ./collectors -update`.\n\n")
	b.WriteString("A value that a source does not have is absent, never 0. On a switch with several ASICs every series of an ASIC has the label `asic` too.\n")
	b.WriteString("\n# Labels\n\n| label | values |\n|---|---|\n")
	for _, l := range LabelValues() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", l.Name, l.Values)
	}
	b.WriteString("\n`roce_exporter_build_info` and the families `go_*`, `process_*` and `promhttp_*` come with every exporter in Go.\n")
	sources := map[string]RawSource{}
	for _, s := range Sources() {
		sources[s.Name] = s
	}
	for _, f := range c.Families() {
		fmt.Fprintf(&b, "\n## `%s`\n\n%s, ", f.Name, f.Type)
		if len(f.Labels) == 0 {
			b.WriteString("no labels. ")
		} else {
			fmt.Fprintf(&b, "by `%s`. ", strings.Join(f.Labels, "`, `"))
		}
		b.WriteString(f.Help + "\n\n")
		for i, o := range f.From {
			if i == 0 {
				b.WriteString("| where | raw name | |\n|---|---|---|\n")
			}
			s := sources[o.Source]
			var notes []string
			if len(o.Labels) > 0 {
				for _, label := range f.Labels {
					if v := o.Labels[label]; v != "" {
						notes = append(notes, fmt.Sprintf("`%s=%q`", label, v))
					}
				}
			}
			if o.Driver != "" {
				notes = append(notes, "driver `"+o.Driver+"`")
			}
			if o.Scale != 0 {
				notes = append(notes, "times "+strconv.FormatFloat(o.Scale, 'g', -1, 64))
			}
			if s.Group != "" {
				notes = append(notes, "poll group `"+s.Group+"`")
			}
			if o.Note != "" {
				notes = append(notes, o.Note)
			}
			raw := ""
			if o.Raw[0] != "" {
				raw = "`" + strings.Join(o.Raw, "` + `") + "`"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", s.Where, strings.ReplaceAll(raw, "|", `\|`), strings.Join(notes, "; "))
		}
	}
	b.WriteString("\n# Raw names that are left out\n\n| object | raw name | why |\n|---|---|---|\n")
	for _, i := range IgnoredNames() {
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", i.Source, i.Pattern, i.Reason)
	}
	return b.String()
}

// Every origin makes a difference in a fixture: without it something would be
// missing or another.
func TestEveryOriginIsHitByAFixture(t *testing.T) {
	// Those that no composed switch has, and why.
	excused := map[string]string{
		"counters.port.history EST_PORT_STAT_PFC_{priority}_ON2OFF_RX_PKTS": "the CLI reads it, but no script of SONiC writes it yet",
	}
	if len(excused) > 20 {
		t.Errorf("%d origins are excused, at most 20", len(excused))
	}
	facts := map[string]bool{}
	for _, s := range Sources() {
		facts[s.Name] = s.Facts
	}
	ofNIC := map[string]bool{}
	for _, s := range nicSources() {
		ofNIC[s.Name] = true
	}
	switches, hosts := everySwitch(t), everyHost(t)
	wholeSwitches, wholeHosts := switches(AllFamilies()), hosts(AllFamilies())
	for i, f := range AllFamilies() {
		for j, o := range f.From {
			name := o.Source + " " + strings.Join(o.Raw, " + ")
			if facts[o.Source] {
				continue
			}
			without := AllFamilies()
			without[i].From = slices.Delete(without[i].From, j, j+1)
			all, whole := switches, wholeSwitches
			if ofNIC[o.Source] {
				all, whole = hosts, wholeHosts
			}
			if different := all(without) != whole; different == (excused[name] != "") {
				t.Errorf("%s of %s, driver %q: hit by a fixture: %v, excused: %q", name, f.Name, o.Driver, different, excused[name])
			}
		}
	}
	// Families without a raw counter must be there in at least one fixture.
	text := wholeSwitches + wholeHosts
	for _, f := range AllFamilies() {
		byExporter := slices.ContainsFunc(f.From, func(o Origin) bool { return o.Source == "exporter" || o.Source == "policy" })
		if f.Name == "roce_pcie_max_payload_bytes" {
			continue // In a binary file that only root may read; package host tests it.
		}
		if !byExporter && facts[f.From[0].Source] && !strings.Contains(text, "# TYPE "+f.Name+" ") {
			t.Errorf("no fixture has %s", f.Name)
		}
	}
}

// everySwitch returns what makes the text of all composed switches by a table.
func everySwitch(t *testing.T) func([]Family) string {
	t.Helper()
	var switches []*sonic.Switch
	for _, dir := range fixtures(t) {
		captured, err := sonic.OpenCapture(os.DirFS(dir))
		if err != nil {
			t.Fatal(err)
		}
		switches = append(switches, captured)
	}
	return func(families []Family) string {
		var out strings.Builder
		for _, captured := range switches {
			_, got := collect(t, NewSwitch(catalogOf(t, families), sonic.Fixed{Read: captured}, allOptions()))
			out.WriteString(got)
		}
		return out.String()
	}
}

// everyHost does the same of all composed hosts.
func everyHost(t *testing.T) func([]Family) string {
	t.Helper()
	var captures []fs.FS
	for _, file := range hosts(t) {
		captures = append(captures, hosttest.Read(t, file))
	}
	return func(families []Family) string {
		options := hostOptions()
		options.AllPriorities, options.RawStats = true, []string{"module_*"}
		var out strings.Builder
		for _, capture := range captures {
			_, got := collectHost(t, capturedHost(t, catalogOf(t, families), capture, options))
			out.WriteString(got)
		}
		return out.String()
	}
}

func catalogOf(t *testing.T, families []Family) *Catalog {
	t.Helper()
	c, err := NewCatalog(families, Sources())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every raw name of a fixture is mapped or ignored for a reason, and every
// reason has a name.
func TestEveryRawNameIsMappedOrIgnored(t *testing.T) {
	c := testCatalog(t)
	mapped := map[string]bool{}
	for _, s := range Sources() {
		if !s.Facts {
			for _, raw := range c.Wanted(s.Object) {
				mapped[raw] = true
			}
		}
	}
	used := map[Ignored]bool{}
	for _, dir := range fixtures(t) {
		counters := sonictest.ReadCapture(t, dir)["COUNTERS_DB"]
		for object, nameMap := range map[string]string{
			"port": "COUNTERS_PORT_NAME_MAP", "queue": "COUNTERS_QUEUE_NAME_MAP", "group": "COUNTERS_PG_NAME_MAP",
		} {
			for _, oid := range counters[nameMap] {
				for raw := range counters["COUNTERS:"+oid] {
					at := slices.IndexFunc(IgnoredNames(), func(i Ignored) bool {
						ok, err := path.Match(i.Pattern, raw)
						return i.Source == object && ok && err == nil
					})
					if at >= 0 {
						used[IgnoredNames()[at]] = true
					} else if !mapped[raw] {
						t.Errorf("%s: %s %s is neither mapped nor ignored", dir, object, raw)
					}
				}
			}
		}
	}
	for _, file := range hosts(t) {
		for name, f := range hosttest.Read(t, file) {
			raws, source := namesOf(f.Data), "ethtool"
			if strings.Contains(name, "/hw_counters/") {
				raws, source = []string{path.Base(name)}, "hw_counters"
			} else if !strings.HasSuffix(name, "/statistics") {
				continue
			}
			for _, raw := range raws {
				for _, i := range IgnoredNames() {
					if ok, _ := path.Match(i.Pattern, raw); ok && i.Source == source {
						used[i] = true
					}
				}
			}
		}
	}
	for _, i := range IgnoredNames() {
		if !used[i] && i.Reason != ownCode {
			t.Errorf("no fixture has %s %s: is the pattern right?", i.Source, i.Pattern)
		}
	}
}

var validName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// Every label says what its values are.
func TestLabelsAreExplained(t *testing.T) {
	used := map[string]bool{"asic": true}
	for _, f := range AllFamilies() {
		for _, l := range f.Labels {
			used[l] = true
		}
	}
	for _, l := range LabelValues() {
		if !used[l.Name] || l.Values == "" {
			t.Errorf("label %s is not used, or not explained", l.Name)
		}
		delete(used, l.Name)
	}
	for name := range used {
		t.Errorf("label %s is not explained", name)
	}
}

// The table keeps the conventions of names.
func TestNamesAndHelp(t *testing.T) {
	for _, f := range AllFamilies() {
		for _, name := range append([]string{f.Name}, f.Labels...) {
			if !validName.MatchString(name) {
				t.Errorf("%s: %q is no name", f.Name, name)
			}
		}
		if !strings.HasPrefix(f.Name, "roce_") {
			t.Errorf("%s lacks the prefix", f.Name)
		}
		if (f.Type == Counter) != strings.HasSuffix(f.Name, "_total") {
			t.Errorf("%s is a %s", f.Name, f.Type)
		}
		if (f.Type == Info) != strings.HasSuffix(f.Name, "_info") {
			t.Errorf("%s is a %s", f.Name, f.Type)
		}
		if !strings.HasSuffix(f.Help, ".") || strings.Contains(f.Help, "SAI_") {
			t.Errorf("%s: help %q is no plain sentence", f.Name, f.Help)
		}
		if strings.Contains(f.Name, "paus") && strings.Contains(f.Name, "frames") && !strings.Contains(f.Help, "stopped") {
			t.Errorf("%s: the help does not say who stopped whom", f.Name)
		}
	}
}

// What a registry would refuse is not made.
func TestAPedanticRegistryTakesEveryFixture(t *testing.T) {
	for _, dir := range fixtures(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			s := capturedSwitch(t, dir, allOptions())
			reading, err := s.Collect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			families, _ := s.catalog.Gather(reading.Samples)
			pedantic(t, families)
		})
	}
	for _, file := range hosts(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			h := capturedHost(t, testCatalog(t), hosttest.Read(t, file), hostOptions())
			reading, err := h.Collect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			families, _ := h.catalog.Gather(reading.Samples)
			pedantic(t, families)
		})
	}
}

func pedantic(t *testing.T, families []*dto.MetricFamily) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(constant{families})
	again, err := registry.Gather()
	if err != nil {
		t.Error(err)
	}
	if len(again) != len(families) {
		t.Errorf("%d families, the registry has %d", len(families), len(again))
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Error(err)
	}
	for _, p := range problems {
		if p.Metric == "roce_port_fec_corrected_bits_total" {
			continue // A count of bits that were wrong, not an amount of data.
		}
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// constant is a collector of ready-made families.
type constant struct{ families []*dto.MetricFamily }

func (c constant) Describe(out chan<- *prometheus.Desc) {
	for _, mf := range c.families {
		desc, _ := describe(mf, mf.Metric[0])
		out <- desc
	}
}

func (c constant) Collect(out chan<- prometheus.Metric) {
	for _, mf := range c.families {
		kind := prometheus.GaugeValue
		if mf.GetType() == dto.MetricType_COUNTER {
			kind = prometheus.CounterValue
		}
		for _, m := range mf.Metric {
			desc, values := describe(mf, m)
			out <- prometheus.MustNewConstMetric(desc, kind, m.GetGauge().GetValue()+m.GetCounter().GetValue(), values...)
		}
	}
}

func describe(mf *dto.MetricFamily, m *dto.Metric) (*prometheus.Desc, []string) {
	var names, values []string
	for _, l := range m.Label {
		names, values = append(names, l.GetName()), append(values, l.GetValue())
	}
	return prometheus.NewDesc(mf.GetName(), mf.GetHelp(), names, nil), values
}

// The budget of a port at defaults with a policy.
func TestSeriesOfAPort(t *testing.T) {
	for _, dir := range []string{"testdata/nvidia", "testdata/broadcom", "testdata/broadcom-history"} {
		got, _ := read(t, capturedSwitch(t, dir, testOptions()))
		of := map[string]int{}
		for name := range got {
			if _, rest, ok := strings.Cut(name, `port="Ethernet`); ok {
				port, _, _ := strings.Cut(rest, `"`)
				of[port]++
			}
		}
		for port, n := range of {
			t.Logf("%s Ethernet%s: %d series", dir, port, n)
			if n > 150 {
				t.Errorf("%s Ethernet%s: %d series, at most 150", dir, port, n)
			}
		}
	}
}
