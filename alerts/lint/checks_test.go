// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// A check looks at one rule and says what is wrong with it.
type check struct {
	name string
	find func(s *set, r *rule, complain func(string, ...any))
}

var checks = []check{
	{"names, labels and joins", func(s *set, r *rule, complain func(string, ...any)) { s.shape(r.expr, complain) }},
	{"counters", counters},
	{"windows", windows},
	{"watermarks", watermarks},
	{"denominators", denominators},
	{"sources", sources},
	{"thresholds", thresholds},
	{"no topk in alerts", noTopk},
	{"pages wait", pagesWait},
	{"what it must ask", asks},
	{"after a reboot", afterReboot},
	{"missing history", missingHistory},
	{"jobs", jobs},
	{"identity", identity},
	{"texts", texts},
	{"names of recordings", recordingNames},
	{"groups", groups},
}

// inspect visits all of a query.
func inspect(expr parser.Expr, visit func(n parser.Node, path []parser.Node)) {
	parser.Inspect(expr, func(n parser.Node, path []parser.Node) error {
		if n != nil {
			visit(n, path)
		}
		return nil
	})
}

// call is the function around a node, "" if there is none.
func call(path []parser.Node) string {
	for _, n := range slices.Backward(path) {
		switch n := n.(type) {
		case *parser.Call:
			return n.Func.Name
		case *parser.BinaryExpr, *parser.AggregateExpr:
			return ""
		}
	}
	return ""
}

var ofCounters = []string{"rate", "increase"}

// A counter begins again at 0 when a node restarts: only rate and increase know
// that. They in turn make nonsense of a gauge.
func counters(s *set, r *rule, complain func(string, ...any)) {
	inspect(r.expr, func(n parser.Node, path []parser.Node) {
		v, is := n.(*parser.VectorSelector)
		if !is {
			return
		}
		f, known := s.families[v.Name]
		in := call(path)
		switch {
		case in == "irate" || in == "idelta":
			complain("%s looks at two samples: whether it fires is luck", in)
		case known && f.kind == "counter" && !slices.Contains(ofCounters, in) && !asked(append(path, n)):
			complain("%s is a counter: rate or increase, not its value", v.Name)
		case known && f.kind != "counter" && slices.Contains(ofCounters, in):
			complain("%s of %s, which is no counter", in, v.Name)
		case !known && slices.Contains(ofCounters, in):
			complain("%s of %s: take it before it is recorded, a sum hides restarts", in, v.Name)
		}
	})
}

// asked says whether only the being there of a series matters at this place. The
// path ends in the series.
func asked(path []parser.Node) bool {
	for i, n := range path[:len(path)-1] {
		switch n := n.(type) {
		case *parser.Call:
			if n.Func.Name == "timestamp" || n.Func.Name == "absent" || n.Func.Name == "changes" {
				return true
			}
		case *parser.AggregateExpr:
			if n.Op == parser.GROUP || n.Op == parser.COUNT {
				return true
			}
		case *parser.BinaryExpr:
			if (n.Op == parser.LAND || n.Op == parser.LUNLESS) && path[i+1] == n.RHS {
				return true
			}
		}
	}
	return false
}

// Targets are scraped every 30 s at the slowest, and a rate needs some samples:
// four intervals. Queues and groups are polled more rarely by SONiC (10 s to a
// minute) than they are scraped. A query over many hours of all raw series
// takes longer than an interval: what looks back so far reads a recording that is
// made every five minutes.
func windows(s *set, r *rule, complain func(string, ...any)) {
	inspect(r.expr, func(n parser.Node, path []parser.Node) {
		switch n := n.(type) {
		case *parser.SubqueryExpr:
			if n.Step == 0 {
				complain("a subquery without a step depends on the server's settings")
			}
		case *parser.MatrixSelector:
			name := n.VectorSelector.(*parser.VectorSelector).Name
			least := time.Duration(0)
			if slices.Contains(ofCounters, call(path)) {
				least = 2 * time.Minute
				if strings.HasPrefix(name, "roce_queue_") || strings.HasPrefix(name, "roce_pg_") {
					least = 5 * time.Minute
				}
			}
			if n.Range < least {
				complain("%s over %s: at least %s", name, n.Range, least)
			}
			if n.Range > 6*time.Hour && raw(name) {
				complain("%s over %s: record it, and look back over that", name, n.Range)
			}
			for _, of := range s.rules {
				if n.Range > 6*time.Hour && of.Record == name && of.interval < 5*time.Minute {
					complain("%s over %s, recorded every %s: too many samples, record it every 5m", name, n.Range, of.interval)
				}
			}
		}
	})
}

