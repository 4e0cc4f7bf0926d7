package charging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// ErrWentBack is returned when the processor has charges that the store does not know, because the
// store is a copy or was restored from one.
var ErrWentBack = errors.New("the store went back in time")

// RollbackMargin is how long before the end of the last run the rollback check starts to list
// intents. The margin is needed because a run may open a charge long before it settles the charge.
const RollbackMargin = 48 * time.Hour

// CheckRollback runs the rollback check, which must pass before a subscription advances to its next
// period. It returns ErrClock if the clock is wrong. If the store went back in time, it switches
// charging off and returns ErrWentBack, because Duesday would otherwise repeat or hide the lost
// charges. refused contains the connected accounts that the check could not ask because they refuse
// our key. The caller must not open anything there.
func (c *Control) CheckRollback(ctx context.Context) (refused map[string]bool, err error) {
	places, err := c.Places(ctx)
	if err != nil {
		return nil, err
	}
	return c.checkScope(ctx, each(places))
}

// each returns one list request for each place.
func each(places []string) []processor.ListRequest {
	scope := make([]processor.ListRequest, len(places))
	for i, at := range places {
		scope[i].At = at
	}
	return scope
}

// CheckRollbackOf runs the rollback check for a command about one account. charges reports whether
// the command may charge the account or settle its periods. If it may not, and the processor knows
// the account's customer, the check only lists that customer's intents. The check then misses
// charges for a customer who was attached in the lost time, but the next command that moves money
// finds them.
func (c *Control) CheckRollbackOf(ctx context.Context, id string, charges bool) (err error) {
	payer, err := c.Payer(ctx, id)
	if err != nil {
		return err
	}
	var refused map[string]bool
	if charges || payer.Customer == "" {
		refused, err = c.CheckRollback(ctx)
	} else {
		refused, err = c.checkScope(ctx, []processor.ListRequest{{At: payer.At, Customer: payer.Customer}})
	}
	if err == nil && refused[payer.At] {
		err = fmt.Errorf("%w: Duesday could not ask %s for charges that may be missing from the store", processor.ErrAccountRefused,
			payer.At)
	}
	return err
}

// Payer returns the account's payer, or the zero Payer if there is no account.
func (c *Control) Payer(ctx context.Context, id string) (processor.Payer, error) {
	a, err := c.Account(ctx, id)
	if err != nil {
		return processor.Payer{}, billing.IgnoreNotFound(err)
	}
	return a.Payer, nil
}

func (c *Control) checkScope(ctx context.Context, scope []processor.ListRequest) (refused map[string]bool, err error) {
	if err := c.complete(ctx); err != nil {
		return nil, err
	}
	ended, err := c.CheckClock(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.checkInstallations(ctx, scope, ended); err != nil {
		return nil, err
	}
	ended = cmp.Or(ended, c.Opened.Created)
	for i := range scope {
		scope[i].Since = ended.Add(-RollbackMargin)
	}
	lost, refused, err := c.lost(ctx, scope)
	if err != nil || len(lost) == 0 {
		return refused, err
	}
	first := lost[0]
	const unknown = "the processor has %d payment intents that succeeded or were tried and that this store does " +
		"not know, the first %s (%s) for %s/%s period %d"
	tag := first.Tag
	reason := fmt.Sprintf(unknown, len(lost), first.Ref, first.State, tag.Account, tag.Subscription, tag.Period)
	if err := c.Turn(ctx, false, reason); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w: %s; charging is now off: run duesday reconcile, then duesday charging on",
		ErrWentBack, reason)
}

// complete returns an error if the outbox table is missing, because Duesday could not settle a
// charge then.
func (c *Control) complete(ctx context.Context) error {
	_, err := c.Store.Get(ctx, c.Tables.Outbox.Name, billing.MetaKey) // the outbox table has no such item
	if errors.Is(err, store.ErrMissing) {
		return fmt.Errorf("a part of the store is missing, so no one was charged: %w; to create what is missing, run duesday store "+
			"create", err)
	}
	return billing.IgnoreNotFound(err)
}

// lost returns the scope's intents that the store does not know and that have moved money or still
// may. The intents of our own account come first. refused contains the connected accounts that
// refuse our key.
func (c *Control) lost(ctx context.Context,
	scope []processor.ListRequest) (lost []processor.Intent, refused map[string]bool, err error) {
	if c.Processor == nil {
		return nil, nil, errors.New("this command needs the payment processor")
	}
	refused = map[string]bool{}
	ask := func(r processor.ListRequest) ([]processor.Intent, error) { return c.lostAt(ctx, r) }
	for i, a := range processor.AskEach(scope, ask) {
		switch at := scope[i].At; {
		case processor.Refuses(at, a.Err):
			refused[at] = true
		case a.Err != nil:
			return nil, nil, a.Err
		}
		lost = append(lost, a.Value...)
	}
	return lost, refused, nil
}

// lostAt returns the lost intents of one list request. It restarts an interrupted listing.
func (c *Control) lostAt(ctx context.Context, r processor.ListRequest) ([]processor.Intent, error) {
	return processor.Ask(ctx, func() (lost []processor.Intent, err error) {
		for in, err := range c.Processor.List(ctx, r) {
			if err != nil {
				return lost, fmt.Errorf("listing the processor's payment intents: %w", err)
			}
			if in.Tag.Installation != c.Opened.Installation || in.State == processor.Opened || in.State == processor.Canceled {
				continue
			}
			now, known, err := c.recognise(ctx, in)
			if err != nil {
				return nil, err
			}
			if !known {
				lost = append(lost, now)
			}
		}
		return lost, nil
	})
}

