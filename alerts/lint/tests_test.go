// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"gopkg.in/yaml.v3"
)

// A testFile is one of promtool: what series come in.
type testFile struct {
	Tests []struct {
		Name  string
		Input []struct{ Series string } `yaml:"input_series"`
	}
}

func testFiles(t *testing.T) map[string]testFile {
	t.Helper()
	paths, err := filepath.Glob("../tests/*.yml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no tests of rules: %v", err)
	}
	all := map[string]testFile{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var file testFile
		if err := yaml.Unmarshal(data, &file); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[filepath.Base(path)] = file
	}
	return all
}

// What targets may have beside: rules must not stumble over it.
var ofTargets = []string{"instance", "job", "asic", "node", "fabric", "service", "cluster", "replica", "pod"}

// Tests with series that no exporter gives prove nothing.
func TestTestsUseRealSeries(t *testing.T) {
	s := shipped(t)
	p := parser.NewParser(parser.Options{})
	for path, file := range testFiles(t) {
		for _, test := range file.Tests {
			for _, input := range test.Input {
				if wrong := s.unreal(p, input.Series); wrong != "" {
					t.Errorf("%s: %s: %s", path, test.Name, wrong)
				}
			}
		}
	}
}

// unreal says what is wrong with a series, as a test of rules writes it.
func (s *set) unreal(p parser.Parser, series string) string {
	l, err := p.ParseMetric(series)
	if err != nil {
		return err.Error()
	}
	name := l.Get("__name__")
	known := s.recorded[name].may
	if f, is := s.families[name]; is {
		known = of(slices.Concat(f.labels, ofTargets)...)
		for _, label := range f.labels {
			if !l.Has(label) && f.kind != "info" {
				return fmt.Sprintf("%s has no %s", series, label)
			}
		}
	}
	if known == nil {
		return name + " is neither exported nor recorded"
	}
	for label := range l.Map() {
		if label != "__name__" && !known[label] {
			return fmt.Sprintf("%s has no label %s", name, label)
		}
	}
	return ""
}

func TestUnrealSeriesAreCaught(t *testing.T) {
	s := load(t, []byte(basis))
	p := parser.NewParser(parser.Options{})
	for series, want := range map[string]string{
		`roce_pfc_paused{instance="a",job="roce"}`:                                                     "roce_pfc_paused is neither exported nor recorded",
		`roce_port_oper_up{instance="a",job="roce"}`:                                                   `roce_port_oper_up{instance="a",job="roce"} has no port`,
		`roce_port_oper_up{instance="a",job="roce",port="Ethernet0",queue="3"}`:                        "roce_port_oper_up has no label queue",
		`roce_port_oper_up{instance="a",job="roce",port="Ethernet0",service="x"}`:                      "",
		`port:roce_port_oper_up{fabric="f",tier="leaf",role="switch",node="a",port="Ethernet0"}`:       "",
		`port:roce_port_oper_up{fabric="f",tier="leaf",role="switch",node="a",port="Ethernet0",a="b"}`: "port:roce_port_oper_up has no label a",
	} {
		if got := s.unreal(p, series); got != want {
			t.Errorf("%s: %q, want %q", series, got, want)
		}
	}
}
