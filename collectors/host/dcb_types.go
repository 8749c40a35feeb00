// SPDX-License-Identifier: Apache-2.0

package host

// A DCB gives the data center bridging state of network devices.
type DCB interface {
	// Get reads a device. fs.ErrNotExist: the device has no DCB.
	Get(name string) (*DCBState, error)
}

// A DCBState is what a device says of data center bridging.
type DCBState struct {
	PFC                   *uint8          // Bit i: priority i is lossless; nil: unknown.
	DSCP                  map[uint8]uint8 // DSCP to priority, as the application table has it; nil: unknown.
	Trust                 string          // dscp, pcp; empty: unknown.
	Mode                  string          // Who runs DCBX, and how: "host ieee", "firmware cee ieee"; empty: unknown.
	Requests, Indications *[8]uint64      // PFC frames sent and received, by priority; nil: unknown.
}
