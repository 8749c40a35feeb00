// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// scanCount is how many keys Redis looks at in one SCAN.
const scanCount = 200

// maxWalk bounds a walk over a database in SCANs, found or not: APPL_DB and
// ASIC_DB hold the routes too.
const maxWalk = 1000

// allowed are the only verbs that ever go out. All of them read.
var allowed = []string{"hello", "auth", "select", "ping", "hgetall", "hmget", "hget", "get", "exists", "scan", "time"}

// LiveOptions say how to reach the Redis servers of a switch.
type LiveOptions struct {
	Timeout  time.Duration          // For one round trip.
	Username string                 // SONiC itself asks for none, vendors' builds may.
	Password func() (string, error) // Asked for at each connection; nil: none.
	Files    fs.FS                  // See Switch; nil: those of this machine.
}

// live is a DB on real Redis servers, one connection an instance and database,
// opened when it is first needed and kept.
type live struct {
	mu      sync.Mutex
	clients map[string]*redis.Client // By database name.
	renew   map[string]func() *redis.Client
}

// instance is one Redis server.
type instance struct {
	socket, tcp string
	via         atomic.Pointer[string]
}

// openNamespace prepares a namespace. Nothing is dialled yet.
func openNamespace(config databaseConfig, options LiveOptions) *Namespace {
	if config.Err != nil {
		return unreadableNamespace(config)
	}
	instances := map[string]*instance{}
	for name, i := range config.Instances {
		instances[name] = &instance{socket: i.Socket, tcp: net.JoinHostPort(i.Hostname, strconv.Itoa(i.Port))}
	}
	db := &live{clients: map[string]*redis.Client{}, renew: map[string]func() *redis.Client{}}
	n := &Namespace{Name: config.Namespace, DB: db, Databases: map[string]Database{}}
	for _, name := range Databases() {
		d, ok := config.Databases[name]
		if !ok {
			continue
		}
		i := instances[d.Instance]
		n.Databases[name] = Database{Instance: d.Instance, ID: d.ID, Separator: d.Separator, Via: i.reached}
		db.renew[name] = func() *redis.Client { return newClient(i.dial, d.ID, options) }
		db.clients[name] = db.renew[name]()
	}
	return n
}

// unreadableNamespace stands for a namespace whose database_config.json could
// not be read: it is there, and every database of it fails for that reason.
func unreadableNamespace(config databaseConfig) *Namespace {
	n := &Namespace{Name: config.Namespace, DB: unreadable{config.Err}, Databases: map[string]Database{}}
	for _, name := range Databases() {
		n.Databases[name] = Database{Instance: "redis", Separator: ":", Via: func() string { return "" }}
	}
	return n
}

// unreadable is a DB that fails.
type unreadable struct{ err error }

func (u unreadable) Read(context.Context, string, []Query) ([]Reply, error) { return nil, u.err }

func (u unreadable) Keys(context.Context, string, string, int, time.Duration, func([]string) error) error {
	return u.err
}

func (u unreadable) Time(context.Context) (time.Time, error) { return time.Time{}, u.err }

func (n *Namespace) close() {
	if db, ok := n.DB.(*live); ok {
		db.mu.Lock()
		defer db.mu.Unlock()
		for name, c := range db.clients {
			_ = c.Close()
			delete(db.clients, name)
		}
	}
}

// newClient returns a client that reads only. Retries, handshakes and
// notifications that an old Redis does not know are off.
func newClient(dial func(context.Context, string, string) (net.Conn, error), id int, live LiveOptions) *redis.Client {
	options := &redis.Options{
		Addr: "switch", Dialer: dial, DB: id, Username: live.Username,
		Protocol: 2, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		ContextTimeoutEnabled:    true, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: live.Timeout, ReadTimeout: live.Timeout, WriteTimeout: live.Timeout, PoolTimeout: live.Timeout,
		PoolSize: 1, PipelinePoolSize: -1, ConnMaxIdleTime: -1,
		ReadBufferSize: 32 << 10, WriteBufferSize: 16 << 10,
	}
	if live.Password != nil {
		options.CredentialsProviderContext = func(context.Context) (string, string, error) {
			password, err := live.Password()
			return live.Username, password, err
		}
	}
	client := redis.NewClient(options)
	client.AddHook(readOnly{})
	return client
}

// dial tries the socket first; where it refuses this user, the TCP port of
// the same instance is open to every local user.
func (i *instance) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	var d net.Dialer
	network, addr := "unix", i.socket
	if addr == "" {
		network, addr = "tcp", i.tcp
	}
	conn, err := d.DialContext(ctx, network, addr)
	denied := errors.Is(err, fs.ErrPermission) && network == "unix"
	if denied {
		refusal := err
		network, addr = "tcp", i.tcp
		if conn, err = d.DialContext(ctx, network, addr); err != nil {
			return nil, fmt.Errorf("%w (join the group that owns the socket, it is redis on SONiC); %w", refusal, err)
		}
	}
	if err == nil {
		via := address(network, addr, denied)
		i.via.Store(&via)
	}
	return conn, err
}

func (i *instance) reached() string {
	if via := i.via.Load(); via != nil {
		return *via
	}
	return ""
}

