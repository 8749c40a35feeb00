// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"gopkg.in/yaml.v3"
)

// A decoder walks the nodes of a YAML document and collects what is wrong with
// them. Decoding into structs would not do: yaml.v3 takes 1.5 for the integer
// 1 and null for 0, and does not tell where.
type decoder struct {
	name   string
	faults []fault
}

type fault struct {
	line         int // 0: unknown.
	path, reason string
}

// A value decodes one node.
type value func(d *decoder, n *yaml.Node, path string)

// keys are those that an object may have.
type keys map[string]value

// document parses the data, which must be one document or none.
func (d *decoder) document(data []byte) *yaml.Node {
	var document, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		d.syntax(err)
		return nil
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		d.faults = append(d.faults, fault{second.Line, "", "a second document: put everything into one"})
		return nil
	case !errors.Is(err, io.EOF):
		d.syntax(err)
		return nil
	}
	root := document.Content[0]
	if root.ShortTag() == "!!null" && root.Value == "" {
		return nil // Nothing but comments or "---".
	}
	return root
}

// syntax takes over an error of the parser, which has the line in its text.
func (d *decoder) syntax(err error) {
	reason, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if found := regexp.MustCompile(`^line (\d+): (.*)`).FindStringSubmatch(reason); found != nil {
		line, _ = strconv.Atoi(found[1])
		reason = found[2]
	}
	d.faults = append(d.faults, fault{line, "", "not YAML: " + reason})
}

func (d *decoder) fail(n *yaml.Node, path, format string, args ...any) {
	d.faults = append(d.faults, fault{n.Line, path, fmt.Sprintf(format, args...)})
}

// failed says whether something at or below the path was wrong.
func (d *decoder) failed(path string) bool {
	return slices.ContainsFunc(d.faults, func(f fault) bool { return strings.HasPrefix(f.path, path) })
}

// maxFaults bounds what is said of a file that is something else altogether.
const maxFaults = 20

// err has one line for each fault, in the order of the file.
func (d *decoder) err() error {
	slices.SortStableFunc(d.faults, func(a, b fault) int { return cmp.Compare(a.line, b.line) })
	var errs []error
	for i, f := range d.faults {
		if i == maxFaults {
			errs = append(errs, fmt.Errorf("%s: and %d more", d.name, len(d.faults)-i))
			break
		}
		text := d.name
		if f.line > 0 {
			text += ":" + strconv.Itoa(f.line)
		}
		if f.path != "" {
			text += ": " + f.path
		}
		errs = append(errs, errors.New(text+": "+f.reason))
	}
	return errors.Join(errs...)
}

// kindOf names what stands there, for people.
func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "an object"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.ShortTag() == "!!null":
		return "nothing"
	}
	return map[string]string{
		"!!str": "text", "!!int": "an integer", "!!float": "a fraction", "!!bool": "true or false", "!!timestamp": "a date",
	}[n.ShortTag()]
}

// is says whether the node is what is due, and complains if not.
func (d *decoder) is(n *yaml.Node, path string, kind yaml.Kind, tag, due, hint string) bool {
	if n.Kind == yaml.AliasNode {
		d.fail(n, path, "a reference (*%s): write the value out", n.Value)
		return false
	}
	if n.Kind == kind && n.ShortTag() == tag {
		return true
	}
	if n.ShortTag() == "!!null" {
		d.fail(n, path, "nothing stands here: give it %s, or leave the key out for its default", due)
		return false
	}
	if found := kindOf(n); found != "" {
		hint = found + hint
	} else {
		hint = n.ShortTag() + hint
	}
	d.fail(n, path, "must be %s, not %s", due, hint)
	return false
}

// object decodes a mapping that has no other keys than these.
func (d *decoder) object(n *yaml.Node, path string, known keys) {
	if !d.is(n, path, yaml.MappingNode, "!!map", "an object (key: value)", "") {
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, at := n.Content[i], n.Content[i].Value
		if path != "" {
			at = path + "." + at
		}
		decode, ok := known[key.Value]
		switch {
		case !ok || key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			d.fail(key, at, "unknown key: %s", nearest(key.Value, known))
		case first[key.Value] > 0:
			d.fail(key, at, "stands twice, first on line %d: leave one out", first[key.Value])
		default:
			first[key.Value] = key.Line
			decode(d, n.Content[i+1], at)
		}
	}
}

// items are the elements of a list.
func (d *decoder) items(n *yaml.Node, path string) []*yaml.Node {
	if !d.is(n, path, yaml.SequenceNode, "!!seq", "a list ([…])", "") {
		return nil
	}
	return n.Content
}

// nearest suggests the key that was meant.
func nearest(unknown string, known keys) string {
	names := slices.Sorted(maps.Keys(known))
	best := slices.MinFunc(names, func(a, b string) int { return cmp.Compare(distance(unknown, a), distance(unknown, b)) })
	if distance(unknown, best) <= max(2, len(best)/2) {
		return "did you mean " + best + "?"
	}
	return "the keys here are " + strings.Join(names, ", ")
}

// distance counts the letters to insert, delete or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// asObject is a value with keys of its own.
func asObject(known keys) value {
	return func(d *decoder, n *yaml.Node, path string) { d.object(n, path, known) }
}

