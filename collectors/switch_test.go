// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"

	"roce_exporter/collectors/sonic"
)

var update = flag.Bool("update", false, "write the golden files anew")

// testOptions are the defaults of the configuration with a policy.
func testOptions() SwitchOptions {
	return SwitchOptions{
		Windows: []string{"periodic", "user"}, VOQ: "off", AttachedMACLimit: 4,
		RefreshConfig: time.Minute, RefreshFDB: 5 * time.Minute, Timeout: 10 * time.Second, SeriesLimit: 200_000,
		Policy: testPolicy(),
	}
}

func testPolicy() *Policy {
	return &Policy{
		LosslessPriorities: []int{3, 4},
		Ports:              []PortPolicy{{Match: regexp.MustCompile(`^(?:.*)$`), MTU: 9100, Speed: 400e9 / 8}},
		RDMAMTU:            4096, DataDSCP: []int{26}, CNPDSCP: []int{48}, CongestionControl: "dcqcn",
	}
}

func testCatalog(t testing.TB) *Catalog {
	t.Helper()
	c, err := NewDefaultCatalog()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// capturedSwitch is a collector of the capture in a directory.
func capturedSwitch(t testing.TB, dir string, options SwitchOptions) *Switch {
	t.Helper()
	s, err := sonic.OpenCapture(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	return NewSwitch(testCatalog(t), sonic.Fixed{Read: s}, options)
}

// collect returns a reading and its text.
func collect(t testing.TB, s *Switch) (Reading, string) {
	t.Helper()
	reading, err := s.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return reading, text(t, s.catalog, reading)
}

func text(t testing.TB, c *Catalog, reading Reading) string {
	t.Helper()
	var out bytes.Buffer
	families, release := c.Gather(reading.Samples)
	defer release()
	for _, mf := range families {
		if _, err := expfmt.MetricFamilyToText(&out, mf); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// TestFixtures compares the whole output for each composed switch with its
// want.prom.
func TestFixtures(t *testing.T) {
	dirs, err := filepath.Glob("testdata/*/meta.json")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, meta := range dirs {
		dir := filepath.Dir(meta)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			reading, got := collect(t, capturedSwitch(t, dir, testOptions()))
			if reading.Skipped != (Skipped{}) {
				t.Errorf("%+v, want nothing skipped", reading.Skipped)
			}
			golden(t, filepath.Join(dir, "want.prom"), got)
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-want +got), read the diff and run with -update:\n%s", path, diff)
	}
}
