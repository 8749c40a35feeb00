// SPDX-License-Identifier: Apache-2.0

// Package sonic reads a SONiC switch's databases into plain structs.
package sonic

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"
)

// The databases that are read, by the names of database_config.json
// (sonic-swss-common common/schema.h).
const (
	ApplDB     = "APPL_DB"
	ASICDB     = "ASIC_DB"
	CountersDB = "COUNTERS_DB"
	ConfigDB   = "CONFIG_DB"
	FlexDB     = "FLEX_COUNTER_DB"
	StateDB    = "STATE_DB"
)

// Databases lists them.
func Databases() []string {
	return []string{ApplDB, ASICDB, CountersDB, ConfigDB, FlexDB, StateDB}
}

// ErrNotFound says that this machine has no SONiC databases.
var ErrNotFound = errors.New("no SONiC databases")

// A Hash is one Redis hash. nil: there is no such key.
type Hash map[string]string

// A Query asks for one hash.
type Query struct {
	Key    string
	Fields []string // nil: all of them.
}

// A Reply answers a Query. Err is of this key alone: a wrong type, a missing
// right.
type Reply struct {
	Hash Hash
	Err  error
}

// A DB reads the databases of one namespace. The error of a method says that
// the database as a whole could not be read.
type DB interface {
	// Read answers every query, in order.
	Read(ctx context.Context, database string, queries []Query) ([]Reply, error)
	// Keys hands over the keys that match a glob pattern, page by page, each
	// once. It gives up with ErrTooMany beyond the limit, where a page takes
	// longer than patience, and with the error of use.
	Keys(ctx context.Context, database, pattern string, limit int, patience time.Duration, use func(page []string) error) error
	// Time is the clock of the server.
	Time(ctx context.Context) (time.Time, error)
}

// ErrTooMany says that a table has more keys than the exporter is ready to walk.
var ErrTooMany = errors.New("more keys than the exporter walks")

// errRefused says that a server answered but refused one verb to this user.
var errRefused = errors.New("refused to this user")

// A Namespace is a set of databases that belong together: those of the switch,
// or of one of its ASICs.
type Namespace struct {
	Name      string // "" for the only or the host's namespace, else "asic0".
	DB        DB
	Databases map[string]Database
	free      bool // Walks cost nothing: a capture.
}

// A Database is where a database lives.
type Database struct {
	Instance  string
	Via       func() string // How the instance is reached, for people.
	ID        int
	Separator string
}

// key joins the parts of a key with the database's separator.
func (n *Namespace) key(database string, parts ...string) string {
	return strings.Join(parts, n.Databases[database].Separator)
}

// A Switch is everything that the reader may touch of one node.
type Switch struct {
	Namespaces []*Namespace
	Files      fs.FS // Rooted at "/": etc/sonic/sonic_version.yml, proc/stat.
}
