// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/safchain/ethtool"
)

// A fakeKernel answers as the kernel does, to a library that makes one call
// after the other. It may change the statistics before any of them.
type fakeKernel struct {
	now    []statistic // Of the device.
	before func(k *fakeKernel, call int)
	old    bool // Fills in what it has whatever was asked; else nothing where the number differs.
	calls  int
	err    error
}

type statistic struct {
	name  string
	value uint64
}

func (k *fakeKernel) call() {
	if k.before != nil {
		k.before(k, k.calls)
	}
	k.calls++
}

func (k *fakeKernel) DriverInfo(string) (ethtool.DrvInfo, error) {
	return ethtool.DrvInfo{Driver: "mlx5_core", FwVersion: "28.39", BusInfo: "0000:3b:00.0", NStats: uint32(len(k.now))}, k.err
}

func (k *fakeKernel) StatsWithBuffer(_ string, names *ethtool.EthtoolGStrings, values *ethtool.EthtoolStats) (map[string]uint64, error) {
	if k.err != nil {
		return nil, k.err
	}
	// The kernel writes where the library does not let others: struct
	// ethtool_gstrings and struct ethtool_stats.
	strings := (*struct {
		cmd, set, len uint32
		data          [ethtool.MAX_GSTRINGS][ethtool.ETH_GSTRING_LEN]byte
	})(unsafe.Pointer(names))
	stats := (*struct {
		cmd, n uint32
		data   [ethtool.MAX_GSTRINGS]uint64
	})(unsafe.Pointer(values))
	k.call()
	n := uint32(len(k.now))
	k.call()
	if strings.len = uint32(len(k.now)); strings.len != n && !k.old {
		strings.len = 0
	}
	for i := range strings.len {
		copy(strings.data[i][:], k.now[i].name)
	}
	k.call()
	if stats.n = uint32(len(k.now)); stats.n != n && !k.old {
		stats.n = 0
	}
	for i := range stats.n {
		stats.data[i] = k.now[i].value
	}
	paired := map[string]uint64{}
	for i := range n {
		name, _, _ := bytes.Cut(strings.data[i][:], []byte{0})
		if len(name) > 0 {
			paired[string(name)] = stats.data[i]
		}
	}
	return paired, nil
}

func open(k calls) *liveEthtool {
	e := newEthtool(time.Second).(*liveEthtool)
	e.open = func() (calls, error) { return k, nil }
	return e
}

// PFC goes on while the statistics are read: names move up, and paired with
// the values of before or after they would be those of others.
func TestNamesShiftWhileStatisticsAreRead(t *testing.T) {
	before := []statistic{{"rx_bytes", 1000}, {"tx_bytes", 2000}, {"link_down", 3}}
	after := []statistic{{"rx_bytes", 1001}, {"rx_prio3_pause", 7}, {"tx_bytes", 2001}, {"link_down", 3}}
	whole := map[string]uint64{"rx_bytes": 1001, "rx_prio3_pause": 7, "tx_bytes": 2001, "link_down": 3}
	for _, old := range []bool{false, true} {
		for call := range 4 {
			for _, back := range []bool{false, true} {
				t.Run(fmt.Sprintf("old kernel %v, before call %d, back again %v", old, call, back), func(t *testing.T) {
					k := &fakeKernel{now: before, old: old, before: func(k *fakeKernel, at int) {
						if at >= call {
							k.now = after
						}
						if back && at > call {
							k.now = before
						}
					}}
					got, err := open(k).Statistics("ens1")
					if err != nil {
						t.Fatal(err)
					}
					lost := map[string]uint64{"rx_bytes": 1000, "tx_bytes": 2000, "link_down": 3}
					if !maps.Equal(got, whole) && !maps.Equal(got, lost) {
						t.Errorf("got %v", got)
					}
				})
			}
		}
	}
}

func TestNamesNeverStandStill(t *testing.T) {
	k := &fakeKernel{before: func(k *fakeKernel, int int) {
		k.now = append(k.now, statistic{fmt.Sprint("n", int), 1})
	}}
	if got, err := open(k).Statistics("ens1"); !errors.Is(err, ErrRaced) || got != nil {
		t.Errorf("%v, %v", got, err)
	}
	if k.calls != 6 {
		t.Errorf("%d calls, not two times three", k.calls)
	}
}

