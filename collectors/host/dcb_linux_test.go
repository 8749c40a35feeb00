// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mdlayher/netlink"

	"roce_exporter/collectors/host/hosttest"
)

func TestLiveDCB(t *testing.T) {
	d := NewLiveDCB(5 * time.Second)
	// Both refusals, one after the other, over the same socket.
	for range 2 {
		expectRefusals(t, d, "lo")
	}
	if d.conn == nil {
		t.Error("a refusal closed the socket")
	}
	for _, name := range []string{"", "a-name-of-16-byt", "a/b"} {
		if _, err := d.Get(name); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// expectRefusals expects that a device has no DCB, and of a device that is not
// there nothing is known.
func expectRefusals(t *testing.T, d *LiveDCB, without string) {
	t.Helper()
	if s, err := d.Get(without); s != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v, %v", without, s, err)
	}
	s, err := d.Get("no-such-device")
	if s != nil || !errors.Is(err, syscall.ENODEV) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such device: %v, %v", s, err)
	}
}

func TestLiveDCBShared(t *testing.T) {
	d := NewLiveDCB(30 * time.Second)
	expectRefusals(t, d, "lo")
	before := openFiles(t)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				expectRefusals(t, d, "lo")
			}
		})
	}
	wg.Wait()
	if after := openFiles(t); after > before { // Fewer, if another test's socket was collected.
		t.Errorf("%d files open before, %d after", before, after)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// A deadline that has passed ends a request to the real kernel, and the next
// one has a new socket.
func TestLiveDCBDeadline(t *testing.T) {
	d := NewLiveDCB(5 * time.Second)
	expectRefusals(t, d, "lo")
	if err := d.conn.SetDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.conn.Execute(netlink.Message{Header: netlink.Header{Type: rtmGetDCB, Flags: netlink.Request}}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("after the deadline:", err)
	}
	expectRefusals(t, d, "lo")
}

func TestLiveDCBUnprivileged(t *testing.T) {
	nobody := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if os.Getuid() == 0 && !hosttest.Elsewhere(t, nobody) {
		return
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(status), "CapEff:\t0000000000000000\n") {
		t.Skip("it has capabilities")
	}
	d := NewLiveDCB(5 * time.Second)
	expectRefusals(t, d, "lo")
}

func TestLiveDCBVeth(t *testing.T) {
	if !hosttest.Elsewhere(t, hosttest.NewNetwork()) {
		return
	}
	if err := hosttest.AddLink("veth", "dcb0", 1); err != nil {
		t.Skip("no veth: ", err)
	}
	if _, err := net.InterfaceByName("dcb0"); err != nil {
		t.Fatal(err)
	}
	d := NewLiveDCB(5 * time.Second)
	expectRefusals(t, d, "dcb0")
	expectRefusals(t, d, "lo")
}

// A fakeConn answers as it is told, or not at all.
type fakeConn struct {
	answer func() ([]netlink.Message, error)
	closed int
}

func (c *fakeConn) Execute(netlink.Message) ([]netlink.Message, error) { return c.answer() }
func (c *fakeConn) SetDeadline(time.Time) error                        { return nil }
func (c *fakeConn) Close() error                                       { c.closed++; return nil }

// fakeDCB gives a reader each of the connections when it dials.
func fakeDCB(conns ...*fakeConn) *LiveDCB {
	d := NewLiveDCB(time.Second)
	d.dial = func() (dcbConn, error) {
		if len(conns) == 0 {
			return nil, errors.New("no more connections")
		}
		c := conns[0]
		conns = conns[1:]
		return c, nil
	}
	return d
}

func answer(kind netlink.HeaderType, data ...[]byte) func() ([]netlink.Message, error) {
	return func() (messages []netlink.Message, err error) {
		for _, b := range data {
			messages = append(messages, netlink.Message{Header: netlink.Header{Type: kind}, Data: b})
		}
		return messages, nil
	}
}

func TestLiveDCBReply(t *testing.T) {
	reply := wire(t, replyHostDSCP)
	s, err := fakeDCB(&fakeConn{answer: answer(rtmGetDCB, reply)}).Get("ens1f0np0")
	if err != nil || s.Trust != "dscp" || *s.PFC != 8 {
		t.Errorf("%+v, %v", s, err)
	}
	for want, f := range map[string]func() ([]netlink.Message, error){
		"DCB of ens1: 0 replies to one request": answer(rtmGetDCB),
		"DCB of ens1: 2 replies to one request": answer(rtmGetDCB, reply, reply),
		"DCB of ens1: a reply of type 79":       answer(79, reply),
		"DCB of ens1: a DCB message of 3 bytes": answer(rtmGetDCB, reply[:3]),
	} {
		if s, err := fakeDCB(&fakeConn{answer: f}).Get("ens1"); s != nil || err == nil || err.Error() != want {
			t.Errorf("%v, %v, want the error %q", s, err, want)
		}
	}
}

// The reply that was not awaited must not be taken for that of the next.
func TestLiveDCBLateReply(t *testing.T) {
	late := &fakeConn{answer: func() ([]netlink.Message, error) {
		return nil, &netlink.OpError{Op: "receive", Err: os.ErrDeadlineExceeded}
	}}
	fresh := &fakeConn{answer: answer(rtmGetDCB, wire(t, replyFirmwarePCP))}
	d := fakeDCB(late, fresh)
	if _, err := d.Get("ens1"); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("late:", err)
	}
	if late.closed != 1 {
		t.Errorf("closed %d times", late.closed)
	}
	if s, err := d.Get("ens1"); err != nil || s.Trust != "pcp" {
		t.Errorf("%+v, %v", s, err)
	}
	if fresh.closed != 0 {
		t.Errorf("closed %d times", fresh.closed)
	}
}

// A device in whose driver the kernel hangs holds up no other device beyond the
// timeout; its socket is closed when it comes back with less than an answer.
func TestLiveDCBHangingDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for reply, closed := range map[error]int{os.ErrDeadlineExceeded: 1, syscall.EOPNOTSUPP: 0} {
			kernel := make(chan struct{})
			conn := &fakeConn{answer: func() ([]netlink.Message, error) {
				<-kernel
				return nil, fmt.Errorf("receive: %w", reply)
			}}
			d := fakeDCB(conn)
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = d.Get("ens1") })
			synctest.Wait()
			began := time.Now()
			if _, err := d.Get("ens2"); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Second {
				t.Errorf("after %s: %v", time.Since(began), err)
			}
			if conn.closed != 0 {
				t.Errorf("closed %d times under the other's hands", conn.closed)
			}
			close(kernel)
			wg.Wait()
			if conn.closed != closed {
				t.Errorf("%v: closed %d times, want %d", reply, conn.closed, closed)
			}
		}
	})
}