// A watermark stands at its highest since someone read and cleared it. Only the
// periodic one is cleared by SONiC itself, every two minutes by default: between
// two clearings it is too low, so its highest of ten minutes counts.
func watermarks(s *set, r *rule, complain func(string, ...any)) {
	inspect(r.expr, func(n parser.Node, path []parser.Node) {
		v, is := n.(*parser.VectorSelector)
		if !is || !raw(v.Name) || !strings.HasSuffix(v.Name, "_watermark_bytes") {
			return
		}
		if !matches(v, "window", labels.MatchEqual, "periodic") {
			complain(`%s without window="periodic"`, v.Name)
		}
		if len(path) > 0 && call(path) == "max_over_time" {
			if m, ranged := path[len(path)-1].(*parser.MatrixSelector); ranged && m.Range >= 10*time.Minute {
				return
			}
		}
		complain("%s: max_over_time of at least 10m", v.Name)
	})
}

func matches(v *parser.VectorSelector, name string, how labels.MatchType, value string) bool {
	return slices.ContainsFunc(v.LabelMatchers, func(m *labels.Matcher) bool {
		return m.Name == name && m.Type == how && m.Value == value
	})
}

// Where next to nothing flows, one packet is a hundred percent of it.
func denominators(s *set, r *rule, complain func(string, ...any)) {
	inspect(r.expr, func(n parser.Node, _ []parser.Node) {
		division, is := n.(*parser.BinaryExpr)
		if is && division.Op == parser.DIV && division.RHS.Type() == parser.ValueTypeVector && !guarded(division.RHS) {
			complain("divided by %s: (… > N)", division.RHS)
		}
	})
}

// guarded says whether what is divided by is never 0 or close to it.
func guarded(expr parser.Expr) bool {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return guarded(e.Expr)
	case *parser.Call:
		return e.Func.Name == "clamp_min"
	case *parser.AggregateExpr:
		return e.Op != parser.SUM && guarded(e.Expr)
	case *parser.NumberLiteral:
		return e.Val > 0
	case *parser.VectorSelector:
		// What a piece of hardware has is never 0; the speed of a port that is down is absent.
		return regexp.MustCompile("_(speed_bytes_per_second|max_width_lanes|max_speed_transfers_per_second)$").MatchString(e.Name)
	case *parser.BinaryExpr:
		switch e.Op {
		case parser.GTR:
			return true
		case parser.LAND, parser.LUNLESS:
			return guarded(e.LHS)
		case parser.MUL:
			return guarded(e.LHS) && (guarded(e.RHS) || strings.HasSuffix(e.RHS.String(), ":info"))
		}
	}
	return false
}

// The same mask and MTU come from several sources: whoever forgets that counts
// them twice or compares a thing with itself.
func sources(s *set, r *rule, complain func(string, ...any)) {
	for _, v := range selectors(r.expr) {
		if (v.Name == "roce_pfc_enabled" || v.Name == "roce_port_mtu_bytes") &&
			!slices.ContainsFunc(v.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == "source" }) {
			complain("%s without source", v.Name)
		}
	}
}

var isThreshold = regexp.MustCompile(`^roce:.*:threshold$`)

