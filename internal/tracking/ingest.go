package tracking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// The event protocol is described in docs/internals/tracking.md. Normally a single commit writes
// the new event, the rows it changes and its effects. The commit fails if the event is already
// stored or another process has changed a row. If the stored rows cannot decide the event, Duesday
// stores it as received with an inbox row, and decides it after Stripe has answered. A stored event
// is therefore not always applied. The commit that applies it also changes its status.

// An Origin identifies the endpoint and the source that delivered an event.
type Origin struct {
	Connect bool // the connected accounts' endpoint, where each event must name its account
	Source  Source
}

// Ingest stores an event whose signature the caller has verified. If Ingest returns nil, the event
// is durable, and either it has been applied or the inbox will apply it. Ingest returns ErrBody if
// the body is not an event, and ErrEndpoint if the event belongs to the other endpoint. It stores
// neither. After any other error the caller must ingest the event again.
func (in *intake) Ingest(ctx context.Context, body []byte, from Origin) (Verdict, error) {
	e, err := in.decode(body)
	if err != nil {
		return Verdict{}, err
	}
	told := e.StripeAccount
	e.Body, e.Source, e.Received, e.StripeAccount = withoutSecrets(body), from.Source, in.now(), cmp.Or(told, in.o.Own)
	var refused decision
	switch {
	case strings.HasPrefix(e.Type, "v2."):
		refused.set(Ignored, "events of version 2 of the API are not followed")
	case e.Live != in.o.Live:
		refused.set(Refused, "of the other mode")
	case told != "" && !isID(told, "acct_"):
		refused.set(Refused, "of no account that can be")
	case from.Connect && told == "":
		return Verdict{}, fmt.Errorf("%w: it names no connected account, but this endpoint accepts only events from connected accounts", ErrEndpoint)
	case !from.Connect && told != "" && told != in.o.Own:
		return Verdict{}, fmt.Errorf("%w: it comes from a connected account, but this endpoint accepts only the platform's own events", ErrEndpoint)
	}
	var v Verdict
	err = store.Retry(ctx, "event "+e.ID, func() (err error) {
		t := &turn{intake: in, e: &e}
		if t.decision = refused; t.status == "" {
			err = t.decide(ctx)
		}
		if errors.Is(err, errPoison) { // stored, so that Stripe does not resend it forever; the inbox retries it
			why := secret.Short(err.Error())
			in.o.Log.Error("an event could not be applied; the inbox tries again", "event", e.ID, "type", e.Type, "account", e.StripeAccount, "why", why)
			err = t.later(pendingEvent, why, 0)
		}
		if err == nil {
			v, err = t.fileNew(ctx)
		}
		return err
	})
	return v, err
}

// decode parses a body. If the decoder panics on the body, decode returns ErrBody.
func (in *intake) decode(body []byte) (e Event, err error) {
	defer func() {
		if p := recover(); p != nil {
			in.o.Log.Error("a signed webhook body could not be decoded", "bytes", len(body), "panic", p)
			err = fmt.Errorf("%w: decoding it panicked", ErrBody)
		}
	}()
	return in.o.Decode(body)
}

// finish applies a stored event unless it is final or has expired.
func (in *intake) finish(ctx context.Context, id string, by effort) error {
	return store.Retry(ctx, "event "+id, func() error {
		e, err := in.Event(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil
		case err != nil || e.Status.Final():
			return err
		}
		_, err = in.redo(ctx, e, by)
		return err
	})
}

// redo decides a stored event again, whatever its status. It skips refused events because they do
// not belong to this store.
func (in *intake) redo(ctx context.Context, e *Event, by effort) (Verdict, error) {
	if e.Status == Refused {
		return Verdict{Event: e.ID, Status: e.Status, Reason: e.Reason, Duplicate: true}, nil
	}
	told, err := in.decode(e.Body)
	if e.Erased != "" {
		err = errors.New("the event's body was erased, because it was about a person who was erased")
	}
	if err != nil {
		return Verdict{}, fmt.Errorf("%w: %w", outbox.ErrPermanent, err)
	}
	if told.Live != in.o.Live {
		return Verdict{}, fmt.Errorf("%w: the event has the other mode (test or live)", outbox.ErrPermanent)
	}
	e.Object, e.Type, e.ToldType, e.Twin = told.Object, told.Type, told.ToldType, cmp.Or(told.Twin, e.Twin)
	t := &turn{intake: in, e: e, by: by}
	defer t.end()
	if err := t.decide(ctx); err != nil {
		return Verdict{}, err
	}
	return t.file(ctx)
}

// Apply merges an object fetched from Stripe as if an event had contained it, and reports whether a
// row changed. The argument at is the connected account, or "" for our own.
func (in *intake) Apply(ctx context.Context, at string, o Object) (changed bool, err error) {
	err = in.applyFetched(ctx, at, o, nil, func(t *turn) error {
		_, err := t.file(ctx)
		changed = err == nil && len(t.writes) > 0
		return err
	})
	return changed, err
}

// applyFetched merges the object into a turn, and passes the turn to file, which stores the turn or
// returns a retryable error. importing is that of the application.
func (in *intake) applyFetched(ctx context.Context, at string, o Object, importing func(string) string, file func(*turn) error) error {
	at, o.Fetched = cmp.Or(at, in.o.Own), true
	merchant, err := in.merchantOf(ctx, at)
	if err != nil {
		return err
	}
	return store.Retry(ctx, o.Kind+" "+o.ID, func() error {
		if o.Kind == KindDispute || o.Kind == KindRefund { // they create no payment row: most concern other payments
			if _, err := in.Payment(ctx, at, o.Payment); err != nil {
				return ignoreNotFound(err)
			}
		}
		t := &turn{intake: in, by: askStripe, application: application{at: at, merchant: merchant, importing: importing}}
		if err := t.work(ctx, o); err != nil {
			return err
		}
		return file(t)
	})
}

// refresh fetches a subscription (sub_…) or a payment's dispute (pi_…/du_…) if its events leave the
// state unclear. If an event for the row was applied during the fetch, refresh tries again, because
// that event may be newer than the answer.
func (in *intake) refresh(ctx context.Context, at, id string, by effort) error {
	merchant, err := in.merchantOf(ctx, at)
	if err != nil {
		return err
	}
	n, row := need{kind: KindSubscription, id: id}, need{row: true, kind: KindSubscription, id: id}
	if payment, dispute, is := strings.Cut(id, "/"); is {
		n, row = need{kind: KindDispute, id: dispute}, need{row: true, kind: KindPayment, id: payment}
	}
	return store.Retry(ctx, n.kind+" "+n.id, func() error {
		t := &turn{intake: in, by: by, application: application{at: at, merchant: merchant, rule: rule{fresh: true}}}
		before, err := t.read(ctx, row)
		if before == nil || err != nil {
			return err
		}
		o, err := in.fetch(ctx, at, n)
		if err != nil {
			return err
		}
		if err := t.work(ctx, o); err != nil {
			return err
		}
		if !reflect.DeepEqual(t.known[row], before) {
			return fmt.Errorf("%w: an event for it was applied in the meantime", store.ErrConflict)
		}
		_, err = t.file(ctx)
		return err
	})
}
