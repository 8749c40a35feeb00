// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
)

// A listing is the queues and priority groups to read, without their values.
// It is kept until a name map or the configuration changes: SAI sets the index
// and the type of an object when it makes it.
type listing struct {
	config  *configuration
	queues  []Queue
	groups  []PriorityGroup
	skipped Skipped // What was left out is left out of every reading.

	queueIndex, queueType, groupIndex Hash
}

// list lists the queues and groups of this reading.
func (r *read) list(ctx context.Context, config *configuration) error {
	l := r.listed.value
	if l == nil || l.config != config || r.listed.due(r.now, r.options.RefreshConfig) {
		var err error
		if l, err = r.newListing(ctx, config); err != nil {
			return err
		}
		r.listed.set(l, r.now)
	}
	if l.skipped != (Skipped{}) {
		r.listed.drop() // What is missing may be there the next time.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queueMap, r.groupMap = nil, nil // They are large.
	r.out.Skipped.add(l.skipped)
	r.out.Queues, r.out.Groups = slices.Clone(l.queues), slices.Clone(l.groups)
	for _, q := range r.out.Queues {
		port := r.ports[q.Port]
		for i := range port.LosslessQueues {
			if port.LosslessQueues[i].Index == q.Index && q.Type != "multicast" {
				port.LosslessQueues[i].Type = q.Type
			}
		}
	}
	return nil
}

func (r *read) newListing(ctx context.Context, config *configuration) (*listing, error) {
	l := &listing{config: config}
	maps := []struct {
		key  string
		into *Hash
	}{
		{"COUNTERS_QUEUE_INDEX_MAP", &l.queueIndex},
		{"COUNTERS_QUEUE_TYPE_MAP", &l.queueType},
		{"COUNTERS_PG_INDEX_MAP", &l.groupIndex},
	}
	var queries []Query
	for _, m := range maps {
		queries = append(queries, Query{Key: m.key})
	}
	if err := r.hashes(ctx, CountersDB, queries, func(i int, hash Hash) { *maps[i].into = hash }); err != nil {
		return nil, err
	}
	r.listQueues(l)
	r.listGroups(l)
	l.queueIndex, l.queueType, l.groupIndex = nil, nil, nil
	if err := r.chooseQueues(ctx, l); err != nil {
		return nil, err
	}
	slices.SortFunc(l.queues, func(a, b Queue) int {
		return cmp.Or(a.rank-b.rank, a.Index-b.Index, strings.Compare(a.Type, b.Type))
	})
	slices.SortFunc(l.groups, func(a, b PriorityGroup) int { return cmp.Or(a.rank-b.rank, a.Index-b.Index) })
	return l, nil
}

// splitIndex takes "Ethernet0:3" apart. A chassis has ":" in no name but "|".
func splitIndex(name string) (object string, index int, ok bool) {
	at := strings.LastIndexByte(name, ':')
	if at < 0 {
		return "", 0, false
	}
	n, err := strconv.ParseUint(name[at+1:], 10, 16)
	return name[:at], int(n), err == nil
}

// ofPorts calls use for the objects of a name map that are of a known port.
// position is the number at the end of the name.
func (r *read) ofPorts(names Hash, skipped *Skipped, use func(port *Port, name, oid string, position int)) {
	for name, oid := range names {
		object, position, ok := splitIndex(name)
		if !ok || !isOID(oid) {
			skipped.Unparsable++
			continue
		}
		if port := r.ports[object]; port != nil {
			use(port, name, oid, position)
		}
	}
}

// listQueues lists the queues of the name map. The number at the end of a
// name is the queue's place in the port's list; SAI's own index, which is what
// the CLI prints, stands in a map of its own.
func (r *read) listQueues(l *listing) {
	r.ofPorts(r.queueMap, &l.skipped, func(port *Port, name, oid string, position int) {
		kind := strings.ToLower(strings.TrimPrefix(l.queueType[oid], "SAI_QUEUE_TYPE_"))
		if kind == "unicast_voq" {
			return
		}
		index, err := strconv.ParseUint(l.queueIndex[oid], 10, 16)
		if known := kind == "unicast" || kind == "multicast" || kind == "all"; err != nil || !known {
			if r.options.AllQueues || port.isLossless(position) {
				l.skipped.Missing++
			}
			return
		}
		q := Queue{Port: port.Name, Type: kind, Index: int(index), name: name, oid: oid, rank: port.rank}
		q.Watched = port.Watched == nil || port.Watchdog.Configured && slices.Contains(port.WatchdogExpected, q.Index)
		q.Selected = r.options.AllQueues || kind != "multicast" && (port.isLossless(q.Index) ||
			slices.ContainsFunc(port.DSCP, func(d DSCP) bool {
				return d.Queue == q.Index && slices.Contains(r.options.DSCPs, d.DSCP)
			}))
		l.queues = append(l.queues, q)
	})
}

func (p *Port) isLossless(queue int) bool {
	return slices.ContainsFunc(p.LosslessQueues, func(l LosslessQueue) bool { return l.Index == queue })
}

// chooseQueues leaves the queues whose hashes are to be read: those that are
// selected, those that should be under the PFC watchdog, and those that have
// its fields, which it looks for.
func (r *read) chooseQueues(ctx context.Context, l *listing) error {
	var queries []Query
	var maybe []Queue
	chosen := l.queues[:0]
	for _, q := range l.queues {
		switch {
		case q.Selected, q.Type != "multicast" && slices.Contains(r.ports[q.Port].WatchdogExpected, q.Index):
			chosen = append(chosen, q)
		case q.Type != "multicast":
			queries = append(queries, Query{"COUNTERS:" + q.oid, []string{fieldStatus, fieldDetected}})
			maybe = append(maybe, q)
		}
	}
	err := r.hashes(ctx, CountersDB, queries, func(i int, hash Hash) {
		if hash != nil {
			chosen = append(chosen, maybe[i])
		}
	})
	l.queues = slices.Clone(chosen)
	return err
}

func (r *read) listGroups(l *listing) {
	r.ofPorts(r.groupMap, &l.skipped, func(port *Port, name, oid string, position int) {
		isLossless := func(index int) bool {
			return slices.ContainsFunc(port.LosslessGroups, func(l LosslessGroup) bool { return l.Index == index })
		}
		index, err := strconv.ParseUint(l.groupIndex[oid], 10, 16)
		if err != nil {
			if r.options.AllQueues || isLossless(position) {
				l.skipped.Missing++
			}
			return
		}
		if r.options.AllQueues || isLossless(int(index)) {
			l.groups = append(l.groups, PriorityGroup{Port: port.Name, Index: int(index), name: name, oid: oid, rank: port.rank})
		}
	})
}
