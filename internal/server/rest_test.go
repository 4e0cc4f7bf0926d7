package server

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/outbox"
)

// A queue is one that counts what is asked of it.
type queue struct{ rows, looks, runs, found atomic.Int64 }

func (q *queue) due(context.Context, outbox.Queue) (bool, error) {
	q.looks.Add(1)
	return q.rows.Load() > 0, nil
}

func (q *queue) drain(context.Context) (r outbox.Report, err error) {
	q.runs.Add(1)
	r.Delivered = int(q.rows.Swap(0))
	q.found.Add(int64(r.Delivered))
	return r, nil
}

// TestDrain_Rests: where looks are paid for, a drain without work looks 36 times an hour at most,
// and without reading the queue consistently. It finds a row of its own process within three
// seconds, one that it is woken for at once, and one of another process within two minutes.
func TestDrain_Rests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, puts, stop := new(queue), make(chan struct{}, 1), make(chan struct{})
		s := &Server{o: Options{Due: q.due, Clock: clock.Machine(time.Now), Log: slog.New(slog.DiscardHandler)}}
		d := s.drain("rows", "", outbox.Mail, q.drain)
		go wakeAll(stop, puts, d.put)
		go d.repeat(t.Context(), stop)
		defer synctest.Wait()
		defer close(stop)
		finds := func(what string, within time.Duration) {
			t.Helper()
			was := q.found.Load()
			time.Sleep(within)
			if synctest.Wait(); q.found.Load() != was+1 {
				t.Errorf("%s: not found within %s", what, within)
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if looks, runs := q.looks.Load(), q.runs.Load(); looks < 30 || looks > 36 || runs != 1 {
			t.Errorf("%d looks and %d runs in an idle hour", looks, runs)
		}
		q.rows.Store(1)
		finds("another process's", 2*time.Minute)
		time.Sleep(time.Hour)
		q.rows.Store(1)
		puts <- struct{}{}
		finds("one's own", time.Millisecond)
		q.rows.Store(1)
		puts <- struct{}{}
		finds("one's own after a run", drainEvery)
		time.Sleep(time.Hour)
		q.rows.Store(1)
		d.wake <- struct{}{}
		finds("a webhook's", time.Millisecond)
		was := q.runs.Load() // a payment run commits without end
		for range 600 {
			puts <- struct{}{}
			time.Sleep(100 * time.Millisecond)
		}
		if runs := q.runs.Load() - was; runs > 21 {
			t.Errorf("%d runs in a minute of commits", runs)
		}
	})
}

// TestDrain_Told: where every row that is put is told of and looks cost nothing, a drain runs at
// once, also right after another run, and every ten seconds for rows that become due. Commits
// without end do not make it run without end.
func TestDrain_Told(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, puts, stop := new(queue), make(chan struct{}, 1), make(chan struct{})
		s := &Server{o: Options{Puts: puts, Clock: clock.Machine(time.Now), Log: slog.New(slog.DiscardHandler)}}
		d := s.drain("rows", "", outbox.Actions, q.drain)
		go wakeAll(stop, puts, d.put)
		go d.repeat(t.Context(), stop)
		defer synctest.Wait()
		defer close(stop)
		runs := func(what string, within time.Duration, least, most int64) {
			t.Helper()
			was := q.runs.Load()
			time.Sleep(within)
			if synctest.Wait(); q.runs.Load()-was < least || q.runs.Load()-was > most {
				t.Errorf("%s: %d runs within %s", what, q.runs.Load()-was, within)
			}
		}
		runs("idle", time.Hour, 360, 361)
		time.Sleep(drainTold / 2)
		for _, what := range []string{"the first row", "the next row"} {
			puts <- struct{}{}
			runs(what, drainNow, 1, 1)
		}
		storm := time.AfterFunc(0, func() {
			for range 1000 {
				puts <- struct{}{}
				time.Sleep(time.Millisecond)
			}
		})
		defer storm.Stop()
		runs("rows without end", time.Second, 19, 21)
	})
}

// TestDrain_Ticks: where nothing tells of rows and looks cost nothing, a drain runs every three seconds.
func TestDrain_Ticks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, stop := new(queue), make(chan struct{})
		s := &Server{o: Options{Clock: clock.Machine(time.Now), Log: slog.New(slog.DiscardHandler)}}
		go s.drain("rows", "", outbox.Mail, q.drain).repeat(t.Context(), stop)
		defer synctest.Wait()
		defer close(stop)
		time.Sleep(time.Minute)
		if runs := q.runs.Load(); runs < 20 || runs > 21 {
			t.Errorf("%d runs in a minute", runs)
		}
	})
}
