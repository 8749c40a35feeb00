// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"

	"roce_exporter/collectors/host/hosttest"
)

// A tree is a file system from a text as hosttest.Parse reads it. Besides,
// "path ! error" is a file that cannot be read.
type tree struct {
	files  fstest.MapFS // Not embedded: its other methods would go past Open.
	mu     sync.Mutex
	errors map[string]error
	opened func(name string) // nil: nothing happens.
}

var treeErrors = map[string]error{
	"EINVAL": syscall.EINVAL, "EOPNOTSUPP": syscall.EOPNOTSUPP, "EIO": syscall.EIO, "EACCES": syscall.EACCES, "ENODEV": syscall.ENODEV,
}

func (f *tree) Open(name string) (fs.File, error) {
	if f.opened != nil {
		f.opened(name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.errors[resolve(f.files, name)]; err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return f.files.Open(name)
}

func (f *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.errors[name]; err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	return f.files.ReadDir(name)
}

func (f *tree) Stat(name string) (fs.FileInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.files.Stat(name)
}

func (f *tree) ReadLink(name string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.files.ReadLink(name)
}

func (f *tree) Lstat(name string) (fs.FileInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.files.Lstat(name)
}

// remove takes a directory away.
func (f *tree) remove(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.files {
		if strings.HasPrefix(name, dir+"/") {
			delete(f.files, name)
		}
	}
}

func readTree(t *testing.T, file string) *tree {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return parseTree(t, string(text))
}

func parseTree(t *testing.T, text string) *tree {
	t.Helper()
	f := &tree{errors: map[string]error{}}
	var good strings.Builder
	for line := range strings.Lines(text) {
		name, word, refused := strings.Cut(strings.TrimRight(line, "\n"), " ! ")
		if !refused {
			good.WriteString(line)
			continue
		}
		if f.errors[name] = treeErrors[word]; f.errors[name] == nil {
			t.Fatalf("no such error: %s", line)
		}
		good.WriteString(name + " =\n")
	}
	f.files = hosttest.Parse(t, good.String())
	return f
}

// wanted are the raw names of the trees.
var wanted = Wanted{
	Ethtool: Fields{
		"rx_bytes_phy", "rx_prio3_pause", "rx_prio3_pause_duration", "outbound_pci_stalled_rd",
		"rx_bytes.nic", "rx_priority_3_xoff.nic", "rx_priority_3_xon.nic",
		"pfc_pri3_rx_duration_us", "rx_pfc_ena_frames_pri3", "rx_pripause_3_1us_count", "mac_rx_pfc_pri3_xoff_time",
		"rx_pfc_frames", "rx_ppp3_frames",
	},
	Netdev:   Fields{"statistics/rx_bytes", "statistics/rx_dropped", "carrier_down_count"},
	DCB:      Fields{"pfc_requests_0", "pfc_requests_3", "pfc_indications_0", "pfc_indications_3"},
	Counters: Fields{"port_rcv_data", "link_downed"},
	HWCounters: Fields{
		"np_cnp_sent", "rp_cnp_handled", "out_of_sequence", "cnpSent", "cnpHandled", "cnpIgnored", "RxECNMrkd",
		"Rcvd Out of order packets", "RNR received", "RTO", "rx_bytes", "tx_cnp_pkts", "tx_cnp_pkt",
		"sent_cnps", "received_cnps", "duplicate_request",
	},
}

func newReader(t *testing.T, f *tree, options Options) *Reader {
	t.Helper()
	sources, err := ReadCapture(f)
	if err != nil {
		t.Fatal(err)
	}
	if options.Wanted.HWCounters == nil {
		options.Wanted = wanted
	}
	return NewReader(sources, options)
}

// describe prints everything that r reads, one line a value that is there.
func describe(t *testing.T, r *Reader) string {
	t.Helper()
	found, err := r.List()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, name := range found.Netdevs {
		n, err := r.ReadNetdev(name)
		if err != nil {
			fmt.Fprintf(&out, "%s error: %v\n", name, err)
		}
		if n != nil {
			print(&out, n.Name, reflect.ValueOf(*n), "")
		}
	}
	for _, name := range found.RDMA {
		d, err := r.ReadRDMA(name)
		if err != nil {
			fmt.Fprintf(&out, "%s error: %v\n", name, err)
		}
		if d != nil {
			print(&out, d.Name, reflect.ValueOf(*d), "")
		}
	}
	return out.String()
}

func print(out *strings.Builder, name string, v reflect.Value, field string) {
	switch x := v.Interface().(type) {
	case Values:
		fields := map[string]Fields{"Ethtool": wanted.Ethtool, "Netdev": wanted.Netdev, "Frames": wanted.DCB, "Counters": wanted.Counters, "HWCounters": wanted.HWCounters}[field]
		for i, value := range x {
			if !math.IsNaN(value) {
				fmt.Fprintf(out, "%s %s %s: %v\n", name, field, fields[i], value)
			}
		}
		return
	case map[string]uint64, map[uint8]uint8, []string:
		if v.Len() > 0 {
			fmt.Fprintf(out, "%s %s: %v\n", name, field, x)
		}
		return
	case [8]uint64:
		fmt.Fprintf(out, "%s %s: %v\n", name, field, x)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			if e := v.Elem(); e.Kind() == reflect.Struct || e.Kind() == reflect.Array {
				print(out, name, e, field)
			} else {
				fmt.Fprintf(out, "%s %s: %v\n", name, field, e)
			}
		}
	case reflect.Struct:
		if field != "" {
			name += " " + field
		}
		for i := range v.NumField() {
			if field := v.Type().Field(i).Name; field != "Name" && field != "Known" {
				print(out, name, v.Field(i), v.Type().Field(i).Name)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			print(out, fmt.Sprintf("%s %s", name, field), v.Index(i), "")
		}
	default:
		if !v.IsZero() {
			fmt.Fprintf(out, "%s %s: %v\n", name, field, v)
		}
	}
}

func index(t *testing.T, fields Fields, name string) int {
	t.Helper()
	i := slices.Index(fields, name)
	if i < 0 {
		t.Fatalf("%s is not wanted", name)
	}
	return i
}
