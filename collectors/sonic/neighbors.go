// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// walkLimit is how many addresses are walked at most; beyond, what they tell
// is absent.
const walkLimit = 16384

// readNeighbors reads what LLDP says of the front ports, when it is due.
func (r *read) readNeighbors(ctx context.Context, config *configuration) error {
	if r.neighbors.due(r.now, r.options.RefreshConfig) {
		var queries []Query
		var ports []string
		for i := range r.out.Ports { // Not by value: other tasks fill in other fields.
			if p := &r.out.Ports[i]; p.Kind == "front" {
				queries = append(queries, Query{Key: r.ns.key(ApplDB, "LLDP_ENTRY_TABLE", p.Name)})
				ports = append(ports, p.Name)
			}
		}
		found := map[string]*Neighbor{}
		err := r.hashes(ctx, ApplDB, queries, func(i int, row Hash) {
			if row != nil {
				found[ports[i]] = neighbor(row, config)
			}
		})
		if err != nil {
			return err
		}
		r.neighbors.set(found, r.now)
	}
	for i := range r.out.Ports {
		r.out.Ports[i].Neighbor = r.neighbors.value[r.out.Ports[i].Name]
	}
	return nil
}

// Subtypes of a port id (IEEE 802.1AB, 8.5.3).
const portIDIsMAC = "3"

// neighbor reads one row of LLDP_ENTRY_TABLE. All of it is what a stranger
// sent.
func neighbor(row Hash, config *configuration) *Neighbor {
	n := &Neighbor{Name: strings.TrimSpace(row["lldp_rem_sys_name"]), PortID: strings.TrimSpace(row["lldp_rem_port_id"])}
	mac, isMAC := parseMAC(n.PortID)
	if isMAC {
		n.PortID = mac
	}
	n.Port = n.PortID
	if description := strings.TrimSpace(row["lldp_rem_port_desc"]); description != "" &&
		(isMAC || row["lldp_rem_port_id_subtype"] == portIDIsMAC) {
		n.Port = description
	}
	if config != nil {
		short, _, _ := strings.Cut(n.Name, ".")
		n.Kind = kindByType(orElse(config.neighborTypes[n.Name], config.neighborTypes[short]))
	}
	if n.Kind == "" {
		n.Kind = kindByAnnouncement(row)
	}
	return n
}

// kindByType reads the type that the operator gave the neighbour.
func kindByType(kind string) string {
	kind = strings.ToLower(kind)
	if strings.Contains(kind, "server") || strings.Contains(kind, "host") {
		return "host"
	}
	for _, word := range []string{"router", "switch", "leaf", "spine"} {
		if strings.Contains(kind, word) {
			return "switch"
		}
	}
	if kind == "tor" {
		return "switch"
	}
	return ""
}

// kindByAnnouncement reads what the neighbour says of itself. A GPU host with
// containers announces itself as bridge and router: that proves no switch.
func kindByAnnouncement(row Hash) string {
	description := strings.ToLower(row["lldp_rem_sys_desc"])
	for _, system := range switchSystems() {
		if strings.Contains(description, system) {
			return "switch"
		}
	}
	capabilities := strings.TrimSpace(orElse(row["lldp_rem_sys_cap_enabled"], row["lldp_rem_sys_cap_supported"]))
	first, _, _ := strings.Cut(capabilities, " ")
	// Bit 7 of the BITS is "station only" (IEEE 802.1AB, 8.5.8).
	if set, err := strconv.ParseUint(first, 16, 8); err == nil && set == 1 {
		return "host"
	}
	return "unknown"
}

// switchSystems are words by which switches describe themselves.
func switchSystems() []string {
	return []string{
		"sonic", "cumulus", "arista", "nx-os", "nxos", "ios xr", "ios-xr", "junos", "juniper", "onyx", "mlnx-os",
		"dell emc networking", "os10", "comware", "huawei versatile", "fastpath", "ruckus",
	}
}

// parseMAC reads a MAC address in any of the usual spellings.
func parseMAC(text string) (string, bool) {
	hex := strings.ToLower(strings.NewReplacer(":", "", "-", "", ".", "").Replace(text))
	if len(hex) != 12 || strings.Trim(hex, "0123456789abcdef") != "" || len(text) == 12 {
		return "", false
	}
	parts := make([]string, 0, 6)
	for i := 0; i < 12; i += 2 {
		parts = append(parts, hex[i:i+2])
	}
	return strings.Join(parts, ":"), true
}

