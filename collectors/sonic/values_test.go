// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"math"
	"strconv"
	"testing"
)

func TestNumbers(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "7": 7, "007": 7, "9007199254740993": 9007199254740992,
		"18446744073709551615": math.MaxUint64, "1.7644e+15": 1.7644e15, "12.5": 12.5, "5.6e-73": 5.6e-73, "+3": 3,
	} {
		if got, ok := parseNumber(text); !ok || got != want {
			t.Errorf("%q is %v %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", " ", "N/A", "-1", "-0", "-5.6e-73", "18446744073709551616", "1e20", "0x10", "0x1p4", "1_000", "NaN", "Inf", "-inf", "infinity",
		"12 ", " 12", "12\n", "1e", "e5", ".", "++1", "\xff", "1e999",
	} {
		if got, ok := parseNumber(text); ok {
			t.Errorf("%q is %v, want no number", text, got)
		}
	}
}

func FuzzNumber(f *testing.F) {
	for _, text := range []string{"0", "18446744073709551615", "1.5e+15", "-1", "N/A", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseNumber(text)
		if !ok {
			return
		}
		if math.IsNaN(got) || math.IsInf(got, 0) || got < 0 || got > math.MaxUint64 {
			t.Errorf("%q became %v", text, got)
		}
		if want, err := strconv.ParseFloat(text, 64); err != nil || want != got {
			t.Errorf("%q became %v, strconv says %v %v", text, got, want, err)
		}
	})
}

func TestObjectIDs(t *testing.T) {
	for text, want := range map[string]bool{
		"oid:0x1000000000002": true, "oid:0x0": true, "oid:0x": false, "0x1000000000002": false, "oid:0xABC": false, "": false,
		"SAI_QUEUE_TYPE_ALL": false, "oid:0x12 ": false,
	} {
		if isOID(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
