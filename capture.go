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

// A sample is what was read once of a node.
type sample struct {
	write   func(dir, version string, now time.Time) error
	counts  map[string]int
	unit    string // Of the counts.
	leftOut []string
}

// A sampler reads one sample.
type sampler func(ctx context.Context) (sample, error)

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
	var read sampler
	found, noSwitch := live.Switch()
	switch {
	case noSwitch == nil:
		read = switchSampler(f, found)
	case !errors.Is(noSwitch, sonic.ErrNotFound):
		return noSwitch
	default:
		if read, err = hostSampler(f, config); err != nil {
			return err
		}
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
		taken, err := read(ctx)
		if errors.Is(err, host.ErrNoDevice) {
			return fmt.Errorf("neither a switch nor a host with NICs: %w, and below %s %w: give --path.sysfs, or --sonic.database-dir on a switch", noSwitch, f.sysPath, err)
		}
		if err != nil {
			return err
		}
		if err := taken.write(dir, version.Info(), time.Now()); err != nil {
			return err
		}
		taken.report(stdout, dir)
	}
	if f.anonymise {
		_, _ = fmt.Fprintln(stdout, "Names of nodes, MAC and IP addresses are replaced. Look at the files before you give them away.")
	}
	return nil
}

// patience is how long a sample is waited for.
const patience = 10 * time.Second

func switchSampler(f *flags, found *sonic.Switch) sampler {
	anonymiser := sonic.NewAnonymiser() // One for all samples: a name stays the same.
	return func(ctx context.Context) (sample, error) {
		recording, err := sonic.Record(ctx, found, patience)
		if err != nil {
			return sample{}, err
		}
		if f.anonymise {
			anonymiser.Anonymise(recording)
		}
		return sample{recording.Write, recording.Keys(), "keys", recording.LeftOut}, nil
	}
}

func hostSampler(f *flags, config exporter.Config) (sampler, error) {
	catalog, err := collectors.NewDefaultCatalog()
	if err != nil {
		return nil, err
	}
	sources, anonymiser := host.NewLive(f.sysPath, f.procPath), host.NewAnonymiser()
	wanted := hostOptions(f, config).Reader(catalog)
	return func(ctx context.Context) (sample, error) {
		recording, err := host.Record(ctx, sources, wanted, patience)
		if err != nil {
			return sample{}, err
		}
		if f.anonymise {
			anonymiser.Anonymise(recording)
		}
		return sample{recording.Write, recording.Counts(), "files", recording.LeftOut}, nil
	}, nil
}

// report says what a sample holds.
func (s *sample) report(stdout io.Writer, dir string) {
	_, _ = fmt.Fprintf(stdout, "%s:\n", dir)
	for _, of := range slices.Sorted(maps.Keys(s.counts)) {
		_, _ = fmt.Fprintf(stdout, "  %s: %d %s\n", of, s.counts[of], s.unit)
	}
	for _, what := range s.leftOut {
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
