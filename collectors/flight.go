// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// errStillReading says that an earlier scrape's read has not come back yet.
var errStillReading = errors.New("the read of an earlier scrape has not come back yet")

// errLate says that the source took longer than the scrape had.
var errLate = errors.New("no answer in time")

// A flight is the one read of a source that may run at a time. Scrapes that
// come while it runs wait for it and share what it brings; once one has given
// up on it, those that come later do not wait at all. What it brings too late
// is for the next scrape, if that comes soon.
type flight[T any] struct {
	mu     sync.Mutex
	landed chan struct{} // Closed when the running read has ended; nil: none runs.
	given  bool          // A scrape gave up on the running read.
	value  T
	err    error
	late   time.Time // When the read ended on which a scrape had given up; zero: no such.
}

// get reads the source, or shares a read. The read gets a context of its own
// with the given timeout: the scrape that began it may leave before others.
// age is 0 unless a late reading is served.
func (f *flight[T]) get(ctx context.Context, timeout time.Duration, read func(context.Context) T) (value T, age time.Duration, err error) {
	f.mu.Lock()
	switch {
	case f.landed != nil && f.given:
		f.mu.Unlock()
		return value, 0, errStillReading
	case f.landed == nil && !f.late.IsZero():
		age, value, err = time.Since(f.late), f.value, f.err
		f.late = time.Time{}
		if deadline, ok := ctx.Deadline(); ok && age < time.Until(deadline) {
			f.mu.Unlock()
			return value, age, err
		}
		age = 0
	}
	if f.landed == nil {
		f.landed, f.given = make(chan struct{}), false
		go f.run(context.WithoutCancel(ctx), timeout, read)
	}
	landed := f.landed
	f.mu.Unlock()

	select {
	case <-landed:
	case <-ctx.Done():
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.landed == landed { // Else it ended this very moment.
			f.given = true
			var none T
			return none, 0, errLate
		}
		return f.value, 0, f.err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.value, 0, f.err
}

// run reads. It may outlive the scrape that began it: a device can hang.
func (f *flight[T]) run(ctx context.Context, timeout time.Duration, read func(context.Context) T) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var value T
	var err error
	func() {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("bug: %v", p)
			}
		}()
		value = read(ctx)
	}()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.value, f.err = value, err
	if f.given {
		f.late = time.Now()
	}
	close(f.landed)
	f.landed = nil
}
