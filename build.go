// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"roce_exporter/collectors"
	"roce_exporter/collectors/host"
	"roce_exporter/collectors/sonic"
	"roce_exporter/exporter"
)

// A builder makes the collectors that the flags and a configuration want.
type builder struct {
	flags   *flags
	catalog *collectors.Catalog
	once    sync.Once
	live    *collectors.Devices // Of this machine: one set of sockets and of reads, whatever is reloaded.
}

func (b *builder) build(c exporter.Config) ([]exporter.Enabled, error) {
	if b.flags.replay != "" {
		return b.replay(c)
	}
	var enabled []exporter.Enabled
	live := sonic.NewLive(b.flags.databaseDir, liveOptions(c))
	var aSwitch *collectors.Switch
	if b.wants(b.flags.switchMode) {
		aSwitch = collectors.NewSwitch(b.catalog, live, switchOptions(c))
		enabled = append(enabled, exporter.Enabled{Collector: aSwitch, Auto: b.flags.switchMode == auto, Close: live.Close})
	}
	if b.wants(b.flags.hostMode) {
		b.once.Do(func() { b.live = collectors.NewDevices(host.NewLive(b.flags.sysPath, b.flags.procPath)) })
		options := hostOptions(b.flags, c)
		options.IsSwitch = func() bool {
			_, err := live.Switch()
			return isSwitch(err, aSwitch, options)
		}
		aHost := exporter.Enabled{Auto: b.flags.hostMode == auto}
		if aSwitch != nil {
			options.Ports = aSwitch.Ports
		} else {
			aHost.Close = live.Close // It is its own then.
		}
		aHost.Collector = collectors.NewHost(b.catalog, b.live, options)
		enabled = append(enabled, aHost)
	}
	return enabled, nil
}

// wants says whether a collector is to run, or to look whether it can.
func (b *builder) wants(m mode) bool {
	return m == on || m == auto && !b.flags.disableDefaults
}

// isSwitch says whether a machine is a switch for the collector of a host, by
// the error of looking for one. With databases that nobody reads, it is one
// unless its NICs are asked for.
func isSwitch(err error, s *collectors.Switch, options collectors.HostOptions) bool {
	return !errors.Is(err, sonic.ErrNotFound) && (s != nil || !options.Required)
}

// replay makes the collectors of a capture, of what is in it.
func (b *builder) replay(c exporter.Config) ([]exporter.Enabled, error) {
	dir := os.DirFS(b.flags.replay)
	var enabled []exporter.Enabled
	capture, err := sonic.OpenCapture(dir)
	if err != nil && !errors.Is(err, sonic.ErrNotFound) {
		return nil, fmt.Errorf("--replay %s: %w", b.flags.replay, err)
	}
	var s *collectors.Switch
	if err == nil && b.wants(b.flags.switchMode) {
		s = collectors.NewSwitch(b.catalog, sonic.Fixed{Read: capture}, switchOptions(c))
		enabled = append(enabled, exporter.Enabled{Collector: s, Auto: b.flags.switchMode == auto})
	}
	samples, failed := host.OpenCapture(dir)
	if failed != nil {
		return nil, fmt.Errorf("--replay %s: %w", b.flags.replay, failed)
	}
	if len(samples) > 0 && b.wants(b.flags.hostMode) {
		options := hostOptions(b.flags, c)
		options.IsSwitch = func() bool { return isSwitch(err, s, options) }
		if s != nil && options.Required {
			// Another one is asked for the ports: of this one that may take the
			// sample that the scrape is due.
			again, err := sonic.OpenCapture(dir)
			if err != nil {
				return nil, fmt.Errorf("--replay %s: %w", b.flags.replay, err)
			}
			options.Ports = collectors.NewSwitch(b.catalog, sonic.Fixed{Read: again}, switchOptions(c)).Ports
		}
		enabled = append(enabled, exporter.Enabled{
			Collector: collectors.NewHost(b.catalog, collectors.NewDevices(samples[0], samples[1:]...), options), Auto: b.flags.hostMode == auto,
		})
	} else if err != nil && len(samples) == 0 {
		return nil, fmt.Errorf("--replay %s: %w, nor is there sys or sys.tar", b.flags.replay, err)
	}
	if len(enabled) == 0 {
		has := "switch"
		if err != nil {
			has = "host"
		}
		return nil, fmt.Errorf("--replay %s: this is a capture of a %s, whose collector is off: give --collector.%[2]s", b.flags.replay, has)
	}
	return enabled, nil
}

func liveOptions(c exporter.Config) sonic.LiveOptions {
	options := sonic.LiveOptions{Timeout: time.Duration(c.Scrape.Timeout) / 4, Username: c.Switch.Redis.Username}
	if file := string(c.Switch.Redis.PasswordFile); file != "" {
		options.Password = func() (string, error) {
			password, err := os.ReadFile(file)
			return strings.TrimRight(string(password), "\r\n"), err
		}
	}
	return options
}

func switchOptions(c exporter.Config) collectors.SwitchOptions {
	return collectors.SwitchOptions{
		AllQueues:         c.Switch.Queues == "all",
		AllPriorities:     c.Switch.Priorities == "all",
		Windows:           c.Switch.Windows,
		VOQ:               c.Switch.VOQ,
		PauseDurationUnit: c.Switch.PauseDurationUnit,
		Include:           c.Switch.Ports.Include.Regexp,
		Exclude:           c.Switch.Ports.Exclude.Regexp,
		AttachedMACLimit:  c.Switch.AttachedMACLimit,
		FullNames:         c.Node.Names == "full",
		RefreshConfig:     time.Duration(c.Refresh.Config),
		RefreshFDB:        time.Duration(c.Refresh.FDB),
		Timeout:           time.Duration(c.Scrape.Timeout),
		SeriesLimit:       c.Limits.Series,
		Policy:            c.Intent(),
	}
}

func hostOptions(f *flags, c exporter.Config) collectors.HostOptions {
	return collectors.HostOptions{
		AllPriorities: c.Host.Priorities == "all",
		RawStats:      c.Host.RawStats,
		Include:       cmp.Or(f.include.regexp, c.Host.DeviceInclude.Regexp),
		Exclude:       cmp.Or(f.exclude.regexp, c.Host.DeviceExclude.Regexp),
		Timeout:       time.Duration(c.Scrape.Timeout),
		SeriesLimit:   c.Limits.Series,
		Policy:        c.Intent(),
		Required:      f.hostMode == on,
	}
}
