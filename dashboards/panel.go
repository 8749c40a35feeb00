// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"math"
	"regexp"

	"github.com/grafana/grafana-foundation-sdk/go/bargauge"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/text"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// A panel is a part of a dashboard.
type panel struct {
	title string
	about string // What is normal, and what to do if it is not so.
	width uint32 // Of 24 columns.
	draw  drawing
	value value
	asks  []ask
	links []link // Where a click leads.
	tiers bool   // Its series are tiers: each has its color everywhere.
	least string // The shortest step; empty: the slowest interval of scrapes.
	takes string // What its links take along beside time and data source: a choice that the board offers.
}

// An ask is a query of a panel.
type ask struct {
	expr   string
	legend string
	look   look
}

// A look sets one series apart.
type look struct {
	color  string
	shades bool // Of the color, one for each series.
	dashed bool
	value  *value // Its own.
}

// A value says how numbers are shown.
type value struct {
	unit     string
	decimals *float64
	min, max *float64
	steps    []step // Colors by size; none: the palette.
	words    []word // Instead of numbers.
	spoken   []word // Colors of labels that say this; it is shown as it is.
	none     string // Where there is no value.
}

// A step colors what is at or above it; the first has no bound.
type step struct {
	from  float64
	color string
}

// A word stands for a value, or for those from from up to to.
type word struct {
	from, to float64
	text     string
	color    string
}

// A link leads to another dashboard.
type link struct{ title, url string }

// Colors mean the same everywhere.
const (
	good    = "green"
	notice  = "yellow"
	warning = "orange"
	bad     = "red"
	neutral = "text"
)

// The drawings.
type (
	drawing any
	// lines over time.
	lines struct {
		right   bool    // The legend, as a table, on the right.
		stacked bool    // One upon the other.
		bars    bool    // Instead of lines.
		log     bool    // The axis grows by powers of 10.
		soft    float64 // The axis goes up to this at least; 0: as is usual for the unit.
	}
	// figures are numbers or names in large type.
	figures struct{ names, both, column bool }
	// gauges are bars beside each other.
	gauges struct{}
	// grid is a table.
	grid struct {
		columns []column
		sort    []sorting
	}
	// states are colored bars over time, a line for each series.
	states struct{}
	// heat shows how many have which value, from buckets with the label le.
	heat struct{}
	// prose is text.
	prose struct{ markdown string }
)

// A column of a table.
type column struct {
	name    string // A label, or the letter of the query whose value it is.
	heading string
	width   float64
	value   *value // How a number is shown.
	links   []link
	hidden  bool // There for links only.
}

type sorting struct {
	heading string
	down    bool
}

// slowest is the slowest interval of scrapes that the rules allow for: with it
// $__rate_interval is never under 2 minutes.
const slowest = "30s"

func (p panel) build(id uint32, at dashboard.GridPos) (dashboard.Panel, error) {
	built, err := p.drawn()
	if err != nil {
		return built, err
	}
	built.Id, built.GridPos = &id, &at
	built.Title, built.Description = &p.title, &p.about
	if len(p.asks) == 0 {
		return built, nil
	}
	least := p.least
	if least == "" {
		least = slowest
	}
	built.Datasource, built.Interval = &source, &least
	for i, a := range p.asks {
		q := prometheus.NewDataqueryBuilder().Expr(a.expr).RefId(string(rune('A' + i))).Datasource(source).
			EditorMode(prometheus.QueryEditorModeCode).LegendFormat(a.legend).Interval(least)
		switch p.draw.(type) {
		case grid:
			q.Format(prometheus.PromQueryFormatTable).Instant()
		case figures, gauges:
			q.Format(prometheus.PromQueryFormatTimeSeries).Instant()
		case heat:
			q.Format(prometheus.PromQueryFormatHeatmap).Range()
		default:
			q.Format(prometheus.PromQueryFormatTimeSeries).Range()
		}
		target, err := q.Build()
		if err != nil {
			return built, err
		}
		built.Targets = append(built.Targets, target)
	}
	if built.FieldConfig == nil {
		built.FieldConfig = &dashboard.FieldConfigSource{}
	}
	if _, is := p.draw.(grid); !is && p.value.unit == "" {
		p.value.unit = "none" // Numbers of things, or words. Columns of a table have their own.
	}
	p.value.set(&built.FieldConfig.Defaults)
	built.FieldConfig.Defaults.Links = dataLinks(p.links, p.takes)
	if built.FieldConfig.Overrides == nil {
		built.FieldConfig.Overrides = []dashboard.DashboardFieldConfigSourceOverrides{}
	}
	if p.tiers {
		// None of the colors that mean good or bad.
		for _, tier := range []struct{ name, color string }{{"host", "blue"}, {"leaf", "#3AA39B"}, {"spine", "purple"}} {
			built.FieldConfig.Overrides = append(built.FieldConfig.Overrides, dashboard.DashboardFieldConfigSourceOverrides{
				Matcher: dashboard.MatcherConfig{Id: "byRegexp", Options: "/^" + tier.name + "(,.*)?$/"}, Properties: look{color: tier.color}.properties(),
			})
		}
	}
	for i, a := range p.asks {
		if properties := a.look.properties(); len(properties) > 0 {
			built.FieldConfig.Overrides = append(built.FieldConfig.Overrides, dashboard.DashboardFieldConfigSourceOverrides{
				Matcher: dashboard.MatcherConfig{Id: "byFrameRefID", Options: string(rune('A' + i))}, Properties: properties,
			})
		}
	}
	return built, nil
}