func TestStatisticsOfOtherKinds(t *testing.T) {
	long := "a_name_that_fills_all_32_bytes_x"
	k := &fakeKernel{now: []statistic{{long, 5}, {"  giant hdr", 0}, {"giant hdr  ", 1}, {"", 9}, {"rx_ppp3_frames         ", 21}}}
	got, err := open(k).Statistics("ens1")
	if diff := cmp.Diff(map[string]uint64{long: 5, "rx_ppp3_frames": 21}, got); err != nil || diff != "" {
		t.Errorf("%v%s", err, diff)
	}
	k = &fakeKernel{now: []statistic{{"  drv tx pkts", 5}, {"rx_ppp3_frames         ", 21}}}
	if got, err := open(k).Statistics("eth0"); err != nil || !maps.Equal(got, map[string]uint64{"drv tx pkts": 5, "rx_ppp3_frames": 21}) {
		t.Errorf("blanks, but no name twice: %v, %v", got, err)
	}
	if got, err := open(&fakeKernel{}).Statistics("veth0"); err != nil || len(got) != 0 {
		t.Errorf("no statistics: %v, %v", got, err)
	}
	k.err = syscall.EOPNOTSUPP
	if _, err := open(k).Statistics("bond0"); !isNone(err) {
		t.Errorf("error %v", err)
	}
	if d, err := open(&fakeKernel{}).Driver("ens1"); err != nil || d != (Driver{Name: "mlx5_core", Firmware: "28.39", Bus: "0000:3b:00.0"}) {
		t.Errorf("%v, %v", d, err)
	}
}

// A buffer is used again for another device, and nothing of the one before is
// left in it.
func TestBuffersAreShared(t *testing.T) {
	e := open(&fakeKernel{now: []statistic{{"eth0_rx", 1}, {"eth0_tx", 2}}})
	if _, err := e.Statistics("eth0"); err != nil {
		t.Fatal(err)
	}
	e.conn = &fakeKernel{now: []statistic{{"rx", 3}}}
	if got, err := e.Statistics("eth1"); err != nil || !maps.Equal(got, map[string]uint64{"rx": 3}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestSocketCannotBeOpened(t *testing.T) {
	e := open(nil)
	fails := true
	e.open = func() (calls, error) {
		if fails {
			return nil, syscall.EMFILE
		}
		return &fakeKernel{}, nil
	}
	if _, err := e.Driver("eth0"); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("driver: %v", err)
	}
	if _, err := e.Statistics("eth0"); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("statistics: %v", err)
	}
	fails = false
	if _, err := e.Driver("eth0"); err != nil {
		t.Errorf("later: %v", err)
	}
}

// A hangingKernel does not answer until it is released, and then with an error.
type hangingKernel struct{ release chan struct{} }

func (hangingKernel) DriverInfo(string) (ethtool.DrvInfo, error) { return ethtool.DrvInfo{}, nil }

func (k hangingKernel) StatsWithBuffer(string, *ethtool.EthtoolGStrings, *ethtool.EthtoolStats) (map[string]uint64, error) {
	<-k.release
	return nil, syscall.EIO
}

// Devices that hang have all the turns: one that is well is told so in time,
// and is asked again as soon as one of them lets go.
func TestManyDevicesHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		e := open(hangingKernel{release: release})
		var wg sync.WaitGroup
		for i := range maxCalls {
			wg.Go(func() { _, _ = e.Statistics(fmt.Sprint("hangs", i)) })
		}
		synctest.Wait()
		e.conn = &fakeKernel{now: []statistic{{"rx", 2}}}
		began := time.Now()
		if _, err := e.Statistics("well"); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		close(release)
		wg.Wait()
		if got, err := e.Statistics("well"); err != nil || !maps.Equal(got, map[string]uint64{"rx": 2}) {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestKernelOfThisMachine(t *testing.T) {
	e := newEthtool(time.Second)
	if _, err := e.Statistics("lo"); err != nil && !isNone(err) {
		t.Errorf("lo: %v", err)
	}
	if _, err := e.Statistics("no-such-device"); !errors.Is(err, syscall.ENODEV) {
		t.Errorf("no such device: %v", err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { _, _ = e.Statistics("lo") })
	}
	wg.Wait()
}
