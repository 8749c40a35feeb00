// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"path"
	"regexp"
	"slices"
	"strings"
)

// StandIns replace what a switch's databases have, too, the same by the same.
type StandIns interface {
	Node(name string) string
	MAC(address string) string
}

// An Anonymiser remembers the stand-ins of what only a host has.
type Anonymiser struct {
	StandIns
	addresses map[string]string // Of InfiniBand and GUIDs, by their bytes.
}

// NewAnonymiser returns an Anonymiser that has seen nothing yet.
func NewAnonymiser(standIns StandIns) *Anonymiser {
	return &Anonymiser{StandIns: standIns, addresses: map[string]string{}}
}

var (
	hardwareRE = regexp.MustCompile(`(?i)\b[0-9a-f]{2}(?::[0-9a-f]{2}){5,}\b`)
	guidRE     = regexp.MustCompile(`(?i)\b[0-9a-f]{4}(?::[0-9a-f]{4}){3}\b`)
	// namedRE finds interfaces and RDMA devices that are called by their MAC
	// address or their GUID (systemd, rdma-core).
	namedRE = regexp.MustCompile(`\b((?:en|wl|ib|iw|opa|roce|rdma)x)([0-9a-f]{16}|[0-9a-f]{12})`)
)

// Anonymise replaces in a recording what tells whose it is: the name of the
// host, MAC addresses and the GUIDs made of them, the same by the same in all
// recordings that one Anonymiser saw. Names of interfaces, PCI addresses,
// firmware and hardware stay. GIDs are counted, never recorded.
func (a *Anonymiser) Anonymise(r *Recording) {
	for _, t := range []*trail{r.sys, r.proc} {
		for _, name := range slices.Sorted(maps.Keys(t.files)) {
			t.files[name] = a.file(name, t.files[name])
		}
		t.files, t.dirs, t.links = renamed(a, t.files), renamed(a, t.dirs), renamed(a, t.links)
		for name, target := range t.links {
			t.links[name] = a.name(target)
		}
	}
	r.drivers, r.statistics, r.dcb = renamed(a, r.drivers), renamed(a, r.statistics), renamed(a, r.dcb)
	for i, text := range r.LeftOut {
		r.LeftOut[i] = a.text(text)
	}
}

func renamed[T any](a *Anonymiser, all map[string]T) map[string]T {
	out := make(map[string]T, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out[a.name(name)] = all[name]
	}
	return out
}

func (a *Anonymiser) file(name string, data []byte) []byte {
	text := string(data)
	value := strings.TrimSpace(text)
	switch path.Base(name) {
	case "config":
		return data // Not text.
	case "hostname":
		if value == "" {
			return data
		}
		return []byte(a.Node(value) + "\n")
	case "node_desc": // Free text, in which drivers put the host's name.
		if value != "" && value != "rxe" {
			return []byte("anonymised\n")
		}
	case "node_guid":
		return []byte(guidRE.ReplaceAllStringFunc(text, a.guid))
	}
	return []byte(a.text(text))
}

func (a *Anonymiser) text(text string) string {
	return a.name(hardwareRE.ReplaceAllStringFunc(text, func(found string) string {
		raw, err := hex.DecodeString(strings.ReplaceAll(found, ":", ""))
		if err != nil {
			return found
		}
		return strings.ReplaceAll(fmt.Sprintf("% x", a.standIn(raw)), " ", ":")
	}))
}

// name replaces addresses in names of interfaces.
func (a *Anonymiser) name(name string) string {
	return namedRE.ReplaceAllStringFunc(name, func(found string) string {
		prefix, digits, _ := strings.Cut(found, "x")
		raw, err := hex.DecodeString(digits)
		if err != nil {
			return found
		}
		if len(raw) == 8 {
			return prefix + "x" + strings.ReplaceAll(a.guid(digits), ":", "")
		}
		return prefix + "x" + hex.EncodeToString(a.standIn(raw))
	})
}

// guid replaces a GUID. One that is made of a MAC address is made of its
// stand-in then: EUI-64 has ff:fe in the middle and a bit turned, Mellanox 03:00.
func (a *Anonymiser) guid(text string) string {
	raw, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
	if err != nil || len(raw) != 8 {
		return text
	}
	var turned byte
	switch {
	case raw[3] == 0xff && raw[4] == 0xfe:
		turned = 2
		fallthrough
	case raw[3] == 0x03 && raw[4] == 0x00:
		mac := slices.Concat(raw[:3], raw[5:])
		mac[0] ^= turned
		stand := a.standIn(mac)
		raw = slices.Concat(stand[:3], raw[3:5], stand[3:])
		raw[0] ^= turned
	default:
		raw = a.standIn(raw)
	}
	return fmt.Sprintf("%x:%x:%x:%x", raw[:2], raw[2:4], raw[4:6], raw[6:])
}

// standIn gives an address of the same length that is locally administered.
// Those that belong to nobody stay.
func (a *Anonymiser) standIn(raw []byte) []byte {
	if all := strings.Trim(string(raw), string(raw[:1])) == ""; all && (raw[0] == 0 || raw[0] == 0xff) {
		return raw
	}
	if len(raw) == 6 {
		mac, _ := net.ParseMAC(a.MAC(net.HardwareAddr(raw).String()))
		return mac
	}
	stand := a.addresses[string(raw)]
	if stand == "" {
		n := len(a.addresses) + 1
		bytes := make([]byte, len(raw))
		copy(bytes, []byte{0x02, 0x00, 0x5e})
		copy(bytes[len(raw)-3:], []byte{byte(n >> 16), byte(n >> 8), byte(n)})
		stand = string(bytes)
		a.addresses[string(raw)] = stand
	}
	return []byte(stand)
}
