// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2/server"

	"roce_exporter/collectors/sonic"
)

// A Switch is the databases of a switch, served by Redis servers on the
// loopback interface.
type Switch struct {
	// Dir is the directory of its database_config.json.
	Dir   string
	Files fs.FS

	servers []*namespace
}

// Serve starts the servers of a switch. Its files of configuration go below a
// directory of its own.
func (n *Node) Serve(below string, look Look) (*Switch, error) {
	s := &Switch{
		Dir:   filepath.Join(below, "redis", "sonic-db"),
		Files: filesOf(func() fs.FS { return n.files(look()) }),
	}
	var includes []any
	start := func(name, dir string, tables func(Moment) Tables, fields []Field) error {
		ns := &namespace{look: look, tables: tables, fields: map[string][]Field{}}
		for _, f := range fields {
			ns.fields[f.Key] = append(ns.fields[f.Key], f)
		}
		if err := ns.start(filepath.Join(below, dir, "sonic-db")); err != nil {
			return err
		}
		s.servers = append(s.servers, ns)
		include := map[string]string{"include": "../../" + dir + "/sonic-db/database_config.json"}
		if name != "" {
			include["namespace"] = name
		}
		includes = append(includes, include)
		return nil
	}
	var err error
	if n.ASICs == 1 {
		err = start("", "redis", func(m Moment) Tables { return n.Facts(m, 0) }, n.Fields(0))
	} else {
		err = start("", "redis", n.HostFacts, nil)
		for asic := range n.ASICs {
			err = errors.Join(err, start(fmt.Sprintf("asic%d", asic), fmt.Sprintf("redis%d", asic),
				func(m Moment) Tables { return n.Facts(m, asic) }, n.Fields(asic)))
		}
		err = errors.Join(err, writeJSON(filepath.Join(s.Dir, "database_global.json"), map[string]any{"INCLUDES": includes}))
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("switch %s: %w", n.Name, err)
	}
	return s, nil
}

// Close ends the servers.
func (s *Switch) Close() {
	for _, ns := range s.servers {
		ns.server.Close()
	}
}

// numbers and separators of the databases (sonic-swss-common
// common/database_config.json).
var databases = map[string]struct {
	ID        int    `json:"id"`
	Separator string `json:"separator"`
	Instance  string `json:"instance"`
}{
	sonic.ApplDB: {0, ":", "redis"}, sonic.ASICDB: {1, ":", "redis"}, sonic.CountersDB: {2, ":", "redis"},
	sonic.ConfigDB: {4, "|", "redis"}, sonic.FlexDB: {5, ":", "redis"}, sonic.StateDB: {6, "|", "redis"},
}

// A namespace is a Redis server with the databases of a switch or of one of its
// ASICs. It knows the commands that read hashes.
type namespace struct {
	look   Look
	tables func(Moment) Tables
	fields map[string][]Field // Of COUNTERS_DB, by key.
	server *server.Server

	mu    sync.Mutex
	scene *scene // Of the facts.
	facts Tables
}

func (n *namespace) start(dir string) error {
	var err error
	if n.server, err = server.NewServer("127.0.0.1:0"); err != nil {
		return err
	}
	for name, command := range map[string]server.Cmd{
		"PING":   func(c *server.Peer, _ string, _ []string) { c.WriteInline("PONG") },
		"SELECT": n.choose, "TIME": n.time, "SCAN": n.scan,
		"HGETALL": n.hash(1, func(c *server.Peer, hash sonic.Hash, _ []string) {
			c.WriteMapLen(len(hash))
			for field, value := range hash {
				c.WriteBulk(field)
				c.WriteBulk(value)
			}
		}),
		"HMGET": n.hash(2, func(c *server.Peer, hash sonic.Hash, fields []string) {
			c.WriteLen(len(fields))
			for _, field := range fields {
				writeField(c, hash, field)
			}
		}),
		"HGET": n.hash(2, func(c *server.Peer, hash sonic.Hash, fields []string) { writeField(c, hash, fields[0]) }),
		"EXISTS": n.hash(1, func(c *server.Peer, hash sonic.Hash, _ []string) {
			c.WriteInt(min(len(hash), 1))
		}),
	} {
		if err := n.server.Register(name, command, server.ReadOnlyOption()); err != nil {
			return err
		}
	}
	address := n.server.Addr()
	return writeJSON(filepath.Join(dir, "database_config.json"), map[string]any{
		"INSTANCES": map[string]any{"redis": map[string]any{"hostname": address.IP.String(), "port": address.Port, "unix_socket_path": ""}},
		"DATABASES": databases, "VERSION": "1.0",
	})
}

