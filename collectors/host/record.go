// SPDX-License-Identifier: Apache-2.0

package host

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrNoDevice says that a host has nothing to read.
var ErrNoDevice = errors.New("no RDMA device and no NIC of a known driver")

// A Recording is what was read of a host, ready to be written as a capture.
type Recording struct {
	sys, proc  *trail
	drivers    map[string]Driver
	statistics map[string]map[string]uint64
	dcb        map[string]*DCBState
	symlink    func(root *os.Root, target, name string) error
	// Clock is that of the host at that moment.
	Clock time.Time
	// LeftOut says what is missing in the recording, and why.
	LeftOut []string
}

// A Recorder records a host, again and again. A device that hangs is asked once
// until it comes back, however many recordings are made.
type Recorder struct {
	sources  Sources
	options  Options
	patience time.Duration

	mu      sync.Mutex
	reading map[string]bool // What has not come back.
}

// NewRecorder returns a Recorder, which waits for its devices as long as its
// patience lasts.
func NewRecorder(sources Sources, options Options, patience time.Duration) *Recorder {
	return &Recorder{sources: sources, options: options, patience: patience, reading: map[string]bool{}}
}

// Record reads everything of a host that the exporter reads, once. A device
// that does not answer in time is left out, less what it said until then.
// ports are network devices that a switch speaks for.
func Record(ctx context.Context, sources Sources, options Options, ports map[string]bool, patience time.Duration) (*Recording, error) {
	return NewRecorder(sources, options, patience).Record(ctx, ports)
}

// Record does the same once more, but for the devices of which the last read
// has not come back.
func (r *Recorder) Record(ctx context.Context, ports map[string]bool) (*Recording, error) {
	clock, sources := time.Now(), r.sources
	sys, proc := newTrail(sources.Sys), newTrail(sources.Proc)
	asked := &answers{Ethtool: sources.Ethtool, DCB: sources.DCB, drivers: map[string]Driver{}, statistics: map[string]map[string]uint64{}, dcb: map[string]*DCBState{}, leftOut: map[string]string{}}
	sources = Sources{SysPath: sources.SysPath, Sys: sys, Proc: proc}
	if asked.Ethtool != nil {
		sources.Ethtool = asked
	}
	if asked.DCB != nil {
		sources.DCB = asked
	}
	reader := NewReader(sources, r.options)
	found, err := reader.List()
	found.Netdevs = slices.DeleteFunc(found.Netdevs, func(name string) bool { return ports[name] })
	if len(found.Netdevs)+len(found.RDMA) == 0 {
		if err == nil {
			err = reader.None()
		}
		return nil, err
	}
	var leftOut []string
	if err != nil {
		leftOut = append(leftOut, err.Error())
	}
	leftOut = append(leftOut, r.readDevices(ctx, reader, found)...)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	made := &Recording{sys: sys.stop("sys"), proc: proc.stop("proc"), Clock: clock, symlink: (*os.Root).Symlink}
	unanswered := asked.stop(made)
	for what, why := range unanswered {
		leftOut = append(leftOut, what+": "+why)
	}
	for name, s := range made.statistics {
		if again, err := ParseStatistics(formatStatistics(s)); err != nil || !maps.Equal(again, s) {
			leftOut = append(leftOut, name+": statistics whose names cannot be written")
		}
	}
	for _, t := range []*trail{made.sys, made.proc} {
		for what, why := range t.leftOut {
			leftOut = append(leftOut, t.name+"/"+what+": "+why)
		}
	}
	slices.Sort(leftOut)
	made.LeftOut = slices.Compact(leftOut)
	made.trim()
	return made, nil
}

