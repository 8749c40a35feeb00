// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestDemoCommand runs the process: capture finds the databases of its switches,
// and nothing of it is left when it ends.
func TestDemoCommand(t *testing.T) {
	p := launch(t, 0, "demo", "--incident=deadlock")
	const where = "the databases of its switches "
	said := p.log.lines(1, where)
	if len(said) == 0 {
		t.Fatal("the demo does not say where its databases are")
	}
	_, dir, _ := strings.Cut(strings.TrimSpace(said[0]), where)
	dir = strings.Replace(dir, "<switch>", "leaf4", 1)
	taken := filepath.Join(t.TempDir(), "leaf4")
	output, err := exec.CommandContext(t.Context(), p.cmd.Path, "capture", taken, "--sonic.database-dir="+dir, "--no-anonymise").CombinedOutput()
	if err != nil || !strings.Contains(string(output), "COUNTERS_DB") {
		t.Errorf("capture: %v %s", err, output)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the demo leaves its files behind: %v", err)
	}
}
