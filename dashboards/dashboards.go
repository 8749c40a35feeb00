// SPDX-License-Identifier: Apache-2.0

// Package dashboards makes the Grafana dashboards of the exporter.
package dashboards

import (
	"fmt"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// A board is a dashboard as its author thinks of it.
type board struct {
	uid, title, about string
	from              string   // The time range that it opens with: "now-3h".
	variables         []string // Names of those that it offers, in their order.
	role              string   // Only nodes of this role are offered; empty: all.
	hidden            []hidden // Variables that follow from others.
	rows              []row
}

// A row has panels side by side.
type row struct {
	title  string // Empty: none.
	height uint32
	panels []panel
}

// hidden is a variable that nobody chooses.
type hidden struct {
	name, query string
	regex       string // What to take of an answer; empty: all.
	many        bool   // All values, else the first.
}

// boards are all dashboards, in the order of their links.
func boards() []board {
	return []board{fabricBoard(), switchBoard(), portBoard(), nicBoard(), complianceBoard(), reviewBoard(), exporterBoard()}
}

// Classic is a dashboard in the schema that Grafana 11 to 13 take alike, by
// import and by provisioning; the one that follows it is not taken by 11.
type Classic = dashboard.Dashboard //nolint:staticcheck // See above.

// All are the dashboards, by uid.
func All() (map[string]Classic, error) {
	all := map[string]Classic{}
	for _, b := range boards() {
		built, err := b.build()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.uid, err)
		}
		all[b.uid] = built
	}
	return all, nil
}

// source is the data source that the user chose.
var source = common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}

func (b board) build() (Classic, error) {
	d := dashboard.NewDashboardBuilder("RoCE: " + b.title) //nolint:staticcheck // As Classic.
	d.Uid(b.uid).Description(b.about).
		Tags([]string{"roce"}).Readonly().Timezone("browser").WeekStart("monday").
		Time(b.from, "now").Refresh("1m").Version(1).
		Tooltip(dashboard.DashboardCursorSyncCrosshair)
	if b.from == quarter {
		d.Refresh("")
	}
	for _, name := range b.variables {
		d.WithVariable(b.variable(name))
	}
	for _, h := range b.hidden {
		d.WithVariable(hiddenVariable(h))
	}
	for _, a := range b.annotations() {
		if b.from != quarter { // There would be too many.
			d.Annotation(a)
		}
	}
	d.Link(visible(dashboard.NewDashboardLinkBuilder("RoCE").Type(dashboard.DashboardLinkTypeDashboards).
		Tags([]string{"roce"}).AsDropdown(true).KeepTime(true).IncludeVars(true).Icon("dashboard").Tooltip("The other RoCE dashboards, for the same time and choice")))
	id, y := uint32(0), uint32(0)
	for _, r := range b.rows {
		if r.title != "" {
			id++
			d.WithRow(dashboard.NewRowBuilder(r.title).Id(id).GridPos(dashboard.GridPos{H: 1, W: 24, Y: y}))
			y++
		}
		x := uint32(0)
		for _, p := range r.panels {
			id++
			if slices.Contains(b.variables, "priority") {
				p.takes = "&${priority:queryparam}"
			}
			built, err := p.build(id, dashboard.GridPos{X: x, Y: y, W: p.width, H: r.height})
			if err != nil {
				return Classic{}, fmt.Errorf("%s: %w", p.title, err)
			}
			d.WithPanel(made(built))
			x += p.width
		}
		if x != 24 {
			return Classic{}, fmt.Errorf("row of %q: %d columns of 24", r.panels[0].title, x)
		}
		y += r.height
	}
	return d.Build()
}

// adjusted is what a builder makes, with what it has no word for.
type adjusted[T any] struct {
	cog.Builder[T]
	adjust func(*T)
}

func (a adjusted[T]) Build() (T, error) {
	built, err := a.Builder.Build()
	a.adjust(&built)
	return built, err
}