func (p panel) drawn() (dashboard.Panel, error) {
	legend := common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).Calcs([]string{})
	tooltip := common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)
	reduce := common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}).Values(false).Fields("")
	switch draw := p.draw.(type) {
	case lines:
		if draw.right {
			legend.DisplayMode(common.LegendDisplayModeTable).Placement(common.LegendPlacementRight).Calcs([]string{"lastNotNull", "max"}).SortBy("Last *").SortDesc(true)
		}
		b := timeseries.NewPanelBuilder().Legend(legend).Tooltip(tooltip).
			DrawStyle(common.GraphDrawStyleLine).LineInterpolation(common.LineInterpolationLinear).LineWidth(1.5).FillOpacity(0).GradientMode(common.GraphGradientModeNone).
			ShowPoints(common.VisibilityModeNever).SpanNulls(common.BoolOrFloat64{Bool: new(false)}).AxisPlacement(common.AxisPlacementAuto).AxisLabel("").
			ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeOff)).
			Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNone).Group("A"))
		// An axis of nothing but zeros shall not go up to 10000 %.
		switch {
		case draw.soft > 0:
			b.AxisSoftMax(draw.soft)
		case p.value.unit == "percentunit":
			b.AxisSoftMax(0.01)
		case p.value.unit == "pps" || p.value.unit == "short":
			b.AxisSoftMax(10)
		}
		if draw.log {
			b.ScaleDistribution(common.NewScaleDistributionConfigBuilder().Type(common.ScaleDistributionLog).Log(10))
		}
		if draw.stacked {
			b.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A")).FillOpacity(60)
		}
		if draw.bars {
			b.DrawStyle(common.GraphDrawStyleBars).FillOpacity(80).BarWidthFactor(0.6).BarAlignment(common.BarAlignmentCenter)
		}
		return b.Build()
	case figures:
		mode := common.BigValueTextModeValueAndName
		switch {
		case draw.names:
			mode = common.BigValueTextModeName
		case len(p.asks) == 1 && !draw.both:
			mode = common.BigValueTextModeValue
		}
		orientation := common.VizOrientationAuto
		if draw.column {
			orientation = common.VizOrientationHorizontal
		}
		b := stat.NewPanelBuilder()
		// Left to itself each panel has letters of another size, and many names tiny ones.
		switch {
		case draw.column && draw.names:
			b.Text(common.NewVizTextDisplayOptionsBuilder().ValueSize(18))
		case draw.column && len(p.asks) > 1:
			b.Text(common.NewVizTextDisplayOptionsBuilder().TitleSize(14).ValueSize(20))
		case draw.column:
			b.Text(common.NewVizTextDisplayOptionsBuilder().TitleSize(14).ValueSize(32))
		}
		return b.ReduceOptions(reduce).TextMode(mode).ColorMode(common.BigValueColorModeValue).GraphMode(common.BigValueGraphModeNone).
			JustifyMode(common.BigValueJustifyModeAuto).Orientation(orientation).WideLayout(true).ShowPercentChange(false).Build()
	case gauges:
		return bargauge.NewPanelBuilder().ReduceOptions(reduce).DisplayMode(common.BarGaugeDisplayModeBasic).ValueMode(common.BarGaugeValueModeText).
			ShowUnfilled(true).Orientation(common.VizOrientationHorizontal).NamePlacement(common.BarGaugeNamePlacementLeft).Sizing(common.BarGaugeSizingAuto).
			Text(common.NewVizTextDisplayOptionsBuilder().TitleSize(13).ValueSize(15)).MinVizWidth(8).MinVizHeight(14).MaxVizHeight(40).Legend(legend.ShowLegend(false)).Build()
	case states:
		return statetimeline.NewPanelBuilder().Legend(legend).Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeSingle).Sort(common.SortOrderNone)).
			ShowValue(common.VisibilityModeNever).RowHeight(0.85).MergeValues(true).AlignValue(common.TimelineValueAlignmentLeft).LineWidth(0).FillOpacity(80).NeverSpanNulls().Build()
	case heat:
		return heatmap.NewPanelBuilder().Calculate(false).CellGap(1).ShowValue(common.VisibilityModeNever).
			Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeScheme).Scheme("Cool").Fill("dark-orange").Scale(heatmap.HeatmapColorScaleExponential).Exponent(0.5).Steps(64).Reverse(false).Min(0)).
			YAxis(heatmap.NewYAxisConfigBuilder().Unit(p.value.unit).AxisPlacement(common.AxisPlacementLeft).Reverse(false)).
			CellValues(heatmap.NewCellValuesBuilder().Unit("short").Decimals(0)).
			FilterValues(heatmap.NewFilterValueRangeBuilder().Le(1e-9)).
			Tooltip(heatmap.NewHeatmapTooltipBuilder().Mode(common.TooltipDisplayModeSingle).YHistogram(false).ShowColorScale(true)).ShowLegend().Build()
	case prose:
		return text.NewPanelBuilder().Mode(text.TextModeMarkdown).Content(draw.markdown).Build()
	case grid:
		return draw.drawn(len(p.asks), p.takes)
	}
	return dashboard.Panel{}, fmt.Errorf("%T is not drawn", p.draw)
}

