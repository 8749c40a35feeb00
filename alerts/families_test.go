// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"roce_exporter/collectors"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with a file, or writes it with -update.
func golden(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("differs from %s, read the diff and run with -update:\n%s", path, diff)
	}
}

// The lint is a module of its own, which cannot import the table: it reads the
// list of what the exporter has.
func TestFamiliesForTheLint(t *testing.T) {
	var lines []string
	for _, f := range collectors.AllFamilies() {
		lines = append(lines, strings.Join(slices.Concat([]string{f.Name, string(f.Type)}, f.Labels), " "))
	}
	slices.Sort(lines)
	golden(t, "lint/testdata/families.txt", fmt.Sprintf("# name, type, labels; rendered by go test ./alerts -update\n%s\n", strings.Join(lines, "\n")))
}
