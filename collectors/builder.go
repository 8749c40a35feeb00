// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
)

// Samples are the values of a Reading, by family.
type Samples struct{ families [][]sample }

type sample struct {
	labels *labelSet
	value  float64
}

// A labelSet is the labels of a sample, sorted by name. Samples of different
// families share it.
type labelSet struct {
	pairs []*dto.LabelPair
	// While duplicates are sought: where it was seen last, and where twice.
	seen, twice place
	next        *labelSet // Of the same hash.
}

// A place is a family of a reading.
type place struct {
	reading uint64
	family  int
}

// A Builder makes the samples of one Reading after the other. What a registry
// would check at every sample it checks once a label set: clean values, sorted
// names, no two samples alike. Label sets are kept for the next reading, which
// mostly has the same.
type Builder struct {
	catalog *Catalog
	asic    *dto.LabelPair // Appended to every series of a switch with several ASICs.
	driver  string         // Of the objects at hand.
	pairs   map[string]*dto.LabelPair
	sets    map[uint64]*labelSet // By the hash of the labels.
	hashing maphash.Seed
	reading uint64     // Number of the reading at hand.
	samples [][]sample // By family.
	sizes   []int      // Of the last reading, by family.
	key     []byte     // Scratch.
	object  []objectState
	number  uint64 // Of the object being mapped.
}

// objectState says for which object a choice was made and a shape's labels are.
type objectState struct {
	chosen, shaped uint64
	labels         *labelSet
}

// NewBuilder returns a Builder of the catalog's families.
func (c *Catalog) NewBuilder() *Builder {
	return &Builder{
		catalog: c,
		pairs:   map[string]*dto.LabelPair{},
		sets:    map[uint64]*labelSet{},
		hashing: maphash.MakeSeed(),
		reading: 1,
		samples: make([][]sample, len(c.families)),
		sizes:   make([]int, len(c.families)),
		object:  make([]objectState, max(len(c.shapes), len(c.choices))),
	}
}

// ASIC sets the asic label of what is added from now on; empty: none.
func (b *Builder) ASIC(name string) {
	b.asic = nil
	if name != "" {
		b.asic = b.pair("asic", Clean(name))
	}
}

// Driver sets whose raw names Counters takes from now on; empty: those of no
// driver.
func (b *Builder) Driver(name string) { b.driver = name }

// Add adds one value. The label values are in the order of the family's labels.
func (b *Builder) Add(name string, value float64, labelValues ...string) {
	i, ok := b.catalog.byName[name]
	if !ok || len(labelValues) != len(b.catalog.families[i].Labels) {
		panic(fmt.Sprintf("family %s with %d labels is not in the table", name, len(labelValues)))
	}
	f := &b.catalog.families[i]
	labels := b.set(f, func(label int) string { return labelValues[label] })
	b.add(i, labels, value)
}

// AddBool adds 1 or 0.
func (b *Builder) AddBool(name string, value bool, labelValues ...string) {
	if value {
		b.Add(name, 1, labelValues...)
		return
	}
	b.Add(name, 0, labelValues...)
}

// Maybe adds a value that may be unknown.
func (b *Builder) Maybe(name string, value *float64, labelValues ...string) {
	if value != nil {
		b.Add(name, *value, labelValues...)
	}
}

// MaybeBool adds 1 or 0, or nothing if it is unknown.
func (b *Builder) MaybeBool(name string, value *bool, labelValues ...string) {
	if value != nil {
		b.AddBool(name, *value, labelValues...)
	}
}

// Object begins the next object: what Counters adds from now on is of this one,
// and for each label set the first value wins.
func (b *Builder) Object() { b.number++ }

// Counters adds what the rows of a source make of an object's raw values,
// which are in the order of Catalog.Wanted, NaN for none. labels are the
// object's, in the order of the source's; keep may leave out priorities (""
// where a row has none).
func (b *Builder) Counters(source string, values []float64, keep func(priority string) bool, labels ...string) {
	if len(values) == 0 {
		return
	}
	rows := b.catalog.sources[source].rows
	for i := range rows {
		r := &rows[i]
		if r.driver != "" && r.driver != b.driver || b.object[r.choice].chosen == b.number {
			continue
		}
		value := 0.0
		for _, raw := range r.raw {
			value += values[raw]
		}
		if math.IsNaN(value) || keep != nil && !keep(r.priority) {
			continue
		}
		b.object[r.choice].chosen = b.number
		state := &b.object[r.shape]
		if state.shaped != b.number {
			state.shaped = b.number
			state.labels = b.set(&b.catalog.families[r.family], func(label int) string {
				if at := r.object[label]; at >= 0 {
					return labels[at]
				}
				return r.fixed[label]
			})
		}
		b.add(r.family, state.labels, value*r.scale/r.divisor)
	}
}

// Reserve leaves out, for the object at hand, what the rows of a source would
// give: it gave no answer, and if another one stood in for it, a series would
// jump to another counter for as long.
func (b *Builder) Reserve(source string) {
	for _, r := range b.catalog.sources[source].rows {
		if r.driver == "" || r.driver == b.driver {
			b.object[r.choice].chosen = b.number
		}
	}
}

