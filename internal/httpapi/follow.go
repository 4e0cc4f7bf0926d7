package httpapi

import (
	"context"
	"errors"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// A Record reads the stored Stripe events and the progress of polling.
type Record interface {
	Events(ctx context.Context, q tracking.EventQuery) iter.Seq2[tracking.EventRow, error]
	Event(ctx context.Context, id string) (*tracking.Event, error)
	Undecided(ctx context.Context, after string) iter.Seq2[*tracking.Event, error]
	Quarantined(ctx context.Context, after tracking.Mark) iter.Seq2[*tracking.Event, error]
	ConnectedAccounts(ctx context.Context) iter.Seq2[*tracking.ConnectedAccount, error]
}

// eventQuery returns what the parameters ask for.
func (q *question) eventQuery() (tracking.EventQuery, error) {
	from, wrongFrom := q.time("from")
	to, wrongTo := q.time("to")
	if wrongFrom == nil && wrongTo == nil && q.Has("to") && !to.After(from) {
		wrongTo = field.Wrong("to", "must be after from")
	}
	err := errors.Join(q.formed("stripe_account", "subscription", "type"), wrongFrom, wrongTo, q.oneOf("details", "true", "false"),
		q.oneOf("status", "waiting", "dead", "quarantined"), q.oneOf("source", "webhook", "poll"), q.oneOf("order", "oldest", "newest"))
	if q.Has("status") && (q.Has("subscription") || q.Has("from") || q.Has("to")) {
		err = errors.Join(err, field.Wrong("status", "cannot be combined with subscription, from or to"))
	}
	return tracking.EventQuery{StripeAccount: q.Get("stripe_account"), Subscription: q.Get("subscription"), From: from, To: to, After: q.after,
		Whole: true, Details: q.Has("source") || q.Get("details") == "true", Newest: q.Get("order") == "newest"}, err
}

// events finds the events that the parameters select: it queries one index, the inbox or the quarantine, and filters the
// rows.
func (s *server) events(q *question) (of rows[tracking.EventRow], err error) {
	merchant, notSeen := q.merchant()
	e, err := q.eventQuery()
	err = errors.Join(notSeen, err)
	seen := map[string]bool{} // the merchant's Stripe accounts
	if err == nil && merchant != "" {
		for a, failed := range s.o.Record.ConnectedAccounts(q.ctx) {
			if err = failed; err == nil && a.Merchant == merchant {
				seen[a.StripeAccount] = true
			}
		}
		if e.StripeAccount == "" && len(seen) == 1 {
			e.StripeAccount = slices.Collect(maps.Keys(seen))[0]
		}
	}
	kind, source, at := q.Get("type"), tracking.Source(q.Get("source")), e.StripeAccount
	if nothing := merchant != "" && (len(seen) == 0 || at != "" && !seen[at]); nothing || err != nil {
		of.all = sequence.Of[tracking.EventRow](nil)
		return of, err
	}
	if e.Subscription != "" {
		e.StripeAccount = ""
	}
	return rows[tracking.EventRow]{s.eventsOf(q, e), func(row tracking.EventRow) bool {
		return (kind == "" || row.Type == kind) && (merchant == "" || seen[row.StripeAccount]) && (at == "" || row.StripeAccount == at) &&
			(source == "" || row.Source == source) && (q.Get("status") != "dead" || row.Status == tracking.Dead)
	}}, nil
}

// eventsOf finds the events of the query, or the quarantined events, or those in the inbox.
func (s *server) eventsOf(q *question, e tracking.EventQuery) iter.Seq2[tracking.EventRow, error] {
	row := func(e *tracking.Event) (tracking.EventRow, error) { return e.Row(), nil }
	switch q.Get("status") {
	case "":
		return s.o.Record.Events(q.ctx, e)
	case string(tracking.Quarantined):
		return sequence.Map(s.o.Record.Quarantined(q.ctx, q.after), row)
	default:
		return sequence.Map(s.o.Record.Undecided(q.ctx, q.after.ID), row)
	}
}

// oneOf returns an error if the parameter is present and none of the values.
func (q *question) oneOf(name string, values ...string) error {
	if !q.Has(name) || slices.Contains(values, q.Get(name)) {
		return nil
	}
	return field.Wrong(name, "must be one of "+strings.Join(values, ", "))
}

// formed returns an error for each parameter that is present but cannot be an ID or a type.
func (q *question) formed(names ...string) (err error) {
	for _, name := range names {
		if q.Has(name) && !idForm.MatchString(strings.ReplaceAll(q.Get(name), ".", "_")) {
			err = errors.Join(err, field.Wrong(name, "must be 1 to 255 letters, digits, and the characters . _ -"))
		}
	}
	return err
}

// time returns the parameter's time, or the zero time if the parameter is absent.
func (q *question) time(name string) (t time.Time, err error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err = time.Parse(layout, q.Get(name)); err == nil && t.UTC().Year() >= 1970 && t.UTC().Year() <= 9999 {
			return t.UTC(), nil
		}
	}
	if !q.Has(name) {
		return time.Time{}, nil
	}
	return t, field.Wrong(name, "must be a time such as 2026-03-15T10:30:00Z, or a date such as 2026-03-15")
}

// showEvent omits the event's body, which contains the buyer's personal data.
func (s *server) showEvent(w http.ResponseWriter, r *web.Request) error {
	e, err := s.o.Record.Event(r.Context(), r.PathValue("event"))
	return show(w, r, e, view.Event, func() string { return e.Merchant }, err)
}

func markMerchant(a *tracking.ConnectedAccount) tracking.Mark {
	return tracking.Mark{StripeAccount: a.StripeAccount}
}

// merchants yields the registered Stripe accounts by ID, with the poller's progress.
func (s *server) merchants(q *question) (of rows[*tracking.ConnectedAccount], err error) {
	merchant, err := q.merchant()
	if err != nil {
		return of, err
	}
	return rows[*tracking.ConnectedAccount]{s.o.Record.ConnectedAccounts(q.ctx), func(a *tracking.ConnectedAccount) bool {
		return a.StripeAccount > q.after.StripeAccount && (merchant == "" || a.Merchant == merchant)
	}}, nil
}
