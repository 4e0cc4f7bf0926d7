package status

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/socket"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

// From when on a part is wrong.
const (
	lateRow     = time.Hour      // a row of the outbox; serve delivers a due one within seconds
	unverified  = 24 * time.Hour // an account's events; serve looks every few minutes
	unsigned    = time.Hour      // an endpoint with nothing but wrong signatures
	forgotten   = 24 * time.Hour // a wrong signature; Stripe sends an event again within hours
	clockApart  = 5 * time.Minute
	leastFree   = 1 << 30 // bytes of a disk
	leastFreeOf = 20      // one part in this many
)

func (v *view) queue(q outbox.Queue, name, see string) func(context.Context, *Check) error {
	return func(ctx context.Context, c *Check) error {
		o := outbox.New(v.Engine.Store, v.Engine.Tables.Outbox, func() time.Time { return v.now }, nil, nil).On(q)
		b, err := o.Backlog(ctx, 64)
		if errors.Is(err, store.ErrMissing) {
			return nil
		}
		late := time.Duration(0)
		if !b.Oldest.IsZero() {
			late = v.now.Sub(b.Oldest)
		}
		c.value("duesday_outbox_oldest_age_seconds", late.Seconds(), name)
		c.value("duesday_outbox_dead_letters", float64(b.Dead), name)
		c.say("nothing is late")
		if late > 0 {
			c.say("the oldest row waits for %s", span(late))
		}
		var held outbox.Backlog
		if q == outbox.Mail && err == nil {
			held, err = o.On(outbox.Held).Backlog(ctx, 64)
		}
		switch {
		case held.Due+held.Later > 0:
			c.wrong("send or delete them: "+v.Hint("outbox release")+", or "+v.Hint("outbox drop"),
				"mails are held: a lost store may have sent them")
		case b.Dead > 0:
			c.wrong("see why: "+v.Hint(see), "%d given up", b.Dead)
		case late > lateRow:
			c.wrong("see why: "+v.Hint(see)+"; a running serve delivers", "the oldest row waits for %s", span(late))
		}
		return err
	}
}

// accounts is left out where nothing that Stripe runs is followed.
func (v *view) accounts(ctx context.Context, c *Check) error {
	if _, _, err := tracking.Pinned(ctx, v.Engine.Store, v.Engine.Tables); errors.Is(err, store.ErrNotFound) ||
		errors.Is(err, store.ErrMissing) {
		return nil
	}
	oldest, which, failed := v.now, "", ""
	connected, late := 0, 0
	for a, err := range tracking.Accounts(ctx, v.Engine.Store, v.Engine.Tables) {
		if err != nil {
			return err
		}
		if a.Status == tracking.Disconnected {
			continue
		}
		connected++
		through := a.Polled.Through
		if through.IsZero() {
			through = a.Created
		}
		if v.now.Sub(through) > unverified {
			late++
		}
		if through.Before(oldest) {
			oldest, which, failed = through, a.StripeAccount, a.Polled.Error
		}
	}
	if connected == 0 {
		return nil
	}
	c.value("duesday_accounts", float64(connected))
	c.value("duesday_accounts_unverified", float64(late))
	c.value("duesday_accounts_verified_timestamp_seconds", seconds(oldest))
	c.say("%d connected, all verified through %s", connected, at(oldest))
	if late > 0 {
		if failed != "" {
			failed = ": " + failed
		}
		c.wrong("look for missing events: "+v.Hint("poll"), "%d of %d not verified for a day; %s is verified through %s%s", late,
			connected, which, at(oldest), failed)
	}
	return nil
}

// Endpoints are the signatures at a process's webhook endpoints. It is safe for concurrent use.
type Endpoints struct {
	mu   sync.Mutex
	list map[string]*endpoint // by path; guarded by mu
}

type endpoint struct {
	failures    int
	first, last time.Time // of the failures since the last good signature
}

// Note notes a signature at the endpoint.
func (e *Endpoints) Note(path string, good bool, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.list == nil {
		e.list = map[string]*endpoint{}
	}
	p := e.list[path]
	if p == nil {
		p = &endpoint{}
		e.list[path] = p
	}
	if good {
		p.first, p.last = time.Time{}, time.Time{}
		return
	}
	p.failures++
	if now.Sub(p.last) > forgotten {
		p.first = now
	}
	p.last = now
}

func (v *view) webhooks(_ context.Context, c *Check) error {
	if v.Endpoints == nil {
		c.say("not known: the process that serves counts their signatures; see /metrics")
		return nil
	}
	c.say("no endpoint has failing signatures")
	v.Endpoints.mu.Lock()
	defer v.Endpoints.mu.Unlock()
	for path, p := range v.Endpoints.list {
		c.value("duesday_webhook_signature_failures_total", float64(p.failures), path)
		if p.last.Sub(p.first) >= unsigned && v.now.Sub(p.last) < forgotten {
			c.wrong("compare its signing secret at Stripe with that of serve", "no good signature at %s for %s", path,
				v.ago(p.first))
		}
	}
	return nil
}

func (v *view) clock(_ context.Context, c *Check) error {
	c.say("the processor's is not known")
	if v.Offset == nil {
		return nil
	}
	ahead, known := v.Offset()
	if !known {
		return nil
	}
	c.value("duesday_processor_clock_offset_seconds", ahead.Seconds())
	if c.say("agrees with the processor's"); ahead.Abs() > clockApart {
		c.wrong("set this machine's clock right, by NTP", "%s from the processor's", span(ahead))
	}
	return nil
}

// stripe is left out by a process that does not serve.
func (v *view) stripe(ctx context.Context, c *Check) error {
	if v.Refused == nil {
		return nil
	}
	if c.say("takes the key"); v.Refused(ctx) {
		c.wrong("give serve a valid key, and start it again", "refuses the key")
	}
	return nil
}

// disk is left out where the store is not on this machine.
func (v *view) disk(_ context.Context, c *Check) error {
	if v.Folder == "" {
		return nil
	}
	free, size, err := v.Disk(v.Folder)
	if err != nil {
		return err
	}
	c.value("duesday_disk_free_bytes", float64(free))
	c.value("duesday_disk_size_bytes", float64(size))
	c.say("%.1f of %.1f GiB free", gib(free), gib(size))
	if free < leastFree || free < size/leastFreeOf {
		c.wrong("make room on the disk of "+v.Folder, "%.1f of %.1f GiB free", gib(free), gib(size))
	}
	return nil
}

// folder is left out where the store is not on this machine. What everybody may write is refused before.
func (v *view) folder(_ context.Context, c *Check) error {
	if v.Folder == "" {
		return nil
	}
	c.say("this user's alone")
	if err := socket.CheckFolder(v.Folder, socket.Group); err != nil {
		c.mark(Warning, "take that right away, as shown", "%v", err)
	}
	return nil
}

func gib(bytes uint64) float64 { return float64(bytes) / (1 << 30) }

// Disk returns the bytes of the folder's disk: those free for this user, and all.
func Disk(folder string) (free, size uint64, err error) {
	var s syscall.Statfs_t
	err = syscall.Statfs(folder, &s)
	return uint64(s.Bavail) * uint64(s.Bsize), uint64(s.Blocks) * uint64(s.Bsize), err
}