// readDevices reads all devices side by side and says which did not answer.
// What hangs in the kernel cannot be ended: it is left behind.
func (r *Recorder) readDevices(ctx context.Context, reader *Reader, found Inventory) []string {
	reads := map[string]func() error{"the host itself": func() error { reader.ReadHost(); return nil }}
	for _, name := range found.Netdevs {
		reads[name] = func() error { _, err := reader.ReadNetdev(name); return err }
	}
	for _, name := range found.RDMA {
		reads["RDMA device "+name] = func() error { _, err := reader.ReadRDMA(name); return err }
	}
	type answer struct {
		of  string
		err error
	}
	answered := make(chan answer, len(reads))
	var leftOut []string
	for of, read := range reads {
		if !r.begin(of) {
			leftOut = append(leftOut, of+": it has not answered since an earlier sample")
			delete(reads, of)
			continue
		}
		go func() {
			err := read()
			r.end(of)
			answered <- answer{of, err}
		}()
	}
	deadline := time.NewTimer(r.patience)
	defer deadline.Stop()
	for len(reads) > 0 {
		select {
		case a := <-answered:
			delete(reads, a.of)
			if errors.Is(a.err, fs.ErrNotExist) || errors.Is(a.err, errReplaced) { // Other errors are those of what was asked.
				leftOut = append(leftOut, a.of+": "+a.err.Error())
			}
		case <-deadline.C:
			for of := range reads {
				leftOut = append(leftOut, fmt.Sprintf("%s: no answer within %s", of, r.patience))
			}
			return leftOut
		case <-ctx.Done():
			return leftOut
		}
	}
	return leftOut
}

// begin notes that a device is read; false: it is already.
func (r *Recorder) begin(device string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reading[device] {
		return false
	}
	r.reading[device] = true
	return true
}

func (r *Recorder) end(device string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reading, device)
}

// trim takes of files that tell of more than the NICs what is read of them.
// The addresses of modules, which root sees, are nobody's business.
func (r *Recording) trim() {
	keepLines(r.proc.files, "stat", func(line string) string {
		if strings.HasPrefix(line, "btime ") {
			return line
		}
		return ""
	})
	keepLines(r.proc.files, "modules", func(line string) string {
		name, _, _ := strings.Cut(line, " ")
		if slices.Contains(Modules(), name) {
			return name + " 0 0 - Live 0x0000000000000000\n"
		}
		return ""
	})
}

func keepLines(files map[string][]byte, name string, keep func(line string) string) {
	text, ok := files[name]
	if !ok {
		return
	}
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		kept.WriteString(keep(line))
	}
	files[name] = []byte(kept.String())
}

// Write writes what was read into the directory of a capture, all but
// meta.json.
func (r *Recording) Write(dir string) error {
	root, err := os.OpenRoot(dir) // No link leads out of it.
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for name, d := range r.drivers {
		text := fmt.Sprintf("driver: %s\nversion: %s\nfirmware-version: %s\nbus-info: %s\n", d.Name, d.Version, d.Firmware, d.Bus)
		if err := writeIn(root, path.Join("ethtool", name, "driver"), []byte(text)); err != nil {
			return err
		}
	}
	for name, s := range r.statistics {
		if err := writeIn(root, path.Join("ethtool", name, "statistics"), []byte(formatStatistics(s))); err != nil {
			return err
		}
	}
	for name, s := range r.dcb {
		if err := WriteDCB(dir, name, s); err != nil {
			return err
		}
	}
	for _, t := range []*trail{r.sys, r.proc} {
		write := t.write
		if len(t.links) > 0 && !r.holdsLinks(root) {
			write = t.writeTar
		}
		if err := write(root); err != nil {
			return err
		}
	}
	return nil
}

// holdsLinks says whether a file system can hold links by the names of /sys:
// that of a USB stick knows no links and no colon.
func (r *Recording) holdsLinks(root *os.Root) bool {
	const probe = "0000:00"
	return r.symlink(root, ".", probe) == nil && root.Remove(probe) == nil
}

func writeIn(root *os.Root, name string, data []byte) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	return root.WriteFile(name, data, 0o644)
}

// formatStatistics is what ParseStatistics reads.
func formatStatistics(s map[string]uint64) string {
	var out strings.Builder
	out.WriteString("NIC statistics:\n")
	for _, name := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&out, "     %s: %d\n", name, s[name])
	}
	return out.String()
}

// Counts counts what was recorded, by kind.
func (r *Recording) Counts() map[string]int {
	return map[string]int{
		"sys":     len(r.sys.files) + len(r.sys.links),
		"proc":    len(r.proc.files) + len(r.proc.links),
		"ethtool": len(r.drivers) + len(r.statistics),
		"dcb":     len(r.dcb),
	}
}

