// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// A shape is what is known of the series that a query returns: the labels that
// each has, those that some have, and those that tell one from another.
type shape struct {
	must, may, key map[string]bool
	from           map[string]string // A label that was written over: the one of the key that it is a copy of.
}

// origin is the label whose values a label has.
func (s shape) origin(label string) string {
	if from, changed := s.from[label]; changed {
		return from
	}
	return label
}

// copied is the shape with a label that has the values of another; "": new ones.
func (s shape) copied(to, from string) shape {
	origin := "new " + to
	if from != "" {
		origin = s.origin(from)
	}
	s = s.with(to)
	s.from = maps.Clone(s.from)
	if s.from == nil {
		s.from = map[string]string{}
	}
	s.from[to] = origin
	return s
}

// settled is the shape with a key of its own labels.
func (s shape) settled() shape {
	key := of()
	for k := range s.key {
		for l := range s.may {
			if s.origin(l) == k {
				k = l
				break
			}
		}
		key[k] = true
	}
	s.key, s.from = key, nil
	return s
}

func of(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

func (s shape) with(name string) shape {
	s.must, s.may = maps.Clone(s.must), maps.Clone(s.may)
	s.must[name], s.may[name] = true, true
	return s
}

// either is the shape of one or the other.
func either(a, b shape) shape {
	a, b = a.settled(), b.settled()
	s := shape{of(), maps.Clone(a.may), maps.Clone(a.key), nil}
	for l := range a.must {
		if b.must[l] {
			s.must[l] = true
		}
	}
	maps.Copy(s.may, b.may)
	maps.Copy(s.key, b.key)
	return s
}

// Labels that follow from others of the same series: they tell nothing apart.
func dependent(label string, among map[string]bool) bool {
	switch label {
	case "tier", "role":
		return among["node"]
	case "peer_role", "peer_tier":
		return among["peer"]
	case "asic", "speed", "pci_address": // Names of ports are unique over the ASICs of a switch.
		return among["port"]
	case "port", "board_id": // Of an RDMA device, one each.
		return among["device"] && among["rdma_port"]
	}
	return false
}

// unique says whether at most one series has the same values of the labels.
func (s shape) unique(on []string) bool {
	have := of()
	for _, l := range on {
		have[s.origin(l)] = true
	}
	for l := range s.key {
		if !have[l] && !dependent(l, have) {
			return false
		}
	}
	return true
}

// asics says whether series of a family carry asic on a switch with several.
func asics(name string) bool {
	for _, prefix := range []string{"roce_node_", "roce_scrape_", "roce_policy_", "roce_exporter_", "roce_rdma_", "roce_nic_", "roce_pcie_", "roce_host_"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return strings.HasPrefix(name, "roce_")
}

// shape finds out what a query returns. complain, if not nil, hears of labels
// that are asked for where they cannot be, and of joins that can fail.
func (s *set) shape(expr parser.Expr, complain func(string, ...any)) shape {
	if complain == nil {
		complain = func(string, ...any) {}
	}
	switch e := expr.(type) {
	case *parser.VectorSelector:
		return s.selected(e, complain)
	case *parser.MatrixSelector:
		return s.shape(e.VectorSelector, complain)
	case *parser.SubqueryExpr:
		return s.shape(e.Expr, complain)
	case *parser.ParenExpr:
		return s.shape(e.Expr, complain)
	case *parser.UnaryExpr:
		return s.shape(e.Expr, complain)
	case *parser.StepInvariantExpr:
		return s.shape(e.Expr, complain)
	case *parser.Call:
		return s.called(e, complain)
	case *parser.AggregateExpr:
		return s.aggregated(e, complain)
	case *parser.BinaryExpr:
		return s.joined(e, complain)
	}
	return shape{of(), of(), of(), nil}
}

func (s *set) selected(e *parser.VectorSelector, complain func(string, ...any)) shape {
	found, known := s.recorded[e.Name]
	if f, is := s.families[e.Name]; is {
		known = true
		all := of(append([]string{"instance", "job"}, f.labels...)...)
		found = shape{all, maps.Clone(all), maps.Clone(all), nil}
		if asics(e.Name) {
			found.may["asic"], found.key["asic"] = true, true
		}
	}
	if !known {
		complain("%s is neither exported nor recorded", e.Name)
		return shape{of(), of(), of(), nil}
	}
	found.key = maps.Clone(found.key)
	for _, m := range e.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			continue
		}
		if !found.may[m.Name] {
			complain("%s has no label %s", e.Name, m.Name)
		}
		if m.Type == labels.MatchEqual && m.Value != "" {
			delete(found.key, m.Name)
		}
	}
	return found
}