func writeField(c *server.Peer, hash sonic.Hash, field string) {
	if value, ok := hash[field]; ok {
		c.WriteBulk(value)
	} else {
		c.WriteNull()
	}
}

// choose lets a connection choose a database by its number.
func (n *namespace) choose(c *server.Peer, _ string, args []string) {
	for name, d := range databases {
		if len(args) == 1 && args[0] == strconv.Itoa(d.ID) {
			c.Ctx = name
			c.WriteOK()
			return
		}
	}
	c.WriteError("ERR DB index is out of range")
}

// chosen is the database of a connection: 0 at first, as in Redis.
func chosen(c *server.Peer) string {
	if name, ok := c.Ctx.(string); ok {
		return name
	}
	return sonic.ApplDB
}

// read returns the facts of a database, and the moment.
func (n *namespace) read(c *server.Peer) (map[string]sonic.Hash, Moment) {
	m := n.look()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.scene != m.scene {
		n.scene, n.facts = m.scene, n.tables(m)
	}
	return n.facts[chosen(c)], m
}

// hash is a command on one hash, with at least some arguments: the key first.
func (n *namespace) hash(least int, answer func(c *server.Peer, hash sonic.Hash, fields []string)) server.Cmd {
	return func(c *server.Peer, name string, args []string) {
		if len(args) < least {
			c.WriteError("ERR wrong number of arguments for '" + strings.ToLower(name) + "' command")
			return
		}
		facts, m := n.read(c)
		hash := facts[args[0]]
		if chosen(c) == sonic.CountersDB {
			if fields := n.fields[args[0]]; len(fields) > 0 {
				hash = maps.Clone(hash)
				if hash == nil {
					hash = sonic.Hash{}
				}
				for i := range fields {
					hash[fields[i].Name] = strconv.FormatUint(fields[i].Value(m), 10)
				}
			}
		}
		answer(c, hash, args[1:])
	}
}

func (n *namespace) time(c *server.Peer, _ string, _ []string) {
	t := n.look().Time
	c.WriteLen(2)
	c.WriteBulk(strconv.FormatInt(t.Unix(), 10))
	c.WriteBulk(strconv.Itoa(t.Nanosecond() / 1000))
}

// scan is SCAN cursor [MATCH pattern] [COUNT number]; the cursor is a place in
// the order of the keys.
func (n *namespace) scan(c *server.Peer, _ string, args []string) {
	facts, _ := n.read(c)
	keys := slices.Collect(maps.Keys(facts))
	if chosen(c) == sonic.CountersDB {
		keys = slices.AppendSeq(keys, maps.Keys(n.fields))
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	pattern, count := "*", 10
	for i := 1; i+1 < len(args); i += 2 {
		switch strings.ToUpper(args[i]) {
		case "MATCH":
			pattern = args[i+1]
		case "COUNT":
			count, _ = strconv.Atoi(args[i+1])
		}
	}
	from := 0
	if len(args) > 0 {
		from, _ = strconv.Atoi(args[0])
	}
	from = min(max(from, 0), len(keys))
	until, next := min(from+max(count, 1), len(keys)), 0
	if until < len(keys) {
		next = until
	}
	var found []string
	for _, key := range keys[from:until] {
		if ok, err := path.Match(pattern, key); ok && err == nil {
			found = append(found, key)
		}
	}
	c.WriteLen(2)
	c.WriteBulk(strconv.Itoa(next))
	c.WriteStrings(found)
}

func writeJSON(file string, value any) error {
	data, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// filesOf are files that are made when they are read.
type filesOf func() fs.FS

func (f filesOf) Open(name string) (fs.File, error) { return f().Open(name) }
