// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"math"
	"strconv"
	"strings"
)

// Fields are the raw names that are wanted of one kind of object.
type Fields []string

// Values are an object's numbers, in the order of its Fields. What has no
// value is NaN.
type Values []float64

// parseNumber reads a number as syncd (a decimal uint64) and the Lua plugins
// (a float, maybe with an exponent) write it. Nothing that is exported is
// negative, and nothing exceeds 64 bits.
func parseNumber(text string) (float64, bool) {
	if len(text) == 0 {
		return 0, false
	}
	var n uint64
	for i := 0; i < len(text); i++ {
		digit := text[i] - '0'
		if digit > 9 || i == 19 { // 20 digits may exceed 64 bits.
			return parseFloat(text)
		}
		n = n*10 + uint64(digit)
	}
	return float64(n), true
}

func parseFloat(text string) (float64, bool) {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return float64(n), true
	}
	if strings.Trim(text, "0123456789.eE+-") != "" {
		return 0, false // ParseFloat takes hexadecimals, "inf" and "nan" too.
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Signbit(f) || f >= 1<<64 {
		return 0, false
	}
	return f, true
}

// A slab is the values of many objects in one piece of memory.
type slab struct {
	wanted Fields
	values []float64
}

func newSlab(objects int, wanted Fields) slab {
	return slab{wanted, make([]float64, objects*len(wanted))}
}

// keep takes the wanted numbers out of the hash of the i-th object.
func (s slab) keep(i int, hash Hash, skipped *Skipped) Values {
	n := len(s.wanted)
	values := s.values[i*n : (i+1)*n : (i+1)*n]
	for i, field := range s.wanted {
		values[i] = math.NaN()
		text, ok := hash[field]
		if !ok {
			continue
		}
		if v, ok := parseNumber(text); ok {
			values[i] = v
		} else {
			skipped.Unparsable++
		}
	}
	return values
}

// isOID says whether text looks like "oid:0x1000000000002".
func isOID(text string) bool {
	hex, ok := strings.CutPrefix(text, "oid:0x")
	return ok && hex != "" && strings.Trim(hex, "0123456789abcdef") == ""
}