func (s *set) called(e *parser.Call, complain func(string, ...any)) shape {
	text := func(i int) string {
		if l, is := e.Args[i].(*parser.StringLiteral); is {
			return l.Val
		}
		return ""
	}
	switch e.Func.Name {
	case "label_replace":
		found := s.shape(e.Args[0], complain)
		to, from := text(1), text(3)
		if from != "" && !found.may[from] { // "" writes a constant.
			complain("label_replace reads %s, which is not there", from)
		}
		if text(2) != "$1" || text(4) != "(.*)" {
			from = ""
		}
		return found.copied(to, from)
	case "label_join":
		found := s.shape(e.Args[0], complain)
		for i := 3; i < len(e.Args); i++ {
			if !found.may[text(i)] {
				complain("label_join reads %s, which is not there", text(i))
			}
		}
		return found.copied(text(1), "")
	case "absent", "absent_over_time":
		found := shape{of(), of(), of(), nil}
		s.shape(e.Args[0], complain)
		for _, v := range selectors(e.Args[0]) {
			for _, m := range v.LabelMatchers {
				if m.Type == labels.MatchEqual && m.Name != model.MetricNameLabel {
					found = found.with(m.Name)
				}
			}
		}
		return found
	case "scalar", "vector", "time":
		for _, a := range e.Args {
			s.shape(a, complain)
		}
		return shape{of(), of(), of(), nil}
	}
	found := shape{of(), of(), of(), nil}
	for _, a := range e.Args {
		switch a.Type() {
		case parser.ValueTypeVector, parser.ValueTypeMatrix:
			found = s.shape(a, complain)
		default:
			s.shape(a, complain)
		}
	}
	return found
}

func (s *set) aggregated(e *parser.AggregateExpr, complain func(string, ...any)) shape {
	inner := s.shape(e.Expr, complain)
	if e.Without {
		complain("without keeps whatever labels targets have: name those that stay")
		return inner
	}
	// quantile and topk have a number, count_values a label.
	if e.Param != nil && e.Op != parser.COUNT_VALUES {
		s.shape(e.Param, complain)
	}
	for _, l := range e.Grouping {
		if !inner.may[l] {
			complain("%s by (%s): what it aggregates has no %s", e.Op, strings.Join(e.Grouping, ", "), l)
		}
	}
	switch e.Op {
	case parser.TOPK, parser.BOTTOMK, parser.LIMITK:
		if n, is := e.Param.(*parser.NumberLiteral); is && n.Val == 1 {
			inner = inner.settled()
			inner.key = of(e.Grouping...)
		}
		return inner
	}
	found := shape{of(), of(), of(), nil}
	for _, l := range e.Grouping {
		found.may[l], found.key[l] = true, true
		if inner.must[l] {
			found.must[l] = true
		}
	}
	if inner.unique(e.Grouping) { // It only drops labels, as group by around topk does.
		found.key = of()
		for _, l := range e.Grouping {
			if inner.key[inner.origin(l)] {
				found.key[l] = true
			}
		}
	}
	if e.Op == parser.COUNT_VALUES {
		if l, is := e.Param.(*parser.StringLiteral); is {
			found = found.with(l.Val)
			found.key[l.Val] = true
		}
	}
	return found
}

