// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// chunk is how many keys are asked for in one round trip: enough to make the
// trip cheap, few enough that Redis turns to its other clients in between.
const chunk = 256

// Options say what to read.
type Options struct {
	AllQueues     bool
	Windows       []string // Of periodic, user, persistent.
	VOQ           bool
	Include       *regexp.Regexp // nil: all ports.
	Exclude       *regexp.Regexp // nil: none.
	DSCPs         []int          // Whose landing place is of interest, with its queue.
	MACLimit      int            // Attached addresses of a port are listed up to this many.
	RefreshConfig time.Duration
	RefreshFDB    time.Duration // 0: never.
	Wanted        Wanted
}

// Wanted are the raw names that are wanted, by kind of object.
type Wanted struct {
	Port, Queue, QueueWatermark, Group, GroupWatermark, PoolWatermark, VOQ Fields
	// PortGroup says of each of Port whether syncd polls it in its PORT group.
	PortGroup []bool
}

// A Reader reads one namespace, over and over. Only one Read may run at a
// time.
type Reader struct {
	ns      *Namespace
	files   fs.FS
	options Options
	asics   []string // Of which this is the host's namespace.

	config    kept[*configuration]
	neighbors kept[map[string]*Neighbor]
	buffers   kept[*buffers]
	found     kept[[]string]              // Ports that only APPL_DB has.
	fdb       kept[map[string]*addresses] // By port or LAG.
	arp       kept[map[string]*addresses] // By routed port.
	listed    kept[*listing]
	hashing   maphash.Seed
	maps      uint64            // Fingerprint of the name maps at the last reading.
	counters  map[string]uint64 // Fingerprint of the PORT group's counters, by port.
	waiting   bool              // The last walk that was asked for was left to the next reading.
	// Walks that were refused when they were last due, by database and table.
	refusedWalks map[[2]string]error
	begun        bool // This is not the first reading.
	lastChange   time.Time
}

// kept is a table that is not read at every scrape.
type kept[T any] struct {
	value T
	since time.Time
}

// due says whether it is time to read the table again.
func (k *kept[T]) due(now time.Time, every time.Duration) bool {
	return k.since.IsZero() || now.Sub(k.since) >= every
}

func (k *kept[T]) set(value T, now time.Time) { k.value, k.since = value, now }

func (k *kept[T]) drop() { *k = kept[T]{} }

// NewReader returns a Reader.
func NewReader(s *Switch, n *Namespace, options Options) *Reader {
	r := &Reader{ns: n, files: s.Files, options: options, hashing: maphash.MakeSeed(), refusedWalks: map[[2]string]error{}}
	for _, other := range s.Namespaces {
		if n.Name == "" && other.Name != "" {
			r.asics = append(r.asics, other.Name)
		}
	}
	return r
}

// A read is one reading in the making.
type read struct {
	*Reader
	out      *Reading
	patience time.Duration // For one round trip.
	now      time.Time
	walks    int // Walks that this reading may still make.

	mu        sync.Mutex
	answered  map[string]bool   // Databases that answered.
	instances map[string]error  // Instances that were asked, and what is wrong.
	failures  map[string]error  // Databases that could not be read.
	notes     map[string]string // What instances refused although they answer.

	portMap, queueMap, groupMap, poolMap, voqMap Hash
	fdbUsed                                      float64  // Entries of the FDB by CRM:STATS; 0: unknown.
	flex                                         []Hash   // By pollGroups.
	sizes                                        *buffers // Of this reading; nil: could not be read.
	poolSizes                                    map[string]Hash
	verified                                     bool             // The name maps were read again.
	ports                                        map[string]*Port // Into out.Ports.
}