// Numbers that follow from what a rule says, and are no matter of taste.
var structural = map[string]string{
	"RoCEPFCDeadlockCycle": "a cycle of two is another alert",
	"RoCEFloodSuspected":   "two ports may be alike, several are not, and then within a percent",
	"RoCEFlexPollSlow":     "what the windows of the rules need",
	"RoCEARPFluxRisk":      "half of the hosts do it: it is on purpose",
}

// Numbers belong to the operator: they are constants in a file of their own, and
// a rule compares with them by on () group_left (). With scalar() a file that is
// not loaded, or loaded twice, makes a rule silent and nobody knows; clamp has no
// other way. Guards of denominators and the time since boot are no thresholds.
func thresholds(s *set, r *rule, complain func(string, ...any)) {
	inspect(r.expr, func(n parser.Node, path []parser.Node) {
		switch n := n.(type) {
		case *parser.VectorSelector:
			if !isThreshold.MatchString(n.Name) || strings.HasPrefix(call(path), "absent") {
				return
			}
			for i, p := range slices.Backward(path) {
				switch p := p.(type) {
				case *parser.Call:
					if p.Func.Name == "scalar" {
						if !strings.HasPrefix(call(path[:i]), "clamp") {
							complain("scalar(%s) is silent where it is missing", n.Name)
						}
						return
					}
				case *parser.BinaryExpr:
					if p.LHS.Type() == parser.ValueTypeScalar || p.RHS.Type() == parser.ValueTypeScalar {
						continue
					}
					if m := p.VectorMatching; !m.On || len(m.MatchingLabels) > 0 || m.Card != parser.CardManyToOne && m.Card != parser.CardOneToMany {
						complain("… %s %s: on () group_left ()", p.Op, n.Name)
					}
					return
				}
			}
		case *parser.BinaryExpr:
			number, is := n.RHS.(*parser.NumberLiteral)
			if !is || !n.Op.IsComparisonOperator() || r.Alert == "" || number.Val == 0 || number.Val == 1 || structural[r.Alert] != "" {
				return
			}
			if s.reads(n.LHS)["roce_node_boot_time_seconds"] || denominator(append(path, n)) {
				return
			}
			complain("… %s %s: a number that is compared with stands in thresholds.yml", n.Op, number)
		}
	})
}

// denominator says whether something is divided by the last of the path.
func denominator(path []parser.Node) bool {
	for i, p := range path[:len(path)-1] {
		if b, is := p.(*parser.BinaryExpr); is && b.Op == parser.DIV && path[i+1] == b.RHS {
			return true
		}
	}
	return false
}

// What is the highest may be another one at the next evaluation: the alert begins anew.
func noTopk(s *set, r *rule, complain func(string, ...any)) {
	if r.Alert == "" {
		return
	}
	inspect(r.expr, func(n parser.Node, _ []parser.Node) {
		if a, is := n.(*parser.AggregateExpr); is && (a.Op == parser.TOPK || a.Op == parser.BOTTOMK || a.Op == parser.LIMITK) {
			complain("%s in an alert", a.Op)
		}
	})
}

// These are events: once is enough, and waiting would lose them.
// RoCEPFCDeadlockSuspected asks both ends of a link at once.
var events = []string{"RoCELosslessDrops", "RoCEPFCWatchdogTriggered", "RoCENICPauseStormError", "RoCEPFCDeadlockSuspected"}

func pagesWait(s *set, r *rule, complain func(string, ...any)) {
	if r.Alert != "" && r.page() && time.Duration(r.For) < time.Minute && !slices.Contains(events, r.Alert) {
		complain("a page that does not wait a minute and is no event")
	}
}