// readFDB reads the learned addresses, when they are due.
func (r *read) readFDB(ctx context.Context) error {
	if r.options.RefreshFDB == 0 || !r.fdb.due(r.now, r.options.RefreshFDB) {
		return nil
	}
	if r.fdbUsed > walkLimit {
		r.fdb.set(nil, r.now)
		return nil
	}
	found := map[string]*addresses{}
	err := r.walkMACs(ctx, StateDB, "FDB_TABLE", "port", func(key, port string) {
		if len(key) < 17 {
			return
		}
		if mac, ok := parseMAC(key[len(key)-17:]); ok && port != "" {
			r.learn(found, port, mac)
		}
	})
	return keepWalk(r, StateDB, "FDB_TABLE", &r.fdb, found, err)
}

// addresses are what is behind a port or LAG.
type addresses struct {
	entries int      // An address may be learned in several VLANs.
	macs    []string // Each once, but not many more than are ever listed.
}

func (r *read) learn(found map[string]*addresses, port, mac string) {
	a := found[port]
	if a == nil {
		a = &addresses{}
		found[port] = a
	}
	a.entries++
	if len(a.macs) <= r.options.MACLimit && !slices.Contains(a.macs, mac) {
		a.macs = append(a.macs, mac)
	}
}

// readARP reads the addresses behind routed ports, when they are due.
func (r *read) readARP(ctx context.Context) error {
	routed := false
	for i := range r.out.Ports {
		routed = routed || r.out.Ports[i].Mode == "l3" && r.out.Ports[i].LAG == ""
	}
	if !routed || r.options.RefreshFDB == 0 || !r.arp.due(r.now, r.options.RefreshFDB) {
		return nil
	}
	found := map[string]*addresses{}
	err := r.walkMACs(ctx, ApplDB, "NEIGH_TABLE", "neigh", func(key, mac string) {
		port, _, _ := strings.Cut(key, ":")
		if mac, ok := parseMAC(mac); ok {
			r.learn(found, port, mac)
		}
	})
	return keepWalk(r, ApplDB, "NEIGH_TABLE", &r.arp, found, err)
}

// keepWalk keeps the outcome of a walk. A table that is too large, or that
// this user may not walk, is unknown until the next refresh.
func keepWalk(r *read, database, table string, k *kept[map[string]*addresses], found map[string]*addresses, err error) error {
	switch {
	case errors.Is(err, errLater):
		return nil
	case errors.Is(err, ErrTooMany) || errors.Is(err, errIncomplete) || errors.Is(err, errRefused):
		r.mayWalk(database, table, err)
		k.set(nil, r.now)
		return nil
	case err != nil:
		k.drop()
		return err
	}
	for _, a := range found {
		slices.Sort(a.macs) // Keys come in any order.
	}
	r.mayWalk(database, table, nil)
	k.set(found, r.now)
	return nil
}

// walkMACs hands over one field of every row of a table, and its key without
// the table.
func (r *read) walkMACs(ctx context.Context, database, table, field string, use func(key, value string)) error {
	prefix := r.ns.key(database, table, "")
	fields := []string{field}
	var queries []Query
	complete := true
	err := r.keys(ctx, database, prefix+"*", walkLimit, func(page []string) error {
		queries = queries[:0]
		for _, k := range page {
			queries = append(queries, Query{k, fields})
		}
		answers := 0
		err := r.hashes(ctx, database, queries, func(i int, row Hash) {
			answers++
			use(strings.TrimPrefix(page[i], prefix), row[field])
		})
		complete = complete && answers == len(page)
		return err
	})
	if err == nil && !complete {
		return errIncomplete
	}
	return err
}

// errIncomplete says that rows of a walk could not be read: what is counted
// over it is unknown.
var errIncomplete = errors.New("not all rows could be read")

// setFDB says what is behind the ports. A member of a LAG shows the LAG's.
func (r *read) setFDB() {
	for i := range r.out.Ports {
		p := &r.out.Ports[i]
		behind, database := r.fdb.value[orElse(p.LAG, p.Name)], StateDB
		if p.Mode == "l3" {
			behind, database = r.arp.value[p.Name], ApplDB
		}
		if r.down(database) {
			continue // What is remembered of a dead server is not known.
		}
		if behind == nil {
			behind = &addresses{}
		}
		if p.Mode == "l2" && r.fdb.value != nil {
			p.FDB = &behind.entries
		}
		if len(behind.macs) <= r.options.MACLimit {
			p.MACs = behind.macs
		}
	}
}
