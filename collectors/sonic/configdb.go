// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// configLimit bounds the walk over CONFIG_DB, in keys.
const configLimit = 100_000

// readConfig reads who the switch is, at every scrape, and CONFIG_DB when it
// is due. Where that fails the last one holds for one interval more.
func (r *read) readConfig(ctx context.Context) error {
	device := []Query{{Key: r.ns.key(ConfigDB, "DEVICE_METADATA", "localhost")}}
	err := r.hashes(ctx, ConfigDB, device, func(_ int, row Hash) {
		r.out.Device.Hostname, r.out.Device.Platform, r.out.Device.HWSKU = row["hostname"], row["platform"], row["hwsku"]
	})
	if err != nil {
		return err
	}
	if !r.config.due(r.now, r.options.RefreshConfig) || r.waiting && r.config.value != nil {
		return nil // Or it is another table's turn.
	}
	c, err := r.walkConfig(ctx)
	if err == nil {
		r.config.set(c, r.now)
	}
	return err
}

// walkConfig reads the tables of CONFIG_DB that matter.
func (r *read) walkConfig(ctx context.Context) (*configuration, error) {
	c := newConfiguration()
	tables, separator := configTables(), r.ns.Databases[ConfigDB].Separator
	var keys []string
	err := r.keys(ctx, ConfigDB, "*", configLimit, func(page []string) error {
		for _, key := range page {
			table, _, _ := strings.Cut(key, separator)
			if _, wanted := tables[table]; wanted {
				keys = append(keys, key)
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, errRefused) || errors.Is(err, ErrTooMany):
		r.mayWalk(ConfigDB, "*", err)
		keys = r.constructedKeys()
	case err != nil:
		return nil, err
	default:
		r.mayWalk(ConfigDB, "*", nil)
		c.walked = true
	}
	if err := r.addKeys(ctx, c, keys); err != nil {
		return nil, err
	}
	if !c.walked {
		return c, r.addKeys(ctx, c, r.referencedKeys(c))
	}
	return c, nil
}

// addKeys reads the rows of keys into c.
func (r *read) addKeys(ctx context.Context, c *configuration, keys []string) error {
	tables := configTables()
	separator := r.ns.Databases[ConfigDB].Separator
	// DEVICE_METADATA says whose the others are, and comes first; the rest in
	// order, so that what is listed twice ends the same way every time.
	slices.SortFunc(keys, func(a, b string) int {
		const first = "DEVICE_METADATA"
		if x, y := strings.HasPrefix(a, first), strings.HasPrefix(b, first); x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	var queries []Query
	var parts [][]string
	for _, key := range keys {
		key := strings.Split(key, separator)
		fields, wanted := tables[key[0]]
		if !wanted || len(key) < 2 {
			continue
		}
		if !fields {
			c.add(key[0], key[1:], nil)
			continue
		}
		queries = append(queries, Query{Key: strings.Join(key, separator)})
		parts = append(parts, key)
	}
	answered := make([]bool, len(queries))
	err := r.hashes(ctx, ConfigDB, queries, func(i int, row Hash) {
		answered[i] = true
		if row != nil {
			c.add(parts[i][0], parts[i][1:], row)
		}
	})
	for i, ok := range answered {
		if !ok {
			c.refuse(parts[i][0], parts[i][1:])
		}
	}
	return err
}

// constructedKeys are those that port names lead to: what is left where this
// user may not walk the database. A key that names several ports stays hidden.
func (r *read) constructedKeys() []string {
	key := func(parts ...string) string { return r.ns.key(ConfigDB, parts...) }
	keys := []string{key("DEVICE_METADATA", "localhost"), key("PORT_QOS_MAP", "global"), key("PFC_WD", "GLOBAL")}
	for _, g := range pollGroups() {
		keys = append(keys, key("FLEX_COUNTER_TABLE", g.config))
	}
	for port := range r.portMap {
		if !isPort(port, nil) {
			continue
		}
		keys = append(keys, key("PORT", port), key("PORT_QOS_MAP", port), key("PFC_WD", port))
		for i := range 8 {
			keys = append(keys, key("QUEUE", port, strconv.Itoa(i)))
		}
	}
	return keys
}

// referencedKeys are the maps and profiles that rows name.
func (r *read) referencedKeys(c *configuration) []string {
	seen := map[string]bool{}
	name := func(row Hash, field, table string) {
		if n := reference(row[field]); n != "" {
			seen[r.ns.key(ConfigDB, table, n)] = true
		}
	}
	for _, row := range append([]Hash{c.globalQoS}, valuesOf(c.qos)...) {
		name(row, "dscp_to_tc_map", "DSCP_TO_TC_MAP")
		name(row, "tc_to_queue_map", "TC_TO_QUEUE_MAP")
		name(row, "tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP")
		name(row, "pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE")
		name(row, "pfc_to_pg_map", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP")
	}
	for _, row := range c.queues {
		name(row, "wred_profile", "WRED_PROFILE")
	}
	keys := make([]string, 0, len(seen))
	for k := range seen {
		keys = append(keys, k)
	}
	return keys
}

func valuesOf(rows map[string]Hash) []Hash {
	out := make([]Hash, 0, len(rows))
	for _, row := range rows {
		out = append(out, row)
	}
	return out
}

// A pollGroup is a group of counters by its names in CONFIG_DB and
// FLEX_COUNTER_DB (sonic-swss orchagent flexcounterorch.cpp).
type pollGroup struct{ config, flex string }

func pollGroups() []pollGroup {
	return []pollGroup{
		{"BUFFER_POOL_WATERMARK", "BUFFER_POOL_WATERMARK_STAT_COUNTER"},
		{"DEBUG_COUNTER", "DEBUG_COUNTER"},
		{"PFCWD", "PFC_WD"},
		{"PG_DROP", "PG_DROP_STAT_COUNTER"},
		{"PG_WATERMARK", "PG_WATERMARK_STAT_COUNTER"},
		{"PORT", "PORT_STAT_COUNTER"},
		{"PORT_BUFFER_DROP", "PORT_BUFFER_DROP_STAT"},
		{"PORT_RATES", "PORT_RATE_COUNTER"},
		{"QUEUE", "QUEUE_STAT_COUNTER"},
		{"QUEUE_WATERMARK", "QUEUE_WATERMARK_STAT_COUNTER"},
		{"SWITCH", "SWITCH_STAT_COUNTER"},
		{"WRED_ECN_PORT", "WRED_ECN_PORT_STAT_COUNTER"},
		{"WRED_ECN_QUEUE", "WRED_ECN_QUEUE_STAT_COUNTER"},
	}
}

// readPollGroups reads what syncd really polls.
func (r *read) readPollGroups(ctx context.Context) error {
	groups := pollGroups()
	queries := make([]Query, len(groups))
	for i, g := range groups {
		queries[i] = Query{r.ns.key(FlexDB, "FLEX_COUNTER_GROUP_TABLE", g.flex), []string{"FLEX_COUNTER_STATUS", "POLL_INTERVAL"}}
	}
	r.flex = make([]Hash, len(groups))
	return r.hashes(ctx, FlexDB, queries, func(i int, row Hash) { r.flex[i] = row })
}

// setPollGroups says which groups are polled: by FLEX_COUNTER_DB, else by what
// CONFIG_DB asks for. With a word from neither it is unknown. A group that is
// off leaves its last values in COUNTERS_DB for ever.
func (r *read) setPollGroups(config *configuration) {
	for i, g := range pollGroups() {
		var flex, asked Hash
		if r.flex != nil {
			flex = r.flex[i]
		}
		if config != nil {
			asked = config.pollGroups[g.config]
		}
		state := PollGroup{Name: g.config, Enabled: isText(flex, "FLEX_COUNTER_STATUS", "enable")}
		if state.Enabled == nil && asked != nil {
			state.Enabled = isText(asked, "FLEX_COUNTER_STATUS", "enable")
			if asked["FLEX_COUNTER_DELAY_STATUS"] == "true" {
				off := false
				state.Enabled = &off
			}
		}
		for _, row := range []Hash{flex, asked} {
			if interval := milliseconds(row, "POLL_INTERVAL", &r.out.Skipped); interval != nil && state.Interval == 0 {
				state.Interval = time.Duration(*interval * float64(time.Second))
			}
		}
		if state.Enabled != nil || state.Interval != 0 {
			r.out.PollGroups = append(r.out.PollGroups, state)
		}
	}
}

// readServices reads which parts of the control plane are ready. FEATURE's
// state is not asked: it says what is configured, not what runs. On a switch
// with several ASICs the host has the word on all of them: "swss@0" is asic0's.
func (r *read) readServices(ctx context.Context) error {
	var queries []Query
	var services []Service
	ask := func(name, asic, row string) {
		queries = append(queries, Query{r.ns.key(StateDB, "ALL_SERVICE_STATUS", row), []string{"service_status"}})
		services = append(services, Service{Name: name, ASIC: asic})
	}
	for _, name := range []string{"bgp", "database", "lldp", "swss", "syncd"} {
		ask(name, r.ns.Name, name)
		for _, asic := range r.asics {
			ask(name, asic, name+"@"+strings.TrimPrefix(asic, "asic"))
		}
	}
	queries = append(queries, Query{r.ns.key(StateDB, "SYSTEM_READY", "SYSTEM_STATE"), []string{"Status"}})
	services = append(services, Service{Name: "system", ASIC: r.ns.Name})
	return r.hashes(ctx, StateDB, queries, func(i int, row Hash) {
		up := isText(row, "service_status", "OK")
		if services[i].Name == "system" {
			up = isText(row, "Status", "UP")
		}
		if up != nil {
			services[i].Up = *up
			r.out.Services = append(r.out.Services, services[i])
		}
	})
}
