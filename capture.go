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

	"roce_exporter/collectors/sonic"
	"roce_exporter/exporter"
)

// capture writes what the exporter reads from this switch, and says what it
// left out.
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
	found, err := live.Switch()
	if err != nil {
		return err
	}
	anonymiser := sonic.NewAnonymiser() // One for all samples: a name stays the same.
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
		if err := captureOne(ctx, f, found, anonymiser, dir, stdout); err != nil {
			return err
		}
	}
	if f.anonymise {
		_, _ = fmt.Fprintln(stdout, "Names of nodes, MAC and IP addresses are replaced. Look at the files before you give them away.")
	}
	return nil
}

// captureOne reads and writes one sample.
func captureOne(ctx context.Context, f *flags, found *sonic.Switch, anonymiser *sonic.Anonymiser, dir string, stdout io.Writer) error {
	recording, err := sonic.Record(ctx, found, 10*time.Second)
	if err != nil {
		return err
	}
	if f.anonymise {
		anonymiser.Anonymise(recording)
	}
	if err := recording.Write(dir, version.Info(), time.Now()); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(stdout, "%s:\n", dir)
	counts := recording.Keys()
	for _, database := range slices.Sorted(maps.Keys(counts)) {
		_, _ = fmt.Fprintf(stdout, "  %s: %d keys\n", database, counts[database])
	}
	for _, what := range recording.LeftOut {
		_, _ = fmt.Fprintf(stdout, "  left out: %s\n", what)
	}
	return nil
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
