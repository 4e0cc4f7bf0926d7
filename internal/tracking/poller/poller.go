package poller

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
)

// Run performs a round immediately and then one every Interval. It sweeps the due accounts after
// the first round and then every MaxQuiet. Run logs a failed round or sweep and tries again. It
// returns nil when ctx ends.
func (p *Poller) Run(ctx context.Context) error {
	sweeps := time.NewTimer(0)
	defer sweeps.Stop()
	for ctx.Err() == nil {
		rounds := time.NewTimer(p.o.Interval) // measured from the start of a round, so a long round does not delay the next
		if !p.o.NoRounds && !p.turn(ctx) {
			rounds.Reset(p.o.Interval / hurry)
		}
		select {
		case <-sweeps.C:
			if p.o.NoSweeps || p.sweepTurn(ctx) {
				sweeps.Reset(p.o.MaxQuiet)
			} else {
				sweeps.Reset(0) // try again after the next round
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

// turn performs one round and reports whether it succeeded.
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

// sweepTurn performs one sweep and reports whether it succeeded.
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

// Round lists the events of every due account, or of every account if all is set, and ingests the
// missing ones. If one account fails, Round reports the failure and continues with the others.
// Round returns an error only if it cannot read the registry, or if ctx ends. The next round then
// continues with the rest.
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
	// The account furthest behind comes first, because ctx may end the round early.
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
	if len(accounts) > 0 { // the oldest mark of the connected accounts
		r.report.Through = slices.MinFunc(accounts, byMark).Polled.Through
	}
	r.warn(accounts)
	return r.report, context.Cause(ctx)
}

// isDue reports whether an account is due for a round. A time beyond MaxQuiet comes from a wrong
// clock, so isDue does not wait for it.
func (p *Poller) isDue(s tracking.PollState, now time.Time) bool {
	return !s.Next.After(now) || s.Next.After(now.Add(p.o.MaxQuiet))
}

// poll lists the events of one account, ingests the missing ones, and saves the account's state.
func (r *round) poll(ctx context.Context, a *tracking.ConnectedAccount) {
	c := &catchUp{round: r, a: a, state: a.Polled, again: map[string]time.Time{}}
	err := c.run(ctx)
	c.release()
	if ctx.Err() == nil { // otherwise the next round lists them again
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

// next returns the account's state after a round. If the round finds no new event or the account
// refuses access, the wait for the next round doubles. The first refusal resets the wait to its
// minimum, because the account may grant access again soon.
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
		for range min(s.Quiet, 64) { // the stored number may come from another poller and be arbitrarily large
			wait = min(2*wait, p.o.MaxQuiet)
		}
	}
	// Shorten the wait by up to half, by a fixed fraction for each account, so that the accounts
	// are not all due at once.
	s.Next = now.Add(wait - time.Duration(hashOf(stripeAccount)%uint64(wait/2+1)))
	return s
}

func hashOf(id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id)) // never fails
	return h.Sum64()
}

// warn logs accounts that are far behind, because Stripe will soon delete their events.
func (r *round) warn(accounts []*tracking.ConnectedAccount) {
	late, oldest := 0, r.now
	var which string
	for _, a := range accounts {
		mark := cmp.Or(a.Polled.Through, a.Created)
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