// readOnly is the choke point that every command passes.
type readOnly struct{}

func (readOnly) DialHook(next redis.DialHook) redis.DialHook { return next }

func (readOnly) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !slices.Contains(allowed, cmd.Name()) {
			cmd.SetErr(fmt.Errorf("command %s is not one of those that only read", cmd.Name()))
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

func (readOnly) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if !slices.Contains(allowed, cmd.Name()) {
				err := fmt.Errorf("command %s is not one of those that only read", cmd.Name())
				for _, c := range cmds {
					c.SetErr(err)
				}
				return err
			}
		}
		return next(ctx, cmds)
	}
}

// Read sends the queries in one pipeline: one round trip.
func (l *live) Read(ctx context.Context, database string, queries []Query) ([]Reply, error) {
	client, err := l.client(database)
	if err != nil {
		return nil, err
	}
	pipe := client.Pipeline()
	for _, q := range queries {
		if q.Fields == nil {
			pipe.HGetAll(ctx, q.Key)
		} else {
			pipe.HMGet(ctx, q.Key, q.Fields...)
		}
	}
	// The error of Exec is that of the first command that has one: each
	// command's own counts. With none of them it is of the connection, whose
	// log-in failed.
	cmds, err := pipe.Exec(ctx)
	replies, own := make([]Reply, len(queries)), false
	for i, cmd := range cmds {
		if err := cmd.Err(); err != nil && wholeError(err) {
			l.drop(database, client)
			return nil, err
		}
		own = own || cmd.Err() != nil
		replies[i] = reply(cmd, queries[i])
	}
	if len(cmds) != len(queries) || err != nil && !own {
		l.drop(database, client)
		return nil, err
	}
	return replies, nil
}

// reply takes the answer out of a command.
func reply(cmd redis.Cmder, q Query) Reply {
	if err := cmd.Err(); err != nil {
		return Reply{Err: refused(err)}
	}
	if c, ok := cmd.(*redis.MapStringStringCmd); ok {
		if len(c.Val()) == 0 {
			return Reply{}
		}
		return Reply{Hash: c.Val()}
	}
	var hash Hash
	for i, v := range cmd.(*redis.SliceCmd).Val() {
		if text, ok := v.(string); ok {
			if hash == nil {
				hash = make(Hash, len(q.Fields))
			}
			hash[q.Fields[i]] = text
		}
	}
	return Reply{Hash: hash}
}

// wholeError says whether an error is of the server and not of one key: a
// broken connection, or an answer that it gives to every command.
func wholeError(err error) bool {
	// What the server said while the connection was made comes wrapped.
	if _, answer := err.(redis.Error); !answer { //nolint:errorlint // Only the answer itself is meant.
		return true
	}
	for _, prefix := range []string{"NOAUTH", "WRONGPASS", "LOADING", "BUSY", "MASTERDOWN"} {
		if strings.HasPrefix(err.Error(), prefix) {
			return true
		}
	}
	return false
}

// refused marks a missing right of the user, which costs one verb.
func refused(err error) error {
	if strings.HasPrefix(err.Error(), "NOPERM") {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}

// Keys walks the database with SCAN, which may name a key twice.
func (l *live) Keys(ctx context.Context, database, pattern string, limit int, patience time.Duration, use func([]string) error) error {
	client, err := l.client(database)
	if err != nil {
		return err
	}
	hashing, seen := maphash.MakeSeed(), map[uint64]struct{}{}
	var cursor uint64
	for range maxWalk {
		tripCtx, cancel := context.WithTimeout(ctx, patience)
		page, next, err := client.Scan(tripCtx, cursor, pattern, scanCount).Result()
		cancel()
		if err != nil {
			if wholeError(err) {
				l.drop(database, client)
			}
			return refused(err)
		}
		page = slices.DeleteFunc(page, func(key string) bool {
			hash := maphash.String(hashing, key)
			_, again := seen[hash]
			seen[hash] = struct{}{}
			return again
		})
		if len(seen) > limit {
			return fmt.Errorf("%s %s: %w (%d)", database, pattern, ErrTooMany, limit)
		}
		if err := use(page); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
	return fmt.Errorf("%s %s: %w (%d)", database, pattern, ErrTooMany, maxWalk*scanCount)
}

// Time asks the server that has COUNTERS_DB.
func (l *live) Time(ctx context.Context) (time.Time, error) {
	client, err := l.client(CountersDB)
	if err != nil {
		return time.Time{}, err
	}
	t, err := client.Time(ctx).Result()
	if err != nil {
		if wholeError(err) {
			l.drop(CountersDB, client)
		}
		return t, refused(err)
	}
	return t, nil
}

// client returns the client of a database.
func (l *live) client(database string) (*redis.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.clients[database]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("database_config.json has no %s", database)
}

// drop gives up a client whose server could not be reached. A pool that failed
// to dial repeats its last error for a while without dialling: a new one finds
// the server as soon as it is back.
func (l *live) drop(database string, client *redis.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clients[database] == client {
		_ = client.Close()
		l.clients[database] = l.renew[database]()
	}
}