func without(labels map[string]bool, some []string) []string {
	rest := maps.Clone(labels)
	for _, l := range some {
		delete(rest, l)
	}
	return slices.Sorted(maps.Keys(rest))
}

func (s *set) joined(e *parser.BinaryExpr, complain func(string, ...any)) shape {
	left, right := s.shape(e.LHS, complain), s.shape(e.RHS, complain)
	if e.LHS.Type() == parser.ValueTypeScalar {
		return right
	}
	if e.RHS.Type() == parser.ValueTypeScalar {
		return left
	}
	m := e.VectorMatching
	on := m.MatchingLabels
	where := func() string { return "… " + e.Op.String() + " on (" + strings.Join(on, ", ") + ") …" }
	switch {
	case m.On:
		for _, l := range on {
			if !left.may[l] {
				complain("%s: the left side has no %s", where(), l)
			}
			if !right.may[l] {
				complain("%s: the right side has no %s", where(), l)
			}
		}
	case len(on) > 0: // ignoring
		on = without(left.may, on)
		if rest := without(right.may, m.MatchingLabels); !slices.Equal(on, rest) {
			complain("%s ignoring: one side has %s, the other %s", e.Op, strings.Join(on, ", "), strings.Join(rest, ", "))
		}
	case e.Op == parser.LOR:
		on = slices.Sorted(maps.Keys(left.may))
	default:
		if !maps.Equal(left.may, right.may) {
			complain("%s without on: one side has %s, the other %s", e.Op, sorted(left.may), sorted(right.may))
		}
		on = slices.Sorted(maps.Keys(left.may))
	}
	if len(on) > 0 && left.may["instance"] && right.may["instance"] && (!slices.Contains(on, "instance") || !slices.Contains(on, "job")) {
		complain("%s: raw series are of an instance and a job", where())
	}
	if left.may["fabric"] && right.may["fabric"] && len(on) > 0 && !slices.Contains(on, "fabric") && !slices.Contains(on, "instance") {
		complain("%s: the same name may be in two fabrics", where())
	}
	switch m.Card {
	case parser.CardManyToMany:
		if e.Op == parser.LOR {
			found := either(left, right)
			if m.On && left.unique(on) && right.unique(on) {
				found.key = of(on...)
			}
			return found
		}
		if counted(e) {
			left = left.settled()
			left.key = of(on...)
		}
		return left
	case parser.CardOneToOne:
		if !left.unique(on) {
			complain("%s: the left side can have several, told apart by %s: group_left?", where(), sorted(left.key))
		}
		if !right.unique(on) {
			complain("%s: the right side can have several, told apart by %s: aggregate it first", where(), sorted(right.key))
		}
		found := shape{of(), of(), of(on...), nil}
		for _, l := range on {
			found.may[l] = true
			if left.must[l] || right.must[l] {
				found.must[l] = true
			}
		}
		return found
	}
	many, one := left, right
	if m.Card == parser.CardOneToMany {
		many, one = right, left
	}
	if !one.unique(on) {
		complain("%s: the side of one can have several, told apart by %s: aggregate it first", where(), sorted(one.key))
	}
	for _, l := range m.Include {
		if !one.may[l] {
			complain("%s: group_left takes %s, which is not there", where(), l)
		}
		always := many.must[l] || one.must[l]
		many = many.copied(l, "")
		many.must[l] = always
	}
	return many
}

// counted says whether it is "… and on (x) count by (x) (…) == 1": only what is
// there once.
func counted(e *parser.BinaryExpr) bool {
	b, is := e.RHS.(*parser.BinaryExpr)
	if !is || e.Op != parser.LAND || b.Op != parser.EQLC {
		return false
	}
	a, is := b.LHS.(*parser.AggregateExpr)
	one, number := b.RHS.(*parser.NumberLiteral)
	return is && number && a.Op == parser.COUNT && one.Val == 1 && slices.Equal(a.Grouping, e.VectorMatching.MatchingLabels)
}
