// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// framing is what orchagent adds to a port's MTU before it programs the ASIC:
// Ethernet header 14, FCS 4, VLAN tag 4 (portsorch.cpp). macsecFraming is the
// SecTAG on top (MAX_MACSEC_SECTAG_SIZE).
const (
	framing       = 22
	macsecFraming = 32
)

// megabit is one Mb/s, SONiC's unit of speed, in bytes per second.
const megabit = 1e6 / 8

// unknownSpeed is what STATE_DB has where the driver knows no speed: -1.
const unknownSpeed = "4294967295"

// readMaps reads the maps from names to objects. They are read at every
// scrape: a restart of orchagent makes all objects anew.
func (r *read) readMaps(ctx context.Context) error {
	maps := []struct {
		key  string
		into *Hash
	}{
		{"COUNTERS_PORT_NAME_MAP", &r.portMap},
		{"COUNTERS_QUEUE_NAME_MAP", &r.queueMap},
		{"COUNTERS_PG_NAME_MAP", &r.groupMap},
		{"COUNTERS_BUFFER_POOL_NAME_MAP", &r.poolMap},
		{"COUNTERS_VOQ_NAME_MAP", &r.voqMap},
	}
	if !r.options.VOQ {
		maps = maps[:len(maps)-1]
	}
	queries := make([]Query, len(maps))
	for i, m := range maps {
		queries[i].Key = m.key
	}
	if err := r.hashes(ctx, CountersDB, queries, func(i int, hash Hash) { *maps[i].into = hash }); err != nil {
		return err
	}
	sum := r.fingerprint(r.portMap) + 3*r.fingerprint(r.queueMap) + 5*r.fingerprint(r.groupMap) + 7*r.fingerprint(r.poolMap)
	if sum != r.maps {
		r.maps = sum
		r.config.drop()
		r.neighbors.drop()
		r.buffers.drop()
		r.fdb.drop()
		r.arp.drop()
		r.listed.drop()
		r.found.drop()
	}
	if r.options.RefreshFDB > 0 && r.fdb.due(r.now, r.options.RefreshFDB) {
		const used = "crm_stats_fdb_entry_used"
		err := r.hashes(ctx, CountersDB, []Query{{"CRM:STATS", []string{used}}}, func(_ int, row Hash) {
			r.fdbUsed, _ = parseNumber(row[used])
		})
		if err != nil {
			return err
		}
	}
	tripCtx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	t, err := r.ns.DB.Time(tripCtx)
	if errors.Is(err, errRefused) {
		r.mu.Lock()
		r.unreadable(CountersDB, "TIME", err)
		r.mu.Unlock()
		return nil
	}
	r.out.Time = t
	return err
}

// port is what the configuration says of a port. It is worked out once.
func (c *configuration) port(name string, dscps []int, skipped *Skipped) Port {
	made := c.made[name]
	if made == nil {
		made = &madePort{Port: Port{Name: name}}
		c.setPort(&made.Port, dscps, &made.skipped)
		c.made[name] = made
	}
	skipped.add(made.skipped)
	p := made.Port
	p.LosslessQueues, p.LosslessGroups = slices.Clone(p.LosslessQueues), slices.Clone(p.LosslessGroups) // They are added to.
	return p
}

// setPort fills in what the configuration says of a port.
func (c *configuration) setPort(p *Port, dscps []int, skipped *Skipped) {
	row := c.ports[p.Name]
	p.Alias = row["alias"]
	p.Kind = portKind(p.Name, row["role"])
	p.ConfigMTU = number(row, "mtu", 1, 0, skipped)
	p.ConfiguredSpeed = number(row, "speed", megabit, 0, skipped)
	p.AdminUp = isText(row, "admin_status", "up")
	p.macsec = row["macsec"] != ""
	p.LAG = c.lags[p.Name]
	switch at := orElse(p.LAG, p.Name); {
	case c.switched[at]:
		p.Mode = "l2"
	case c.routed[at]:
		p.Mode = "l3"
	}
	c.setQoS(p, dscps, skipped)
}

// number reads a field as a scaled number less an offset.
func number(row Hash, field string, scale, less float64, skipped *Skipped) *float64 {
	text, ok := row[field]
	if !ok {
		return nil
	}
	v, ok := parseNumber(text)
	if !ok || v < less {
		skipped.Unparsable++
		return nil
	}
	v = (v - less) * scale
	return &v
}

// isText says whether a field has the text, nil where there is no such field.
func isText(row Hash, field, text string) *bool {
	v, ok := row[field]
	if !ok {
		return nil
	}
	is := v == text
	return &is
}

