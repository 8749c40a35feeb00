// SPDX-License-Identifier: Apache-2.0

package demo

// A Quantity is something that a port has a number of.
type Quantity uint8

// Counters of a port, from the boot of its node on. Received is what came over
// the cable, sent what left over it; those of traffic begin a run of one for
// each class.
const (
	ReceivedBytes Quantity = iota * classes
	ReceivedPackets
	SentBytes
	SentPackets
	trafficEnd
)

// More counters. Those of PFC, queues and groups are of the data's priority.
const (
	PFCReceived Quantity = trafficEnd + iota // Frames.
	PFCSent
	PausedMicroseconds  // That the peer stopped this port.
	PausingMicroseconds // That this port stopped the peer.
	PausedEnds          // How often the port might send again.
	PausingEnds
	GlobalPauseReceived // Frames.
	GlobalPauseSent
	GlobalPausedMicroseconds
	MarkedPackets
	QueueDropped // Packets.
	GroupDropped // Packets.
	OversizeReceived
	CRCErrors
	FECCorrected     // Codewords.
	FECUncorrectable // Codewords.
	LinkDowns
	StormsDetected // By the watchdog.
	StormsRestored
	StormDroppedReceived // Packets.
	StormDroppedSent

	// Of NICs and their RDMA devices.
	OutOfBuffer
	BufferHigh
	StormWarnings
	StormErrors
	PCIeStalls
	CNPSent
	CNPHandled
	CNPIgnored
	MarkedReceived // Packets.
	OutOfSequence
	SequenceNAKs
	AckTimeouts
	Retransmits
	RetriesExceeded
	gauges
)

// Gauges of a port, in bytes of the data's queue and group where nothing else
// is said.
const (
	QueueWatermark Quantity = gauges + iota
	GroupWatermark
	HeadroomWatermark
	QueueOccupancy
	PCIeStallPercent
	quantities
)

// A Class is a kind of traffic, by how switches treat it.
type Class = Quantity

// Classes of traffic.
const (
	Other   Class = iota
	Strayed       // RDMA data that a switch takes for something else.
	Data
	CNP
	classes
)

// priorities are those of the classes; queues and groups have the same numbers.
var priorities = [classes]int{0, 1, 3, 6}

// A Number is what some counter or gauge of a port shows: a sum of quantities.
type Number struct {
	Port  *Port
	Sum   []Quantity
	Times uint64 // Multiplies the sum; 0 is 1.
	Per   uint64 // Divides it: port_rcv_data counts words of 4 bytes; 0 is 1.
}

// Value is the number at a moment.
func (n *Number) Value(m Moment) uint64 {
	sum := uint64(0)
	for _, q := range n.Sum {
		sum += m.Number(n.Port, q)
	}
	return sum * max(1, n.Times) / max(1, n.Per)
}

// number is what a port has of some quantities.
func (p *Port) number(sum ...Quantity) Number { return Number{Port: p, Sum: sum} }