// set finds or makes the label set of a family's label values.
func (b *Builder) set(f *family, value func(label int) string) *labelSet {
	asic := b.asic
	if f.noASIC {
		asic = nil
	}
	// The labels as they will stand, sorted: name, =, value, 0.
	b.key = b.key[:0]
	for _, label := range f.order {
		if asic != nil && f.Labels[label] > "asic" {
			b.key = appendLabel(b.key, "asic", asic.GetValue())
			asic = nil
		}
		b.key = appendLabel(b.key, f.Labels[label], Clean(value(label)))
	}
	if asic != nil {
		b.key = appendLabel(b.key, "asic", asic.GetValue())
	}
	hash := maphash.Bytes(b.hashing, b.key)
	first := b.sets[hash]
	for s := first; s != nil; s = s.next {
		if s.is(b.key) {
			return s
		}
	}
	s := &labelSet{pairs: make([]*dto.LabelPair, 0, len(f.order)+1), next: first}
	for label := range strings.SplitSeq(strings.TrimSuffix(string(b.key), "\x00"), "\x00") {
		if name, value, ok := strings.Cut(label, "="); ok {
			s.pairs = append(s.pairs, b.pair(name, value))
		}
	}
	b.sets[hash] = s
	return s
}

func appendLabel(key []byte, name, value string) []byte {
	return append(append(append(append(key, name...), '='), value...), 0)
}

// is says whether the set has the labels of a key. A value has no 0 in it.
func (s *labelSet) is(key []byte) bool {
	for _, p := range s.pairs {
		name, value := *p.Name, *p.Value
		n := len(name) + 1 + len(value) + 1
		if len(key) < n || string(key[:len(name)]) != name || key[len(name)] != '=' ||
			string(key[len(name)+1:n-1]) != value || key[n-1] != 0 {
			return false
		}
		key = key[n:]
	}
	return len(key) == 0
}

// pair finds or makes a label pair; value is clean.
func (b *Builder) pair(name, value string) *dto.LabelPair {
	key := name + "=" + value
	p, ok := b.pairs[key]
	if !ok {
		name, value = strings.Clone(name), strings.Clone(value) // Not the key that they were cut from.
		p = &dto.LabelPair{Name: &name, Value: &value}
		b.pairs[key] = p
	}
	return p
}

// maxLabelBytes is where a label value is cut: the longest names of ports,
// profiles and neighbours are shorter, and LLDP lets a stranger send any.
const maxLabelBytes = 128

// Clean makes text from a device fit for a label: valid UTF-8, no control
// characters, at most 128 bytes.
func Clean(value string) string {
	clean := len(value) <= maxLabelBytes
	for i := 0; i < len(value) && clean; i++ {
		clean = value[i] >= ' ' && value[i] < utf8.RuneSelf && value[i] != 0x7f
	}
	if clean {
		return value
	}
	value = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(value, string(utf8.RuneError)))
	if len(value) > maxLabelBytes {
		cut := maxLabelBytes
		for !utf8.RuneStart(value[cut]) {
			cut--
		}
		value = value[:cut]
	}
	return value
}

// Samples ends a reading and begins the next. It leaves out every label set
// that a family has twice, since nobody can tell which is right, and what
// exceeds the limit (0: none), lossless families last; it returns how many of
// each.
func (b *Builder) Samples(limit int) (samples Samples, duplicates, dropped int) {
	total := 0
	for i, family := range b.samples {
		here := place{b.reading, i}
		twice := false
		for _, s := range family {
			if s.labels.seen == here {
				s.labels.twice, twice = here, true
			}
			s.labels.seen = here
		}
		if twice {
			kept := slices.DeleteFunc(family, func(s sample) bool { return s.labels.twice == here })
			duplicates += len(family) - len(kept)
			b.samples[i] = kept
		}
		total += len(b.samples[i])
	}
	defer b.next(total)
	if limit <= 0 || total <= limit {
		return Samples{b.samples}, duplicates, 0
	}
	for _, lossless := range []bool{false, true} {
		for i := len(b.samples) - 1; i >= 0 && total > limit; i-- {
			if isLossless(b.catalog.families[i].Name) != lossless {
				continue
			}
			cut := min(len(b.samples[i]), total-limit)
			b.samples[i] = b.samples[i][:len(b.samples[i])-cut]
			total, dropped = total-cut, dropped+cut
		}
	}
	return Samples{b.samples}, duplicates, dropped
}

// next makes ready for a reading of about as many samples. Label sets of what
// is gone are forgotten all at once when they outnumber what is there.
func (b *Builder) next(total int) {
	b.reading++
	if len(b.sets) > 2*total+1000 {
		b.pairs, b.sets = map[string]*dto.LabelPair{}, map[uint64]*labelSet{}
	}
	for i, family := range b.samples {
		b.sizes[i] = len(family)
	}
	b.samples = make([][]sample, len(b.samples))
}

// Reset forgets the samples of a reading that was not ended: its mapping
// failed.
func (b *Builder) Reset() {
	clear(b.samples)
	b.ASIC("")
	b.Driver("")
}

// add adds a sample to a family.
func (b *Builder) add(family int, labels *labelSet, value float64) {
	if b.samples[family] == nil {
		b.samples[family] = make([]sample, 0, b.sizes[family])
	}
	b.samples[family] = append(b.samples[family], sample{labels, value})
}

// isLossless says whether a family is among the last to go: those that tell
// whether the fabric is lossless, and for whom.
func isLossless(name string) bool {
	return hasPrefix(name, "roce_node_", "roce_pfc", "roce_pg_", "roce_queue_lossless", "roce_queue_dropped", "roce_redis_up",
		"roce_port_oper_up", "roce_port_info", "roce_rdma_cnp_", "roce_nic_pause_storm")
}
