// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Anonymise replaces in a recording what tells whose it is: names of nodes,
// MAC and IP addresses; free text and whatever else the exporter has no use
// for goes. The same original is replaced by the same stand-in everywhere, in
// all recordings that one Anonymiser saw, so that joins hold. Names of profiles,
// VLANs, LAGs and hardware stay.
func (a *Anonymiser) Anonymise(r *Recording) {
	for _, n := range r.namespaces {
		a.learn(n.databases)
	}
	a.compile()
	for _, n := range r.namespaces {
		for _, database := range Databases() {
			if hashes, ok := n.databases[database]; ok {
				n.databases[database] = a.database(database, hashes)
			}
		}
		for i, text := range n.leftOut {
			n.leftOut[i] = a.text(text)
		}
	}
	for i, text := range r.LeftOut {
		r.LeftOut[i] = a.text(text)
	}
}

// NewAnonymiser returns an Anonymiser that has seen nothing yet.
func NewAnonymiser() *Anonymiser {
	return &Anonymiser{names: map[string]string{}, macs: map[string]string{}, addresses: map[netip.Addr]string{}, texts: map[string]string{}}
}

// An Anonymiser remembers the stand-ins.
type Anonymiser struct {
	names     map[string]string // Of nodes, cut at the first dot.
	nameRE    *regexp.Regexp    // Any of them as a word.
	macs      map[string]string
	addresses map[netip.Addr]string
	texts     map[string]string
}

// usedFields are the fields that the exporter reads of tables with free text.
// Of tables that are not listed all are kept: they have numbers and references.
func usedFields() map[string][]string {
	return map[string][]string{
		"CONFIG_DB DEVICE_METADATA":          {"hostname", "platform", "hwsku", "asic_name"},
		"CONFIG_DB PORT":                     {"alias", "speed", "mtu", "admin_status", "role", "macsec"},
		"CONFIG_DB DEVICE_NEIGHBOR_METADATA": {"type"},
		"CONFIG_DB FLEX_COUNTER_TABLE":       {"FLEX_COUNTER_STATUS", "FLEX_COUNTER_DELAY_STATUS", "POLL_INTERVAL"},
		"APPL_DB PORT_TABLE":                 {"admin_status", "oper_status"},
		"APPL_DB LLDP_ENTRY_TABLE": {
			"lldp_rem_sys_name", "lldp_rem_port_id", "lldp_rem_port_id_subtype", "lldp_rem_port_desc", "lldp_rem_sys_desc",
			"lldp_rem_sys_cap_enabled", "lldp_rem_sys_cap_supported",
		},
	}
}

// learn collects the names of nodes.
func (a *Anonymiser) learn(databases map[string]map[string]Hash) {
	var names []string
	for key, row := range databases[ConfigDB] {
		table, rest, _ := strings.Cut(key, "|")
		switch table {
		case "DEVICE_METADATA":
			names = append(names, row["hostname"])
		case "DEVICE_NEIGHBOR_METADATA":
			names = append(names, rest)
		case "QUEUE":
			if parts := strings.Split(rest, "|"); len(parts) == 4 {
				names = append(names, parts[0])
			}
		}
	}
	for key, row := range databases[ApplDB] {
		if strings.HasPrefix(key, "LLDP_ENTRY_TABLE:") {
			names = append(names, row["lldp_rem_sys_name"])
		}
	}
	for name := range databases[CountersDB]["COUNTERS_VOQ_NAME_MAP"] {
		host, _, _ := strings.Cut(name, "|")
		names = append(names, host)
	}
	slices.Sort(names)
	for _, name := range names {
		short, _, _ := strings.Cut(strings.TrimSpace(name), ".")
		if _, isMAC := parseMAC(name); short != "" && !isMAC && !reserved(short) && a.names[short] == "" {
			a.names[short] = fmt.Sprintf("node-%d", len(a.names)+1)
		}
	}
}

// reserved says whether a word has a meaning in the databases: a node may be
// called like it, and the keys must stay what they are.
func reserved(word string) bool {
	if strings.ToUpper(word) == word && strings.ContainsFunc(word, unicode.IsLetter) {
		return true // A table.
	}
	return slices.Contains([]string{"localhost", "global", "sonic", "switch", "eth0", "asic0", "up", "down", "true", "false"}, strings.ToLower(word)) ||
		interfaceRE.MatchString(word)
}

// compile makes the expression that finds the names in other text, with the
// domain that may follow; the longest first.
func (a *Anonymiser) compile() {
	var words []string
	for name := range a.names {
		words = append(words, regexp.QuoteMeta(name))
	}
	slices.SortFunc(words, func(x, y string) int { return len(y) - len(x) })
	if len(words) > 0 {
		a.nameRE = regexp.MustCompile(`(?i)(^|[^0-9A-Za-z])(` + strings.Join(words, "|") + `)((?:\.[0-9A-Za-z-]*[A-Za-z][0-9A-Za-z-]*)*)($|[^0-9A-Za-z])`)
	}
}

func (a *Anonymiser) database(database string, hashes map[string]Hash) map[string]Hash {
	out := make(map[string]Hash, len(hashes))
	separator := ":"
	if database == ConfigDB || database == StateDB {
		separator = "|"
	}
	for _, key := range slices.Sorted(maps.Keys(hashes)) {
		table, _, _ := strings.Cut(key, separator)
		used, listed := usedFields()[database+" "+table]
		row := Hash{}
		for _, field := range slices.Sorted(maps.Keys(hashes[key])) {
			value := hashes[key][field]
			if listed && !slices.Contains(used, field) {
				continue
			}
			row[a.text(field)] = a.field(field, value)
		}
		if len(row) == 0 {
			row["NULL"] = "NULL"
		}
		out[a.key(database, key)] = row
	}
	return out
}

