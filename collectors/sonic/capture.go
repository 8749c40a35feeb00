// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// captureFormat is the version of the layout of a capture: redis/<DATABASE>.json,
// files/<path>, meta.json.
const captureFormat = 1

// captureMeta is what is used of meta.json.
type captureMeta struct {
	Format int
	Clock  time.Time // That of the node when it was read.
}

// OpenCapture reads a capture into memory. One of several samples, in
// directories 0001, 0002, … is replayed sample after sample, a reading each.
func OpenCapture(dir fs.FS) (*Switch, error) {
	samples, err := fs.Glob(dir, "[0-9][0-9][0-9][0-9]")
	if err != nil {
		return nil, err
	}
	if len(samples) == 0 {
		return openSample(dir)
	}
	var series []*Switch
	for _, name := range samples {
		sub, err := fs.Sub(dir, name)
		if err != nil {
			return nil, err
		}
		s, err := openSample(sub)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		series = append(series, s)
	}
	first := series[0]
	for i, n := range first.Namespaces {
		c := n.DB.(*capture)
		for _, s := range series[1:] {
			if len(s.Namespaces) != len(first.Namespaces) || s.Namespaces[i].Name != n.Name {
				return nil, errors.New("the samples have not the same namespaces")
			}
			c.later = append(c.later, s.Namespaces[i].DB.(*capture))
		}
	}
	return first, nil
}

// openSample reads one sample: the namespaces are the directories of redis/.
func openSample(dir fs.FS) (*Switch, error) {
	data, err := fs.ReadFile(dir, "meta.json")
	if err != nil {
		return nil, fmt.Errorf("not a capture: %w", err)
	}
	var meta captureMeta
	if err := json.Unmarshal(data, &meta); err != nil {
		return nil, fmt.Errorf("meta.json: %w", err)
	}
	if meta.Format != captureFormat {
		return nil, fmt.Errorf("meta.json: format %d, this exporter reads format %d", meta.Format, captureFormat)
	}
	files, err := fs.Sub(dir, "files")
	if err != nil {
		return nil, err
	}
	s := &Switch{Files: files}
	entries, err := fs.ReadDir(dir, "redis")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := []string{""}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		n, err := readCapture(dir, path.Join("redis", name), meta)
		if err != nil {
			return nil, err
		}
		n.Name = name
		if len(n.Databases) > 0 {
			s.Namespaces = append(s.Namespaces, n)
		}
	}
	if len(s.Namespaces) == 0 {
		return nil, fmt.Errorf("redis: %w", ErrNotFound)
	}
	return s, nil
}

// readCapture reads the databases of one namespace.
func readCapture(dir fs.FS, at string, meta captureMeta) (*Namespace, error) {
	c := &capture{databases: map[string]map[string]Hash{}, clock: meta.Clock}
	n := &Namespace{DB: c, Databases: map[string]Database{}, free: true}
	for _, name := range Databases() {
		data, err := fs.ReadFile(dir, path.Join(at, name+".json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		hashes, err := parseCapture(data)
		if err != nil {
			return nil, fmt.Errorf("%s.json: %w", name, err)
		}
		c.databases[name] = hashes
		separator := ":"
		if name == ConfigDB || name == StateDB {
			separator = "|"
		}
		n.Databases[name] = Database{Instance: "redis", Separator: separator, Via: func() string { return "capture" }}
	}
	return n, nil
}

// parseCapture reads {"key": {"field": "value"}}. Text that is not UTF-8
// stands as {"base64": "…"}; a number is taken as its text.
func parseCapture(data []byte) (map[string]Hash, error) {
	var raw map[string]map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	if err := decoder.Decode(&raw); err != nil {
		return nil, err
	}
	hashes := make(map[string]Hash, len(raw))
	for key, fields := range raw {
		hash := make(Hash, len(fields))
		for field, value := range fields {
			text, err := captureText(value)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", key, field, err)
			}
			hash[field] = text
		}
		if len(hash) == 0 {
			hash["NULL"] = "NULL" // Redis has no empty hash.
		}
		hashes[key] = hash
	}
	return hashes, nil
}

func captureText(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case map[string]any:
		if text, ok := v["base64"].(string); ok {
			raw, err := base64.StdEncoding.DecodeString(text)
			return string(raw), err
		}
	}
	return "", errors.New(`neither text nor {"base64": "…"}`)
}

// capture is a DB in memory.
type capture struct {
	databases map[string]map[string]Hash
	clock     time.Time
	later     []*capture // Samples that follow.
}

// begin goes on to the next sample, the last one stays.
func (c *capture) begin() {
	if len(c.later) > 0 {
		next := c.later[0]
		c.databases, c.clock, c.later = next.databases, next.clock, c.later[1:]
	}
}

func (c *capture) Read(_ context.Context, database string, queries []Query) ([]Reply, error) {
	hashes, ok := c.databases[database]
	if !ok {
		return nil, errors.New("the capture has no " + strconv.Quote(database))
	}
	replies := make([]Reply, len(queries))
	for i, q := range queries {
		hash := hashes[q.Key]
		if q.Fields != nil && hash != nil {
			all := hash
			hash = nil
			for _, f := range q.Fields {
				if v, ok := all[f]; ok {
					if hash == nil {
						hash = Hash{}
					}
					hash[f] = v
				}
			}
		}
		replies[i].Hash = hash
	}
	return replies, nil
}

func (c *capture) Keys(_ context.Context, database, pattern string, limit int, _ time.Duration, use func([]string) error) error {
	hashes, ok := c.databases[database]
	if !ok {
		return errors.New("the capture has no " + strconv.Quote(database))
	}
	prefix := strings.TrimSuffix(pattern, "*")
	var keys []string
	for key := range hashes {
		if matched, err := path.Match(pattern, key); strings.HasPrefix(key, prefix) || matched && err == nil {
			keys = append(keys, key)
		}
	}
	if len(keys) > limit {
		return ErrTooMany
	}
	slices.Sort(keys)
	return use(keys)
}

func (c *capture) Time(context.Context) (time.Time, error) { return c.clock, nil }
