// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

const reference = "../deploy/roce_exporter.yml"

func TestReferenceIsTheDefault(t *testing.T) {
	got, err := readTestConfig(t, reference)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, DefaultConfig()) {
		t.Errorf("got  %+v\nwant %+v", got, DefaultConfig())
	}
}

// The policy is in the reference without being in force.
func TestReferencePolicy(t *testing.T) {
	data, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	active := regexp.MustCompile(`(?m)^#(policy:|  )`).ReplaceAllString(string(data), "$1")
	got, err := ReadConfig(strings.NewReader(active), "reference")
	if err != nil {
		t.Fatal(err)
	}
	want := &PolicyConfig{
		LosslessPriorities: []int{3},
		Ports:              []PortPolicyConfig{{Match: mustPattern(t, ".*"), MTU: 9100, Speed: 12.5e9}},
		RDMAMTU:            4096,
		DSCP:               DSCPConfig{Data: []int{26}, CNP: []int{48}},
		CongestionControl:  "dcqcn",
	}
	if !reflect.DeepEqual(got.Policy, want) {
		t.Errorf("got  %+v\nwant %+v", got.Policy, want)
	}
}

// Every key that the exporter reads stands in the reference, below a comment.
func TestReferenceExplainsEveryKey(t *testing.T) {
	data, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	var check func(of reflect.Type)
	check = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || of == reflect.TypeFor[Pattern]() {
			return
		}
		for field := range of.Fields() {
			key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			found := false
			for n, line := range lines {
				// At the start of a line, or inside of {…}.
				at := regexp.MustCompile(`^#? *-? *` + key + `:|[{,] *` + key + `:`).FindString(line)
				if at == "" || strings.HasPrefix(line, "# ") && !strings.HasPrefix(line, "#  ") {
					continue
				}
				for n--; n > 0 && regexp.MustCompile(`^#? *[a-z_]+:`).MatchString(lines[n]); n-- {
					// A comment may be about several keys, or an object and its first one.
				}
				found = found || regexp.MustCompile(`^#? *# \S`).MatchString(lines[n]) || strings.HasPrefix(lines[n], "# ")
			}
			if !found {
				t.Errorf("%s is not explained", key)
			}
			check(field.Type)
		}
	}
	check(reflect.TypeFor[Config]())
}
