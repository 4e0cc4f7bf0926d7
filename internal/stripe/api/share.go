package api

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// A share is the file by which processes have one budget. It holds each pace as the last of them has
// left it. A process changes it under a lock for microseconds, before each request to Stripe.
//
// A file rather than the holder of the store's folder grants the requests: it needs no connection,
// and goes on when the holder ends.
//
//   - A process is killed with the lock: the kernel releases it.
//   - A process stands still with the lock: after lockPatience the others go on without the file.
//   - The file is damaged or lost, or the disk is full: each process knows its own requests, and the
//     next to write starts the file anew.
//   - The wall clock steps back: instants that no process can have meant are left out.
//   - Processes have different rates: each request takes the interval of its own process.
//   - The machine stops: nothing of the file is needed later, so it is not synced.
type share struct {
	mu      sync.Mutex // the lock is the file's, and so the process's
	file    *os.File
	blocked time.Time // since when another process has the lock; guarded by mu
}

const (
	lockPatience = time.Second
	lockEvery    = time.Millisecond
	maxShare     = 1 << 20 // bytes
	longestSlot  = 2 * time.Second
)

// openShare returns nil for an empty path.
func openShare(path string) (*share, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("stripe: budget of requests: %w", err)
	}
	return &share{file: f}, nil
}

func (s *share) close() error {
	if s == nil {
		return nil
	}
	return s.file.Close()
}

// change lets the change see the pace as all processes have left it, and writes it back. It returns
// false, and changes nothing, while another process has the lock. The caller holds p.mu.
func (s *share) change(p *pace, now time.Time, change func()) bool {
	if s == nil {
		change()
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if syscall.Flock(int(s.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		if s.blocked.IsZero() {
			s.blocked = now
		}
		if now.Sub(s.blocked) < lockPatience {
			return false
		}
		change()
		return true
	}
	defer syscall.Flock(int(s.file.Fd()), syscall.LOCK_UN)
	s.blocked = time.Time{}
	all := map[string]record{}
	text, err := io.ReadAll(io.NewSectionReader(s.file, 0, maxShare))
	if err != nil || json.Unmarshal(text, &all) != nil {
		clear(all)
	}
	p.merge(all[p.name], now)
	change()
	all[p.name] = p.record
	if text, err = json.Marshal(all); err == nil {
		if _, err = s.file.WriteAt(text, 0); err == nil {
			_ = s.file.Truncate(int64(len(text))) // else the file is damaged
		}
	}
	return true
}

// merge takes what is later in the record, if a clock that was not set back can have written it.
func (p *pace) merge(r record, now time.Time) {
	if p.Next.Sub(now) > longestSlot {
		p.Next = now
	}
	if p.Until.Sub(now) > longestAsked {
		p.Until = now
	}
	if r.Next.Sub(now) <= longestSlot {
		p.Next = later(p.Next, r.Next)
	}
	if r.Until.Sub(now) <= longestAsked {
		p.Until = later(p.Until, r.Until)
	}
	if r.Cut.After(p.Cut) && !r.Cut.After(now) && r.Rate > 0 {
		p.Cut, p.Rate = r.Cut, min(r.Rate, p.full)
	}
}