func (g grid) drawn(asks int, takes string) (dashboard.Panel, error) {
	sorts := make([]cog.Builder[common.TableSortByFieldState], len(g.sort))
	for i, s := range g.sort {
		sorts[i] = common.NewTableSortByFieldStateBuilder().DisplayName(s.heading).Desc(s.down)
	}
	b := table.NewPanelBuilder().ShowHeader(true).CellHeight(common.TableCellHeightSm).SortBy(sorts).FrameIndex(0).
		Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{"sum"}).CountRows(false)).Align(common.FieldTextAlignmentAuto).Inspect(false).Filterable(false)
	if asks > 1 {
		b.WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}})
	}
	exclude, index, rename := map[string]any{"Time": true}, map[string]any{}, map[string]any{}
	used := map[string]bool{}
	for i, c := range g.columns {
		names := []string{c.name}
		if len(c.name) == 1 {
			names = []string{"Value #" + c.name}
			used[c.name] = true
			if asks == 1 {
				names = append(names, "Value") // What Grafana calls the only one.
			}
		}
		for _, name := range names {
			index[name], rename[name] = i, c.heading
		}
		if properties := c.properties(takes); len(properties) > 0 {
			b.OverrideByName(c.heading, properties)
		}
	}
	for i := range asks {
		if letter := string(rune('A' + i)); !used[letter] {
			exclude["Value #"+letter], exclude["Value"] = true, true
		}
	}
	b.WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{"excludeByName": exclude, "indexByName": index, "renameByName": rename, "includeByName": map[string]any{}}})
	return b.Build()
}

func (c column) properties(takes string) []dashboard.DynamicConfigValue {
	var all []dashboard.DynamicConfigValue
	add := func(id string, value any) { all = append(all, dashboard.DynamicConfigValue{Id: id, Value: value}) }
	if c.hidden {
		add("custom.hidden", true)                                                             // Grafana up to 12.
		add("custom.hideFrom", map[string]any{"viz": true, "legend": false, "tooltip": false}) // Since then.
		return all
	}
	if c.width > 0 {
		add("custom.width", c.width)
	}
	if c.value == nil {
		add("noValue", "–") // A label that a row does not have.
	} else {
		v := *c.value
		if v.unit == "" && len(c.name) == 1 {
			v.unit = "none"
		}
		all = append(all, v.properties()...)
		if c.value.colored() {
			add("custom.cellOptions", map[string]any{"type": "color-text"})
		}
		add("custom.align", "left")
	}
	if len(c.links) > 0 {
		add("links", dataLinks(c.links, takes))
	}
	return all
}

func (l look) properties() []dashboard.DynamicConfigValue {
	var all []dashboard.DynamicConfigValue
	if l.color != "" {
		mode := dashboard.FieldColorModeIdFixed
		if l.shades {
			mode = dashboard.FieldColorModeIdShades
		}
		all = append(all, dashboard.DynamicConfigValue{Id: "color", Value: dashboard.FieldColor{Mode: mode, FixedColor: &l.color}})
	}
	if l.dashed {
		all = append(all,
			dashboard.DynamicConfigValue{Id: "custom.lineStyle", Value: map[string]any{"fill": "dash", "dash": []int{8, 8}}},
			dashboard.DynamicConfigValue{Id: "custom.lineWidth", Value: 1},
			dashboard.DynamicConfigValue{Id: "custom.stacking", Value: map[string]any{"mode": "none", "group": "B"}},
			dashboard.DynamicConfigValue{Id: "custom.fillOpacity", Value: 0})
	}
	if l.value != nil {
		all = append(all, l.value.properties()...)
	}
	return all
}

