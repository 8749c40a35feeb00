// SPDX-License-Identifier: Apache-2.0

package dashboards

import "fmt"

// An indicator is one of the three by which a quarter is reviewed.
type indicator struct {
	name, series, by, legend string
	floor                    string // Below it a change means nothing.
	about                    string
	soft                     float64 // What the axis shows at least.
	color                    string  // Of its lines; empty: those of the tiers.
}

var (
	reviewPaused = indicator{
		"Share of time paused", `tier:roce_pfc_paused:avg_ratio_rate5m{` + ofTier + `}`, "fabric, tier", "{{tier}}", "0.001",
		"Mean over all ports of a tier. Normal: under 0.1 %, and level. A slow rise over weeks is what nobody sees from day to day.", 0.002, "",
	}
	reviewMarked = indicator{
		"Share of packets marked (ECN)", `tier:roce_queue_ecn_marked:ratio_rate5m{` + ofTier + `}`, "fabric, tier", "{{tier}}", "0.0005",
		"Marks for each packet of the lossless queues of a tier. Normal: under 1 %, and level. Rises with load; rises without: thresholds or balance.", 0.002, "",
	}
	reviewCNP = indicator{
		"Notifications per packet (CNP)", `fabric:roce_cnp_sent_per_packet:ratio_rate5m{` + ofFabric + `}`, "fabric", "{{fabric}}", "0.00001",
		"CNPs for each RDMA packet received. Normal: level. A step: a firmware, or a new kind of job.", 0.001, "blue",
	}
)

func reviewBoard() board {
	chart := func(i indicator) row { return row{height: 7, panels: []panel{i.daily(), i.weekly()}} }
	return board{
		uid: "roce-review", title: "quarterly review", from: quarter,
		about:     "Did it get worse over the quarter: pause, marks and notifications, day by day and week against week, and which nodes and ports they come from. Reads only the series of the review, which a store for years keeps.",
		variables: []string{"datasource", "fabric", "tier", "node"},
		rows: []row{
			{height: 4, panels: []panel{reviewPaused.now(), reviewMarked.now(), reviewCNP.now(), reviewCovered()}},
			chart(reviewPaused), chart(reviewMarked), chart(reviewCNP),
			{height: 9, panels: []panel{worstNodes(), worstPorts()}},
			{height: 7, panels: []panel{pausedPorts(), coverage(), howToRead()}},
		},
	}
}

// week is the mean of the last 7 days, or of those before.
func (i indicator) week(offset string) string {
	return fmt.Sprintf(`avg by (%s) (avg_over_time(%s[7d]%s))`, i.by, i.series, offset)
}

// change is the week against an earlier one, where there is enough of it.
func (i indicator) change(offset string) string {
	now, then := i.week(""), i.week(" offset "+offset)
	return fmt.Sprintf(`(%[1]s / %[2]s - 1) and on (%[3]s) (%[1]s > %[4]s or %[2]s > %[4]s)`, now, then, i.by, i.floor)
}

var percentChange = value{unit: "percentunit", decimals: ptr(0), steps: []step{{0, good}, {0.25, warning}, {0.5, bad}}, words: []word{{-2, -2, "too little", neutral}}, none: "unknown"}

func (i indicator) now() panel {
	floored := func(offset string) string {
		return fmt.Sprintf(`max(%s) or 0 * count(%s) - 2`, i.change(offset), i.week(" offset "+offset))
	}
	return panel{
		title: i.name + ", last 7 days", width: 6, draw: figures{column: true},
		about: "The mean of the last 7 days of the range shown, the worst tier or fabric, and against the 7 days before and 4 weeks before. Too little to compare: both weeks are so low that a change means nothing. " + i.about,
		asks: []ask{
			{`max(` + i.week("") + `)`, "mean", look{value: &value{unit: "percentunit", decimals: ptr(2), steps: []step{{0, neutral}}, none: "unknown"}}},
			{floored("7d"), "to the week before", look{value: &percentChange}},
			{floored("28d"), "to 4 weeks before", look{value: &percentChange}},
		},
		value: value{none: "unknown", steps: []step{{0, neutral}}},
	}
}

func (i indicator) daily() panel {
	day := func(offset string) string {
		return fmt.Sprintf(`avg by (%s) (avg_over_time(%s[1d]%s))`, i.by, i.series, offset)
	}
	return panel{
		title: i.name + ", day by day", width: 15, draw: lines{soft: i.soft}, tiers: true, least: "6h",
		about: "The mean of the day before each point, and the same a week earlier (dashed). " + i.about + " A hole: nothing was recorded.",
		asks: []ask{
			{day(""), i.legend, look{color: i.color, shades: true}},
			{day(" offset 7d"), i.legend + ", a week earlier", look{color: i.color, shades: true, dashed: true}},
		},
		value: value{unit: "percentunit", min: ptr(0), none: "nothing was recorded"},
	}
}

func (i indicator) weekly() panel {
	return panel{
		title: i.name + ", week against week", width: 9, draw: lines{bars: true, soft: 0.1}, tiers: true, least: "7d",
		about: "Each week against the one before: 50 % means half as much again. Weeks with too little of it are left out. Normal: under 50 % up or down. One week up and the next one down is noise; two in a row, or many small steps, are not.",
		asks:  []ask{{i.change("7d"), i.legend, look{}}},
		value: value{unit: "percentunit", none: "too little to compare"},
	}
}