// recognise reports whether the store knows a tried intent, and returns the intent's current state.
// Another worker may have settled an intent that was listed as unfinished before this one read the
// store. A worker only tries a bound intent, and the intent stays bound until a worker settles it
// or the processor shows it cancelled. An intent is therefore unknown if it is still unfinished
// after the store was read without it.
func (c *Control) recognise(ctx context.Context, in processor.Intent) (now processor.Intent, known bool, err error) {
	known, err = c.Knows(ctx, in)
	if err != nil || known || in.State == processor.Succeeded {
		return in, known, err
	}
	if now, err = c.Processor.Lookup(ctx, in.Ref); err != nil {
		return in, false, fmt.Errorf("looking up payment intent %s: %w", in.Ref, err)
	}
	switch now.State {
	case processor.Canceled, processor.Opened:
		return now, true, nil
	case processor.Succeeded:
		known, err = c.Knows(ctx, now)
	}
	return now, known, err
}

// Knows reports whether the store has settled the intent or will settle it. The store knows an
// intent if the intent's period, which may be a past one, is open with this intent. The store also
// knows a successful intent if its period is past and did not end otherwise. Knows returns true for
// an unreadable subscription, because it may know the intent.
func (c *Control) Knows(ctx context.Context, in processor.Intent) (bool, error) {
	n := billing.TaggedName(in.Tag)
	s, err := c.Load(ctx, n)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if _, bad := errors.AsType[*billing.IllegibleError](err); bad {
		return true, nil // another tool wrote it; no run charges it, and every run reports it
	}
	if err != nil {
		return false, err
	}
	switch {
	case s.Open != nil && s.Open.Ref == in.Ref:
		return true, nil
	case s.Period <= in.Tag.Period || in.State != processor.Succeeded:
		return false, nil
	case s.LastCharge == in.Ref:
		return true, nil
	}
	_, err = c.Store.Get(ctx, c.Table, billing.PeriodKey(n, in.Tag.Period))
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// orphanAge is the age at which CancelOrphans cancels an unbound intent. No worker is still between
// OPEN and BIND by then, and such a worker would only open another intent.
const orphanAge = 48 * time.Hour

// CancelOrphans cancels this installation's intents that were opened more than orphanAge ago and
// never tried or bound, because a worker died between OPEN and BIND. Such intents move no money,
// but people see them. CancelOrphans lists the intents that have reached this age since a week
// before the previous run, because that run checked the older ones.
func (c *Control) CancelOrphans(ctx context.Context, previous time.Time) (canceled int, err error) {
	const week = 7 * 24 * time.Hour
	since, until := previous.Add(-orphanAge-week), c.Now().Add(-orphanAge)
	counts, err := billing.OfPlaces(ctx, c.Records, func(at string) (int, error) {
		return c.cancelOrphansAt(ctx, processor.ListRequest{At: at, Since: since, Until: until})
	})
	for _, n := range counts {
		canceled += n
	}
	return canceled, err
}

func (c *Control) cancelOrphansAt(ctx context.Context, r processor.ListRequest) (canceled int, err error) {
	for in, err := range c.Processor.List(ctx, r) {
		if err != nil {
			return canceled, fmt.Errorf("listing the processor's payment intents: %w", err)
		}
		if in.Tag.Installation != c.Opened.Installation || in.State != processor.Opened || in.Opened.IsZero() ||
			in.Opened.After(r.Until) {
			continue
		}
		bound, err := c.Knows(ctx, in)
		if err != nil {
			return canceled, err
		}
		if bound {
			continue
		}
		if _, err := c.Processor.Cancel(ctx, in.Ref); err != nil {
			return canceled, fmt.Errorf("canceling payment intent %s: %w", in.Ref, err)
		}
		canceled++
	}
	return canceled, nil
}

// Lost returns the lost intents at all places for Reconcile. refused contains the connected
// accounts that refuse our key.
func (c *Control) Lost(ctx context.Context) (lost []processor.Intent, refused map[string]bool, err error) {
	places, err := c.allPlaces(ctx)
	if err != nil {
		return nil, nil, err
	}
	return c.lost(ctx, each(places))
}

// allPlaces returns Places and every connected account, because a restored store may not know the
// latest accounts.
func (c *Control) allPlaces(ctx context.Context) ([]string, error) {
	places, err := c.Places(ctx)
	if err != nil {
		return nil, err
	}
	p, ok := c.Processor.(processor.Platform)
	if !ok {
		return places, nil
	}
	for at, err := range p.Connected(ctx) {
		if errors.Is(err, processor.ErrRefused) && len(places) == 1 { // such a key needs no such permission
			c.Log.WarnContext(ctx, "the key may not list connected accounts; this store has never used one", "error", err)
			break
		}
		if err != nil {
			return nil, fmt.Errorf("listing the connected accounts: %w", err)
		}
		if !slices.Contains(places, at) {
			places = append(places, at)
		}
	}
	return places, nil
}

// Finish cancels an unknown intent unless the intent has succeeded.
func (c *Control) Finish(ctx context.Context, in processor.Intent) (processor.Intent, error) {
	if in.State == processor.Succeeded {
		return in, nil
	}
	now, err := c.Processor.Cancel(ctx, in.Ref)
	if err == nil && now.State != processor.Succeeded && now.State != processor.Canceled {
		const undecided = "it is %s and cannot be canceled yet; run reconcile again when the processor has decided: %w"
		err = fmt.Errorf(undecided, now.State, billing.ErrState)
	}
	if err != nil {
		return in, err
	}
	return now, nil
}
