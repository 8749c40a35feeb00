// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// A Recording is what was read of a switch, ready to be written as a capture.
type Recording struct {
	namespaces []*recorder
	files      map[string]string
	// Ports are the names of its ports.
	Ports map[string]bool
	// Clock is that of the switch at that moment.
	Clock time.Time
	// LeftOut says what is missing in the recording, and why.
	LeftOut []string
}

// Record reads everything of a switch that the exporter may ask for, once.
func Record(ctx context.Context, s *Switch, patience time.Duration) (*Recording, error) {
	r := &Recording{files: map[string]string{}, Ports: map[string]bool{}}
	var errs []error
	for _, n := range s.Namespaces {
		recorded, reading, err := recordNamespace(ctx, s, n, patience)
		r.namespaces = append(r.namespaces, recorded)
		if err != nil {
			errs = append(errs, err)
		}
		if r.Clock.IsZero() {
			r.Clock = reading.Time
		}
		for i := range reading.Ports {
			r.Ports[reading.Ports[i].Name] = true
		}
		for _, i := range reading.Instances {
			if i.Err != nil {
				r.leaveOut(n.Name, i.Name, i.Err.Error())
			}
		}
	}
	r.recordFiles(s.Files)
	for _, n := range r.namespaces {
		for _, what := range n.leftOut {
			r.leaveOut(n.name, what, "")
		}
	}
	if len(errs) == 0 && len(r.Keys()) == 0 {
		return r, fmt.Errorf("nothing could be read: %s", strings.Join(r.LeftOut, "; "))
	}
	return r, errors.Join(errs...)
}

func (r *Recording) leaveOut(namespace, what, why string) {
	text := strings.TrimSpace(namespace + " " + what)
	if why != "" {
		text += ": " + why
	}
	r.LeftOut = append(r.LeftOut, text)
}

// tries is how often a reading is repeated that met a change of the objects.
const tries = 3

func recordNamespace(ctx context.Context, s *Switch, n *Namespace, patience time.Duration) (*recorder, *Reading, error) {
	options := Options{
		AllQueues: true, VOQ: true, Windows: []string{"periodic", "user", "persistent"},
		RefreshConfig: time.Hour, RefreshFDB: time.Hour,
	}
	for range tries {
		rec := &recorder{DB: n.DB, name: n.Name, databases: map[string]map[string]Hash{}}
		reading := NewReader(&Switch{Files: s.Files, Namespaces: s.Namespaces}, &Namespace{Name: n.Name, DB: rec, Databases: n.Databases, free: true}, options).Read(ctx, patience)
		failed := slices.ContainsFunc(reading.Instances, func(i InstanceState) bool { return i.Err != nil })
		if reading.Skipped.Raced == 0 || failed {
			return rec, reading, nil
		}
	}
	return &recorder{name: n.Name}, &Reading{}, fmt.Errorf("%s: the objects changed during each of %d readings: try again when the switch has settled", orElse(n.Name, "switch"), tries)
}

// recordFiles takes of the node's files what is read of them.
func (r *Recording) recordFiles(files fs.FS) {
	for path, prefix := range map[string]string{"etc/sonic/sonic_version.yml": "build_version:", "proc/stat": "btime "} {
		data, err := fs.ReadFile(files, path)
		if err != nil {
			r.leaveOut("", "/"+path, err.Error())
			continue
		}
		for line := range strings.Lines(string(data)) {
			if strings.HasPrefix(line, prefix) {
				r.files[path] += line
			}
		}
	}
	slices.Sort(r.LeftOut)
}

// A recorder is a DB that keeps what passes through it.
type recorder struct {
	DB
	name string

	mu        sync.Mutex
	databases map[string]map[string]Hash
	leftOut   []string
}

func (r *recorder) Read(ctx context.Context, database string, queries []Query) ([]Reply, error) {
	replies, err := r.DB.Read(ctx, database, queries)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, reply := range replies {
		switch {
		case reply.Err != nil:
			r.leftOut = append(r.leftOut, fmt.Sprintf("%s %s: %v", database, queries[i].Key, reply.Err))
		case reply.Hash != nil:
			r.keep(database, queries[i].Key, reply.Hash)
		}
	}
	if err == nil && r.databases[database] == nil {
		r.databases[database] = map[string]Hash{} // It answered, and has nothing.
	}
	return replies, err
}

// Keys keeps the keys of tables that say all by them.
func (r *recorder) Keys(ctx context.Context, database, pattern string, limit int, patience time.Duration, use func([]string) error) error {
	tables := configTables()
	return r.DB.Keys(ctx, database, pattern, limit, patience, func(page []string) error {
		r.mu.Lock()
		for _, key := range page {
			table, _, _ := strings.Cut(key, "|")
			if _, wanted := tables[table]; wanted && database == ConfigDB {
				r.keep(database, key, nil)
			}
		}
		r.mu.Unlock()
		return use(page)
	})
}

func (r *recorder) keep(database, key string, hash Hash) {
	if !utf8.ValidString(key) {
		r.leftOut = append(r.leftOut, fmt.Sprintf("%s %q: a key that is no text", database, key))
		return
	}
	if r.databases[database] == nil {
		r.databases[database] = map[string]Hash{}
	}
	if r.databases[database][key] == nil {
		r.databases[database][key] = Hash{}
	}
	for field, value := range hash {
		if !utf8.ValidString(field) {
			r.leftOut = append(r.leftOut, fmt.Sprintf("%s %s %q: a field that is no text", database, key, field))
			continue
		}
		r.databases[database][key][field] = value
	}
}

// Write writes what was read into the directory of a capture, all but
// meta.json.
func (r *Recording) Write(dir string) error {
	for _, n := range r.namespaces {
		for database, hashes := range n.databases {
			if err := writeJSON(filepath.Join(dir, "redis", n.name, database+".json"), captured(hashes)); err != nil {
				return err
			}
		}
	}
	for path, text := range r.files {
		if err := writeFile(filepath.Join(dir, "files", path), []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// captured is the form of a database in a capture.
func captured(hashes map[string]Hash) map[string]map[string]any {
	out := make(map[string]map[string]any, len(hashes))
	for key, hash := range hashes {
		out[key] = make(map[string]any, len(hash))
		for field, value := range hash {
			out[key][field] = value
			if !utf8.ValidString(value) {
				out[key][field] = map[string]string{"base64": base64.StdEncoding.EncodeToString([]byte(value))}
			}
		}
	}
	return out
}

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return err
	}
	return writeFile(path, append(data, '\n'))
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// Keys counts what was recorded, by database.
func (r *Recording) Keys() map[string]int {
	counts := map[string]int{}
	for _, n := range r.namespaces {
		for database, hashes := range maps.All(n.databases) {
			counts[database] += len(hashes)
		}
	}
	return counts
}
