// SPDX-License-Identifier: Apache-2.0

// Package host reads a host's NICs and RDMA devices into plain structs.
package host

import (
	"io/fs"
	"os"
	"regexp"
	"time"
)

// Sources are everything that the reader may touch.
type Sources struct {
	Sys, Proc fs.FS // Rooted at /sys and /proc. Links are followed with fs.ReadLink.
	Ethtool   Ethtool
	DCB       DCB // nil: nobody can be asked.
	// SysPath is where Sys is, for people.
	SysPath string
	// Clock is the clock of the host; nil: that of this machine.
	Clock func() time.Time
}

// An Ethtool asks network devices for what their drivers tell of them. An
// error that is fs.ErrNotExist or errors.ErrUnsupported says that the device
// has nothing of the kind.
type Ethtool interface {
	// Driver is what ethtool -i prints.
	Driver(name string) (Driver, error)
	// Statistics is what ethtool -S prints: names as the driver spells them,
	// less blanks around them. A name that is there twice is left out. Of a
	// text that is broken in places, the rest comes with the error.
	Statistics(name string) (map[string]uint64, error)
}

// A Driver is what drives a device.
type Driver struct{ Name, Version, Firmware, Bus string }

// dcbPatience is how long one device's DCB is waited for, ethtoolPatience how
// long a turn to ask for statistics is: where there are hundreds of devices,
// they take their time one after the other.
const (
	dcbPatience     = 2 * time.Second
	ethtoolPatience = 5 * time.Second
)

// NewLive returns the sources of the host that the exporter runs on, whose
// /sys and /proc may be mounted elsewhere.
func NewLive(sysPath, procPath string) Sources {
	return Sources{SysPath: sysPath, Sys: os.DirFS(sysPath), Proc: os.DirFS(procPath), Ethtool: newEthtool(ethtoolPatience), DCB: NewLiveDCB(dcbPatience)}
}

// Fields are the raw names that are wanted of one kind of object.
type Fields []string

// Values are an object's numbers, in the order of its Fields. What has no
// value is NaN.
type Values []float64

// Options say what to read.
type Options struct {
	Include *regexp.Regexp // Names of network and of RDMA devices; nil: all.
	Exclude *regexp.Regexp // nil: none.
	Wanted  Wanted
	// RawStats are driver statistics that are wanted under their own name, in
	// the patterns of path.Match.
	RawStats []string
}

func (o *Options) selected(name string) bool {
	if o.Include != nil && !o.Include.MatchString(name) {
		return false
	}
	return o.Exclude == nil || !o.Exclude.MatchString(name)
}

// Wanted are the raw names that are wanted, by kind of object, whatever the
// driver.
type Wanted struct {
	Ethtool    Fields // Driver statistics of a network device.
	Netdev     Fields // Files below class/net/<device>: "statistics/rx_bytes", "carrier_down_count".
	DCB        Fields // "pfc_requests_0" (sent) and "pfc_indications_0" (received) to 7.
	Counters   Fields // Files of class/infiniband/<device>/ports/<port>/counters.
	HWCounters Fields // Files of …/hw_counters.
}

// Skipped counts what a reading left out.
type Skipped struct {
	Unreadable int // A missing right, an I/O error, a device in trouble.
	Unparsable int // Not what the kernel writes there.
	Missing    int // Named by another device, but not there.
	Raced      int // Statistics that changed their names while they were read.
}

func (s *Skipped) add(other Skipped) {
	s.Unreadable += other.Unreadable
	s.Unparsable += other.Unparsable
	s.Missing += other.Missing
	s.Raced += other.Raced
}

// An Inventory is what devices there are, by the names that are their
// sources' names.
type Inventory struct {
	Netdevs []string
	RDMA    []string
}

// Kinds of devices. A device that is none of them is virtual: it has no port
// of its own.
const (
	Physical = "physical"
	VF       = "vf"   // Virtual function of a PCI device.
	SF       = "sf"   // Sub-function of a PCI device.
	Bond     = "bond" // Of network devices only.
)

// A Netdev is a network device. What is nil or NaN has no value.
type Netdev struct {
	Name      string
	Index     string // The kernel's number of it, which no later device of the name has.
	Known     bool   // False: its driver has not said who it is, yet.
	Kind      string
	Driver    string // The table's name of it: that of the PCI driver.
	Firmware  string
	PCI       string // Address of the function; of a sub-function, its parent's.
	MAC       string // The permanent one; of a sub-device, its own.
	Bond      string // That it is a member of.
	Members   []string
	AdminUp   *bool
	OperUp    *bool
	Speed     *float64 // Bytes a second.
	MTU       *float64
	Link      *PCIe
	Sysctls   Sysctls
	DCB       *DCBState // nil: unknown. Of physical devices only.
	PauseSeen *uint8    // Bit i: the driver prints pause lines of priority i; nil: this driver hides none.

	// Counters, of physical devices only: what a virtual function counts never
	// was on the wire.
	Ethtool Values
	Netdev  Values
	Frames  Values // PFC frames, Wanted.DCB.

	Raw map[string]uint64 // Options.RawStats.

	Skipped Skipped
	Note    string // The first of what could not be read.
}

// A PCIe is the link of a PCI device. Max is what card and slot could do
// together.
type PCIe struct {
	Width, MaxWidth *float64 // Lanes.
	Speed, MaxSpeed *float64 // Transfers a second.
	Payload         *float64 // Bytes of the largest packet that it sends; root only.
}

// Sysctls are the effective values of a device: the kernel takes the larger of
// the device's own and that of all.
type Sysctls struct{ ARPIgnore, ARPAnnounce, RPFilter *float64 }

// An RDMA is an RDMA device. What is nil or NaN has no value.
type RDMA struct {
	Name     string
	Kind     string // Empty: virtual, as soft RoCE is.
	Driver   string // That of the PCI device beneath; "rdma_rxe" of soft RoCE.
	Firmware string
	BoardID  string
	NodeGUID string
	PCI      string
	IWARP    bool // Not RoCE: it has no RoCE MTU, no CNP, no DSCP of interest.
	Ports    []RDMAPort

	Skipped Skipped
	Note    string // The first of what could not be read.
}

// An RDMAPort is a port of an RDMA device.
type RDMAPort struct {
	Number    int
	Netdev    string   // The network device that its traffic takes; that may be a bond.
	Members   []string // Of the bond.
	LinkLayer string   // Ethernet, InfiniBand, Unspecified; empty: not told.
	Up        *bool
	Speed     *float64 // Bytes a second, of a port that is up.
	MTU       *float64 // Of RoCE: what the driver makes of the network device's.
	GIDs      *GIDs

	DefaultTOS   *float64 // Only where somebody made the directory.
	TrafficClass *float64 // OFED only.
	ECN          []ECN    // OFED only.

	// Counters as they are in the files: those of the directory counters count
	// data in words of 4 bytes, whatever the driver.
	Counters   Values
	HWCounters Values // With those of the device, where it has one port only.
}

// GIDs are how many addresses a port has.
type GIDs struct{ V1, V2 int }

// An ECN says whether a priority takes part in congestion control.
type ECN struct {
	Priority int
	Role     string // notification, reaction.
	Enabled  bool
}

// A Host is what is not of one device.
type Host struct {
	Hostname  string
	OSVersion string // Of the kernel.
	Boot      time.Time
	Modules   map[string]bool // Of Modules(); nil: cannot be listed.
}

// Modules lists the kernel modules that are looked for.
func Modules() []string {
	return []string{"bnxt_re", "ib_uverbs", "irdma", "mlx5_ib", "nvidia_peermem", "rdma_cm"}
}