// visible is a link above the panels.
func visible(link cog.Builder[dashboard.DashboardLink]) cog.Builder[dashboard.DashboardLink] {
	return adjusted[dashboard.DashboardLink]{link, func(l *dashboard.DashboardLink) {
		l.Placement = nil // The kit puts it into a menu that does not show links to dashboards.
	}}
}

// made is what was built already.
type made dashboard.Panel

func (m made) Build() (dashboard.Panel, error) { return dashboard.Panel(m), nil }

// What the variables choose, for selectors of recorded series and of
// instance_job:roce_node:info.
const (
	ofFabric   = `fabric=~"$fabric"`
	ofTier     = ofFabric + `, tier=~"$tier"`
	ofNode     = ofFabric + `, node=~"$node"`
	ofPort     = ofNode + `, port=~"$port"`
	ofPriority = `priority=~"$priority"`
)

// choices says where the values of the variables come from. Recorded series
// are not asked where the exporter itself knows.
var choices = map[string]struct{ label, metric, of string }{
	"fabric":   {"Fabric", "roce_node_info", ""},
	"tier":     {"Tier", "roce_node_info", ofFabric},
	"node":     {"Node", "roce_node_info", ofFabric},
	"port":     {"Port", "port:roce_port:info", ofNode},
	"priority": {"Priority", "port_priority:roce_pfc_enabled:in_force", ofFabric},
}

// several says which variables a dashboard offers as a choice of many. A node is
// one of one fabric: others may have one of the same name.
func (b board) several(name string) bool {
	single := map[string][]string{"roce-switch": {"fabric", "node"}, "roce-port": {"fabric", "node", "port"}, "roce-nic": {"fabric", "node"}, "roce-review": {"fabric", "node"}}
	return !slices.Contains(single[b.uid], name)
}

func (b board) variable(name string) cog.Builder[dashboard.VariableModel] {
	if name == "datasource" {
		return dashboard.NewDatasourceVariableBuilder(name).Label("Data source").Type("prometheus").
			Current(dashboard.VariableOption{Selected: new(true), Text: one("default"), Value: one("default")})
	}
	c := choices[name]
	if b.from == quarter { // A store for years has the review's series only.
		c.metric = "node:roce_pfc_paused:avg_ratio_rate5m"
	}
	of := c.of
	if name == "node" {
		if slices.Contains(b.variables, "tier") {
			of = ofTier
		}
		if b.role != "" {
			of += fmt.Sprintf(`, role="%s"`, b.role)
		}
	}
	v := dashboard.NewQueryVariableBuilder(name).Label(c.label).Datasource(source).
		Query(dashboard.StringOrMap{String: new(fmt.Sprintf("label_values(%s{%s}, %s)", c.metric, of, name))}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortNaturalAsc)
	if b.several(name) {
		v.Multi(true).IncludeAll(true).AllValue(".*").
			Current(dashboard.VariableOption{Selected: new(true), Text: texts("All"), Value: texts("$__all")})
	}
	return v
}

func hiddenVariable(h hidden) cog.Builder[dashboard.VariableModel] {
	v := dashboard.NewQueryVariableBuilder(h.name).Hide(dashboard.VariableHideHideVariable).Datasource(source).
		Query(dashboard.StringOrMap{String: new(h.query)}).Refresh(dashboard.VariableRefreshOnTimeRangeChanged)
	if h.regex != "" {
		v.Regex(h.regex)
	}
	if h.many {
		v.Multi(true).IncludeAll(true).Current(dashboard.VariableOption{Selected: new(true), Text: texts("All"), Value: texts("$__all")})
	}
	return adjusted[dashboard.VariableModel]{v, func(m *dashboard.VariableModel) {
		m.SkipUrlSync = new(true) // It follows from others: no address may keep it.
	}}
}

func one(s string) dashboard.StringOrArrayOfString {
	return dashboard.StringOrArrayOfString{String: new(s)}
}

func texts(s ...string) dashboard.StringOrArrayOfString {
	return dashboard.StringOrArrayOfString{ArrayOfString: s}
}

