// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Type is what a family's values mean.
type Type string

// The types of families.
const (
	Counter Type = "counter"
	Gauge   Type = "gauge"
	Info    Type = "info" // Text in labels, the value is 1.
)

// A Family is one metric: plain data, a row of the table in families.go.
type Family struct {
	Name   string
	Help   string
	Type   Type
	Labels []string
	From   []Origin
}

// An Origin is a raw name that gives a family's value. The order of a family's
// origins is preference: for one label set the first that has a value wins.
type Origin struct {
	Source string            // A row of the table of sources: "counters.port".
	Driver string            // The driver it holds for; empty: any.
	Raw    []string          // The names as the device spells them; several are added up, and all must be there. May hold {priority}.
	Scale  float64           // Multiplies the raw value into base units; 0 is 1.
	Labels map[string]string // Label values that come with the raw name.
	Note   string            // What a reader of METRICS.md should know.
}

// A RawSource is a place where raw names are found.
type RawSource struct {
	Name   string
	Object string   // The kind of object whose raw values it is about; several sources may share it.
	Where  string   // For people: "COUNTERS_DB COUNTERS:<port>".
	Labels []string // What identifies an object of it.
	Group  string   // The poll group of CONFIG_DB that fills it; empty: none.
	Facts  bool     // Read by code of its own: its origins are for documentation.
}

// choiceLabel tells how a value came about and not what it is of: origins that
// differ in it alone are alternatives.
const choiceLabel = "method"

// placeholder stands in raw names for one of the eight priorities.
const placeholder = "{priority}"

// A Catalog is the table made ready for look-up. It is immutable, but for the
// memory of responses that it keeps.
type Catalog struct {
	families []family
	byName   map[string]int
	sources  map[string]*rawSource
	objects  map[string]*object
	shapes   map[string]int // Rows of the same shape have, for one object, the same labels.
	choices  map[string]int // Rows of the same choice are, for one object, alternatives.
	free     chan *arena
}

type family struct {
	Family
	order  []int // Indices of Labels, sorted by label name.
	noASIC bool  // Carries no asic label on any device.
}

type rawSource struct {
	RawSource
	rows []row
	of   *object
}

// An object is a kind of object with the raw names that rows want of it, in
// the order in which its values are handed over.
type object struct {
	names []string
	index map[string]int
}

// A row is an origin with its placeholder filled in.
type row struct {
	family   int
	driver   string // That it holds for; empty: any.
	raw      []int  // Of the names of its object.
	scale    float64
	divisor  float64
	priority string   // What the placeholder stands for; empty: none.
	fixed    []string // By index of the family's labels: the value, or empty.
	object   []int    // By index of the family's labels: index of the object's labels, or -1.
	choice   int
	shape    int
}

// NewCatalog checks the table and makes it ready.
func NewCatalog(families []Family, sources []RawSource) (*Catalog, error) {
	c := &Catalog{
		byName: map[string]int{}, sources: map[string]*rawSource{}, objects: map[string]*object{},
		shapes: map[string]int{}, choices: map[string]int{}, free: make(chan *arena, 1),
	}
	for _, s := range sources {
		if c.sources[s.Name] != nil {
			return nil, fmt.Errorf("source %s: listed twice", s.Name)
		}
		if c.objects[s.Object] == nil {
			c.objects[s.Object] = &object{index: map[string]int{}}
		}
		c.sources[s.Name] = &rawSource{RawSource: s, of: c.objects[s.Object]}
	}
	families = slices.Clone(families)
	slices.SortFunc(families, func(a, b Family) int { return strings.Compare(a.Name, b.Name) })
	for i, f := range families {
		if _, ok := c.byName[f.Name]; ok {
			return nil, fmt.Errorf("family %s: listed twice", f.Name)
		}
		c.byName[f.Name] = i
		fam := family{Family: f, noASIC: hasPrefix(f.Name, "roce_node_", "roce_exporter_", "roce_scrape_", "roce_policy_")}
		for j := range f.Labels {
			fam.order = append(fam.order, j)
		}
		slices.SortFunc(fam.order, func(a, b int) int { return strings.Compare(f.Labels[a], f.Labels[b]) })
		c.families = append(c.families, fam)
		for _, o := range f.From {
			if err := c.addOrigin(i, o); err != nil {
				return nil, fmt.Errorf("family %s: %w", f.Name, err)
			}
		}
	}
	return c, nil
}

// addOrigin expands an origin into rows of its source.
func (c *Catalog) addOrigin(familyIndex int, o Origin) error {
	s := c.sources[o.Source]
	if s == nil {
		return fmt.Errorf("unknown source %q", o.Source)
	}
	if s.Facts {
		return nil
	}
	if len(o.Raw) == 0 {
		return fmt.Errorf("source %s: an origin without a raw name", o.Source)
	}
	priorities := []string{""}
	if strings.Contains(o.Raw[0], placeholder) {
		priorities = []string{"0", "1", "2", "3", "4", "5", "6", "7"}
	}
	for _, priority := range priorities {
		r := row{family: familyIndex, driver: o.Driver, scale: cmp.Or(o.Scale, 1), divisor: 1, priority: priority}
		if whole := math.Round(1 / r.scale); r.scale < 1 && math.Abs(whole*r.scale-1) < 1e-12 {
			r.scale, r.divisor = 1, whole // 400000/1e6 is 0.4, 400000*1e-6 is not.
		}
		for _, raw := range o.Raw {
			name := strings.ReplaceAll(raw, placeholder, priority)
			at := number(s.of.index, name)
			if at == len(s.of.names) {
				s.of.names = append(s.of.names, name)
			}
			r.raw = append(r.raw, at)
		}
		shape, choice := "", c.families[familyIndex].Name
		for _, label := range c.families[familyIndex].Labels {
			value, at := o.Labels[label], -1
			switch {
			case value != "":
			case label == "priority" && priority != "":
				value = priority
			default:
				if at = slices.Index(s.Labels, label); at < 0 {
					return fmt.Errorf("source %s: nothing gives label %s", o.Source, label)
				}
			}
			r.fixed, r.object = append(r.fixed, value), append(r.object, at)
			shape += label + "=" + value + ","
			if label != choiceLabel {
				choice += "," + label + "=" + value
			}
		}
		r.shape, r.choice = number(c.shapes, shape), number(c.choices, choice)
		s.rows = append(s.rows, r)
	}
	return nil
}

// number finds the number that key has, or gives it the next one.
func number(numbers map[string]int, key string) int {
	n, ok := numbers[key]
	if !ok {
		n = len(numbers)
		numbers[key] = n
	}
	return n
}

// Wanted has the raw names that rows want of a kind of object, in the order in
// which Builder.Counters takes their values.
func (c *Catalog) Wanted(object string) []string { return c.objects[object].names }

// Families returns the table, sorted by name.
func (c *Catalog) Families() []Family {
	out := make([]Family, len(c.families))
	for i := range c.families {
		out[i] = c.families[i].Family
	}
	return out
}

func hasPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}