// What some alerts must ask, or they are false: what a port that is down last said
// is no news; a port that was switched off may be configured as it likes; where
// the QoS maps could not be read nobody knows what is lossless.
var mustAsk = map[string][]string{
	"RoCEPFCStorm":                 {"roce_port_oper_up"},
	"RoCEPFCStormApprox":           {"roce_port_oper_up"},
	"RoCELinkSpeedDowngraded":      {"roce_port_oper_up"},
	"RoCEFDBEmptyOnActivePort":     {"roce_port_oper_up", "roce_port_mode_info"},
	"RoCENeighborMissing":          {"roce_port_oper_up"},
	"RoCEPFCMaskDrift":             {"roce_port_admin_up", "roce_pfcwd_storm_active"},
	"RoCEPFCMaskLost":              {"roce_pfcwd_storm_active"},
	"RoCEPFCNotAsIntended":         {"roce_port_admin_up", "roce_pfcwd_storm_active"},
	"RoCEMTUConfigDrift":           {"roce_port_admin_up"},
	"RoCEPFCWatchdogDisabled":      {"roce_port_admin_up"},
	"RoCELosslessDrops":            {"roce_queue_lossless", "roce_pg_lossless", "roce_port_oper_up"},
	"RoCEPGHeadroomNearExhaustion": {"roce_pg_lossless"},
	"RoCEECNNotConfigured":         {"roce_queue_lossless"},
}

func asks(s *set, r *rule, complain func(string, ...any)) {
	read := s.reads(r.expr)
	for _, name := range mustAsk[r.Alert] {
		if !read[name] {
			complain("does not ask %s", name)
		}
	}
}

// A node that boots has no mask and no MTU yet: a page about its configuration
// waits until it has had ten minutes. For two of them the reboot is the story.
func afterReboot(s *set, r *rule, complain func(string, ...any)) {
	if r.Alert == "" || !r.page() || r.Labels["layer"] != "config" || r.Alert == "RoCEPFCMaskLost" || r.Alert == "RoCEMTURegression" {
		return
	}
	if time.Duration(r.For) < 10*time.Minute && !s.reads(r.expr)["roce_node_boot_time_seconds"] {
		complain("for is less than 10m and it does not ask when the node booted")
	}
}

// Yesterday may not be there: then an alert that compares with it is silent, and
// must not fire because of that.
func missingHistory(s *set, r *rule, complain func(string, ...any)) {
	inspect(r.expr, func(n parser.Node, path []parser.Node) {
		v, is := n.(*parser.VectorSelector)
		if !is || v.OriginalOffset < time.Hour {
			return
		}
		whole := append(path, n)
		for i, p := range path {
			c, called := p.(*parser.Call)
			b, binary := p.(*parser.BinaryExpr)
			if called && strings.HasPrefix(c.Func.Name, "absent") || binary && b.Op == parser.LUNLESS && whole[i+1] == b.RHS {
				complain("%s offset %s: fires where there is no history", v.Name, v.OriginalOffset)
			}
		}
	})
}

// Any job that has roce in its name is ours, and no other. What is joined with
// the identity of our nodes is ours as well.
func jobs(s *set, r *rule, complain func(string, ...any)) {
	for _, v := range selectors(r.expr) {
		target := v.Name == "up" || strings.HasPrefix(v.Name, "scrape_")
		if target && !matches(v, "job", labels.MatchRegexp, ".*roce.*") && !s.reads(r.expr)["roce_node_info"] {
			complain(`%s of all jobs: job=~".*roce.*"`, v.Name)
		}
	}
}

// Labels that may change while the fault stays the same: `for` would begin anew.
var volatile = []string{"alias", "asic", "firmware", "hwsku", "instance", "job", "mac", "method", "os_version", "platform", "source", "type", "window"}

