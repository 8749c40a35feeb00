// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"syscall"
)

// fileLimit is more than any file that is read here may hold.
const fileLimit = 1 << 20

// isNone says whether an error means that a device does not have a value.
// Drivers have several ways to say so: no file, a file that cannot be read
// now (the rate without a module, the type of an empty GID), a file that never
// can be.
func isNone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errors.ErrUnsupported) ||
		errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENODATA)
}

// A tally reads small files and counts what it could not use.
type tally struct {
	files   fs.FS
	skipped *Skipped
	note    *string
}

func (t tally) remark(format string, args ...any) {
	if *t.note == "" {
		*t.note = fmt.Sprintf(format, args...)
	}
}

func (t tally) unreadable(err error) {
	t.skipped.Unreadable++
	t.remark("%v", err)
}

func (t tally) unparsable(name, text string) {
	t.skipped.Unparsable++
	t.remark("%s: %.40q", name, text)
}

// text reads a file, less blanks around its text. Without a value it is empty.
func (t tally) text(name string) string {
	text, err := readText(t.files, name)
	if err != nil && !isNone(err) {
		t.unreadable(err)
	}
	return text
}

// number reads a number that is not negative. A file without a value has none,
// and so has one that says that it is not available; kernels before 4.9 have
// "N/A (no PMA)" there.
func (t tally) number(name string) *float64 {
	text := t.text(name)
	if text == "" || strings.HasPrefix(text, "N/A") {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.unparsable(name, text)
		return nil
	}
	return new(float64(n))
}

// signed reads a number that says -1 for unknown.
func (t tally) signed(name string) *float64 {
	text := t.text(name)
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		t.unparsable(name, text)
		return nil
	case n < 0:
		return nil
	}
	return new(float64(n))
}

// list lists a directory. One that is not there is empty.
func (t tally) list(name string) []string {
	names, err := list(t.files, name)
	if err != nil && !isNone(err) {
		t.unreadable(err)
	}
	return names
}

func list(files fs.FS, name string) ([]string, error) {
	entries, err := fs.ReadDir(files, name)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func readText(files fs.FS, name string) (string, error) {
	f, err := files.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, 0, 64) // Most files hold one number; fs.ReadFile would take the page that sysfs promises.
	for len(b) < fileLimit {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := f.Read(b[len(b):cap(b)])
		first := len(b) == 0
		b = b[:len(b)+n]
		// The kernel fills what it is given as far as there is anything, if that
		// is less than a page: a short line is all, and needs no second call.
		if errors.Is(err, io.EOF) || err == nil && first && n > 0 && n < cap(b) && b[n-1] == '\n' {
			return strings.TrimSpace(string(b)), nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%s: longer than %d bytes", name, fileLimit)
}

func exists(files fs.FS, name string) bool {
	_, err := fs.Stat(files, name)
	return err == nil
}

// resolve follows the links of a path as far as there are any, and returns
// where it leads to: class/net/eth0/device is a link within a link.
func resolve(files fs.FS, name string) string {
	at := "."
	for part := range strings.SplitSeq(name, "/") {
		at = path.Join(at, part)
		if target, err := fs.ReadLink(files, at); err == nil && !path.IsAbs(target) {
			at = path.Join(path.Dir(at), target)
		}
	}
	return at
}

// newValues returns values of which there is none yet.
func newValues(wanted Fields) Values {
	values := make(Values, len(wanted))
	for i := range values {
		values[i] = math.NaN()
	}
	return values
}
