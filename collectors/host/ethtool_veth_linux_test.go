// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/safchain/ethtool"

	"roce_exporter/collectors/host/hosttest"
)

// Queues of a real device come and go while its statistics are read. A reading
// is that of one of its numbers of queues, name by name and value by value, or
// ErrRaced. What the library alone would have given is looked at too: if that
// was never wrong, nothing was tried.
func TestQueuesOfVethChangeWhileStatisticsAreRead(t *testing.T) {
	if !hosttest.Elsewhere(t, hosttest.NewNetwork()) {
		return
	}
	// Nothing but this test may send, so that counters stand still.
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
	const most = 12
	if err := hosttest.AddLink("veth", "changing", most); err != nil {
		t.Skip("no veth: ", err)
	}
	if err := hosttest.AddLink("veth", "still", most+4); err != nil {
		t.Fatal(err)
	}
	lib, err := ethtool.NewEthtool()
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	count(t, lib, "changing", "veth0", most) // As the kernel calls the other end.

	channels := []ethtool.Channels{{RxCount: most, TxCount: most}, {RxCount: 2, TxCount: most}, {RxCount: most, TxCount: 3}}
	var right []map[string]uint64
	e := newEthtool(5 * time.Second).(*liveEthtool)
	for _, c := range channels {
		if _, err := lib.SetChannels("changing", c); err != nil {
			t.Skip("the queues cannot be changed: ", err)
		}
		right = append(right, quiet(t, e, "changing", c))
	}
	still := quiet(t, e, "still", ethtool.Channels{RxCount: most + 4, TxCount: most + 4})
	isRight := func(got map[string]uint64) bool {
		return slices.ContainsFunc(right, func(want map[string]uint64) bool { return maps.Equal(got, want) })
	}
	unprotected := &watchedCalls{calls: lib, isRight: isRight}
	e.conn = unprotected

	end := time.Now().Add(2 * time.Second)
	var wg sync.WaitGroup
	var changes int
	wg.Go(func() {
		for ; time.Now().Before(end); changes++ {
			if _, err := lib.SetChannels("changing", channels[changes%len(channels)]); err != nil {
				t.Error(err)
				return
			}
		}
	})
	wg.Go(func() { // It shares the buffers.
		for time.Now().Before(end) {
			if got, err := e.Statistics("still"); err != nil || !maps.Equal(got, still) {
				t.Errorf("another device: %v%s", err, cmp.Diff(still, got))
				return
			}
		}
	})
	var readings, raced int
	for ; time.Now().Before(end); readings++ {
		switch got, err := e.Statistics("changing"); {
		case errors.Is(err, ErrRaced):
			raced++
		case err != nil:
			t.Fatal(err)
		case !isRight(got):
			for i, want := range right {
				if len(want) == len(got) {
					t.Errorf("with the names of %+v:\n%s", channels[i], cmp.Diff(want, got))
				}
			}
			t.Fatalf("%d statistics are those of none of its numbers of queues", len(got))
		}
	}
	wg.Wait()
	if raced == readings {
		t.Errorf("all of %d readings raced", readings)
	}
	t.Logf("%d readings, %d changes of the queues, %d answers of the library wrong, %d readings given up", readings, changes, unprotected.wrong.Load(), raced)
	if unprotected.wrong.Load() == 0 {
		t.Skip("the queues never changed in between")
	}
}

// count makes each receive queue of a device count packets, and brings the
// device down again.
func count(t *testing.T, lib *ethtool.Ethtool, name, peer string, queues int) {
	t.Helper()
	// Only with GRO veth counts by queue, and of packets of a socket only with
	// that of UDP.
	if err := lib.Change(name, map[string]bool{"rx-gro": true, "rx-udp-gro-forwarding": true}); err != nil {
		t.Skip("no GRO: ", err)
	}
	for _, end := range []string{name, peer} {
		if err := hosttest.SetUp(end, true); err != nil {
			t.Fatal(err)
		}
		defer hosttest.SetUp(end, false)
	}
	device, err := net.InterfaceByName(peer)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(socket)
	sent := uint64(100 * queues)
	for port := range sent { // The kernel chooses the queue by the flow.
		if err := syscall.Sendto(socket, packet(uint16(port)), 0, &syscall.SockaddrLinklayer{Ifindex: device.Index}); err != nil {
			t.Fatal(err)
		}
	}
	received := func() (packets uint64) {
		statistics, err := lib.Stats(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range queues {
			packets += statistics[fmt.Sprintf("rx_queue_%d_xdp_packets", i)]
		}
		return packets
	}
	for end := time.Now().Add(5 * time.Second); received() != sent; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d packets received of %d", received(), sent)
		}
	}
}

// packet is a UDP packet from a port.
func packet(port uint16) []byte {
	p := make([]byte, 60)
	p[0] = 2 // A local address, of nobody.
	binary.BigEndian.PutUint16(p[12:], syscall.ETH_P_IP)
	ip := p[14:]
	ip[0], ip[3], ip[8], ip[9] = 0x45, 46, 64, syscall.IPPROTO_UDP
	copy(ip[12:], []byte{192, 0, 2, 1, 192, 0, 2, 2})
	binary.BigEndian.PutUint16(ip[20:], port)
	binary.BigEndian.PutUint16(ip[22:], 4791)
	binary.BigEndian.PutUint16(ip[24:], 26)
	return p
}

// quiet reads a device that nobody changes, and looks whether its names are
// those of its queues, and their values to be told apart.
func quiet(t *testing.T, e *liveEthtool, name string, c ethtool.Channels) map[string]uint64 {
	t.Helper()
	got, err := e.Statistics(name)
	if err != nil {
		t.Fatal(err)
	}
	device, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	if peer := got["peer_ifindex"]; peer != uint64(device.Index-1) { // The other end is made first.
		t.Errorf("%s, %d: the other end is %d", name, device.Index, peer)
	}
	for i := range c.RxCount {
		if packets, ok := got[fmt.Sprintf("rx_queue_%d_xdp_packets", i)]; !ok || packets == 0 && name == "changing" {
			t.Errorf("%s: nothing of receive queue %d", name, i)
		}
	}
	for i := range c.TxCount {
		if sent, ok := got[fmt.Sprintf("tx_queue_%d_xdp_xmit", i)]; !ok || sent != 0 {
			t.Errorf("%s: transmit queue %d: %d", name, i, sent)
		}
	}
	return got
}

// watchedCalls counts answers of the library that are not right.
type watchedCalls struct {
	calls
	isRight func(map[string]uint64) bool
	wrong   atomic.Int64
}

func (w *watchedCalls) StatsWithBuffer(name string, names *ethtool.EthtoolGStrings, values *ethtool.EthtoolStats) (map[string]uint64, error) {
	got, err := w.calls.StatsWithBuffer(name, names, values)
	if name == "changing" && err == nil && !w.isRight(got) {
		w.wrong.Add(1)
	}
	return got, err
}
