package poller

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
)

// Run does a round at once, and then every Interval. After the first round, and then every MaxQuiet,
// it sweeps the accounts that are due for it. It returns nil when ctx ends. A failed round or sweep is
// logged and tried again.
func (p *Poller) Run(ctx context.Context) error {
	sweeps := time.NewTimer(0)
	defer sweeps.Stop()
	for ctx.Err() == nil {
		rounds := time.NewTimer(p.o.Interval) // from the start of a round: a long one does not delay the next
		if !p.o.NoRounds && !p.turn(ctx) {
			rounds.Reset(p.o.Interval / hurry)
		}
		select {
		case <-sweeps.C:
			if p.o.NoSweeps || p.sweepTurn(ctx) {
				sweeps.Reset(p.o.MaxQuiet)
			} else {
				sweeps.Reset(0) // with the next round
			}
		default:
		}
		select {
		case <-ctx.Done():
		case <-rounds.C:
		}
		rounds.Stop()
	}
	return nil
}

// turn does one round. It reports its success.
func (p *Poller) turn(ctx context.Context) bool {
	r, err := p.Round(ctx, false)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		p.o.Log.Error("a polling round failed; the poller tries again", "error", secret.Short(err.Error()))
	case r.Sent > 0 || r.Failed > 0:
		p.o.Log.Info("the poller fetched events that webhooks had not delivered", "accounts", r.Accounts, "listed", r.Listed,
			"missing", r.Missing, "sent", r.Sent, "failed", r.Failed, "verified_through", r.Through)
	default:
		p.o.Log.Debug("no event is missing", "accounts", r.Accounts, "skipped", r.Skipped, "listed", r.Listed,
			"verified_through", r.Through)
	}
	return err == nil
}

// sweepTurn does one sweep. It reports its success.
func (p *Poller) sweepTurn(ctx context.Context) bool {
	r, err := p.Sweep(ctx, false)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		p.o.Log.Error("a sweep failed; the poller tries again", "error", secret.Short(err.Error()))
	case r.Untold > 0 || r.Failed > 0:
		p.o.Log.Warn("a sweep found objects that had changed without an event", "accounts", r.Accounts, "objects", r.Objects, "changed",
			r.Changed, "without an event", r.Untold, "failed", r.Failed)
	default:
		p.o.Log.Debug("a sweep found no object that had changed without an event", "changed", r.Changed, "accounts", r.Accounts, "objects", r.Objects)
	}
	return err == nil
}

// Round lists the events of every due account, or of every account if all is set, and sends the
// missing ones. The failure of one account is in the report, and stops no other. Round returns an
// error only if it cannot read the registry, or if ctx ends; the next round asks for the rest.
func (p *Poller) Round(ctx context.Context, all bool) (Report, error) {
	r := &round{p: p, now: p.o.Now()}
	accounts, err := p.connected(ctx)
	if err != nil {
		return Report{}, err
	}
	due := slices.Clone(accounts)
	if !all {
		due = slices.DeleteFunc(due, func(a *tracking.ConnectedAccount) bool { return !p.isDue(a.Polled, r.now) })
	}
	// The account furthest behind comes first: a round may be cut short.
	slices.SortStableFunc(due, byMark)
	from := r.now
	for _, a := range due {
		if since := r.since(a); r.isShort(since) && since.Before(from) {
			from = since
		}
	}
	r.stored = sync.OnceValues(func() (map[string]struct{}, error) { return r.readDays(ctx, from) })
	r.thin = slices.ContainsFunc(accounts, func(a *tracking.ConnectedAccount) bool { return a.Polled.Thin })
	r.report.Skipped = len(accounts) - len(due)
	p.inParallel(ctx, due, r.poll)
	accounts = slices.DeleteFunc(accounts, func(a *tracking.ConnectedAccount) bool {
		return a.Status == tracking.Disconnected && a.Polled.Error != ""
	})
	if len(accounts) > 0 { // connected ones: the oldest mark
		r.report.Through = slices.MinFunc(accounts, byMark).Polled.Through
	}
	r.warn(accounts)
	return r.report, context.Cause(ctx)
}

// isDue reports whether an account is due. A time beyond MaxQuiet was set by a wrong clock.
func (p *Poller) isDue(s tracking.PollState, now time.Time) bool {
	return !s.Next.After(now) || s.Next.After(now.Add(p.o.MaxQuiet))
}

// poll lists the events of one account, sends the missing ones, and saves its state.
func (r *round) poll(ctx context.Context, a *tracking.ConnectedAccount) {
	c := &catchUp{round: r, a: a, state: a.Polled, again: map[string]time.Time{}}
	err := c.run(ctx)
	c.release()
	if ctx.Err() == nil { // else the next round asks again
		c.state = r.p.next(c.state, a.StripeAccount, r.now, c.news, err)
		err = errors.Join(err, c.save(ctx))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &r.report
	t.Accounts++
	t.Listed, t.Missing, t.Sent = t.Listed+c.listed, t.Missing+c.found, t.Sent+c.sent
	if err == nil || a.Status == tracking.Disconnected && errors.Is(err, tracking.ErrDisconnected) {
		return
	}
	if t.Failed++; len(t.Failures) < maxFailures {
		t.Failures = append(t.Failures, Failure{a.StripeAccount, secret.Short(err.Error())})
		r.p.o.Log.Warn("the poller could not verify an account's events", "stripe_account", a.StripeAccount, "error",
			secret.Short(err.Error()))
	}
}

// next returns the state after a round. Each round without events, or that the account refuses,
// doubles the wait for the next. The first refusal waits for the shortest time: access may come
// back in a moment.
func (p *Poller) next(s tracking.PollState, stripeAccount string, now time.Time, news bool,
	err error) tracking.PollState {
	wait, refused := p.o.Interval, errors.Is(err, tracking.ErrDisconnected)
	if refused && s.Error == "" {
		s.Quiet = 0
	}
	s.Error = ""
	if err == nil || dayOf(s.Checked).Equal(dayOf(now)) {
		s.Checked = now
	}
	if err != nil {
		s.Error = secret.Short(err.Error())
	}
	switch {
	case err != nil && !refused:
	case err == nil && news:
		s.Quiet = 0
	default:
		s.Quiet++
		for range min(s.Quiet, 64) { // a poller elsewhere may have told any number
			wait = min(2*wait, p.o.MaxQuiet)
		}
	}
	// Earlier by up to half, always the same for one account: not all at once.
	s.Next = now.Add(wait - time.Duration(hashOf(stripeAccount)%uint64(wait/2+1)))
	return s
}

func hashOf(id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id)) // never fails
	return h.Sum64()
}

// warn logs late accounts: soon Stripe will not list their events any more.
func (r *round) warn(accounts []*tracking.ConnectedAccount) {
	late, oldest := 0, r.now
	var which string
	for _, a := range accounts {
		mark := a.Polled.Through
		if mark.IsZero() {
			mark = a.Created
		}
		if r.now.Sub(mark) > alarmAfter {
			late++
			if mark.Before(oldest) {
				oldest, which = mark, a.StripeAccount
			}
		}
	}
	if late > 0 {
		r.p.o.Log.Warn("events have not been verified for more than 20 days; Stripe deletes them after 30",
			"accounts", late, "oldest", which, "verified_through", oldest)
	}
}
