// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
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
		ns := &namespace{look: look, tables: tables, fields: fields}
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
		ns.redis.Close()
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
// ASICs. They are brought up to date when somebody asks.
type namespace struct {
	look   Look
	tables func(Moment) Tables
	fields []Field
	redis  *miniredis.Miniredis

	mu    sync.Mutex
	at    time.Time
	facts *scene // That the databases have.
}

func (n *namespace) start(dir string) error {
	n.redis = miniredis.NewMiniRedis()
	if err := n.redis.Start(); err != nil {
		return err
	}
	n.redis.Server().SetPreHook(func(*server.Peer, string, ...string) bool {
		n.refresh()
		return false
	})
	port, err := strconv.Atoi(n.redis.Port())
	if err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, "database_config.json"), map[string]any{
		"INSTANCES": map[string]any{"redis": map[string]any{"hostname": n.redis.Host(), "port": port, "unix_socket_path": ""}},
		"DATABASES": databases, "VERSION": "1.0",
	})
}

// refresh writes what has changed since somebody asked last.
func (n *namespace) refresh() {
	m := n.look()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !m.movedSince(n.at) {
		return
	}
	if n.facts != m.scene {
		n.redis.FlushAll()
		for database, hashes := range n.tables(m) {
			db := n.redis.DB(databases[database].ID)
			for key, hash := range hashes {
				var fields []string
				for name, value := range hash {
					fields = append(fields, name, value)
				}
				db.HSet(key, fields...)
			}
		}
	}
	counters := n.redis.DB(databases[sonic.CountersDB].ID)
	var fields []string
	for i := range n.fields {
		f := &n.fields[i]
		fields = append(fields, f.Name, strconv.FormatUint(f.Value(m), 10))
		if i+1 == len(n.fields) || n.fields[i+1].Key != f.Key {
			counters.HSet(f.Key, fields...)
			fields = fields[:0]
		}
	}
	n.redis.SetTime(m.Time)
	n.at, n.facts = m.Time, m.scene
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
