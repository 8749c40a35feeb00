// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// The replies below are composed, as net/dcb/dcbnl.c (dcbnl_ieee_fill) of
// Linux 6.12 puts them together; none is recorded. They are those of a little
// endian host. What follows a # is a comment.

// mlx5 with DSCP trust, PFC on priority 3, DCBX of the host.
const replyHostDSCP = `
00 15 00 00                                      # struct dcbmsg: AF_UNSPEC, IEEE_GET
0e 00 01 00 65 6e 73 31 66 30 6e 70 30 00 00 00  # IFNAME(1), 14 bytes: ens1f0np0
1c 01 0d 00                                      # IEEE(13), 284 bytes, no NLA_F_NESTED
  3f 00 01 00                                    #   ETS(1), 63 bytes
    00 08 00                                     #     not willing, 8 classes, no shaper
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00 01 02 03 04 05 06 07
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00                  #     and a byte of padding
  8c 00 02 00                                    #   PFC(2), 140 bytes
    08 08 00 00 00 00 00 00                      #     8 classes can, mask 0x08, mbc 0, delay 0
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  39 30 00 00 00 00 00 00  # sent: priority 3: 12345
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00 00 00 00 01 00 00 00  # received: priority 3: 2^32
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
  30 00 0a 00                                    #   DCB_BUFFER(10), 48 bytes
    00 00 00 01 00 00 00 00
    00 00 01 00 00 00 02 00 00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
    00 00 04 00
  1c 00 03 00                                    #   APP_TABLE(3), 28 bytes
    08 00 01 00 05 03 1a 00                      #     IEEE_APP(1): DSCP, priority 3, 26
    08 00 01 00 05 06 30 00                      #     IEEE_APP(1): DSCP, priority 6, 48
    08 00 01 00 01 03 06 89                      #     IEEE_APP(1): Ethertype, priority 3, 0x8906
05 00 0e 00 0d 00 00 00                          # DCBX(14): host, cee, ieee
`

// ice of which the firmware runs DCBX: it has a peer, and no DSCP.
const replyFirmwarePCP = `
00 15 00 00
09 00 01 00 65 6e 73 31 00 00 00 00              # IFNAME(1): ens1
28 01 0d 00                                      # IEEE(13), 296 bytes
  8c 00 02 00                                    #   PFC(2): mask 0x10
    08 10 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    07 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  # sent: priority 4: 7
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  ff ff ff ff ff ff ff ff  # received: priority 7: 2^64-1
  0c 00 03 00 08 00 01 00 04 04 b7 12            #   APP_TABLE(3): any port, priority 4, 4791
  8c 00 05 00                                    #   PEER_PFC(5): of the switch, not ours
    08 ff 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
05 00 0e 00 0a 00 00 00                          # DCBX(14): managed below the host, ieee
`

// A driver whose ieee_getpfc failed and that has no getdcbx.
const replyWithoutPFC = `
00 15 00 00
09 00 01 00 65 74 68 30 00 00 00 00              # IFNAME(1): eth0
08 00 0d 00                                      # IEEE(13)
  04 00 03 00                                    #   APP_TABLE(3), empty
`

// A driver with getapptrust: PCP first, then DSCP, although DSCPs are mapped.
const replyTrustTable = `
00 15 00 00
24 00 0d 80                                      # IEEE(13), here with NLA_F_NESTED
  0c 00 03 00 08 00 01 00 05 05 0a 00            #   APP_TABLE(3): DSCP 10, priority 5
  14 00 0b 80                                    #   TRUST_TABLE(11), NLA_F_NESTED
    05 00 02 00 ff 00 00 00                      #     DCB_APP(2): PCP
    05 00 01 00 05 00 00 00                      #     IEEE_APP(1): DSCP
05 00 0e 00 01                                   # DCBX(14): host, without padding
`

// What no packet can have, and an attribute that is not for IEEE selectors.
const replyOddTable = `
00 15 00 00
20 00 0d 00                                      # IEEE(13)
  1c 00 03 00                                    #   APP_TABLE(3)
    08 00 01 00 05 03 40 00                      #     DSCP 64
    08 00 01 00 05 08 1a 00                      #     priority 8
    08 00 02 00 05 01 1a 00                      #     DSCP 26 in a DCB_APP(2)
`

