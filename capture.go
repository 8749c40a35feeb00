// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
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

// A sampler reads one sample and writes it into a directory.
type sampler func(ctx context.Context, dir string) error

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
	var sample sampler
	found, noSwitch := live.Switch()
	switch {
	case noSwitch == nil:
		sample = switchSampler(f, found, stdout)
	case !errors.Is(noSwitch, sonic.ErrNotFound):
		return noSwitch
	default:
		if sample, err = hostSampler(f, config, stdout); err != nil {
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
		err := sample(ctx, dir)
		if errors.Is(err, host.ErrNoDevice) {
			return fmt.Errorf("neither a switch nor a host with NICs: %w, and below %s %w: give --path.sysfs, or --sonic.database-dir on a switch", noSwitch, f.sysPath, err)
		}
		if err != nil {
			return err
		}
	}
	if f.anonymise {
		_, _ = fmt.Fprintln(stdout, "Names of nodes, MAC and IP addresses are replaced. Look at the files before you give them away.")
	}
	return nil
}

// patience is how long a sample is waited for.
const patience = 10 * time.Second

func switchSampler(f *flags, found *sonic.Switch, stdout io.Writer) sampler {
	anonymiser := sonic.NewAnonymiser() // One for all samples: a name stays the same.
	return func(ctx context.Context, dir string) error {
		recording, err := sonic.Record(ctx, found, patience)
		if err != nil {
			return err
		}
		if f.anonymise {
			anonymiser.Anonymise(recording)
		}
		if err := recording.Write(dir, version.Info(), time.Now()); err != nil {
			return err
		}
		report(stdout, dir, recording.Keys(), "keys", recording.LeftOut)
		return nil
	}
}

func hostSampler(f *flags, config exporter.Config, stdout io.Writer) (sampler, error) {
	catalog, err := collectors.NewDefaultCatalog()
	if err != nil {
		return nil, err
	}
	sources := host.NewLive(f.sysPath, f.procPath)
	options := host.Options{
		Include: cmp.Or(f.include.regexp, config.Host.DeviceInclude.Regexp), Exclude: cmp.Or(f.exclude.regexp, config.Host.DeviceExclude.Regexp),
		Wanted: collectors.HostWanted(catalog), RawStats: config.Host.RawStats,
	}
	anonymiser := host.NewAnonymiser()
	return func(ctx context.Context, dir string) error {
		recording, err := host.Record(ctx, sources, options, patience)
		if err != nil {
			return err
		}
		if f.anonymise {
			anonymiser.Anonymise(recording)
		}
		if err := recording.Write(dir, version.Info(), time.Now()); err != nil {
			return err
		}
		report(stdout, dir, recording.Counts(), "files", recording.LeftOut)
		return nil
	}, nil
}

// report says what a sample holds.
func report(stdout io.Writer, dir string, counts map[string]int, unit string, leftOut []string) {
	_, _ = fmt.Fprintf(stdout, "%s:\n", dir)
	for _, of := range slices.Sorted(maps.Keys(counts)) {
		_, _ = fmt.Fprintf(stdout, "  %s: %d %s\n", of, counts[of], unit)
	}
	for _, what := range leftOut {
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
