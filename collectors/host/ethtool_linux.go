// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/safchain/ethtool"
)

// calls are those of safchain's Ethtool that are used.
type calls interface {
	DriverInfo(name string) (ethtool.DrvInfo, error)
	StatsWithBuffer(name string, names *ethtool.EthtoolGStrings, values *ethtool.EthtoolStats) (map[string]uint64, error)
}

// liveEthtool asks the kernel over one socket, which is opened at the first
// call, in the network namespace of the process, and kept. It may be shared.
type liveEthtool struct {
	open    func() (calls, error)
	mu      sync.Mutex // Not held during a call: one may hang in the kernel.
	conn    calls
	buffers sync.Pool
	turns   chan struct{} // One for each of the calls that may run at a time.
	timeout time.Duration // Bounds the wait for a turn: those who have it may hang.
}

// maxCalls is how many devices may be asked for their statistics at a time: a
// buffer is 1.3 MB, and a host may have hundreds of virtual functions.
const maxCalls = 8

func newEthtool(timeout time.Duration) Ethtool {
	return &liveEthtool{
		timeout: timeout,
		open:    func() (calls, error) { return ethtool.NewEthtool() },
		buffers: sync.Pool{New: func() any { return new(buffer) }},
		turns:   make(chan struct{}, maxCalls),
	}
}

// A buffer holds the answers to the two calls that give names and values.
type buffer struct {
	names  ethtool.EthtoolGStrings
	values ethtool.EthtoolStats
}

func (e *liveEthtool) connect() (calls, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conn == nil {
		conn, err := e.open()
		if err != nil {
			return nil, err
		}
		e.conn = conn
	}
	return e.conn, nil
}

// Driver asks for the driver.
func (e *liveEthtool) Driver(name string) (Driver, error) {
	conn, err := e.connect()
	if err != nil {
		return Driver{}, err
	}
	info, err := conn.DriverInfo(name)
	if err != nil {
		return Driver{}, err
	}
	return Driver{info.Driver, info.Version, info.FwVersion, info.BusInfo}, nil
}

// Statistics asks for the statistics. The library makes three calls of it: how
// many there are, their names, their values. Their number may change in
// between, with PFC or with the queues of a device; the kernel then answers
// with fewer or with none, and the library pairs what is left in its buffers,
// which may be the names of another device. So there are no names at first, and
// what counts is how many names and how many values the kernel says it put
// there.
func (e *liveEthtool) Statistics(name string) (map[string]uint64, error) {
	conn, err := e.connect()
	if err != nil {
		return nil, err
	}
	patience := time.NewTimer(e.timeout)
	defer patience.Stop()
	select {
	case e.turns <- struct{}{}:
		defer func() { <-e.turns }()
	case <-patience.C:
		return nil, fmt.Errorf("waiting for %d other devices that do not answer: %w", maxCalls, os.ErrDeadlineExceeded)
	}
	b := e.buffers.Get().(*buffer)
	defer e.buffers.Put(b)
	for range 2 {
		b.empty()
		paired, err := conn.StatsWithBuffer(name, &b.names, &b.values)
		if err != nil {
			return nil, err
		}
		if s, ok := b.statistics(paired); ok && len(s) > 0 {
			return s, nil
		}
		// Nothing is what a device without statistics has, and what the kernel
		// gives to both calls if their number changed before.
		if info, err := conn.DriverInfo(name); err != nil || info.NStats == 0 {
			return nil, err
		}
	}
	return nil, ErrRaced
}

// empty takes out the names of the device before, as many as there were: the
// whole buffer is 1.3 MB. Values without names are none.
func (b *buffer) empty() {
	names := reflect.ValueOf(&b.names).Elem()
	n := min(int(names.FieldByName("len").Uint()), ethtool.MAX_GSTRINGS)
	clear(names.FieldByName("data").Bytes()[:n*ethtool.ETH_GSTRING_LEN])
}

// statistics pairs names and values, or takes what the library paired where
// that can be no other; false: they do not belong together. The fields are not
// exported, which hides them from no reader but reflect.
func (b *buffer) statistics(paired map[string]uint64) (map[string]uint64, bool) {
	names, values := reflect.ValueOf(&b.names).Elem(), reflect.ValueOf(&b.values).Elem()
	n := int(names.FieldByName("len").Uint())
	if uint64(n) != values.FieldByName("n_stats").Uint() || n > ethtool.MAX_GSTRINGS {
		return nil, false
	}
	if len(paired) == n && !anyPadded(paired) {
		return paired, true // All of them, none twice. It spares thousands of names.
	}
	text, numbers := names.FieldByName("data").Bytes(), values.FieldByName("data")
	s := newStatistics(n)
	for i := range n {
		name := text[i*ethtool.ETH_GSTRING_LEN:][:ethtool.ETH_GSTRING_LEN]
		name, _, _ = bytes.Cut(name, []byte{0})
		s.add(string(name), numbers.Index(i).Uint())
	}
	return s.values, true
}

func anyPadded(statistics map[string]uint64) bool {
	for name := range statistics {
		if name != strings.TrimSpace(name) {
			return true
		}
	}
	return false
}
