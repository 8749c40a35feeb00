// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/mdlayher/netlink"
)

// Numbers of include/uapi/linux/netlink.h and rtnetlink.h.
const (
	netlinkRoute = 0  // NETLINK_ROUTE
	rtmGetDCB    = 78 // RTM_GETDCB
)

// A LiveDCB asks the kernel (net/dcb/dcbnl.c) over one netlink socket, which
// is opened at the first Get, in the network namespace of the process, and
// kept. It needs no privilege. It may be shared: one request is under way at
// a time, as the kernel's RTNL lock would have it anyway.
type LiveDCB struct {
	timeout time.Duration
	dial    func() (dcbConn, error)
	turn    chan struct{} // Holds an element while somebody has conn.
	conn    dcbConn       // nil: to be opened.
}

// A dcbConn is what is used of netlink.Conn.
type dcbConn interface {
	Execute(netlink.Message) ([]netlink.Message, error)
	SetDeadline(time.Time) error
	Close() error
}

// NewLiveDCB returns a reader of live devices. The timeout bounds the wait
// for a turn, and the wait for a reply.
func NewLiveDCB(timeout time.Duration) *LiveDCB {
	return &LiveDCB{
		timeout: timeout,
		dial: func() (dcbConn, error) {
			return netlink.Dial(netlinkRoute, nil)
		},
		turn: make(chan struct{}, 1),
	}
}

// Get reads the DCB state of a device. Errors, by errors.Is:
//
//   - fs.ErrNotExist: the device, or the kernel, has no DCB (EOPNOTSUPP);
//   - syscall.ENODEV: there is no such device, which says nothing of its DCB;
//   - os.ErrDeadlineExceeded: no turn or no reply in time.
//
// The kernel works while the request is being sent: if it has to wait there
// for a lock or for a device's firmware, no timeout can end that, and Get
// returns when the kernel does. The others that wait for their turn meanwhile
// give up in time.
//
// PFC frames in the answer are the driver's: mlx5 refreshes them only when
// its ethtool statistics are read, and a driver that does not count (qede,
// cxgb4) leaves them 0.
func (d *LiveDCB) Get(name string) (*DCBState, error) {
	s, err := d.get(name)
	if err != nil {
		return nil, fmt.Errorf("DCB of %s: %w", name, err)
	}
	return s, nil
}

func (d *LiveDCB) get(name string) (*DCBState, error) {
	request, err := dcbRequest(name)
	if err != nil {
		return nil, err
	}
	patience := time.NewTimer(d.timeout)
	defer patience.Stop()
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-patience.C:
		return nil, fmt.Errorf("waiting for another device: %w", os.ErrDeadlineExceeded)
	}
	replies, err := d.execute(request)
	switch {
	case errors.Is(err, syscall.EOPNOTSUPP):
		return nil, fs.ErrNotExist
	case err != nil:
		return nil, err
	case len(replies) != 1:
		return nil, fmt.Errorf("%d replies to one request", len(replies))
	case replies[0].Header.Type != rtmGetDCB:
		return nil, fmt.Errorf("a reply of type %d", replies[0].Header.Type)
	}
	return decodeDCB(replies[0].Data)
}

// execute sends one request and awaits what answers it. Whoever calls it has
// the turn. A connection that failed in any way but by the kernel's plain
// refusal may yet receive the reply that was not awaited, so it is given up.
func (d *LiveDCB) execute(request []byte) ([]netlink.Message, error) {
	if d.conn == nil {
		conn, err := d.dial()
		if err != nil {
			return nil, err
		}
		d.conn = conn
	}
	err := d.conn.SetDeadline(time.Now().Add(d.timeout))
	var replies []netlink.Message
	if err == nil {
		replies, err = d.conn.Execute(netlink.Message{
			Header: netlink.Header{Type: rtmGetDCB, Flags: netlink.Request},
			Data:   request,
		})
	}
	if err != nil && !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.ENODEV) {
		_ = d.conn.Close()
		d.conn = nil
	}
	return replies, err
}