// A trail is a file system that keeps what is read of it, by the paths that
// remain when all links are followed.
type trail struct {
	fs.FS
	name string

	mu      sync.Mutex // Never held while something is read.
	files   map[string][]byte
	links   map[string]string
	dirs    map[string]bool
	leftOut map[string]string
}

func newTrail(files fs.FS) *trail {
	return &trail{FS: files, files: map[string][]byte{}, links: map[string]string{}, dirs: map[string]bool{}, leftOut: map[string]string{}}
}

// stop returns what was kept until now: a device that hangs may yet go on.
func (t *trail) stop(name string) *trail {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &trail{name: name, files: maps.Clone(t.files), links: maps.Clone(t.links), dirs: maps.Clone(t.dirs), leftOut: maps.Clone(t.leftOut)}
}

func (t *trail) leaveOut(name, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leftOut[name] = why
}

func (t *trail) keep(at string, data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.files[at] = data
}

// failed notes what could not be read; that a thing is not there is no failure.
func (t *trail) failed(name string, err error) {
	if isNone(err) || errors.Is(err, syscall.ENOTDIR) {
		return
	}
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	t.leaveOut(name, err.Error())
}

func (t *trail) Open(name string) (fs.File, error) {
	f, err := t.FS.Open(name)
	if err != nil {
		if isNone(err) && !errors.Is(err, fs.ErrNotExist) {
			if at, ok := t.follow(name, true); ok {
				t.keep(at, nil)
			}
		}
		t.failed(name, err)
		return nil, err
	}
	if at, ok := t.follow(name, true); ok {
		return &trailFile{File: f, trail: t, at: at}, nil
	}
	return f, nil
}

func (t *trail) Stat(name string) (fs.FileInfo, error) {
	info, err := fs.Stat(t.FS, name)
	if err != nil {
		t.failed(name, err)
		return nil, err
	}
	if at, ok := t.follow(name, true); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		if _, read := t.files[at]; info.IsDir() {
			t.dirs[at] = true
		} else if !read {
			t.files[at] = nil // That it is there is all that is asked.
		}
	}
	return info, nil
}

func (t *trail) ReadLink(name string) (string, error) {
	target, err := fs.ReadLink(t.FS, name)
	if err == nil {
		t.follow(name, false)
	}
	return target, err
}

func (t *trail) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(t.FS, name) }

// ReadDir keeps the links and directories of a directory. Its files come when
// they are read: of hundreds of counters, those that are wanted.
func (t *trail) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(t.FS, name)
	if err != nil {
		t.failed(name, err)
		if len(entries) == 0 {
			return entries, err
		}
	}
	at, ok := t.follow(name, true)
	if !ok {
		return entries, err
	}
	t.mu.Lock()
	t.dirs[at] = true
	t.mu.Unlock()
	for _, e := range entries {
		inner := path.Join(at, e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			t.follow(inner, false)
		case e.IsDir():
			t.mu.Lock()
			t.dirs[inner] = true
			t.mu.Unlock()
		}
	}
	return entries, err
}

// maxLinks is how many links a path may lead through, as the kernel has it.
const maxLinks = 40

