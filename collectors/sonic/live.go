// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"os"
	"reflect"
	"sync"
)

// A Live finds the databases of the switch that the exporter runs on.
type Live struct {
	dir     string
	options LiveOptions

	mu      sync.Mutex
	configs []databaseConfig
	open    *Switch
	stale   bool
}

// NewLive returns a Live for the directory of database_config.json. It need
// not exist yet: at boot the exporter may be there before the databases.
func NewLive(dir string, options LiveOptions) *Live {
	if options.Files == nil {
		options.Files = os.DirFS("/")
	}
	return &Live{dir: dir, options: options, stale: true}
}

// Switch returns the switch as its files describe it now. They are read again
// after Suspect only.
func (l *Live) Switch() (*Switch, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stale {
		return l.open, nil
	}
	configs, err := readDatabaseConfigs(l.dir)
	if err != nil {
		if l.open != nil {
			return l.open, nil // Found once is found: its servers say what is wrong.
		}
		return nil, err
	}
	if l.open == nil || !reflect.DeepEqual(configs, l.configs) {
		l.close()
		l.configs = configs
		l.open = &Switch{Files: l.options.Files}
		for _, c := range configs {
			l.open.Namespaces = append(l.open.Namespaces, openNamespace(c, l.options))
		}
	}
	l.stale = false
	return l.open, nil
}

// Suspect makes the next call of Switch look at the files again: a server
// could not be reached.
func (l *Live) Suspect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stale = true
}

// Close closes all connections.
func (l *Live) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.close()
}

func (l *Live) close() {
	if l.open != nil {
		for _, n := range l.open.Namespaces {
			n.close()
		}
	}
}

// A Fixed is a switch that is there from the start: a capture.
type Fixed struct{ Read *Switch }

// Switch returns it.
func (f Fixed) Switch() (*Switch, error) { return f.Read, nil }

// Suspect does nothing.
func (Fixed) Suspect() {}