// An alert says which node it is about, and keeps its labels as long as the fault stays.
func identity(s *set, r *rule, complain func(string, ...any)) {
	if r.Alert == "" {
		return
	}
	for _, l := range []string{"severity", "layer", "team"} {
		if r.Labels[l] == "" {
			complain("no label %s", l)
		}
	}
	if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
		complain("severity %q", r.Labels["severity"])
	}
	layers := []string{"pfc", "loss", "buffer", "ecn", "cnp", "config", "link", "inventory", "meta"}
	if !slices.Contains(layers, r.Labels["layer"]) {
		complain("layer %q", r.Labels["layer"])
	}
	if r.Labels["layer"] == "meta" {
		return
	}
	got := s.shape(r.expr, nil)
	// Of the fleet, not of a node.
	fleet := []string{"RoCEFirmwareSkew", "RoCEECNThresholdOutlier", "RoCEPFCDeadlockCycle", "RoCECNPNotHandled"}
	for _, l := range []string{"fabric", "node"} {
		if !got.must[l] && (l != "node" || !slices.Contains(fleet, r.Alert)) {
			complain("has no label %s", l)
		}
	}
	for _, l := range volatile {
		if got.may[l] && (l != "asic" || !got.may["pool"]) {
			complain("has the label %s, which may change while the fault stays", l)
		}
	}
}

var usedLabel = regexp.MustCompile(`\$labels\.(\w+)`)

// What somebody reads at night must be there and true.
func texts(s *set, r *rule, complain func(string, ...any)) {
	if r.Alert == "" {
		return
	}
	for _, a := range []string{"summary", "description", "runbook_url", "dashboard_url"} {
		if r.Annotations[a] == "" {
			complain("no %s", a)
		}
	}
	got := s.shape(r.expr, nil)
	for name, text := range r.Annotations {
		for _, m := range usedLabel.FindAllStringSubmatch(text, -1) {
			if l := m[1]; !got.may[l] && r.Labels[l] == "" {
				complain("%s says $labels.%s, which the alert does not have", name, l)
			}
		}
	}
	for _, l := range []string{"node", "port", "priority", "queue", "peer"} {
		if said := r.Annotations["summary"] + r.Annotations["description"]; got.may[l] && !strings.Contains(said, "$labels."+l) && (l != "port" || !got.must["device"]) {
			complain("does not say $labels.%s", l)
		}
	}
	// Browsers and code hosts make an anchor of a heading in small letters.
	if !s.runbook[r.Alert] || !strings.HasSuffix(r.Annotations["runbook_url"], "RUNBOOK.md#"+strings.ToLower(r.Alert)) {
		complain("runbook_url %q: no such heading in RUNBOOK.md", r.Annotations["runbook_url"])
	}
	if url := r.Annotations["dashboard_url"]; url != "" && !strings.Contains(url, "/d/roce-") {
		complain("dashboard_url %q: /d/roce-…", url)
	} else if got.must["fabric"] && r.Labels["layer"] != "meta" && !strings.Contains(url, "var-fabric={{ $labels.fabric }}") {
		complain("dashboard_url %q does not choose the fabric", url)
	}
}

var recordingName = regexp.MustCompile(`^[a-z_]+:roce_[a-z0-9_]+(:[a-z0-9_]+)?$|^roce:[a-z0-9_]+:threshold$`)

// level:metric:operations, as everybody does, the last only where there are any.
// Two rules of one name may give the same series, and one of these is lost.
func recordingNames(s *set, r *rule, complain func(string, ...any)) {
	if r.Record == "" {
		return
	}
	if !recordingName.MatchString(r.Record) {
		complain("level:roce_…:operations")
	}
	for _, other := range s.rules {
		if other != r && other.Record == r.Record {
			complain("recorded twice")
		}
	}
}

// RoCERuleFailures finds our groups by their names. A value is looked for no more
// than five minutes back, so no group may be slower.
func groups(s *set, r *rule, complain func(string, ...any)) {
	if !strings.Contains(r.group, "roce") {
		complain("group %s has no roce in its name", r.group)
	}
	if r.interval > 5*time.Minute {
		complain("every %s: values are found for 5m", r.interval)
	}
	seen := false
	for _, other := range s.rules {
		if other == r {
			seen = true
		}
		if seen && other != r && other.group == r.group && other.Record != "" && slices.ContainsFunc(selectors(r.expr), func(v *parser.VectorSelector) bool { return v.Name == other.Record }) {
			complain("reads %s, which its group records later: it is an interval old", other.Record)
		}
	}
}
