package screen

import (
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Progress is a progress bar on a terminal. The zero value shows nothing. Any goroutine may set
// its counts.
type Progress struct {
	out   io.Writer // nil if there is no terminal
	what  string    // plural noun, such as "rows"
	begun time.Time
	Done  atomic.Int64
	Total atomic.Int64 // 0 if unknown
	stop  chan struct{}
	ended sync.WaitGroup
}

// End removes the bar from the terminal.
func (b *Progress) End() {
	if b.out != nil {
		close(b.stop)
		b.ended.Wait()
	}
}

// line returns the text of the bar after the elapsed time.
func (b *Progress) line(elapsed time.Duration) string {
	done, total := b.Done.Load(), b.Total.Load()
	rate := float64(done) / elapsed.Seconds()
	text := fmt.Sprintf("%d %s, %.0f/s", done, b.what, rate)
	if total <= 0 || done <= 0 {
		return text
	}
	share := min(1, float64(done)/float64(total))
	full := int(share * progressWidth)
	left := time.Duration(float64(max(0, total-done)) / rate * float64(time.Second))
	return fmt.Sprintf("[%s%s] %3.0f%%  %s, %s left", strings.Repeat("#", full), strings.Repeat(".", progressWidth-full),
		share*100, text, left.Round(time.Second))
}

func (b *Progress) show(count func(<-chan struct{}) int64) {
	select {
	case <-b.stop:
		return
	case <-time.After(progressAfter):
	}
	if count != nil {
		b.ended.Go(func() {
			done := b.Done.Load() // count only counts the remaining items
			if left := count(b.stop); left > 0 {
				b.Total.Store(done + left)
			}
		})
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		fmt.Fprintf(b.out, "\r\x1b[K%s", b.line(time.Since(b.begun)))
		select {
		case <-b.stop:
			fmt.Fprint(b.out, "\r\x1b[K")
			return
		case <-tick.C:
		}
	}
}

const (
	progressAfter = time.Second // shorter tasks do not show a bar
	progressEvery = 200 * time.Millisecond
	progressWidth = 30
)

// Progress starts a progress bar on standard error if standard error is a terminal. If count is not
// nil, Progress calls it when the bar appears. count returns the number of remaining items, and
// must return early when stop is closed.
func (s *Screen) Progress(what string, total int64, count func(stop <-chan struct{}) int64) *Progress {
	if !s.TTY(s.Err) || s.Env("TERM") == "dumb" {
		return new(Progress)
	}
	b := &Progress{out: s.Err, what: what, begun: time.Now(), stop: make(chan struct{})}
	b.Total.Store(total)
	b.ended.Go(func() { b.show(count) })
	return b
}

// CountUntil counts a sequence for a progress bar. It returns 0 if the sequence fails or stop is
// closed.
func CountUntil[T any](seq iter.Seq2[T, error], stop <-chan struct{}) int64 {
	n := int64(0)
	for _, err := range seq {
		select {
		case <-stop:
			return 0
		default:
		}
		if err != nil {
			return 0
		}
		n++
	}
	return n
}
