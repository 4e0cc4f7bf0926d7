package status

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
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
	lateRow     = time.Hour        // a row of the outbox; serve delivers a due one within seconds
	unverified  = 24 * time.Hour   // an account's events; serve looks every few minutes
	unread      = 7 * time.Hour    // an account whose last poll failed; a quiet one is polled every six hours
	parting     = 24 * time.Hour   // an account that was disconnected: long enough for an alarm
	unanswered  = 15 * time.Minute // requests to Stripe; serve sends some every ten minutes
	unsigned    = time.Hour        // an endpoint with nothing but wrong signatures
	leastFound  = 3                // events that only the poller finds, while no webhook comes for as long
	forgotten   = 24 * time.Hour   // a wrong signature; Stripe sends an event again within hours
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
			c.say("the oldest row has waited for %s", span(late))
		}
		if q == outbox.Mail && v.Post != "" {
			c.say("%s; %s", c.Text, v.Post)
		}
		var held outbox.Backlog
		if q == outbox.Mail && err == nil {
			held, err = o.On(outbox.Held).Backlog(ctx, 64)
		}
		switch {
		case held.Due+held.Later > 0:
			c.wrong("to send or delete them, run: "+v.Hint("outbox release")+", or "+v.Hint("outbox drop"),
				"mail is held, because a lost store may have sent it already")
		case b.Dead > 0:
			c.wrong("to see why, run: "+v.Hint(see), "%d given up", b.Dead)
		case late > lateRow:
			c.wrong("start serve, which delivers them; to see why they wait, run: "+v.Hint(see), "the oldest row has waited for %s", span(late))
		case q == outbox.Mail && v.Unsent:
			c.mark(Warning, "start serve with --smtp URL, or with --mail FOLDER if you want mail in a folder", "%s", c.Text)
		}
		return err
	}
}

type keptCheck struct {
	Check
	at time.Time
}