// wire turns hex with comments into bytes.
func wire(t testing.TB, text string) []byte {
	t.Helper()
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the bytes are those of a little endian host")
	}
	var digits strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDecodeDCB(t *testing.T) {
	var mask3, mask4 uint8 = 0x08, 0x10
	for situation, test := range map[string]struct {
		reply string
		want  *DCBState
	}{
		"DSCP trusted, DCBX of the host": {replyHostDSCP, &DCBState{
			PFC: &mask3, DSCP: map[uint8]uint8{26: 3, 48: 6}, Trust: "dscp", Mode: "host cee ieee",
			Requests: &[8]uint64{3: 12345}, Indications: &[8]uint64{3: 1 << 32},
		}},
		"no DSCP, DCBX of the firmware": {replyFirmwarePCP, &DCBState{
			PFC: &mask4, DSCP: map[uint8]uint8{}, Trust: "pcp", Mode: "firmware ieee",
			Requests: &[8]uint64{4: 7}, Indications: &[8]uint64{7: 1<<64 - 1},
		}},
		"PFC unreadable":                 {replyWithoutPFC, &DCBState{DSCP: map[uint8]uint8{}, Trust: "pcp"}},
		"the driver says what it trusts": {replyTrustTable, &DCBState{DSCP: map[uint8]uint8{10: 5}, Trust: "pcp", Mode: "host"}},
		"nothing trusted":                {"00 15 00 00 0c 00 0d 00 04 00 03 00 04 00 0b 80", &DCBState{DSCP: map[uint8]uint8{}}},
		"several priorities of a DSCP": {
			"00 15 00 00 20 00 0d 00 1c 00 03 00 08 00 01 00 05 02 1a 00 08 00 01 00 05 04 1a 00 08 00 01 00 05 03 1a 00",
			&DCBState{DSCP: map[uint8]uint8{26: 4}, Trust: "dscp"},
		},
		"priority 0 is a priority": {
			"00 15 00 00 10 00 0d 00 0c 00 03 00 08 00 01 00 05 00 00 00",
			&DCBState{DSCP: map[uint8]uint8{0: 0}, Trust: "dscp"},
		},
		"values that cannot be": {replyOddTable, &DCBState{DSCP: map[uint8]uint8{}, Trust: "pcp"}},
		"no attribute":          {"00 15 00 00", &DCBState{}},
	} {
		t.Run(situation, func(t *testing.T) {
			got, err := decodeDCB(wire(t, test.reply))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Every prefix of a reply is an error or a state, and a cut within an
// attribute is an error.
func TestDecodeDCBErrors(t *testing.T) {
	for situation, test := range map[string]struct{ reply, want string }{
		"empty":                        {"", "a DCB message of 0 bytes"},
		"another command":              {"00 16 00 00", "a DCB message of command 22"},
		"stray bytes":                  {"00 15 00 00 05 00", "2 bytes behind the last attribute"},
		"a length of 0":                {"00 15 00 00 00 00 0d 00", "attribute 13 has a length of 0 bytes where 4 are left"},
		"longer than the message":      {"00 15 00 00 05 00 0e 00", "attribute 14 has a length of 5 bytes where 4 are left"},
		"longer than what surrounds":   {"00 15 00 00 0c 00 0d 00 0c 00 02 00 00 00 00 00 00 00 00 00", "attribute 2 has a length of 12 bytes where 8 are left"},
		"PFC of an unknown kernel":     {"00 15 00 00 0c 00 0d 00 08 00 02 00 08 08 00 00", "a PFC attribute of 4 bytes"},
		"an application without value": {"00 15 00 00 10 00 0d 00 0c 00 03 00 06 00 01 00 05 03 00 00", "an application of 2 bytes"},
		"an empty selector":            {"00 15 00 00 0c 00 0d 00 08 00 0b 00 04 00 01 00", "an empty selector"},
		"empty DCBX":                   {"00 15 00 00 04 00 0e 00", "an empty DCBX attribute"},
	} {
		t.Run(situation, func(t *testing.T) {
			got, err := decodeDCB(wire(t, test.reply))
			if err == nil || err.Error() != test.want || got != nil {
				t.Errorf("%v, %v, want the error %q", got, err, test.want)
			}
		})
	}
	whole := wire(t, replyHostDSCP)
	for n := range whole {
		// The message may end behind its header, behind IFNAME and behind IEEE,
		// and the last attribute does without its padding.
		complete := slices.Contains([]int{4, 18, 19, 20, 304, 309, 310, 311}, n)
		if _, err := decodeDCB(whole[:n]); (err == nil) != complete {
			t.Errorf("cut to %d of %d bytes: %v", n, len(whole), err)
		}
	}
}

func TestDCBXMode(t *testing.T) {
	for bits, want := range map[uint8]string{
		0x00: "none",
		0x01: "host",
		0x09: "host ieee",
		0x0c: "firmware cee ieee", // mlx5 after control was given to the firmware.
		0x0b: "firmware ieee",     // Both: it is the switch that may change the mask.
		0x12: "firmware static",
		0xe0: "none", // Bits of a later kernel.
	} {
		if got := dcbxMode(bits); got != want {
			t.Errorf("%#02x: %q, want %q", bits, got, want)
		}
	}
}

func TestDCBRequest(t *testing.T) {
	want := wire(t, `
00 15 00 00                                      # struct dcbmsg: AF_UNSPEC, IEEE_GET
09 00 01 00 65 74 68 30 00 00 00 00              # IFNAME(1), 9 bytes: eth0, a NUL and padding
`)
	if got, err := dcbRequest("eth0"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%x, %v, want %x", got, err, want)
	}
	if _, err := dcbRequest("enp193s0f0np0v1"); err != nil {
		t.Error("15 bytes:", err)
	}
	for _, name := range []string{"", "enp193s0f0np0v10", "a/b", "eth0\x00"} {
		if got, err := dcbRequest(name); err == nil {
			t.Errorf("%q: %x", name, got)
		}
	}
}

// Whatever the kernel answers, and whatever a capture holds, nothing panics,
// and what was read is the same after it was written and read again.
func FuzzDCB(f *testing.F) {
	for _, reply := range []string{replyHostDSCP, replyFirmwarePCP, replyWithoutPFC, replyTrustTable, replyOddTable} {
		f.Add(wire(f, reply))
	}
	f.Add([]byte(dcbJSON))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, decode := range []func([]byte) (*DCBState, error){decodeDCB, parseDCB} {
			s, err := decode(b)
			if (s == nil) != (err != nil) {
				t.Fatalf("%v and %v", s, err)
			}
			if s == nil {
				continue
			}
			if !slices.Contains([]string{"", "dscp", "pcp"}, s.Trust) {
				t.Errorf("trust %q", s.Trust)
			}
			for dscp, priority := range s.DSCP {
				if dscp > 63 || priority > 7 {
					t.Errorf("DSCP %d, priority %d", dscp, priority)
				}
			}
			text, err := formatDCB(s)
			if err != nil {
				t.Fatal(err)
			}
			again, err := parseDCB(text)
			if err != nil || !reflect.DeepEqual(s, again) {
				t.Errorf("%+v, %v after %s, want %+v", again, err, text, s)
			}
		}
	})
}

const dcbJSON = `{
  "pfc": [
    3
  ],
  "dscp": {
    "26": 3,
    "48": 6
  },
  "trust": "dscp",
  "mode": "host cee ieee",
  "requests": [
    0,
    0,
    0,
    12345,
    0,
    0,
    0,
    0
  ],
  "indications": [
    0,
    0,
    0,
    4294967296,
    0,
    0,
    0,
    0
  ]
}
`

func TestDCBCapture(t *testing.T) {
	dir := t.TempDir()
	known, err := decodeDCB(wire(t, replyHostDSCP))
	if err != nil {
		t.Fatal(err)
	}
	var none uint8
	states := map[string]*DCBState{
		"ens1f0np0": known,
		"ens2":      {PFC: &none, DSCP: map[uint8]uint8{}, Trust: "pcp"}, // Known to be nothing.
		"ens3":      {},                                                  // Unknown.
		"eth0.100":  {Mode: "none"},
	}
	for name, s := range states {
		if err := WriteDCB(dir, name, s); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "dcb", "ens1f0np0.json")); err != nil || string(got) != dcbJSON {
		t.Errorf("%s, %v, want %s", got, err, dcbJSON)
	}
	capture := ReadDCB(os.DirFS(dir))
	for name, want := range states {
		got, err := capture.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := capture.Get("lo"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a device without a file:", err)
	}
	for _, name := range []string{"../../x", "/"} {
		if err := WriteDCB(dir, name, known); err == nil {
			t.Errorf("%q was written", name)
		}
	}
}

func TestDCBCaptureErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"pfc": [8]}`:        "dcb/ens1.json: pfc: no priority 8",
		`{"pfc": [-1]}`:       "dcb/ens1.json: pfc: no priority -1",
		`{"dscp": {"64": 1}}`: "dcb/ens1.json: dscp: no DSCP 64 of priority 1",
		`{"trust": "l3"}`:     `dcb/ens1.json: trust: neither dscp nor pcp: "l3"`,
		`{"requests": [1]}`:   "dcb/ens1.json: requests: 1 numbers, not 8",
		`{"indications": []}`: "dcb/ens1.json: indications: 0 numbers, not 8",
		`{"speed": 1}`:        `dcb/ens1.json: json: unknown field "speed"`,
		`{} {}`:               "dcb/ens1.json: something follows the object",
		``:                    "dcb/ens1.json: EOF",
	} {
		_, err := ReadDCB(fstest.MapFS{"dcb/ens1.json": {Data: []byte(text)}}).Get("ens1")
		if err == nil || err.Error() != want || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
