// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"time"

	"roce_exporter/collectors"
)

// reloadState is how the last reading of the configuration went.
type reloadState struct {
	successful bool
	succeeded  time.Time
	tried      [sha256.Size]byte // Of the file that was read, good or bad.
}

func (s reloadState) add(b *collectors.Builder) {
	b.AddBool("roce_exporter_config_last_reload_successful", s.successful)
	b.Add("roce_exporter_config_last_reload_success_timestamp_seconds", float64(s.succeeded.UnixMilli())/1000)
}

func (e *Exporter) reloadState() reloadState {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reload
}

// config is the configuration in force.
func (e *Exporter) config() Config {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.current.config
}

// Reload reads the configuration again. If it is bad, what runs goes on.
func (e *Exporter) Reload() error {
	if err := e.load(); err != nil {
		e.logger.Error("the configuration was not reloaded, the old one stays in force", "err", err)
		return err
	}
	e.logger.Info("the configuration was reloaded", "file", e.file)
	return nil
}

// load reads the configuration, builds its collectors and puts them in force.
func (e *Exporter) load() error {
	e.reloading.Lock()
	defer e.reloading.Unlock()
	data, err := e.readFile()
	sum := digest(data, err)
	var next *generation
	if err == nil {
		next, err = e.prepare(data)
	}
	e.mu.Lock()
	e.reload.tried = sum
	e.reload.successful = err == nil
	if err != nil {
		e.mu.Unlock()
		return err
	}
	e.reload.succeeded = time.Now()
	old := e.current
	e.current = next
	e.mu.Unlock()
	if old != nil {
		old.retire()
	}
	return nil
}

func (e *Exporter) prepare(data []byte) (*generation, error) {
	config, err := ReadConfig(bytes.NewReader(data), e.file)
	if err != nil {
		return nil, err
	}
	enabled, err := e.build(config)
	if err != nil {
		return nil, err
	}
	return newGeneration(config, enabled), nil
}

// readFile returns what the file has; without a file the defaults are in force.
func (e *Exporter) readFile() ([]byte, error) {
	if e.file == "" {
		return nil, nil
	}
	return readLimited(e.file)
}

// digest tells one content or failure from another.
func digest(data []byte, err error) [sha256.Size]byte {
	if err != nil {
		data = fmt.Appendf(nil, "error: %v", err)
	}
	return sha256.Sum256(data)
}

// Watch reloads whenever the file has changed, until ctx ends. It compares
// contents: a ConfigMap's file is a link that is replaced, and its time of
// modification means nothing.
func (e *Exporter) Watch(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if digest(e.readFile()) != e.reloadState().tried {
			_ = e.Reload() // It has logged what is wrong.
		}
	}
}

// readLimited reads no more of a file than shows that it is too large.
func readLimited(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
}
