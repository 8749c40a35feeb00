// SPDX-License-Identifier: Apache-2.0

// Package sonictest gives tests a real Redis with a switch in it.
package sonictest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Databases are the hashes of a switch: database, key, field.
type Databases map[string]map[string]map[string]string

// ids are the numbers that SONiC gives the databases.
func ids() map[string]int {
	return map[string]int{"APPL_DB": 0, "ASIC_DB": 1, "COUNTERS_DB": 2, "CONFIG_DB": 4, "FLEX_COUNTER_DB": 5, "STATE_DB": 6}
}

// A Server is a redis-server of the test's own, on a socket and a port of the
// loopback.
type Server struct {
	Dir     string // Holds the socket and database_config.json.
	Socket  string
	Port    int
	Process *os.Process
	args    []string
}

// Start starts a redis-server, which ends with the test. args are more of its
// options.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("needs redis-server: apt-get install redis-server")
	}
	dir, err := os.MkdirTemp("", "roce") // Short: a socket's path has 108 bytes.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &Server{Dir: dir, Socket: filepath.Join(dir, "redis.sock"), Port: freePort(t), args: args}
	s.WriteConfig(t)
	s.Run(t)
	return s
}

// Run starts the server's process, again after it was killed.
func (s *Server) Run(t testing.TB) {
	t.Helper()
	args := append([]string{
		"--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1", "--unixsocket", s.Socket, "--unixsocketperm", "777",
		"--databases", "20", "--save", "", "--appendonly", "no", "--dir", s.Dir,
	}, s.args...)
	cmd := exec.Command("redis-server", args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.Process = cmd.Process
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
	})
	for range 500 {
		c := redis.NewClient(&redis.Options{Network: "unix", Addr: s.Socket, MaxRetries: -1, DialerRetries: 1})
		err := c.Ping(context.Background()).Err()
		_ = c.Close()
		if err == nil || redis.HasErrorPrefix(err, "NOAUTH") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("redis-server does not answer")
}

// WriteConfig writes the database_config.json of the server.
func (s *Server) WriteConfig(t testing.TB) {
	t.Helper()
	databases := map[string]any{}
	for name, id := range ids() {
		separator := ":"
		if name == "CONFIG_DB" || name == "STATE_DB" {
			separator = "|"
		}
		databases[name] = map[string]any{"id": id, "separator": separator, "instance": "redis"}
	}
	data, err := json.Marshal(map[string]any{
		"INSTANCES": map[string]any{"redis": map[string]any{"hostname": "127.0.0.1", "port": s.Port, "unix_socket_path": s.Socket}},
		"DATABASES": databases, "VERSION": "1.0",
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(s.Dir, "database_config.json"), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Client returns a client of one database that may write.
func (s *Server) Client(t testing.TB, database string) *redis.Client {
	t.Helper()
	id, ok := ids()[database]
	if !ok {
		t.Fatalf("no database %s", database)
	}
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: s.Socket, DB: id})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Load writes all hashes.
func (s *Server) Load(t testing.TB, databases Databases) {
	t.Helper()
	for database, hashes := range databases {
		c := s.Client(t, database)
		pipe := c.Pipeline()
		n := 0
		flush := func() {
			if _, err := pipe.Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for key, hash := range hashes {
			if len(hash) == 0 { // A capture has the keys of tables that say all by them.
				hash = map[string]string{"NULL": "NULL"}
			}
			pipe.HSet(t.Context(), key, hash)
			if n++; n%1000 == 0 {
				flush()
			}
		}
		if n%1000 != 0 {
			flush()
		}
	}
}

// ReadCapture reads the databases of a capture directory.
func ReadCapture(t testing.TB, dir string) Databases {
	t.Helper()
	databases := Databases{}
	for name := range ids() {
		data, err := os.ReadFile(filepath.Join(dir, "redis", name+".json"))
		if os.IsNotExist(err) {
			continue
		}
		var hashes map[string]map[string]string
		if err == nil {
			err = json.Unmarshal(data, &hashes)
		}
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", name, err))
		}
		databases[name] = hashes
	}
	return databases
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
