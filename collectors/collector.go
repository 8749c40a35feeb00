// SPDX-License-Identifier: Apache-2.0

// Package collectors turns readings of switches and NICs into metrics.
package collectors

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNotFound says that the machine has nothing that the collector could read:
// no SONiC databases, no RDMA device. It is no failure unless the operator
// asked for the collector.
var ErrNotFound = errors.New("nothing to read on this machine")

// ErrIsSwitch says the same of a host's collector on a switch, whose own
// collector speaks for it.
var ErrIsSwitch = fmt.Errorf("%w: this is a switch", ErrNotFound)

// A Collector reads one kind of device. Collect returns before ctx ends with
// what has come until then; a Reading and an error may both be set: the error
// says why the rest is missing, errors.Is(err, ErrNotFound) that there is
// nothing to read at all.
type Collector interface {
	Name() string
	Collect(ctx context.Context) (Reading, error)
}

// A Reading is what one look at a device gave. It is immutable: two scrapes may
// share it.
type Reading struct {
	Samples Samples
	// Skipped counts the objects and values that were left out.
	Skipped Skipped
	// Dropped counts the samples beyond the limit of the configuration.
	Dropped int
	// Sources has the state of every source known since start, by name.
	Sources []Source
	// None says, for people, what is there instead where there is no source.
	None string
	// Node says who the device is, empty where the collector does not know.
	Node Node
}

// Skipped counts what a reading left out, by reason.
type Skipped struct {
	Unreadable int // The source refused: a wrong type, a missing right, an I/O error.
	Unparsable int // Not a number where a number is due, a name that is none.
	Missing    int // Named by a map, but not there.
	Duplicate  int // Two objects claim the same labels: neither is exported.
	Raced      int // The object changed its identity while it was read.
}

// Add adds the counts of other.
func (s *Skipped) Add(other Skipped) {
	s.Unreadable += other.Unreadable
	s.Unparsable += other.Unparsable
	s.Missing += other.Missing
	s.Duplicate += other.Duplicate
	s.Raced += other.Raced
}

// A Source is the unit of reading: a Redis instance and namespace, a network
// device, an RDMA device.
type Source struct {
	Name string
	Err  error         // Why it could not be read; nil if it could.
	Age  time.Duration // 0 unless a late reading is served.
	Via  string        // How it is reached, for people: "unix /var/run/redis/redis.sock".
	Note string        // What of it could not be read, for people; empty: nothing.
}

// A Node is the identity of what was read.
type Node struct {
	Name      string // As the device calls itself.
	Platform  string
	HWSKU     string
	OSVersion string
}
