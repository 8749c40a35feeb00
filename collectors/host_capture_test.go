// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"roce_exporter/collectors/host"
	"roce_exporter/collectors/host/hosttest"
	"roce_exporter/collectors/sonic"
)

// recordHost writes a capture of a host and returns its directory.
func recordHost(t *testing.T, original fs.FS, anonymiser *host.Anonymiser) (string, *host.Recording) {
	t.Helper()
	sources, err := host.ReadCapture(original)
	if err != nil {
		t.Fatal(err)
	}
	recording, err := host.Record(t.Context(), sources, HostOptions{}.Reader(testCatalog(t)), nil, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if anonymiser != nil {
		anonymiser.Anonymise(recording)
	}
	return writeCapture(t, &Recording{Host: recording}), recording
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
			dir, _ := recordHost(t, original, host.NewAnonymiser(sonic.NewAnonymiser()))
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

// Samples of a capture are replayed one after the other, each with its clock
// and its facts.
func TestSamplesOfAHost(t *testing.T) {
	both := t.TempDir()
	original := hosttest.Read(t, "testdata/hosts/connectx.txt")
	const counter = "sys/devices/pci0000:00/0000:00:1a.0/0000:1a:00.0/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent"
	for i, sample := range []string{"0001", "0002", "0003"} {
		original[counter].Data = fmt.Append(nil, 7+i, "\n")
		original["ethtool/ens1f0np0/driver"].Data = fmt.Appendf(nil, "driver: mlx5_core\nfirmware-version: %d\n", i+1)
		dir, _ := recordHost(t, original, nil)
		if sample == "0002" { // As on a file system without links.
			packSys(t, dir)
		}
		if err := os.Rename(dir, filepath.Join(both, sample)); err != nil {
			t.Fatal(err)
		}
	}
	samples, err := host.OpenCapture(os.DirFS(both))
	if err != nil {
		t.Fatal(err)
	}
	h := NewHost(testCatalog(t), NewDevices(samples[0], samples[1:]...), hostOptions())
	var clock float64
	for i, want := range []int{1, 2, 3, 3, 3} {
		_, out := collectHost(t, h)
		got := parse(t, out)
		got.has(t, `roce_rdma_cnp_sent_packets_total{device="mlx5_0",rdma_port="1"}`, float64(6+want))
		got.some(t, "roce_port_info", `port="ens1f0np0"`, fmt.Sprintf(`firmware="%d"`, want))
		if now := got["roce_node_time_seconds"]; (now > clock) != (i < 3) {
			t.Errorf("reading %d: clock %v after %v", i+1, now, clock)
		} else {
			clock = now
		}
	}
}

// What a sample does not tell was not so in the one before: the driver that
// does not answer, its lossless priorities, the list of devices.
func TestNothingIsRememberedOfAnotherSample(t *testing.T) {
	capture := hostOf(t, card{
		netdev: "ens1f0np0", rdma: "mlx5_0", driver: "mlx5_core", statistics: []string{"rx_prio5_pause: 4"},
		net: []string{"ecn/roce_np/enable/0 = 1", "ecn/roce_np/enable/5 = 1"}, ib: []string{"ports/1/gid_attrs/ndevs/0 = ens1f0np0"},
	})
	capture["ethtool/ens1f0np0/driver"].Data = []byte("driver: mlx5_core\nfirmware-version: 28.1\n")
	first, err := host.ReadCapture(capture)
	if err != nil {
		t.Fatal(err)
	}
	silent, broken := first, first
	silent.Ethtool, broken.Sys = refusing{}, refusing{}
	h := NewHost(testCatalog(t), NewDevices(first, silent, broken), hostOptions())

	const other = `roce_rdma_ecn_enabled{device="mlx5_0",priority="0",rdma_port="1",role="notification"}`
	_, out := collectHost(t, h)
	got := parse(t, out)
	got.some(t, "roce_port_info{", `firmware="28.1"`)
	got.lacks(t, other)
	got, failed := scrapes(t, h)()
	if failed != "ens1f0np0" {
		t.Errorf("the driver does not answer: %s failed", failed)
	}
	got.lacks(t, `firmware="28.1"`)
	got.has(t, other, 1)
	if reading, err := h.Collect(t.Context()); !errors.Is(err, syscall.EIO) || len(reading.Sources) > 0 {
		t.Errorf("the devices cannot be listed: %v, %v", reading.Sources, err)
	}
}

// refusing cannot be read.
type refusing struct{}

func (refusing) Open(string) (fs.File, error)                 { return nil, syscall.EIO }
func (refusing) Driver(string) (host.Driver, error)           { return host.Driver{}, syscall.EIO }
func (refusing) Statistics(string) (map[string]uint64, error) { return nil, syscall.EIO }

// packSys makes a tar of the directory sys of a capture.
func packSys(t *testing.T, dir string) {
	t.Helper()
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	if err := errors.Join(w.AddFS(os.DirFS(filepath.Join(dir, "sys"))), w.Close()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "sys.tar"), packed.Bytes(), 0o644), os.RemoveAll(filepath.Join(dir, "sys"))); err != nil {
		t.Fatal(err)
	}
}
