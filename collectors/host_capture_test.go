// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"roce_exporter/collectors/host"
	"roce_exporter/collectors/host/hosttest"
)

// recordHost writes a capture of a host and returns its directory.
func recordHost(t *testing.T, original fs.FS, anonymiser *host.Anonymiser) (string, *host.Recording) {
	t.Helper()
	sources, err := host.ReadCapture(original)
	if err != nil {
		t.Fatal(err)
	}
	recording, err := host.Record(t.Context(), sources, HostOptions{}.Reader(testCatalog(t)), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if anonymiser != nil {
		anonymiser.Anonymise(recording)
	}
	dir := filepath.Join(t.TempDir(), "capture")
	if err := recording.Write(dir, "test", time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := recording.Write(dir, "test", time.Now()); err == nil {
		t.Error("a directory that is not empty is written over")
	}
	return dir, recording
}

// A capture, replayed, gives what the host gave.
func TestACaptureGivesWhatTheHostGave(t *testing.T) {
	for _, file := range hosts(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			original := hosttest.Read(t, file)
			wanted, want := collectHost(t, capturedHost(t, testCatalog(t), original, hostOptions()))
			dir, recording := recordHost(t, original, nil)
			reading, got := collectHost(t, capturedHost(t, testCatalog(t), os.DirFS(dir), hostOptions()))
			if got != want {
				t.Errorf("the capture gives\n%s\nthe host\n%s", got, want)
			}
			if reading.Skipped != wanted.Skipped {
				t.Errorf("the capture skips %+v, the host %+v", reading.Skipped, wanted.Skipped)
			}
			if len(recording.LeftOut) > 0 {
				t.Errorf("left out: %q", recording.LeftOut)
			}
		})
	}
}

// An anonymised capture holds neither the name of the host nor its addresses,
// and else gives the same.
func TestAnAnonymisedHostTellsNothing(t *testing.T) {
	secret := regexp.MustCompile(`(?i)gpu1|example\.net|[0-9a-f]{2}(:[0-9a-f]{2}){5}|[0-9a-f]{4}(:[0-9a-f]{4}){3}`)
	for _, file := range hosts(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			original := hosttest.Read(t, file)
			secrets := map[string]bool{}
			for _, f := range original {
				for _, found := range secret.FindAllString(string(f.Data), -1) {
					secrets[found] = true
				}
			}
			if len(secrets) < 3 {
				t.Fatalf("the fixture has no secrets: %v", secrets)
			}
			dir, _ := recordHost(t, original, host.NewAnonymiser())
			err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
				if err != nil || !e.Type().IsRegular() {
					return err
				}
				data, err := os.ReadFile(filepath.Join(dir, name))
				for secret := range secrets {
					if strings.Contains(strings.ToLower(string(data)), strings.ToLower(secret)) {
						t.Errorf("%s has %s", name, secret)
					}
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			_, want := collectHost(t, capturedHost(t, testCatalog(t), original, hostOptions()))
			_, got := collectHost(t, capturedHost(t, testCatalog(t), os.DirFS(dir), hostOptions()))
			blank := regexp.MustCompile(`(node_guid|mac|node)="[^"]*"`)
			if got, want := blank.ReplaceAllString(got, "$1"), blank.ReplaceAllString(want, "$1"); got != want {
				t.Errorf("but for names and addresses, the capture gives\n%s\nthe host\n%s", got, want)
			}
		})
	}
}