// asScalar is a value that is text; set says what is wrong with it.
func asScalar(due, hint string, set func(text string) error) value {
	return func(d *decoder, n *yaml.Node, path string) {
		if !d.is(n, path, yaml.ScalarNode, "!!str", due, hint) {
			return
		}
		if err := set(n.Value); err != nil {
			d.fail(n, path, "%v", err)
		}
	}
}

func asText[T ~string](to *T) value {
	return asScalar("text", `: put it in quotes ("…")`, func(s string) error {
		if strings.ContainsFunc(s, unicode.IsControl) {
			return errors.New("has a control character: leave it out")
		}
		*to = T(s)
		return nil
	})
}

// asLabel is text that becomes the value of a label.
func asLabel(to *string) value {
	return asScalar("text", `: put it in quotes ("…")`, func(s string) error {
		if len(s) > maxLabelBytes || strings.ContainsFunc(s, unicode.IsControl) {
			return fmt.Errorf("must fit in a label: at most %d bytes, no control characters", maxLabelBytes)
		}
		*to = s
		return nil
	})
}

// maxLabelBytes is where collectors cut the value of a label.
const maxLabelBytes = 128

// asNamePattern is a name that may have *, ? and [0-9].
func asNamePattern(to *string) value {
	return asScalar("text", `: put it in quotes ("…")`, func(s string) error {
		if s == "" {
			return errors.New("is empty: give it a name or leave it out")
		}
		if _, err := path.Match(s, ""); err != nil {
			return fmt.Errorf(`%w: end each [ with a ], as in "tx[0-9]_bytes", or write \[ for the character`, err)
		}
		*to = s
		return nil
	})
}

func asOneOf(to *string, choices ...string) value {
	due := "one of " + strings.TrimPrefix(strings.Join(choices, ", "), ", ")
	if choices[0] == "" {
		due += ` or ""`
	}
	return asScalar(due, "", func(s string) error {
		if !slices.Contains(choices, s) {
			return fmt.Errorf("must be %s, not %q", due, s)
		}
		*to = s
		return nil
	})
}

func asPattern(to *Pattern) value {
	return asScalar("a regular expression", `: put it in quotes ("…")`, func(s string) (err error) {
		if *to, err = newPattern(s); err != nil {
			return fmt.Errorf("not a regular expression (RE2): %w", err)
		}
		return nil
	})
}

func asDuration(to *Duration, least time.Duration) value {
	const due = "a duration with its unit (10s, 500ms, 5m)"
	return asScalar(due, "", func(s string) error {
		parsed, err := time.ParseDuration(s)
		switch {
		case err != nil:
			return fmt.Errorf("must be %s, not %q", due, s)
		case parsed < least:
			return fmt.Errorf("must be at least %v, not %s", least, s)
		}
		*to = Duration(parsed)
		return nil
	})
}

func asSpeed(to *Speed) value {
	const due = "a speed in bits per second with its unit (100G, 2.5G, 1.6T)"
	return asScalar(due, "", func(s string) error {
		for _, unit := range speedUnits() {
			digits, ok := strings.CutSuffix(s, unit.name)
			if !ok || strings.Trim(digits, "0123456789.") != "" {
				continue
			}
			if n, err := strconv.ParseFloat(digits, 64); err == nil && n > 0 {
				*to = Speed(n * unit.bits / 8)
				return nil
			}
		}
		return fmt.Errorf("must be %s, not %q", due, s)
	})
}

// asInteger is a whole decimal number.
func asInteger(to *int, least, most int) value {
	due := fmt.Sprintf("an integer from %d to %d", least, most)
	return asNumber(to, due, func(n int) bool { return n >= least && n <= most })
}

// asOneOfNumbers is one of a few integers.
func asOneOfNumbers(to *int, choices ...int) value {
	due := "one of " + strings.Trim(strings.ReplaceAll(fmt.Sprint(choices), " ", ", "), "[]")
	return asNumber(to, due, func(n int) bool { return slices.Contains(choices, n) })
}

// asNumber takes decimal numbers only: hexadecimal, octal and 1_000 are more
// often mistakes than meant.
func asNumber(to *int, due string, good func(int) bool) value {
	return func(d *decoder, n *yaml.Node, path string) {
		hint := ""
		if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			hint = ": take the quotes away"
		}
		if !d.is(n, path, yaml.ScalarNode, "!!int", due, hint) {
			return
		}
		parsed, err := strconv.Atoi(n.Value)
		if err != nil || strconv.Itoa(parsed) != n.Value || !good(parsed) {
			d.fail(n, path, "must be %s, not %s", due, n.Value)
			return
		}
		*to = parsed
	}
}

// asList is a list of values that are all different.
func asList[T comparable](to *[]T, item func(*T) value) value {
	return func(d *decoder, n *yaml.Node, path string) {
		values := []T{}
		for i, node := range d.items(n, path) {
			var v T
			at, before := fmt.Sprintf("%s[%d]", path, i), len(d.faults)
			item(&v)(d, node, at)
			if len(d.faults) > before {
				continue
			}
			if slices.Contains(values, v) {
				d.fail(node, at, "%v stands twice: leave one out", v)
			}
			values = append(values, v)
		}
		*to = values
	}
}