// colored says whether the color depends on the value.
func (v value) colored() bool { return len(v.steps) > 0 || len(v.words) > 0 || len(v.spoken) > 0 }

func (v value) properties() []dashboard.DynamicConfigValue {
	var f dashboard.FieldConfig
	v.set(&f)
	all := []dashboard.DynamicConfigValue{{Id: "thresholds", Value: f.Thresholds}, {Id: "color", Value: f.Color}}
	if f.Unit != nil {
		all = append(all, dashboard.DynamicConfigValue{Id: "unit", Value: *f.Unit})
	}
	if f.Decimals != nil {
		all = append(all, dashboard.DynamicConfigValue{Id: "decimals", Value: *f.Decimals})
	}
	if len(f.Mappings) > 0 {
		all = append(all, dashboard.DynamicConfigValue{Id: "mappings", Value: f.Mappings})
	}
	if f.NoValue != nil {
		all = append(all, dashboard.DynamicConfigValue{Id: "noValue", Value: *f.NoValue})
	}
	return all
}

func (v value) set(f *dashboard.FieldConfig) {
	if v.unit != "" {
		f.Unit = &v.unit
	}
	f.Decimals, f.Min, f.Max = v.decimals, v.min, v.max
	if v.none != "" {
		f.NoValue = &v.none
	}
	f.Color = &dashboard.FieldColor{Mode: dashboard.FieldColorModeIdPaletteClassic}
	steps := v.steps
	if v.colored() {
		f.Color.Mode = dashboard.FieldColorModeIdThresholds
	}
	if len(steps) == 0 {
		steps = []step{{color: neutral}}
	}
	f.Thresholds = &dashboard.ThresholdsConfig{Mode: dashboard.ThresholdsModeAbsolute}
	for i, s := range steps {
		t := dashboard.Threshold{Color: s.color}
		if i > 0 {
			t.Value = new(s.from)
		}
		f.Thresholds.Steps = append(f.Thresholds.Steps, t)
	}
	if v.none != "" && f.Color.Mode == dashboard.FieldColorModeIdThresholds {
		// Else it has the color of the first step, and green would look good.
		f.Mappings = append(f.Mappings, dashboard.ValueMapping{SpecialValueMap: &dashboard.SpecialValueMap{
			Type: dashboard.MappingTypeSpecialValue, Options: dashboard.DashboardSpecialValueMapOptions{
				Match: dashboard.SpecialValueMatchNullAndNan, Result: dashboard.ValueMappingResult{Text: new(v.none), Color: new(neutral), Index: new(int32(len(v.words)))},
			},
		}})
	}
	for i, w := range v.spoken {
		f.Mappings = append(f.Mappings, dashboard.ValueMapping{ValueMap: &dashboard.ValueMap{
			Type: dashboard.MappingTypeValueToText, Options: map[string]dashboard.ValueMappingResult{w.text: {Text: new(w.text), Color: new(w.color), Index: new(int32(i))}},
		}})
	}
	for i, w := range v.words {
		result := dashboard.ValueMappingResult{Text: new(w.text), Index: new(int32(i))}
		if w.color != "" {
			result.Color = new(w.color)
		}
		if w.from == w.to {
			f.Mappings = append(f.Mappings, dashboard.ValueMapping{ValueMap: &dashboard.ValueMap{
				Type: dashboard.MappingTypeValueToText, Options: map[string]dashboard.ValueMappingResult{fmt.Sprint(w.from): result},
			}})
			continue
		}
		f.Mappings = append(f.Mappings, dashboard.ValueMapping{RangeMap: &dashboard.RangeMap{
			Type: dashboard.MappingTypeRangeToText, Options: dashboard.DashboardRangeMapOptions{From: bound(w.from), To: bound(w.to), Result: result},
		}})
	}
}

// detailed are the dashboards that offer a choice of priorities, and to which links lead.
var detailed = regexp.MustCompile(`^/d/roce-(switch|port|nic)\?`)

func dataLinks(links []link, takes string) []dashboard.DashboardLink {
	var all []dashboard.DashboardLink
	for _, l := range links {
		if detailed.MatchString(l.url) {
			l.url += takes
		}
		built, err := visible(dashboard.NewDashboardLinkBuilder(l.title).Type(dashboard.DashboardLinkTypeLink).Url(l.url)).Build()
		if err == nil {
			all = append(all, built)
		}
	}
	return all
}

var _ variants.Dataquery = (*prometheus.Dataquery)(nil)

func ptr(f float64) *float64 { return new(f) }

// bound leaves out what bounds nothing.
func bound(f float64) *float64 {
	if math.IsInf(f, 0) {
		return nil
	}
	return &f
}