func orElse(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// readASIC reads what is programmed. ASIC_DB is the truth, as far as software
// can tell it: what orchagent set and syncd accepted.
func (r *read) readASIC(ctx context.Context) error {
	var queries []Query
	var ports []*Port
	for i := range r.out.Ports {
		if p := &r.out.Ports[i]; p.oid != "" {
			queries = append(queries, Query{Key: r.ns.key(ASICDB, "ASIC_STATE", "SAI_OBJECT_TYPE_PORT") + ":" + p.oid})
			ports = append(ports, p)
		}
	}
	if len(queries) == 0 {
		queries = []Query{{Key: "ASIC_STATE:SAI_OBJECT_TYPE_PORT"}} // Does it answer?
		return r.hashes(ctx, ASICDB, queries, func(int, Hash) {})
	}
	return r.hashes(ctx, ASICDB, queries, func(i int, row Hash) {
		if row == nil {
			r.out.Skipped.Missing++
			return
		}
		ports[i].setASIC(row, &r.out.Skipped)
	})
}

// setASIC fills in what is programmed (portsorch.cpp setPortPfc,
// setPortPfcAsym). An attribute that was never set has SAI's default, for the
// mask 0. In separate mode the combined attribute is a leftover, and the other
// way round: the mode comes first.
func (p *Port) setASIC(row Hash, skipped *Skipped) {
	less := float64(framing)
	if p.macsec {
		less += macsecFraming
	}
	p.ASICMTU = number(row, "SAI_PORT_ATTR_MTU", 1, less, skipped)
	const attribute = "SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL"
	if strings.HasSuffix(row[attribute+"_MODE"], "_SEPARATE") {
		p.ASICPFC = mask(row, attribute+"_TX", skipped)
		p.ASICReceivePFC = mask(row, attribute+"_RX", skipped)
		return
	}
	p.ASICPFC = mask(row, attribute, skipped)
}

func mask(row Hash, field string, skipped *Skipped) *uint8 {
	var m uint8
	if text, ok := row[field]; ok {
		v, ok := parseNumber(text)
		if !ok || v != float64(uint8(v)) {
			skipped.Unparsable++
			return nil
		}
		m = uint8(v)
	}
	return &m
}

// readAppl reads the port rows, and when they are due the buffers and LLDP.
func (r *read) readAppl(ctx context.Context, config *configuration) error {
	queries := make([]Query, len(r.out.Ports))
	for i := range r.out.Ports {
		queries[i] = Query{r.ns.key(ApplDB, "PORT_TABLE", r.out.Ports[i].Name), []string{"admin_status", "oper_status"}}
	}
	if len(queries) == 0 {
		queries = []Query{{Key: r.ns.key(ApplDB, "PORT_TABLE", "PortInitDone")}}
	}
	err := r.hashes(ctx, ApplDB, queries, func(i int, row Hash) {
		if i >= len(r.out.Ports) {
			return
		}
		p := &r.out.Ports[i]
		if up := isText(row, "admin_status", "up"); up != nil {
			p.AdminUp = up
		}
		p.OperUp = isText(row, "oper_status", "up")
	})
	if err != nil {
		return err
	}
	if err := r.readBuffers(ctx, config); err != nil {
		return err
	}
	if err := r.readNeighbors(ctx, config); err != nil {
		return err
	}
	return r.readARP(ctx)
}

// readState reads the operational state of the ports and of the services, and
// when it is due the FDB.
func (r *read) readState(ctx context.Context) error {
	queries := make([]Query, len(r.out.Ports))
	for i := range r.out.Ports {
		queries[i] = Query{r.ns.key(StateDB, "PORT_TABLE", r.out.Ports[i].Name), []string{"netdev_oper_status", "mtu", "speed"}}
	}
	err := r.hashes(ctx, StateDB, queries, func(i int, row Hash) {
		p := &r.out.Ports[i]
		p.KernelMTU = number(row, "mtu", 1, 0, &r.out.Skipped)
		p.kernelUp = isText(row, "netdev_oper_status", "up")
		switch row["speed"] {
		case "", "N/A", unknownSpeed:
		default:
			p.stateSpeed = number(row, "speed", megabit, 0, &r.out.Skipped)
		}
	})
	if err != nil {
		return err
	}
	if err := r.readServices(ctx); err != nil {
		return err
	}
	return r.readFDB(ctx)
}

// setLinks joins what the databases say of the link: STATE_DB's speed is the
// operating one, and only while the port is up; nothing else stands in for it.
func (r *read) setLinks() {
	for i := range r.out.Ports {
		p := &r.out.Ports[i]
		if p.OperUp == nil {
			p.OperUp = p.kernelUp
		}
		if p.OperUp != nil && *p.OperUp {
			p.Speed = p.stateSpeed
		}
	}
}