// Read reads the namespace. It returns what there is, whatever happens; a
// server that does not answer within patience is given up for this reading.
func (r *Reader) Read(ctx context.Context, patience time.Duration) *Reading {
	rd := &read{
		Reader: r, patience: patience, now: time.Now(), walks: 1,
		out:      &Reading{ASIC: r.ns.Name},
		answered: map[string]bool{}, instances: map[string]error{}, notes: map[string]string{}, failures: map[string]error{}, ports: map[string]*Port{},
	}
	if r.ns.free {
		rd.walks = 100
	}
	if c, ok := r.ns.DB.(*capture); ok && r.begun {
		c.begin()
	}
	r.begun = true
	rd.run(ctx, task{CountersDB, rd.readMaps})
	rd.run(ctx, task{ConfigDB, rd.readConfig}, task{FlexDB, rd.readPollGroups})
	config := rd.config.value
	if rd.down(ConfigDB) {
		config = nil // What is remembered of a dead server is not known.
	}
	rd.setPollGroups(config)
	names := rd.portNames(config)
	if len(names) == 0 {
		rd.run(ctx, task{ApplDB, func(ctx context.Context) error { return rd.findPorts(ctx, names) }})
	}
	rd.listPorts(config, names)
	rd.run(ctx,
		task{CountersDB, func(ctx context.Context) error { return rd.readCounters(ctx, config) }},
		task{ASICDB, rd.readASIC},
		task{ApplDB, func(ctx context.Context) error { return rd.readAppl(ctx, config) }},
		task{StateDB, rd.readState},
	)
	rd.setBuffers(config)
	rd.run(ctx, task{CountersDB, rd.dropRaced})
	if !rd.verified {
		rd.dropChanged(nil, nil, nil, nil, nil)
	}
	rd.setWatchdogs()
	rd.setLinks()
	rd.setFDB()
	rd.setPools()
	rd.setBigRedSwitch(config)
	rd.setLastChange()
	rd.readFiles()
	rd.setStates()
	return rd.out
}

// A task reads from one database.
type task struct {
	database string
	do       func(context.Context) error
}

// safely does the task; a bug costs its instance, not the process.
func (t task) safely(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("bug: %v", p)
		}
	}()
	return t.do(ctx)
}

// run does the tasks, those of different instances side by side, those of one
// instance one after the other. An instance that failed is not asked again.
func (r *read) run(ctx context.Context, tasks ...task) {
	var wg sync.WaitGroup
	byInstance := map[string][]task{}
	for _, t := range tasks {
		if d, ok := r.ns.Databases[t.database]; ok {
			byInstance[d.Instance] = append(byInstance[d.Instance], t)
		}
	}
	for name, tasks := range byInstance {
		wg.Go(func() {
			for _, t := range tasks {
				if r.failed(name) != nil {
					return
				}
				if r.failures[t.database] != nil {
					continue // Of the tasks of one instance none runs beside this.
				}
				if err := t.safely(ctx); err != nil {
					r.fail(t.database, err)
				}
			}
		})
	}
	wg.Wait()
}

// fail notes that a database could not be read. What the server answers costs
// this database, all else its instance.
func (r *read) fail(database string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err = fmt.Errorf("%s: %w", database, err)
	r.failures[database] = err
	if _, answer := errors.AsType[redis.Error](err); !answer {
		r.instances[r.ns.Databases[database].Instance] = err
	}
}

func (r *read) failed(instance string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err, asked := r.instances[instance]
	if !asked {
		r.instances[instance] = nil
	}
	return err
}

// down says whether the instance of a database failed in this reading.
func (r *read) down(database string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.instances[r.ns.Databases[database].Instance] != nil || r.failures[database] != nil || !r.answered[database]
}

// hashes reads hashes in chunks and hands over each that is there. A refusal
// of one is counted, not returned.
func (r *read) hashes(ctx context.Context, database string, queries []Query, use func(i int, hash Hash)) error {
	for start := 0; start < len(queries); start += chunk {
		part := queries[start:min(start+chunk, len(queries))]
		tripCtx, cancel := context.WithTimeout(ctx, r.patience)
		replies, err := r.ns.DB.Read(tripCtx, database, part)
		cancel()
		if err != nil {
			return err
		}
		r.take(database, part, replies, func(i int, hash Hash) { use(start+i, hash) })
	}
	return nil
}

// take hands over replies, one goroutine at a time.
func (r *read) take(database string, queries []Query, replies []Reply, use func(i int, hash Hash)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered[database] = true
	for i, reply := range replies {
		if reply.Err != nil {
			r.unreadable(database, queries[i].Key, reply.Err)
			continue
		}
		use(i, reply.Hash)
	}
}

