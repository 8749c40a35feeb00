// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the dashboards anew")

// TestGolden: the files are what the code makes.
func TestGolden(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for uid, d := range all {
		made, err := marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		name := uid + ".json"
		if *update {
			if err := os.WriteFile(name, made, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(made)); diff != "" {
			t.Errorf("%s (make golden): %s", name, diff)
		}
	}
	files, err := filepath.Glob("*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(all) {
		t.Errorf("%d files of %d dashboards: %v", len(files), len(all), files)
	}
}

func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return out.Bytes(), err
}