func reviewCovered() panel {
	return panel{
		title: "How much was seen, whole range", width: 6, draw: figures{both: true, column: true},
		about: "Share of exporters that answered, over the whole range shown. Normal: over 99 %. Below 95 % means may be wrong, above all if what was missing was what was broken.",
		asks:  []ask{{`avg by (role) (avg_over_time(role:roce_scrape_coverage:ratio{` + ofFabric + `}[$__range]))`, "{{role}}", look{}}},
		value: value{unit: "percentunit", decimals: ptr(1), steps: []step{{0, bad}, {0.95, warning}, {0.99, good}}, none: "unknown"},
	}
}

func worstNodes() panel {
	const series = `node:roce_pfc_paused:avg_ratio_rate5m{` + ofTier + `}`
	const week = `avg by (fabric, tier, node) (avg_over_time(` + series + `[7d]))`
	const top = ` and on (fabric, node) topk(20, ` + week + `)`
	return panel{
		title: "Nodes that were paused most, last 7 days", width: 12,
		about: "Mean share of time that all ports of a node were paused in the last 7 days, the 7 days before, and how much it grows a week over the last 28 days. Normal: under 0.1 %, without growth. A node that grows is worth a look before it hurts. Click a node to see its ports beside.",
		draw: grid{
			sort: []sorting{{"Last 7 days", true}},
			columns: []column{
				{name: "node", heading: "Node", width: 150, links: []link{{"Its ports", "/d/roce-review?" + carried + "&var-fabric=${__data.fields.fabric}&var-node=${__data.fields.node}"}, toSwitch, toNIC}},
				{name: "tier", heading: "Tier", width: 100},
				{name: "A", heading: "Last 7 days", width: 130, value: &value{unit: "percentunit", decimals: ptr(3), none: "unknown"}},
				{name: "B", heading: "7 days before", width: 130, value: &value{unit: "percentunit", decimals: ptr(3), none: "unknown"}},
				{name: "C", heading: "Growth a week", value: &value{unit: "percentunit", decimals: ptr(3), none: "unknown", steps: []step{{0, good}, {0.0005, warning}, {0.002, bad}}}},
				{name: "fabric", heading: "Fabric", hidden: true},
			},
		},
		asks: []ask{
			{week + top, "", look{}},
			{`avg by (fabric, tier, node) (avg_over_time(` + series + `[7d] offset 7d))` + top, "", look{}},
			{`avg by (fabric, tier, node) (deriv(` + series + `[28d])) * 604800` + top, "", look{}},
		},
		value: value{none: "nothing was recorded"},
	}
}

func worstPorts() panel {
	const series = `port_priority:roce_pfc_paused:ratio_rate5m{` + ofNode + `}`
	const week = `max by (port, priority) (avg_over_time(` + series + `[7d]))`
	const top = ` and on (port, priority) topk(20, ` + week + `)`
	return panel{
		title: "Ports of $node that were paused most, last 7 days", width: 12,
		about: "The same for the ports of one node: those of a whole fabric would be too many to ask for at once. Normal: under 0.1 %. Most: the highest five minutes. Click a port to see both ends of its link.",
		draw: grid{
			sort: []sorting{{"Last 7 days", true}},
			columns: []column{
				{name: "port", heading: "Port", width: 150, links: []link{{"Both ends of this link", "/d/roce-port?" + carried + "&${fabric:queryparam}&${node:queryparam}&var-port=${__data.fields.port}"}}},
				{name: "priority", heading: "Priority", width: 85},
				{name: "A", heading: "Last 7 days", width: 130, value: &value{unit: "percentunit", decimals: ptr(3), none: "unknown"}},
				{name: "B", heading: "7 days before", width: 130, value: &value{unit: "percentunit", decimals: ptr(3), none: "unknown"}},
				{name: "C", heading: "Most", value: noneUnknown(shareHot)},
			},
		},
		asks: []ask{
			{week + top, "", look{}},
			{`max by (port, priority) (avg_over_time(` + series + `[7d] offset 7d))` + top, "", look{}},
			{`max by (port, priority) (max_over_time(` + series + `[7d]))` + top, "", look{}},
		},
		value: value{none: "nothing was recorded for this node"},
	}
}

func pausedPorts() panel {
	return panel{
		title: "Ports paused for more than 1 % of the time", width: 9, draw: lines{}, tiers: true, least: "6h",
		about: "How many ports of each tier were paused for more than 1 % of five minutes: the highest number of each day. Normal: few, and level.",
		asks:  []ask{{`sum by (tier) (max_over_time(tier:roce_pfc_paused_ports:count5m{` + ofTier + `}[1d]))`, "{{tier}}", look{}}},
		value: value{unit: "short", decimals: ptr(0), min: ptr(0), none: "nothing was recorded"},
	}
}

func coverage() panel {
	return panel{
		title: "Share of exporters that answer", width: 8, draw: lines{}, least: "6h",
		about: "Day by day, by role. Normal: 100 %. In a dip the other curves do not show what was not seen.",
		asks:  []ask{{`avg by (role) (avg_over_time(role:roce_scrape_coverage:ratio{` + ofFabric + `}[1d]))`, "{{role}}", look{}}},
		value: value{unit: "percentunit", min: ptr(0), max: ptr(1), none: "nothing was recorded"},
	}
}

func howToRead() panel {
	return panel{
		title: "How to read this", width: 7,
		about: "In which order to look.",
		draw: prose{`1. **How much was seen?** Below 95 % the rest may be wrong.
2. **Day by day:** is it higher than at the beginning, for weeks? One bad day is an incident, not a trend.
3. **Week against week:** two weeks in a row over 50 %, or many small steps up.
4. **Which nodes?** Sort by growth. Then their ports, then both ends of the link.
5. A step on the day of a change is explained; write it down.`},
	}
}
