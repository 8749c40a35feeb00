// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// reader is a source that answers after a while.
type reader struct {
	takes  time.Duration
	begun  atomic.Int32
	hang   bool
	answer int
}

func (r *reader) read(ctx context.Context) int {
	r.begun.Add(1)
	if r.hang {
		time.Sleep(r.takes) // A device that hangs does not look at the context.
	} else {
		select {
		case <-time.After(r.takes):
		case <-ctx.Done():
		}
	}
	r.answer++
	return r.answer
}

func scrape(t *testing.T, f *flight[int], r *reader, deadline time.Duration) (int, time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	return f.get(ctx, 10*time.Second, nil, r.read)
}

func TestTwoScrapesShareOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f flight[int]
		r := &reader{takes: time.Second}
		second := make(chan int)
		go func() {
			time.Sleep(500 * time.Millisecond)
			v, _, _ := scrape(t, &f, r, 5*time.Second)
			second <- v
		}()
		first, age, err := scrape(t, &f, r, 5*time.Second)
		if first != 1 || age != 0 || err != nil || <-second != 1 || r.begun.Load() != 1 {
			t.Errorf("got %d %v %v after %d reads, want the same of one", first, age, err, r.begun.Load())
		}
		if v, _, _ := scrape(t, &f, r, 5*time.Second); v != 2 {
			t.Errorf("the next scrape got %d, want a reading of its own", v)
		}
	})
}

func TestAClientThatHangsUpDoesNotCancelForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f flight[int]
		r := &reader{takes: time.Second}
		gone, hangUp := context.WithCancel(t.Context())
		go f.get(gone, 10*time.Second, nil, r.read)
		synctest.Wait()
		time.AfterFunc(100*time.Millisecond, hangUp)
		if v, _, err := scrape(t, &f, r, 5*time.Second); v != 1 || err != nil {
			t.Errorf("%d %v", v, err)
		}
	})
}

func TestAHangUpIsNoGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f flight[int]
		r := &reader{takes: time.Second}
		gone, hangUp := context.WithCancel(t.Context())
		go f.get(gone, 10*time.Second, nil, r.read)
		synctest.Wait()
		hangUp()
		synctest.Wait()
		if v, age, err := scrape(t, &f, r, 5*time.Second); v != 1 || age != 0 || err != nil {
			t.Errorf("%d %v %v, want the read that goes on", v, age, err)
		}
	})
}

func TestALateReadingIsServedOnceWhileItIsYoung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f flight[int]
		r := &reader{takes: 3 * time.Second}
		if _, _, err := scrape(t, &f, r, time.Second); !errors.Is(err, errLate) {
			t.Errorf("%v, want errLate", err)
		}
		begin := time.Now()
		if _, _, err := scrape(t, &f, r, time.Second); !errors.Is(err, errStillReading) || time.Since(begin) != 0 {
			t.Errorf("%v after %v, want errStillReading at once", err, time.Since(begin))
		}
		time.Sleep(2500 * time.Millisecond)
		if v, age, err := scrape(t, &f, r, time.Second); v != 1 || age != 500*time.Millisecond || err != nil {
			t.Errorf("%d %v %v, want the late reading, half a second old", v, age, err)
		}
		if _, _, err := scrape(t, &f, r, time.Second); !errors.Is(err, errLate) || r.begun.Load() != 2 {
			t.Errorf("%v after %d reads, want a new read", err, r.begun.Load())
		}
		time.Sleep(5 * time.Second)
		if v, age, err := scrape(t, &f, &reader{answer: 6}, time.Second); v != 7 || age != 0 || err != nil {
			t.Errorf("%d %v %v, want a new reading: the late one is too old", v, age, err)
		}
	})
}

func TestADeviceThatHangsCostsOneGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f flight[int]
		r := &reader{takes: time.Minute, hang: true}
		for range 20 {
			if _, _, err := scrape(t, &f, r, time.Second); err == nil {
				t.Error("want an error")
			}
			time.Sleep(time.Second)
		}
		if r.begun.Load() != 1 {
			t.Errorf("%d reads, want the one that hangs", r.begun.Load())
		}
		time.Sleep(time.Minute)
		if v, _, err := scrape(t, &f, &reader{answer: 6}, time.Second); v != 7 || err != nil {
			t.Errorf("%d %v, want it to have come back", v, err)
		}
	})
}

// A reload: what one configuration reads is not for the next, which waits for
// it all the same.
func TestAReadOfAnotherConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f flight[int]
		before, after := &reader{takes: time.Second}, &reader{takes: time.Second, answer: 100}
		get := func(r *reader, deadline time.Duration) (int, error) {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			v, _, err := f.get(ctx, 10*time.Second, r, r.read)
			return v, err
		}
		go get(before, 5*time.Second)
		synctest.Wait()
		begin := time.Now()
		if v, err := get(after, 5*time.Second); v != 101 || err != nil || time.Since(begin) != 2*time.Second {
			t.Errorf("%d %v after %v, want a read of its own once the other is done", v, err, time.Since(begin))
		}
		before.takes, before.hang = 3*time.Second, true
		if _, err := get(before, time.Second); !errors.Is(err, errLate) {
			t.Error(err)
		}
		if _, err := get(after, time.Second); !errors.Is(err, errStillReading) || after.begun.Load() != 1 {
			t.Errorf("%v after %d reads, want none beside one that hangs", err, after.begun.Load())
		}
		time.Sleep(2500 * time.Millisecond)
		if v, err := get(after, 5*time.Second); v != 102 || err != nil {
			t.Errorf("%d %v, want a read of its own", v, err)
		}
	})
}

func TestAPanicOfAReaderIsAnError(t *testing.T) {
	var f flight[int]
	if _, _, err := f.get(t.Context(), time.Second, nil, func(context.Context) int { panic("index") }); err == nil {
		t.Error("want an error")
	}
	if v, _, err := f.get(t.Context(), time.Second, nil, func(context.Context) int { return 7 }); v != 7 || err != nil {
		t.Errorf("%d %v", v, err)
	}
}