// unreadable counts what a server refused to answer, and notes the first. The
// caller holds the lock.
func (r *read) unreadable(database, what string, err error) {
	r.out.Skipped.Unreadable++
	if instance := r.ns.Databases[database].Instance; r.notes[instance] == "" {
		r.notes[instance] = fmt.Sprintf("%s %s: %v", database, what, err)
	}
}

// mayWalk remembers whether this user may walk a table: what is refused at a
// refresh is missing until the next. err is nil if it may.
func (r *read) mayWalk(database, table string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := [2]string{database, table}
	delete(r.refusedWalks, key)
	if err != nil {
		r.refusedWalks[key] = err
	}
}

// keys walks a table, unless another was walked in this reading already.
func (r *read) keys(ctx context.Context, database, pattern string, limit int, use func([]string) error) error {
	r.mu.Lock()
	ok := r.walks > 0
	r.walks--
	r.waiting = !ok
	r.mu.Unlock()
	if !ok {
		return errLater
	}
	return r.ns.DB.Keys(ctx, database, pattern, limit, r.patience, use)
}

// errLater says that this reading made its walk already.
var errLater = errors.New("left to the next reading")

// portNames are the ports that CONFIG_DB or the name map have.
func (r *read) portNames(config *configuration) map[string]bool {
	var known map[string]Hash
	names := map[string]bool{}
	add := func(name string) {
		if isPort(name, known) {
			names[name] = true
		}
	}
	if config != nil {
		known = config.ports
		for name := range known {
			add(name)
		}
	}
	for name := range r.portMap {
		add(name)
	}
	if config != nil && len(known) == 0 {
		for name := range config.qos {
			add(name)
		}
		for name := range config.watchdog {
			add(name)
		}
	}
	return names
}

// findPorts looks for ports in APPL_DB, where neither CONFIG_DB nor the name
// map have any: a switch that is starting, or a part of its databases.
func (r *read) findPorts(ctx context.Context, names map[string]bool) error {
	if r.found.due(r.now, r.options.RefreshConfig) {
		var found []string
		err := r.keys(ctx, ApplDB, "*_TABLE:Ethernet*", walkLimit, func(page []string) error {
			for _, key := range page {
				if name := strings.SplitN(key, ":", 3)[1]; !strings.ContainsAny(name, ",.") { // A list of ports, a sub-interface.
					found = append(found, name)
				}
			}
			return nil
		})
		if errors.Is(err, errLater) {
			return nil
		}
		if err != nil && !errors.Is(err, errRefused) && !errors.Is(err, ErrTooMany) {
			return err
		}
		r.found.set(found, r.now)
		r.listed.drop() // They were made for other ports.
		r.neighbors.drop()
	}
	for _, name := range r.found.value {
		if isPort(name, nil) {
			names[name] = true
		}
	}
	return nil
}

// listPorts makes the ports.
func (r *read) listPorts(config *configuration, names map[string]bool) {
	sorted := make([]string, 0, len(names))
	for name := range names {
		if r.selected(name) {
			sorted = append(sorted, name)
		}
	}
	slices.SortFunc(sorted, compareNatural)
	r.out.Ports = make([]Port, len(sorted))
	for i, name := range sorted {
		p := &r.out.Ports[i]
		*p = Port{Name: name, Kind: portKind(name, ""), QoSUnknown: true}
		if config != nil {
			*p = config.port(name, r.options.DSCPs, &r.out.Skipped)
		}
		r.ports[name], p.rank, p.oid = p, i, r.portMap[name]
		if p.QoSUnknown && (p.Kind == "front" || p.Kind == "backplane") {
			r.out.Skipped.Missing++ // Nobody knows which of its queues are lossless.
		}
	}
}

func (r *read) selected(port string) bool {
	if r.options.Include != nil && !r.options.Include.MatchString(port) {
		return false
	}
	return r.options.Exclude == nil || !r.options.Exclude.MatchString(port)
}

