// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"context"
	"strings"
)

// buffers are what is in force of the buffer configuration.
type buffers struct {
	groups   map[portIndex]string // The profile of a priority group.
	profiles map[string]Hash
	pools    map[string]Hash
}

// readBuffers reads the buffer profiles in force, when they are due. With the
// dynamic model the switch computes them, and CONFIG_DB has no sizes.
func (r *read) readBuffers(ctx context.Context, config *configuration) error {
	if r.buffers.due(r.now, r.options.RefreshConfig) {
		b := &buffers{groups: map[portIndex]string{}, profiles: map[string]Hash{}, pools: map[string]Hash{}}
		if err := r.readGroupProfiles(ctx, b, config); err != nil {
			return err
		}
		if err := r.readBufferRows(ctx, b); err != nil {
			return err
		}
		if config != nil { // Without it, which groups to ask for is unknown.
			r.buffers.set(b, r.now)
		} else {
			r.buffers.drop()
		}
		r.sizes = b
		return nil
	}
	r.sizes = r.buffers.value
	return nil
}

func (r *read) readGroupProfiles(ctx context.Context, b *buffers, config *configuration) error {
	if config == nil {
		return nil
	}
	var queries []Query
	var at [][]string
	ask := func(port, index string) {
		queries = append(queries, Query{r.ns.key(ApplDB, "BUFFER_PG_TABLE", port, index), []string{"profile"}})
		at = append(at, []string{port, index})
	}
	for _, key := range config.groupKeys {
		ports, index, ok := strings.Cut(key, ":")
		if !ok {
			continue
		}
		ask(ports, index)
		if strings.Contains(ports, ",") { // The traditional model copies the key, the dynamic one takes it apart.
			for port := range strings.SplitSeq(ports, ",") {
				ask(port, index)
			}
		}
	}
	return r.hashes(ctx, ApplDB, queries, func(i int, row Hash) {
		if row != nil {
			config.eachIndex(at[i], func(at portIndex) { b.groups[at] = reference(row["profile"]) })
		}
	})
}

func (r *read) readBufferRows(ctx context.Context, b *buffers) error {
	var queries []Query
	var into []map[string]Hash
	var names []string
	seen := map[string]bool{}
	ask := func(table, name string, rows map[string]Hash) {
		if name == "" || seen[table+name] {
			return
		}
		seen[table+name] = true
		queries = append(queries, Query{Key: r.ns.key(ApplDB, table, name)})
		into, names = append(into, rows), append(names, name)
	}
	for _, profile := range b.groups {
		ask("BUFFER_PROFILE_TABLE", profile, b.profiles)
	}
	for name := range r.poolMap {
		ask("BUFFER_POOL_TABLE", name, b.pools)
	}
	return r.hashes(ctx, ApplDB, queries, func(i int, row Hash) {
		if row != nil {
			into[i][names[i]] = row
		}
	})
}

// setBuffers fills in sizes: those in force, else those that are configured.
func (r *read) setBuffers(config *configuration) {
	b := r.sizes
	if b == nil {
		return
	}
	find := func(rows map[string]Hash, table, name string) Hash {
		if row := rows[name]; row != nil || config == nil {
			return row
		}
		return config.profiles[table][name]
	}
	for i := range r.out.Ports {
		p := &r.out.Ports[i]
		for j := range p.LosslessGroups {
			at := portIndex{p.Name, p.LosslessGroups[j].Index}
			profile := b.groups[at]
			if profile == "" && config != nil {
				profile = config.groups[at]
			}
			row := find(b.profiles, "BUFFER_PROFILE", profile)
			p.LosslessGroups[j].Headroom = number(row, "xoff", 1, 0, &r.out.Skipped)
		}
	}
	r.poolSizes = map[string]Hash{}
	for name := range r.poolMap {
		r.poolSizes[name] = find(b.pools, "BUFFER_POOL", name)
	}
}