// annotations mark what a curve may be due to: of the nodes that were chosen.
func (b board) annotations() []cog.Builder[dashboard.AnnotationQuery] {
	of := ofFabric
	if slices.Contains(b.variables, "node") {
		of = ofNode
	}
	mark := func(name, color, expr, title, tags string) cog.Builder[dashboard.AnnotationQuery] {
		a := dashboard.NewAnnotationQueryBuilder().Name(name).Datasource(source).Enable(true).IconColor(color).
			Expr(expr).Step("30s").TitleFormat(title).TagKeys(tags)
		return adjusted[dashboard.AnnotationQuery]{a.Target(prometheus.NewDataqueryBuilder().Expr(expr).RefId("Anno").Range()), func(q *dashboard.AnnotationQuery) {
			q.Placement = nil // The kit puts it into a menu that Grafana shows in part.
		}}
	}
	recorded := func(record string) string { return differs(record+`{`+of+`}`, "5m") }
	return []cog.Builder[dashboard.AnnotationQuery]{
		mark("Critical alerts", "red", `max by (alertname, fabric, node, port, priority) (ALERTS{alertname=~"RoCE.*", alertstate="firing", severity="critical", fabric=~"$fabric|"})`,
			"{{alertname}} {{node}} {{port}}", "fabric,node,port,priority"),
		mark("Reboots", "purple", named("fabric, node", of, rebooted("5m")), "{{node}} rebooted", "fabric,node"),
		mark("Changes of firmware", "blue", firmwareChanges("fabric, node", of, "10m"), "New firmware on {{node}}", "fabric,node"),
		mark("Changes of configuration", "orange",
			`group by (fabric, node) (`+recorded("node_priority:roce_pfc_enabled:ratio")+` or `+recorded("node:roce_port_mtu_bytes:avg")+` or `+recorded("node:roce_queue_ecn_threshold_bytes:avg")+`)`,
			"Configuration of {{node}} changed", "fabric,node"),
	}
}

// named gives raw series the identity of their node and keeps the labels
// given. What two jobs scrape of one exporter counts once. nodes selects.
func named(labels, nodes, expr string) string {
	return fmt.Sprintf(`max by (%s) ((%s) * on (instance, job) group_left (fabric, tier, role, node) instance_job:roce_node:info{%s})`, labels, expr, nodes)
}

// differs finds what had several values within a time; a mean is not exact.
// changes() would do, but VictoriaMetrics takes a series that is new for one
// that changed.
func differs(series, within string) string {
	return fmt.Sprintf(`max_over_time(%[1]s[%[2]s]) > 1.000000001 * min_over_time(%[1]s[%[2]s])`, series, within)
}

// rebooted are the nodes that booted within a time; clocks may be set meanwhile.
func rebooted(within string) string {
	return fmt.Sprintf(`group by (instance, job) (max_over_time(roce_node_boot_time_seconds[%[1]s]) - min_over_time(roce_node_boot_time_seconds[%[1]s]) > 60)`, within)
}

// neverSeen are targets that did not answer for a day, or never did: which
// fabric they are of nobody knows.
const neverSeen = `(up{job=~".*roce.*"} == 0 unless on (instance, job) instance_job:roce_node:last_info)`

// counting leaves out what counters say that stand still: it is not known. expr
// has raw series, one of them before any operator.
func counting(expr string) string {
	return `(` + expr + ` unless on (instance, job, asic) instance_job_asic_group:roce_counters:frozen_seconds)`
}

// firmwareChanges finds cards with a firmware that they did not have before.
func firmwareChanges(by, nodes, before string) string {
	cards := func(offset string) string {
		return named("fabric, node, port, firmware", nodes, `group by (instance, job, port, firmware) (roce_port_info{firmware!=""}`+offset+`)`)
	}
	now, then := cards(""), cards(" offset "+before)
	return fmt.Sprintf(`count by (%s) ((%s unless on (fabric, node, port, firmware) %s) and on (fabric, node, port) %s)`, by, now, then, then)
}

// quarter is the time range of the review.
const quarter = "now-90d"
