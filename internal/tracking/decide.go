package tracking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/store"
)

// A decision is the new status of an event, and the rows stored with it in one commit.
type decision struct {
	status EventStatus
	reason string
	writes []store.Write
	mark   string // of a foreign payment: markedLinked, markedPaid or ""
}

// applied is the decision about a merged object, before its writes are known.
var applied = decision{status: Applied}

func ignored(reason string) decision { return decision{status: Ignored, reason: reason} }

// later leaves the event to the inbox.
func (s *Service) later(e *Event, kind, reason string, wait time.Duration) decision {
	return decision{status: Received, reason: reason, writes: []store.Write{s.pending(kind, e.ID, wait)}}
}

// An effort says by which means an event may be decided.
type effort int

const (
	fromStore effort = iota // by stored rows; the inbox decides the rest
	askStripe               // by asking Stripe as well
	anew                    // as askStripe, also for a payment that was seen to be foreign
	forced                  // as anew; a schedule without a known end was cancelled
)

// decide decides an event, and fills in its merchant and subscription. A panic is an errPoison.
func (s *Service) decide(ctx context.Context, e *Event, by effort) (d decision, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: it panicked: %v", errPoison, p)
		}
	}()
	if s.settles(e) {
		return s.decideCharge(ctx, e, by)
	}
	e.Merchant, err = s.merchantOf(ctx, e.StripeAccount)
	isOwn := e.StripeAccount == s.o.Own
	switch {
	case e.names() && (err == nil || errors.Is(err, ErrUnregistered) && isOwn):
		return s.decideThin(ctx, e, by)
	case errors.Is(err, ErrUnregistered) && isOwn && e.Object.Tag.Purchase == "":
		return ignored("our own account sells nothing here"), nil
	case errors.Is(err, ErrUnregistered):
		return decision{status: Quarantined, reason: "the Stripe account is not registered",
			writes: s.quarantine(e.StripeAccount, e.ID)}, nil
	case err != nil:
		return decision{}, err
	case strings.HasPrefix(e.Type, "account.application."):
		return s.decideConnection(ctx, e, by)
	}
	from := source{at: e.StripeAccount, merchant: e.Merchant, event: e.ID, force: by == forced}
	var a *application
	if by == fromStore {
		a = &application{s: s, source: from}
		d, err = a.apply(ctx, e.Object)
		if n, undecided := errors.AsType[need](err); undecided {
			if is, err := s.isForeign(ctx, e); is || err != nil {
				return ignored(notOurs), err
			}
			return s.later(e, pendingEvent, n.Error(), 0), nil
		}
	} else if a, d, err = s.applyAsking(ctx, from, e.Object); errors.Is(err, ErrGone) {
		return ignored(gone), nil
	}
	switch {
	case err == nil && d.status == Applied:
		e.Subscription = a.about(e.Subscription)
		d.writes = a.writes()
	case err == nil && d.status == "":
		err = fmt.Errorf("%w: no status was decided", errPoison)
	}
	return d, err
}

const gone = "Stripe has no such object any more"

// settles reports whether the event is about a payment intent of billing's.
func (s *Service) settles(e *Event) bool {
	return e.Object.Kind == KindPayment && e.Object.Tag.Charge && e.Object.Tag.Installation == s.o.Installation &&
		s.o.Settler != nil
}

// decideCharge has billing settle its payment intent.
func (s *Service) decideCharge(ctx context.Context, e *Event, by effort) (decision, error) {
	if by == fromStore {
		return s.later(e, pendingCharge, "for billing to settle", settleWait), nil
	}
	tag := e.Object.Tag
	err := s.o.Settler.Heard(ctx, tag.ChargeAccount, tag.ChargeSubscription, e.Object.ID)
	return decision{status: Applied, reason: "settled by billing"}, err
}

// decideConnection asks Stripe whether we have access: the order of its events is unknown.
func (s *Service) decideConnection(ctx context.Context, e *Event, by effort) (decision, error) {
	if by == fromStore {
		return s.later(e, pendingEvent, "to be looked at", 0), nil
	}
	status := Connected
	err := s.o.Finder.Connected(ctx, e.StripeAccount)
	switch {
	case errors.Is(err, ErrDisconnected):
		status = Disconnected
		s.o.Log.Warn("a Stripe account has disconnected", "account", e.StripeAccount)
	case err != nil:
		return decision{}, err
	}
	_, err = s.connection(ctx, e.StripeAccount, status)
	return decision{status: Applied, reason: string(status)}, err
}

// file stores the event and the decision in one commit. Its row must be as it was read.
func (s *Service) file(ctx context.Context, e *Event, d decision) (Verdict, error) {
	if err := s.noteThin(ctx, e, d.status); err != nil {
		return Verdict{}, err
	}
	condition := store.Absent()
	if e.was != nil {
		condition = *e.was
	}
	if e.Twin != "" && e.ToldType == "" && d.status.Final() {
		d.reason = cmp.Or(d.reason, "the same as "+e.Twin+", which came before")
	}
	filed := *e
	filed.Status, filed.Reason, filed.Applied = d.status, d.reason, time.Time{}
	if d.status.Final() {
		filed.Applied = s.now()
	}
	it, err := filed.item()
	if err != nil {
		return Verdict{}, err
	}
	if err = s.commit(ctx, append([]store.Write{store.Put(s.events, it, condition)}, d.writes...)...); err != nil {
		return Verdict{}, err
	}
	if len(d.writes) > 0 {
		s.nudge()
	}
	return Verdict{Event: e.ID, Status: d.status, Reason: d.reason, Created: e.Created}, nil
}

// A foreign payment is the merchant's own: of a registered account, and of no purchase here. Stripe
// is asked for it once, by the first of its events. A mark in the events' table, of an id and an
// expiration alone and in no index, decides its other events, also after a restart. A mark lasts as
// long as an event, so there are never more of them than events.
