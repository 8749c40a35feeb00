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
	mu      sync.Mutex
	running *landing[T] // nil: none.
	late    *landing[T] // Ended after a scrape had given up on it; nil: no such.
}

// A landing is what a read brings. Those who wait for it hold it, and nobody
// else: a reading is large.
type landing[T any] struct {
	done    chan struct{} // Closed when it is there.
	givenUp bool          // By a scrape, for lack of time.
	value   T
	err     error
	at      time.Time
}

// get reads the source, or shares a read. The read gets a context of its own
// with the given timeout: the scrape that began it may leave before others.
// age is 0 unless a late reading is served.
func (f *flight[T]) get(ctx context.Context, timeout time.Duration, read func(context.Context) T) (value T, age time.Duration, err error) {
	if ctx.Err() != nil {
		return value, 0, errLate
	}
	f.mu.Lock()
	if f.running != nil && f.running.givenUp {
		f.mu.Unlock()
		return value, 0, errStillReading
	}
	if l := f.late; l != nil {
		f.late = nil
		age := time.Since(l.at)
		if deadline, ok := ctx.Deadline(); ok && age < time.Until(deadline) {
			f.mu.Unlock()
			return l.value, age, l.err
		}
	}
	if f.running == nil {
		f.running = &landing[T]{done: make(chan struct{})}
		go f.run(context.WithoutCancel(ctx), f.running, timeout, read)
	}
	l := f.running
	f.mu.Unlock()

	select {
	case <-l.done:
		return l.value, 0, l.err
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running != l { // It ended this very moment.
		return l.value, 0, l.err
	}
	// A client that hung up says nothing about the source.
	l.givenUp = l.givenUp || errors.Is(ctx.Err(), context.DeadlineExceeded)
	return value, 0, errLate
}

// run reads. It may outlive the scrape that began it: a device can hang.
func (f *flight[T]) run(ctx context.Context, l *landing[T], timeout time.Duration, read func(context.Context) T) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	func() {
		defer func() {
			if p := recover(); p != nil {
				l.err = fmt.Errorf("bug: %v", p)
			}
		}()
		l.value = read(ctx)
	}()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running, l.at = nil, time.Now()
	if l.givenUp {
		f.late = l
	}
	close(l.done)
}
