// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/mdlayher/netlink"
)

// NewNetwork makes a process start in a network of its own, in which it may
// make devices, whoever it is.
func NewNetwork() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Getuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return attr
}

const elsewhere = "ROCE_TEST_ELSEWHERE"

// Elsewhere runs a test again in another process, as another user or in
// another network. It is true there, and false here when the other is done.
func Elsewhere(t *testing.T, attr *syscall.SysProcAttr, args ...string) bool {
	t.Helper()
	if os.Getenv(elsewhere) != "" {
		return true
	}
	// By this name, because the directory of the binary may be closed to others.
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", append(args, "-test.run=^"+t.Name()+"$", "-test.v")...)
	cmd.Env = append(os.Environ(), elsewhere+"=1")
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	var said strings.Builder // By the test itself, which testing indents.
	for line := range strings.Lines(string(out)) {
		if text, ok := strings.CutPrefix(line, "    "); ok {
			said.WriteString(text)
		}
	}
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		t.Skipf("not possible as another user or in another network: %v", err)
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	case bytes.Contains(out, []byte("--- SKIP")):
		t.Skip(strings.TrimSpace(said.String()))
	case !bytes.Contains(out, []byte("--- PASS: "+t.Name())):
		t.Errorf("it did not run:\n%s", out)
	default:
		_, _ = t.Output().Write([]byte(said.String()))
	}
	return false
}

// Of linux/if_link.h and linux/veth.h.
const (
	infoKind     = 1
	numTxQueues  = 31
	numRxQueues  = 32
	headerLength = syscall.SizeofIfInfomsg
)

// AddLink makes a network device of a kind, with as many queues in either
// direction. The other end of a veth has as many; its name is the kernel's.
func AddLink(kind, name string, queues uint32) error {
	attributes := netlink.NewAttributeEncoder()
	attributes.String(syscall.IFLA_IFNAME, name)
	attributes.Uint32(numTxQueues, queues)
	attributes.Uint32(numRxQueues, queues)
	attributes.Nested(syscall.IFLA_LINKINFO, func(info *netlink.AttributeEncoder) error {
		info.String(infoKind, kind)
		return nil
	})
	data, err := attributes.Encode()
	if err != nil {
		return err
	}
	return newLink(netlink.Create|netlink.Excl, append(make([]byte, headerLength), data...))
}

// SetUp brings a network device up or down.
func SetUp(name string, up bool) error {
	device, err := net.InterfaceByName(name)
	if err != nil {
		return err
	}
	header := make([]byte, headerLength) // struct ifinfomsg
	binary.NativeEndian.PutUint32(header[4:], uint32(device.Index))
	if up {
		binary.NativeEndian.PutUint32(header[8:], syscall.IFF_UP)
	}
	binary.NativeEndian.PutUint32(header[12:], syscall.IFF_UP) // What changes.
	return newLink(0, header)
}

func newLink(flags netlink.HeaderFlags, data []byte) error {
	conn, err := netlink.Dial(syscall.NETLINK_ROUTE, nil)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = conn.Execute(netlink.Message{
		Header: netlink.Header{Type: syscall.RTM_NEWLINK, Flags: netlink.Request | netlink.Acknowledge | flags},
		Data:   data,
	})
	return err
}
