// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// ParseDriver reads what ethtool -i prints.
func ParseDriver(text string) Driver {
	var d Driver
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "driver":
			d.Name = value
		case "version":
			d.Version = value
		case "firmware-version":
			d.Firmware = value
		case "bus-info":
			d.Bus = value
		}
	}
	return d
}

// brokenLines are lines of a text that are no statistics.
type brokenLines struct {
	first string
	count int
}

func (b *brokenLines) Error() string { return fmt.Sprintf("no statistic: %.40q", b.first) }

// ParseStatistics reads what ethtool -S prints. A line that is none costs that
// line, and the error tells of the first.
func ParseStatistics(text string) (map[string]uint64, error) {
	s := newStatistics(strings.Count(text, "\n"))
	var broken brokenLines
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line == "NIC statistics:" || line == "no stats available" || strings.HasPrefix(line, "# ") {
			continue
		}
		name, value, ok := cutLast(line, ":") // "[0]: rx_bytes: 5"
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		if !ok || err != nil {
			if broken.count++; broken.count == 1 {
				broken.first = line
			}
			continue
		}
		s.add(name, n)
	}
	if broken.count > 0 {
		return s.values, &broken
	}
	return s.values, nil
}

// statistics drops names that are there twice: whose value is whose nobody
// could tell.
type statistics struct {
	values map[string]uint64
	twice  map[string]bool
}

func newStatistics(size int) statistics {
	return statistics{make(map[string]uint64, size), map[string]bool{}}
}

func (s statistics) add(name string, value uint64) {
	name = strings.TrimSpace(name)
	if _, ok := s.values[name]; ok || s.twice[name] {
		s.twice[name] = true
		delete(s.values, name)
		return
	}
	if name != "" {
		s.values[name] = value
	}
}

// ReadEthtool reads the devices of a capture: ethtool/<device>/driver and
// ethtool/<device>/statistics as ethtool -i and -S print them. A device
// without a file has nothing of the kind: fs.ErrNotExist.
func ReadEthtool(capture fs.FS) Ethtool { return ethtoolCapture{capture} }

type ethtoolCapture struct{ files fs.FS }

func (c ethtoolCapture) Driver(name string) (Driver, error) {
	text, err := readText(c.files, path.Join("ethtool", name, "driver"))
	if err != nil {
		return Driver{}, err
	}
	return ParseDriver(text), nil
}

func (c ethtoolCapture) Statistics(name string) (map[string]uint64, error) {
	file := path.Join("ethtool", name, "statistics")
	text, err := readText(c.files, file)
	if err != nil {
		return nil, err
	}
	values, err := ParseStatistics(text)
	if err != nil {
		return values, fmt.Errorf("%s: %w", file, err)
	}
	return values, nil
}
