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
//
// Who reads may differ: a flight outlives a configuration. What one brings is
// for none that reads otherwise, but they wait for it.
type flight[T any] struct {
	mu      sync.Mutex
	running *landing[T] // nil: none.
	late    *landing[T] // Ended after a scrape had given up on it; nil: no such.
}

// A landing is what a read brings. Those who wait for it hold it, and nobody
// else: a reading is large.
type landing[T any] struct {
	by      any           // Who reads.
	done    chan struct{} // Closed when it is there.
	givenUp bool          // By a scrape, for lack of time.
	value   T
	err     error
	at      time.Time
}

// get reads the source, or shares a read. The read gets a context of its own
// with the given timeout: the scrape that began it may leave before others.
// age is 0 unless a late reading is served.
func (f *flight[T]) get(ctx context.Context, timeout time.Duration, by any, read func(context.Context) T) (value T, age time.Duration, err error) {
	for {
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
			if deadline, ok := ctx.Deadline(); ok && age < time.Until(deadline) && l.by == by {
				f.mu.Unlock()
				return l.value, age, l.err
			}
		}
		if f.running == nil {
			f.running = &landing[T]{by: by, done: make(chan struct{})}
			go f.run(context.WithoutCancel(ctx), f.running, timeout, read)
		}
		l := f.running
		f.mu.Unlock()

		select {
		case <-l.done:
		case <-ctx.Done():
			if f.giveUp(ctx, l) {
				return value, 0, errLate
			}
		}
		if l.by == by {
			return l.value, 0, l.err
		}
	}
}

// giveUp leaves a read that goes on; false: it ended this very moment.
func (f *flight[T]) giveUp(ctx context.Context, l *landing[T]) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running != l {
		return false
	}
	// A client that hung up says nothing about the source.
	l.givenUp = l.givenUp || errors.Is(ctx.Err(), context.DeadlineExceeded)
	return true
}

// reads says whether a read goes on.
func (f *flight[T]) reads() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running != nil
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
