// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"strings"
)

// readCounters reads the counters of ports, queues, groups, pools and VOQs.
func (r *read) readCounters(ctx context.Context, config *configuration) error {
	if err := r.list(ctx, config); err != nil {
		return err
	}
	r.listPools()
	r.listVOQs(config)
	for _, part := range []func(context.Context) error{
		r.readPortCounters, r.readQueueCounters, r.readGroupCounters, r.readPoolCounters, r.readVOQCounters,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *read) readPortCounters(ctx context.Context) error {
	var queries []Query
	var ports []*Port
	for i := range r.out.Ports {
		if p := &r.out.Ports[i]; p.oid != "" {
			queries = append(queries, Query{Key: "COUNTERS:" + p.oid})
			ports = append(ports, p)
		}
	}
	return r.readObjects(ctx, queries, r.options.Wanted.Port, func(i int, values Values, _ Hash) { ports[i].Counters = values })
}

// readObjects reads the hashes of objects; one without is missing.
func (r *read) readObjects(ctx context.Context, queries []Query, wanted Fields, use func(i int, values Values, hash Hash)) error {
	values := newSlab(len(queries), wanted)
	return r.hashes(ctx, CountersDB, queries, func(i int, hash Hash) {
		if hash == nil {
			r.out.Skipped.Missing++
			return
		}
		use(i, values.keep(i, hash, &r.out.Skipped), hash)
	})
}

func (r *read) readQueueCounters(ctx context.Context) error {
	queues := r.out.Queues
	queries := make([]Query, len(queues))
	for i, q := range queues {
		queries[i].Key = "COUNTERS:" + q.oid
	}
	err := r.readObjects(ctx, queries, r.options.Wanted.Queue, func(i int, values Values, hash Hash) {
		queues[i].Counters = values
		r.readWatchdog(&queues[i], hash)
	})
	if err != nil {
		return err
	}
	return r.readWatermarks(ctx, len(queues), r.options.Wanted.QueueWatermark, func(i int) (string, *[]Values) {
		if !queues[i].Selected {
			return "", nil
		}
		return queues[i].oid, &queues[i].Watermarks
	})
}

func (r *read) readGroupCounters(ctx context.Context) error {
	groups := r.out.Groups
	queries := make([]Query, len(groups))
	for i, g := range groups {
		queries[i].Key = "COUNTERS:" + g.oid
	}
	err := r.readObjects(ctx, queries, r.options.Wanted.Group, func(i int, values Values, _ Hash) { groups[i].Counters = values })
	if err != nil {
		return err
	}
	return r.readWatermarks(ctx, len(groups), r.options.Wanted.GroupWatermark, func(i int) (string, *[]Values) {
		return groups[i].oid, &groups[i].Watermarks
	})
}

// skip counts one that is left out.
func (r *read) skip(count *int) {
	r.mu.Lock()
	*count++
	r.mu.Unlock()
}

func (r *read) listPools() {
	for name, oid := range r.poolMap {
		if !isOID(oid) {
			r.skip(&r.out.Skipped.Unparsable)
			continue
		}
		r.out.Pools = append(r.out.Pools, BufferPool{Name: name, oid: oid})
	}
	slices.SortFunc(r.out.Pools, func(a, b BufferPool) int { return strings.Compare(a.Name, b.Name) })
}

// readPoolCounters reads the pools' watermarks; their own hash has the last
// poll's peak only.
func (r *read) readPoolCounters(ctx context.Context) error {
	pools := r.out.Pools
	return r.readWatermarks(ctx, len(pools), r.options.Wanted.PoolWatermark, func(i int) (string, *[]Values) {
		return pools[i].oid, &pools[i].Watermarks
	})
}

// readWatermarks reads the watermark tables of n objects. Their hashes may be
// absent, which is no fault (watermarkorch.cpp writes them at the first poll).
func (r *read) readWatermarks(ctx context.Context, n int, wanted Fields, object func(int) (string, *[]Values)) error {
	prefixes := make([]string, len(r.options.Windows))
	for i, window := range r.options.Windows {
		prefixes[i] = strings.ToUpper(window) + "_WATERMARKS:"
	}
	r.out.Windows = r.options.Windows
	all := make([]Values, n*len(prefixes))
	queries, places := make([]Query, 0, len(all)), make([]int, 0, len(all))
	for i := range n {
		oid, watermarks := object(i)
		if watermarks == nil {
			continue
		}
		first := i * len(prefixes)
		*watermarks = all[first : first+len(prefixes)]
		for w, prefix := range prefixes {
			queries, places = append(queries, Query{Key: prefix + oid}), append(places, first+w)
		}
	}
	values := newSlab(len(queries), wanted)
	return r.hashes(ctx, CountersDB, queries, func(i int, hash Hash) {
		if hash != nil {
			all[places[i]] = values.keep(i, hash, &r.out.Skipped)
		}
	})
}

// listVOQs lists the virtual output queues towards the ports of this card, or
// of all where DEVICE_METADATA does not say which is this one.
func (r *read) listVOQs(config *configuration) {
	own := ""
	if config != nil && config.hostname != "" && config.asic != "" {
		own = strings.ToLower(config.hostname + "|" + config.asic + "|")
	}
	for name, oid := range r.voqMap {
		systemPort, index, ok := splitIndex(name)
		if !ok || !isOID(oid) {
			r.skip(&r.out.Skipped.Unparsable)
			continue
		}
		if strings.HasPrefix(strings.ToLower(systemPort), own) {
			r.out.VOQs = append(r.out.VOQs, VOQ{SystemPort: systemPort, Index: index, name: name, oid: oid})
		}
	}
	slices.SortFunc(r.out.VOQs, func(a, b VOQ) int {
		return cmp.Or(compareNatural(a.SystemPort, b.SystemPort), cmp.Compare(a.Index, b.Index))
	})
}

// readVOQCounters reads the VOQs. They are listed in several namespaces while
// the hash is in one only: one without is not missing.
func (r *read) readVOQCounters(ctx context.Context) error {
	voqs := r.out.VOQs
	queries := make([]Query, len(voqs))
	for i, q := range voqs {
		queries[i].Key = "COUNTERS:" + q.oid
	}
	values := newSlab(len(voqs), r.options.Wanted.VOQ)
	return r.hashes(ctx, CountersDB, queries, func(i int, hash Hash) {
		if hash != nil {
			voqs[i].Counters = values.keep(i, hash, &r.out.Skipped)
		}
	})
}

// dropRaced reads the name maps once more and drops what does not have the
// same object behind its name as before: its values may be another's.
func (r *read) dropRaced(ctx context.Context) error {
	var ports, queues, groups, pools, voqs Hash
	maps := []struct {
		key  string
		into *Hash
		used bool
	}{
		{"COUNTERS_PORT_NAME_MAP", &ports, len(r.portMap) > 0},
		{"COUNTERS_QUEUE_NAME_MAP", &queues, len(r.out.Queues) > 0},
		{"COUNTERS_PG_NAME_MAP", &groups, len(r.out.Groups) > 0},
		{"COUNTERS_BUFFER_POOL_NAME_MAP", &pools, len(r.out.Pools) > 0},
		{"COUNTERS_VOQ_NAME_MAP", &voqs, len(r.out.VOQs) > 0},
	}
	var queries []Query
	var into []*Hash
	for _, m := range maps {
		if m.used {
			queries, into = append(queries, Query{Key: m.key}), append(into, m.into)
		}
	}
	err := r.hashes(ctx, CountersDB, queries, func(i int, hash Hash) { *into[i] = hash })
	if err != nil {
		return err
	}
	r.dropChanged(ports, queues, groups, pools, voqs)
	r.verified = true
	return nil
}

// dropChanged drops what the maps have under another name, or no more. Nil
// maps drop everything.
func (r *read) dropChanged(ports, queues, groups, pools, voqs Hash) {
	raced := &r.out.Skipped.Raced
	for i := range r.out.Ports {
		if p := &r.out.Ports[i]; p.oid != "" && ports[p.Name] != p.oid {
			p.Counters, p.ASICMTU, p.ASICPFC, p.ASICReceivePFC = nil, nil, nil, nil
			*raced++
		}
	}
	before := len(r.out.Queues) + len(r.out.Groups) + len(r.out.Pools) + len(r.out.VOQs)
	r.out.Queues = slices.DeleteFunc(r.out.Queues, func(q Queue) bool { return queues[q.name] != q.oid })
	r.out.Groups = slices.DeleteFunc(r.out.Groups, func(g PriorityGroup) bool { return groups[g.name] != g.oid })
	r.out.Pools = slices.DeleteFunc(r.out.Pools, func(p BufferPool) bool { return pools[p.Name] != p.oid })
	r.out.VOQs = slices.DeleteFunc(r.out.VOQs, func(q VOQ) bool { return voqs[q.name] != q.oid })
	*raced += before - len(r.out.Queues) - len(r.out.Groups) - len(r.out.Pools) - len(r.out.VOQs)
}

// fingerprint tells whether a map changed.
func (r *Reader) fingerprint(h Hash) uint64 {
	sum := uint64(0)
	for k, v := range h {
		sum += maphash.String(r.hashing, k) ^ 31*maphash.String(r.hashing, v)
	}
	return sum
}

// setPools fills in the sizes of the pools.
func (r *read) setPools() {
	for i := range r.out.Pools {
		p := &r.out.Pools[i]
		p.Size = number(r.poolSizes[p.Name], "size", 1, 0, &r.out.Skipped)
		p.Headroom = number(r.poolSizes[p.Name], "xoff", 1, 0, &r.out.Skipped)
	}
}
