// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Calls and imports run one way: main, exporter, collectors, what they read.
func TestImports(t *testing.T) {
	const module = "roce_exporter/"
	prometheus := []string{"github.com/prometheus/", "log/slog"}
	devices := []string{"github.com/redis/", "github.com/safchain/", "github.com/mdlayher/"}
	outside := []string{"net/http", "gopkg.in/yaml.v3", "flag", "github.com/alecthomas/", "log"}
	tools := []string{"os/exec"} // What is read is read by the exporter itself.
	// A path that ends in a slash stands for all below it.
	never := map[string][]string{
		"collectors/sonic": slices.Concat(prometheus, outside, tools, []string{module}),
		"collectors/host":  slices.Concat(prometheus, outside, tools, []string{module}),
		"collectors/demo":  {"github.com/prometheus/", module + "exporter", module + "collectors"},
		"collectors":       slices.Concat(devices, outside, tools, []string{"log/slog", module + "exporter", module + "collectors/demo"}),
		"exporter":         slices.Concat(devices, tools, []string{module + "collectors/", "flag", "github.com/alecthomas/", "github.com/go-kit/", "log"}),
	}
	found := 0
	for line := range strings.Lines(goList(t, "-f", "{{.ImportPath}} {{range .Imports}} {{.}}{{end}}", "./...")) {
		words := strings.Fields(line)
		forbidden := never[strings.TrimPrefix(words[0], module)]
		if forbidden != nil {
			found++
		}
		for _, imported := range words[1:] {
			if imported == strings.TrimSuffix(module, "/") || slices.ContainsFunc(forbidden, func(f string) bool { return within(imported, f) }) {
				t.Errorf("%s imports %s", words[0], imported)
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d of the packages are there", found)
	}
}

// What only builds dashboards, reports and images must not be on a switch.
func TestBinaryIsLean(t *testing.T) {
	heavy := []string{"github.com/grafana/", "gonum.org/v1/plot/", "github.com/google/go-containerregistry/", "image/", "testing", "roce_exporter/dashboards"}
	for dependency := range strings.Lines(goList(t, "-deps", ".")) {
		dependency = strings.TrimSpace(dependency)
		if slices.ContainsFunc(heavy, func(h string) bool { return within(dependency, h) }) {
			t.Errorf("the binary has %s", dependency)
		}
	}
}

// within says whether a package is the path, or below it if it ends in a slash.
func within(imported, path string) bool {
	return imported == path || strings.HasSuffix(path, "/") && strings.HasPrefix(imported, path)
}

func goList(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	return string(out)
}

// TestBinaryIsSmall builds it as it is shipped: a switch has little flash.
func TestBinaryIsSmall(t *testing.T) { buildBinary(t) }