// compareNatural orders Ethernet8 before Ethernet16: runs of digits by their
// value, the rest by its bytes.
func compareNatural(a, b string) int {
	const digits = "0123456789"
	for a != "" && b != "" {
		x, y := strings.TrimLeft(a, digits), strings.TrimLeft(b, digits)
		n, m := a[:len(a)-len(x)], b[:len(b)-len(y)]
		if n == "" || m == "" {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		n, m = strings.TrimLeft(n, "0"), strings.TrimLeft(m, "0")
		if c := cmp.Or(cmp.Compare(len(n), len(m)), strings.Compare(n, m)); c != 0 {
			return c
		}
		a, b = x, y
	}
	return cmp.Compare(len(a), len(b))
}

// setLastChange notes when the counters of the PORT group moved: those of a
// port that this reading and the last one have.
func (r *read) setLastChange() {
	if r.out.Time.IsZero() {
		return
	}
	up, moved := false, false
	sums := make(map[string]uint64, len(r.out.Ports))
	for i := range r.out.Ports {
		p := &r.out.Ports[i]
		up = up || p.OperUp != nil && *p.OperUp
		if p.Counters == nil {
			continue
		}
		sum := uint64(0)
		for field, v := range p.Counters {
			if field < len(r.options.Wanted.PortGroup) && r.options.Wanted.PortGroup[field] && !math.IsNaN(v) {
				sum += math.Float64bits(v) * uint64(2*field+1)
			}
		}
		before, known := r.counters[p.Name]
		moved = moved || known && before != sum
		sums[p.Name] = sum
	}
	r.counters = sums
	if moved {
		r.lastChange = r.out.Time
	}
	if up && len(sums) > 0 {
		r.out.LastChange = r.lastChange
	}
}

// setStates says which databases and instances answered.
func (r *read) setStates() {
	r.mu.Lock()
	for key, err := range r.refusedWalks {
		r.unreadable(key[0], "SCAN "+key[1], err)
	}
	r.mu.Unlock()
	for _, name := range Databases() {
		if _, ok := r.ns.Databases[name]; ok {
			r.out.Databases = append(r.out.Databases, DatabaseState{name, r.answered[name] && r.failures[name] == nil})
		}
	}
	for _, name := range Databases() {
		d, ok := r.ns.Databases[name]
		if !ok || slices.ContainsFunc(r.out.Instances, func(s InstanceState) bool { return s.Name == d.Instance }) {
			continue
		}
		r.judge(d.Instance)
		r.out.Instances = append(r.out.Instances, InstanceState{
			Name: d.Instance, Via: d.Via(), Err: r.instances[d.Instance], Note: r.notes[d.Instance],
		})
	}
}

// judge says of an instance that answers but of none of its databases that it
// failed, and else notes a database that did.
func (r *read) judge(instance string) {
	var first error
	answers := false
	for _, name := range append([]string{CountersDB}, Databases()...) { // The first that is asked.
		if d, ok := r.ns.Databases[name]; !ok || d.Instance != instance {
			continue
		}
		answers = answers || r.answered[name] && r.failures[name] == nil
		if first == nil {
			first = r.failures[name]
		}
	}
	switch {
	case first == nil || r.instances[instance] != nil:
	case !answers:
		r.instances[instance] = first
	case r.notes[instance] == "":
		r.notes[instance] = first.Error()
	}
}

// readFiles reads what is not in Redis.
func (r *read) readFiles() {
	if r.files == nil {
		return
	}
	if data, err := fs.ReadFile(r.files, "etc/sonic/sonic_version.yml"); err == nil {
		r.out.Device.OSVersion = yamlField(string(data), "build_version")
	}
	if data, err := fs.ReadFile(r.files, "proc/stat"); err == nil {
		for line := range strings.Lines(string(data)) {
			if text, ok := strings.CutPrefix(line, "btime "); ok {
				if seconds, ok := parseNumber(strings.TrimSpace(text)); ok {
					r.out.Device.Boot = time.Unix(int64(seconds), 0)
				}
			}
		}
	}
}

// yamlField finds one scalar of a flat YAML file.
func yamlField(text, field string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.Trim(strings.TrimSpace(value), `'"`)
		}
	}
	return ""
}