// follow keeps the links and directories that a path leads through, and
// returns where it leads to. Whatever leaves the tree is left out: in a capture
// it would lead to the files of whoever replays it.
func (t *trail) follow(name string, last bool) (at string, ok bool) {
	at = "."
	parts := strings.Split(name, "/")
	for links := 0; len(parts) > 0; {
		part := parts[0]
		parts = parts[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if at == "." {
				t.leaveOut(name, "leads out of the tree")
				return "", false
			}
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		t.mu.Lock()
		known := t.dirs[next]
		t.mu.Unlock()
		if known {
			at = next
			continue
		}
		target, err := fs.ReadLink(t.FS, next)
		if err != nil {
			if len(parts) > 0 {
				t.mu.Lock()
				t.dirs[next] = true
				t.mu.Unlock()
			}
			at = next
			continue
		}
		if links++; links > maxLinks || path.IsAbs(target) || !within(path.Dir(next), target) {
			t.leaveOut(next, "a link that leads out of the tree: "+target)
			return "", false
		}
		t.mu.Lock()
		t.links[next] = target
		t.mu.Unlock()
		if len(parts) == 0 && !last {
			return next, true
		}
		parts = append(strings.Split(target, "/"), parts...)
	}
	return at, true
}

// within says whether a link in a directory stays beneath the root.
func within(dir, target string) bool {
	to := path.Join(dir, target)
	return to != ".." && !strings.HasPrefix(to, "../")
}

// write writes the files, and the links last: nothing is written through one.
func (t *trail) write(root *os.Root) error {
	if err := root.MkdirAll(t.name, 0o755); err != nil {
		return err
	}
	for _, dir := range slices.Sorted(maps.Keys(t.dirs)) {
		if err := root.MkdirAll(path.Join(t.name, dir), 0o755); err != nil {
			return err
		}
	}
	for name, data := range t.files {
		if err := writeIn(root, path.Join(t.name, name), data); err != nil {
			return err
		}
	}
	for name, target := range t.links {
		name = path.Join(t.name, name)
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		if err := root.Symlink(target, name); err != nil {
			return err
		}
	}
	return nil
}

// writeTar writes the same as a tar.
func (t *trail) writeTar(root *os.Root) error {
	m := NewMemory()
	var failed error
	add := func(name string, mode fs.FileMode, data []byte) { failed = cmp.Or(failed, m.Add(name, mode, data)) }
	for dir := range t.dirs {
		add(dir, fs.ModeDir|0o755, nil)
	}
	for name, data := range t.files {
		add(name, 0o644, data)
	}
	for name, target := range t.links {
		add(name, fs.ModeSymlink|0o777, []byte(target))
	}
	if failed != nil {
		return fmt.Errorf("%s.tar: %w", t.name, failed)
	}
	f, err := root.Create(t.name + ".tar")
	if err != nil {
		return err
	}
	out := tar.NewWriter(f)
	return errors.Join(out.AddFS(m), out.Close(), f.Close())
}

// A trailFile keeps what is read of it, and no more: the configuration space
// of a card goes on with its serial number.
type trailFile struct {
	fs.File
	trail *trail
	at    string
	data  []byte
}

func (f *trailFile) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	f.data = append(f.data, b[:n]...)
	switch {
	case err == nil || errors.Is(err, io.EOF):
		f.trail.keep(f.at, f.data)
	case isNone(err): // A file without a value is an empty one.
		f.trail.keep(f.at, nil)
	default:
		f.trail.failed(f.at, err)
	}
	return n, err
}

// answers keeps what the sources say that are no files.
type answers struct {
	Ethtool
	DCB

	mu         sync.Mutex
	drivers    map[string]Driver
	statistics map[string]map[string]uint64
	dcb        map[string]*DCBState
	leftOut    map[string]string
}

// stop gives what was kept until now to a recording, and returns what was not
// answered.
func (a *answers) stop(r *Recording) map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	r.drivers, r.statistics, r.dcb = maps.Clone(a.drivers), maps.Clone(a.statistics), maps.Clone(a.dcb)
	return maps.Clone(a.leftOut)
}

// note keeps an answer or says why there is none. Of several answers the last
// one counts, as for the reader.
func note[T any](a *answers, all map[string]T, what, name string, value T, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.leftOut, what+" "+name)
	switch {
	case err == nil:
		all[name] = value
	case !isNone(err):
		a.leftOut[what+" "+name] = err.Error()
	}
}

// Driver is that of Ethtool.
func (a *answers) Driver(name string) (Driver, error) {
	d, err := a.Ethtool.Driver(name)
	note(a, a.drivers, "driver of", name, d, err)
	return d, err
}

// Statistics is that of Ethtool.
func (a *answers) Statistics(name string) (map[string]uint64, error) {
	s, err := a.Ethtool.Statistics(name)
	note(a, a.statistics, "statistics of", name, s, err)
	return s, err
}

// Get is that of DCB.
func (a *answers) Get(name string) (*DCBState, error) {
	s, err := a.DCB.Get(name)
	note(a, a.dcb, "DCB of", name, s, err)
	return s, err
}