// keep is the look, or what it has found within Keep if that was no alarm.
func (v *view) keep(look func(context.Context, *Check) error) func(context.Context, *Check) error {
	return func(ctx context.Context, c *Check) error {
		if last, ok := v.kept.Load(c.Name); ok && v.now.Sub(last.(keptCheck).at).Abs() < v.Keep {
			*c = last.(keptCheck).Check
			return nil
		}
		err := look(ctx, c)
		if v.kept.Delete(c.Name); err == nil && c.State.rank() <= Warning.rank() {
			v.kept.Store(c.Name, keptCheck{*c, v.now})
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
	connected, late, failed, never, gone := 0, 0, 0, 0, 0
	oldest, worst, left, parted := v.now, "", "", false
	for a, err := range tracking.Accounts(ctx, v.Engine.Store, v.Engine.Tables) {
		if err != nil {
			return err
		}
		if a.Status == tracking.Disconnected {
			gone, left, parted = gone+1, a.StripeAccount, parted || v.now.Sub(a.Updated) < parting
			continue
		}
		connected++
		through, mark := cmp.Or(a.Polled.Through, a.Created), "verified through "+at(a.Polled.Through)
		if a.Polled.Through.IsZero() {
			never, mark = never+1, "never read"
		}
		if a.Polled.Error != "" {
			failed, mark = failed+1, mark+": "+a.Polled.Error
		}
		if age := v.now.Sub(through); age > unverified || a.Polled.Error != "" && (age > unread || a.Polled.Through.IsZero()) {
			if late++; worst == "" || through.Before(oldest) {
				worst = a.StripeAccount + " is " + mark
			}
		}
		oldest = slices.MinFunc([]time.Time{oldest, through}, time.Time.Compare)
	}
	if connected+gone == 0 {
		return nil
	}
	c.value("duesday_accounts", float64(connected))
	c.value("duesday_accounts_unverified", float64(late))
	c.value("duesday_accounts_failed", float64(failed))
	c.value("duesday_accounts_disconnected", float64(gone))
	c.value("duesday_accounts_verified_timestamp_seconds", seconds(oldest))
	c.say("%d connected, all verified through %s", connected, at(oldest))
	if never+failed > 0 || connected == 0 {
		c.say("%d connected, %d never read, %d failed at the last poll", connected, never, failed)
	}
	if gone > 0 {
		c.say("%s; %d disconnected, such as %s", c.Text, gone, left)
	}
	if late > 0 {
		c.wrong("to fetch missing events, run: "+v.Hint("poll"), "%d of %d not verified, for example %s; %s", late, connected, worst, c.Text)
	} else if parted {
		c.wrong("ask the merchant to connect the account at Stripe again, unless they disconnected it on purpose", "%s", c.Text)
	}
	return nil
}

// Endpoints are the webhook endpoints of a process. It is safe for concurrent use.
type Endpoints struct {
	Since  time.Time // when the process began to serve
	Polled bool      // the process also looks for missed events: wrong signatures without any may not be Stripe's

	mu   sync.Mutex
	list map[string]*endpoint // by path; guarded by mu
}

type endpoint struct {
	failures    int
	first, last time.Time // of the failures since the last good signature
	found       int       // events that the poller found since then, and Stripe made since the process began
	foundSince  time.Time // when it found the first of them
}

// at returns the endpoint of the path. e.mu must be held.
func (e *Endpoints) at(path string) *endpoint {
	if e.list == nil {
		e.list = map[string]*endpoint{}
	}
	e.list[path] = cmp.Or(e.list[path], new(endpoint))
	return e.list[path]
}

// Found records an event of that time which the poller found, although the endpoint should have received
// it before.
func (e *Endpoints) Found(path string, created, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.at(path); !created.Before(e.Since) {
		if p.found++; p.found == 1 {
			p.foundSince = now
		}
	}
}

// Note records whether a signature at the endpoint was valid.
func (e *Endpoints) Note(path string, good bool, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.at(path)
	if good {
		*p = endpoint{failures: p.failures}
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
		return nil
	}
	c.say("every endpoint receives its events, with valid signatures")
	v.Endpoints.mu.Lock()
	defer v.Endpoints.mu.Unlock()
	for path, p := range v.Endpoints.list {
		c.value("duesday_webhook_signature_failures_total", float64(p.failures), path)
		if p.last.Sub(p.first) >= unsigned && v.now.Sub(p.last) < forgotten {
			state, but := Wrong, ""
			if v.Endpoints.Polled && p.found == 0 { // anyone can send a wrong signature
				state, but = Warning, ", but no event was missed"
			}
			c.mark(state, "compare the endpoint's signing secret at Stripe with the one that serve has", "%s has received no good signature for %s%s", path,
				v.ago(p.first), but)
		} else if p.found >= leastFound && v.now.Sub(p.foundSince) >= unsigned {
			c.wrong("compare the endpoint's address, state and event types at Stripe with "+path,
				"%s has received no webhook for %s, but the poller found %d events", path, v.ago(p.foundSince), p.found)
		}
	}
	return nil
}

func (v *view) clock(_ context.Context, c *Check) error {
	if ended := v.meta.RunEnded; ended.Sub(v.now) > clockApart {
		c.wrong("correct this machine's clock with NTP; if the clock is right, run: "+v.Hint("charging on"),
			"the clock shows %s, but the last run ended at %s", at(v.now), at(ended))
		return nil
	}
	if v.Offset == nil {
		return nil
	}
	ahead, known := v.Offset()
	if !known {
		return nil
	}
	c.value("duesday_processor_clock_offset_seconds", ahead.Seconds())
	if c.say("agrees with the processor's clock"); ahead.Abs() > clockApart {
		c.wrong("correct this machine's clock with NTP", "differs from the processor's clock by %s", span(ahead))
	}
	return nil
}

// stripe is left out by a process that does not serve, and where Stripe is not followed.
func (v *view) stripe(ctx context.Context, c *Check) error {
	if v.Stripe == nil && v.Serving {
		others, err := v.others(ctx, "", false)
		if err == nil {
			v.follow(others, c)
		}
		return err
	}
	if v.Stripe == nil {
		return nil
	}
	c.say("answers and accepts the key")
	switch refused, silent := v.Stripe(ctx); {
	case refused:
		c.wrong("restart serve with a valid key", "Stripe refuses the key")
	case !silent.IsZero() && v.now.Sub(silent) >= unanswered:
		c.wrong("check status.stripe.com and this machine's network", "Stripe has not answered for %s", v.ago(silent))
	case !silent.IsZero():
		c.say("accepts the key, but did not answer %s ago", v.ago(silent))
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
		c.wrong("free disk space for "+v.Folder, "%.1f of %.1f GiB free", gib(free), gib(size))
	}
	return nil
}

// folder is left out where the store is not on this machine. What everybody may write is refused before.
func (v *view) folder(_ context.Context, c *Check) error {
	if v.Folder == "" {
		return nil
	}
	c.say("only this user can write to it")
	if errors.Is(syscall.Access(v.Folder, 2), syscall.EROFS) {
		c.wrong("check the system log, and mount the disk for writing", "%s is read-only", v.Folder)
	} else if err := socket.CheckFolder(v.Folder, socket.Group); err != nil {
		c.mark(Warning, "remove that permission as shown", "%v", err)
	}
	return nil
}

// tables is left out where the store has no tables in a database. What is weak is the operator's
// choice, and a warning.
func (v *view) tables(ctx context.Context, c *Check) error {
	if v.Tables == nil {
		return nil
	}
	wrong, weak, unknown, err := v.Tables(ctx)
	if err != nil {
		return err
	}
	found := strings.Join(slices.Concat(wrong, unknown, weak), "; ")
	switch c.say("all tables are set up as required"); {
	case len(wrong) > 0:
		c.wrong("see "+v.Hint("store describe")+"; "+v.Hint("store create")+" creates what is missing", "%s", found)
	case len(unknown) > 0:
		c.mark(Unknown, "allow this process the actions that "+v.Hint("schema iam runtime")+" lists", "%s", found)
	case len(weak) > 0:
		c.mark(Warning, "to switch it on, run: "+v.Hint("store create --point-in-time-recovery --deletion-protection"), "%s", found)
	}
	return nil
}

func gib(bytes uint64) float64 { return float64(bytes) / (1 << 30) }

// Disk returns the bytes of the folder's disk that are free for this user, and the disk's size.
func Disk(folder string) (free, size uint64, err error) {
	var s syscall.Statfs_t
	err = syscall.Statfs(folder, &s)
	return uint64(s.Bavail) * uint64(s.Bsize), uint64(s.Blocks) * uint64(s.Bsize), err
}
