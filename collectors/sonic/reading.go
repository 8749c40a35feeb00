// SPDX-License-Identifier: Apache-2.0

package sonic

import "time"

// A Reading is what one look at one namespace gave. What is nil or missing has
// no value.
type Reading struct {
	ASIC       string // The namespace, empty on a switch with one ASIC.
	Device     Device
	Time       time.Time // Clock of Redis; zero: not read.
	LastChange time.Time // When a counter of the PORT group last moved; zero: unknown.

	Databases []DatabaseState
	Instances []InstanceState

	PollGroups   []PollGroup
	Services     []Service
	Windows      []string // Of the watermarks.
	Ports        []Port
	Queues       []Queue
	Groups       []PriorityGroup
	Pools        []BufferPool
	VOQs         []VOQ
	BigRedSwitch *bool

	Skipped Skipped
}

// Skipped counts what a reading left out.
type Skipped struct {
	Unreadable int // Redis answered with an error.
	Unparsable int // Not a number, not a name.
	Missing    int // Named by a map, but not there.
	Raced      int // Renamed while it was read.
}

func (s *Skipped) add(other Skipped) {
	s.Unreadable += other.Unreadable
	s.Unparsable += other.Unparsable
	s.Missing += other.Missing
	s.Raced += other.Raced
}

// A Device is the identity of the node.
type Device struct {
	Hostname, Platform, HWSKU, OSVersion string
	Boot                                 time.Time // Zero: unknown.
}

// A DatabaseState says whether a database answered.
type DatabaseState struct {
	Name string
	Up   bool
}

// An InstanceState says why a Redis instance could not be read.
type InstanceState struct {
	Name string
	Via  string
	Err  error
	Note string // The first of what it refused although it answers.
}

// A PollGroup is a group of counters that syncd polls together, by its name
// in CONFIG_DB.
type PollGroup struct {
	Name     string
	Enabled  *bool
	Interval time.Duration // 0: unknown.
}

// A Service is a part of the control plane.
type Service struct {
	Name string
	ASIC string // Whose it is; empty: the switch's.
	Up   bool
}

// A Port is an Ethernet port of the switch.
type Port struct {
	Name  string
	Alias string
	Kind  string // front, backplane, inband, recirculation, dpu.

	AdminUp, OperUp               *bool
	Speed, ConfiguredSpeed        *float64 // Bytes a second.
	ConfigMTU, ASICMTU, KernelMTU *float64 // Bytes, without framing.

	Counters Values

	ConfigPFC      *uint8 // Bit i: priority i.
	ASICPFC        *uint8 // What the ASIC sends PFC for.
	ASICReceivePFC *uint8 // What it obeys, in separate mode only.

	LosslessQueues []LosslessQueue
	LosslessGroups []LosslessGroup
	DSCP           []DSCP
	QoSUnknown     bool // PORT_QOS_MAP or a map that it names could not be read.

	Watched          *uint8 // Priorities that CONFIG_DB puts under the PFC watchdog; nil: unknown.
	WatchdogExpected []int  // Queues on which the configuration expects it.
	Watchdog         Watchdog

	Neighbor *Neighbor
	Mode     string // l2, l3, or empty for unknown.
	LAG      string
	FDB      *int     // Addresses learned.
	MACs     []string // Attached addresses, few.

	rank       int // Place among the ports.
	oid        string
	macsec     bool
	kernelUp   *bool
	stateSpeed *float64
}

// A LosslessQueue is an egress queue that PFC priorities map to.
type LosslessQueue struct {
	Index      int
	Type       string
	Priorities []int
	ECN        *ECN // nil: unknown.
}

// ECN is how a queue marks.
type ECN struct {
	Enabled    bool
	Thresholds []ECNThreshold
}

// An ECNThreshold is one bound of one colour.
type ECNThreshold struct {
	Color, Bound string
	Bytes        float64
}

// A LosslessGroup is a priority group that PFC priorities map to.
type LosslessGroup struct {
	Index      int
	Priorities []int
	Headroom   *float64 // Bytes.
}

// A DSCP says where packets with this DSCP land.
type DSCP struct{ DSCP, Priority, Queue int }

// A Watchdog is the PFC watchdog of a port.
type Watchdog struct {
	Configured bool
	Unknown    bool     // Whether it is configured, and where, could not be read.
	Detection  *float64 // Seconds.
	Restore    *float64 // Seconds, +Inf for never.
	Action     string
}

// A Neighbor is what LLDP announces.
type Neighbor struct{ Name, Port, PortID, Kind string }

// A Queue is an egress queue with its counters.
type Queue struct {
	Port, Type string
	Index      int
	Selected   bool // Its traffic counters are wanted; else those of the watchdog only.
	Counters   Values
	Watermarks []Values // Highest fills, by Reading.Windows; nil where there is none.
	Stormed    *bool    // nil: not watched.
	Watched    bool     // CONFIG_DB puts it under the watchdog, or nobody knows.

	watchdog  Watchdog // As it is in force.
	name, oid string
	rank      int // Of its port.
}

// A PriorityGroup is an ingress priority group with its counters.
type PriorityGroup struct {
	Port       string
	Index      int
	Counters   Values
	Watermarks []Values // Highest fills, by Reading.Windows; nil where there is none.

	name, oid string
	rank      int // Of its port.
}

// A BufferPool is a buffer pool.
type BufferPool struct {
	Name           string
	Size, Headroom *float64
	Watermarks     []Values // Highest fills, by Reading.Windows; nil where there is none.

	oid string
}

// A VOQ is a virtual output queue towards a port of the chassis.
type VOQ struct {
	SystemPort string
	Index      int
	Counters   Values

	name, oid string
}