// key replaces within a key. In that of a neighbour the address begins where
// the name of an interface ends, with the same character between its parts.
func (a *Anonymiser) key(database, key string) string {
	if rest, ok := strings.CutPrefix(key, "NEIGH_TABLE:"); ok && database == ApplDB {
		if port, address, ok := strings.Cut(rest, ":"); ok {
			return "NEIGH_TABLE:" + port + ":" + a.text(address)
		}
	}
	return a.text(key)
}

// interfaceRE matches names of interfaces, which tell nothing.
var interfaceRE = regexp.MustCompile(`(?i)^(ethernet|eth|et|etp|swp|port|nic|mlx|rdma|roce|bond|po|portchannel|en[ops]?|enp|hu|te|fo|xe|ge|hundredgige|fortygige|twentyfivegige|tengige|gigabitethernet|twohundredgige|fourhundredgige|e|p)-?([0-9]{1,4}[/:._a-z-]{0,2}){1,6}(np[0-9]+)?$`)

func (a *Anonymiser) field(field, value string) string {
	switch field {
	case "lldp_rem_sys_desc":
		return systemOf(value)
	case "lldp_rem_sys_name":
		short, _, _ := strings.Cut(strings.TrimSpace(value), ".")
		if stand := a.names[short]; stand != "" {
			return stand
		}
		return a.text(value)
	case "lldp_rem_port_desc", "lldp_rem_port_id", "alias":
		if _, isMAC := parseMAC(strings.TrimSpace(value)); isMAC || interfaceRE.MatchString(value) || value == "" {
			return a.text(value)
		}
		if a.texts[value] == "" {
			a.texts[value] = fmt.Sprintf("text-%d", len(a.texts)+1)
		}
		return a.texts[value]
	}
	return a.text(value)
}

// systemOf leaves of a system description the word that tells a switch.
func systemOf(description string) string {
	for _, system := range switchSystems() {
		if strings.Contains(strings.ToLower(description), system) {
			return system
		}
	}
	return ""
}

var (
	macRE     = regexp.MustCompile(`(?i)\b[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}\b|\b[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}\b`)
	addressRE = regexp.MustCompile(`(?i)\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b|[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?:\.[0-9]{1,3}){0,3}`)
)

// text replaces addresses and names within any text.
func (a *Anonymiser) text(text string) string {
	if strings.HasPrefix(text, "SAI_") || strings.Trim(text, "0123456789") == "" || strings.Contains(text, "oid:0x") && !strings.Contains(text, "|") {
		return text // Most of all: counters, their names, their objects.
	}
	text = macRE.ReplaceAllStringFunc(text, a.MAC)
	text = addressRE.ReplaceAllStringFunc(text, a.address)
	if a.nameRE == nil {
		return text
	}
	for range 2 { // Two names may share the character between them.
		text = a.nameRE.ReplaceAllStringFunc(text, func(found string) string {
			parts := a.nameRE.FindStringSubmatch(found)
			for name, stand := range a.names {
				if strings.EqualFold(name, parts[2]) {
					return parts[1] + stand + parts[4]
				}
			}
			return found
		})
	}
	return text
}

// Node replaces the name of a node, which need not stand in the databases.
func (a *Anonymiser) Node(name string) string {
	short, _, _ := strings.Cut(strings.TrimSpace(name), ".")
	switch {
	case a.names[short] != "":
	case short == "" || reserved(short):
		return "node"
	default:
		a.names[short] = fmt.Sprintf("node-%d", len(a.names)+1)
	}
	return a.names[short]
}

// MAC replaces a MAC address and keeps its spelling: the separators and the case.
func (a *Anonymiser) MAC(text string) string {
	mac, ok := parseMAC(text)
	if !ok || mac == "00:00:00:00:00:00" || mac == "ff:ff:ff:ff:ff:ff" {
		return text
	}
	if a.macs[mac] == "" {
		n := len(a.macs) + 1
		a.macs[mac] = fmt.Sprintf("%s%02x:%02x:%02x", standInMAC, n>>16&255, n>>8&255, n&255)
	}
	digits := strings.ReplaceAll(a.macs[mac], ":", "")
	if text == strings.ToUpper(text) && strings.ToLower(text) != text {
		digits = strings.ToUpper(digits)
	}
	var out strings.Builder
	for _, c := range text {
		if strings.ContainsRune(":-.", c) {
			out.WriteRune(c)
			continue
		}
		out.WriteByte(digits[0])
		digits = digits[1:]
	}
	return out.String()
}

// standInMAC begins the stand-ins of MAC addresses: locally administered.
const standInMAC = "02:00:5e:"

// address replaces an IP address by one of those that are for documents, or
// for carriers' own use (RFC 3849, RFC 6598).
func (a *Anonymiser) address(text string) string {
	address, err := netip.ParseAddr(text)
	if err != nil || address.IsUnspecified() || address.IsLoopback() {
		return text
	}
	if a.addresses[address] == "" {
		n := len(a.addresses) + 1
		a.addresses[address] = fmt.Sprintf("100.%d.%d.%d", 64+n>>16&63, n>>8&255, n&255)
		if address.Is6() {
			a.addresses[address] = fmt.Sprintf("2001:db8::%x", n)
		}
	}
	return a.addresses[address]
}
