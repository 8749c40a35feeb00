// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/common/version"

	"roce_exporter/collectors"
	"roce_exporter/collectors/host"
	"roce_exporter/collectors/sonic"
	"roce_exporter/exporter"
)

// capture writes what the exporter reads from this node, and says what it left
// out.
func capture(ctx context.Context, f *flags, stdout io.Writer) error {
	if f.samples < 1 || f.samples > 9999 {
		return errors.New("--samples must be from 1 to 9999")
	}
	config, err := readConfig(f.config)
	if err != nil {
		return err
	}
	live := sonic.NewLive(f.databaseDir, liveOptions(config))
	defer live.Close()
	found, noSwitch := live.Switch()
	if noSwitch != nil && !errors.Is(noSwitch, sonic.ErrNotFound) {
		return noSwitch
	}
	sampler, err := newSampler(f, config, found)
	if err != nil {
		return err
	}
	for i := range f.samples {
		dir := f.captureDir
		if f.samples > 1 {
			dir = filepath.Join(dir, fmt.Sprintf("%04d", i+1))
		}
		if i > 0 {
			select {
			case <-time.After(f.every):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		taken, err := sampler.sample(ctx)
		if errors.Is(err, host.ErrNoDevice) {
			return fmt.Errorf("neither a switch nor a host with NICs: %w; %w (--sonic.database-dir and --path.sysfs look elsewhere)", noSwitch, err)
		}
		if err != nil {
			return err
		}
		if err := taken.Write(dir, version.Info(), time.Now()); err != nil {
			return err
		}
		report(stdout, dir, taken)
	}
	if f.anonymise {
		_, _ = fmt.Fprintln(stdout, "Names of nodes, MAC and IP addresses are replaced. Look at the files before you give them away.")
	}
	return nil
}

// patience is how long a sample is waited for.
const patience = 10 * time.Second

// A sampler reads this node, again and again.
type sampler struct {
	found     *sonic.Switch  // nil: the node is none.
	host      *host.Recorder // One for all samples: a device that hangs is asked once.
	anonymise bool
	ofSwitch  *sonic.Anonymiser // One for all samples: a name stays the same.
	ofHost    *host.Anonymiser
}

func newSampler(f *flags, config exporter.Config, found *sonic.Switch) (*sampler, error) {
	catalog, err := collectors.NewDefaultCatalog()
	if err != nil {
		return nil, err
	}
	ofSwitch := sonic.NewAnonymiser()
	return &sampler{
		found: found, host: host.NewRecorder(host.NewLive(f.sysPath, f.procPath), hostOptions(f, config).Reader(catalog), patience),
		anonymise: f.anonymise, ofSwitch: ofSwitch, ofHost: host.NewAnonymiser(ofSwitch),
	}, nil
}

// sample reads one sample. On a switch the host is read for what the switch
// does not tell of: most have no such NIC, and nothing of the host is kept.
func (s *sampler) sample(ctx context.Context) (*collectors.Recording, error) {
	var taken collectors.Recording
	var ports map[string]bool
	if s.found != nil {
		recording, err := sonic.Record(ctx, s.found, patience)
		if err != nil {
			return nil, err
		}
		ports = recording.Ports
		if s.anonymise {
			s.ofSwitch.Anonymise(recording)
		}
		taken.Switch = recording
	}
	recording, err := s.host.Record(ctx, ports)
	switch {
	case err == nil:
		if s.anonymise {
			s.ofHost.Anonymise(recording)
		}
		taken.Host = recording
	case s.found == nil || ctx.Err() != nil:
		return nil, err
	case !errors.Is(err, host.ErrNoDevice):
		taken.Switch.LeftOut = append(taken.Switch.LeftOut, "NICs beside the switch: "+err.Error())
	}
	return &taken, nil
}

// report says what a sample holds.
func report(stdout io.Writer, dir string, r *collectors.Recording) {
	_, _ = fmt.Fprintf(stdout, "%s:\n", dir)
	counted := func(counts map[string]int, unit string) {
		for _, of := range slices.Sorted(maps.Keys(counts)) {
			_, _ = fmt.Fprintf(stdout, "  %s: %d %s\n", of, counts[of], unit)
		}
	}
	if r.Switch != nil {
		counted(r.Switch.Keys(), "keys")
	}
	if r.Host != nil {
		counted(r.Host.Counts(), "files")
	}
	for _, what := range r.LeftOut() {
		_, _ = fmt.Fprintf(stdout, "  left out: %s\n", what)
	}
}

// readConfig reads a configuration file, or the defaults.
func readConfig(file string) (exporter.Config, error) {
	if file == "" {
		return exporter.DefaultConfig(), nil
	}
	opened, err := os.Open(file)
	if err != nil {
		return exporter.Config{}, err
	}
	defer opened.Close()
	return exporter.ReadConfig(opened, file)
}
