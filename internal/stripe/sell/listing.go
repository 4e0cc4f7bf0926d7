package sell

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
)

// ListEvents implements poller.Lister. since counts in whole seconds, rounded down. now is the
// earlier of two clocks: Stripe's, from the header of the answer in whole seconds, and ours, read
// before the request.
func (t Tracker) ListEvents(ctx context.Context, at string, since time.Time,
	each func(poller.RawEvent) error) (now time.Time, err error) {
	if err := api.CheckAt(at); err != nil {
		return time.Time{}, err
	}
	now = t.api.Now().UTC()
	answered := func(h http.Header) {
		if theirs, err := http.ParseTime(h.Get("Date")); err == nil && theirs.Before(now) {
			now = theirs.UTC()
		}
	}
	for raw, err := range t.api.Rows(ctx, at, "/v1/events", api.CreatedBetween(since, time.Time{}), answered) {
		if err != nil {
			return time.Time{}, asTracked(err)
		}
		e, err := rawEvent(at, raw)
		if err != nil {
			return time.Time{}, err
		}
		if err := each(e); err != nil {
			return time.Time{}, err
		}
	}
	return now, nil
}

// Event returns an event as ListEvents does, or ListThin if it is thin.
func (t Tracker) Event(ctx context.Context, at, id string, thin bool) ([]byte, error) {
	if err := api.CheckAt(at); err != nil {
		return nil, err
	}
	path, read := "/v1/events/", rawEvent
	if thin {
		path, read = thinEvents+"/", thinEvent
	}
	raw, err := t.api.Get(ctx, at, path+id, nil)
	if e, ok := api.Is(err, api.Invalid); ok && thin && e.Answer.Status == http.StatusNotFound {
		return nil, fmt.Errorf("%w: %s", tracking.ErrGone, e.Text)
	} else if err != nil {
		return nil, asTracked(err)
	}
	e, err := read(at, raw)
	if err == nil && e.ID != id {
		err = api.Unusable("event", "requested %s, but Stripe returned %s", id, e.ID)
	}
	return e.Body, err
}

const thinEvents = "/v2/core/events"

// ListThin implements poller.Lister. A certain refusal of the list is ErrNoThin: the account, or the
// key, has no version 2 of the API. ListEvents sees a refused account first.
func (t Tracker) ListThin(ctx context.Context, at string, since time.Time, each func(poller.RawEvent) error) error {
	if err := api.CheckAt(at); err != nil {
		return err
	}
	query := url.Values{}
	if since.Unix() > 0 {
		query.Set("created[gte]", since.UTC().Truncate(time.Second).Format(time.RFC3339))
	}
	for raw, err := range t.api.Rows(ctx, at, thinEvents, query, nil) {
		if e, ok := api.Is(err, api.Refused, api.AccountRefused, api.Gone, api.Invalid); ok {
			return fmt.Errorf("%w: %s", poller.ErrNoThin, e.Text)
		} else if err != nil {
			return asTracked(err)
		}
		e, err := thinEvent(at, raw)
		if err == nil {
			err = each(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// thinEvent is rawEvent of a thin event, whose account is the last part of its context.
func thinEvent(at string, raw json.RawMessage) (poller.RawEvent, error) {
	var e struct {
		ID      string    `json:"id"`
		Object  string    `json:"object"`
		Created time.Time `json:"created"`
		Context string    `json:"context"`
	}
	var body bytes.Buffer
	switch {
	case json.Unmarshal(raw, &e) != nil || e.Object != "v2.core.event" || !api.IsID(e.ID, "evt_") ||
		json.Compact(&body, raw) != nil:
		return poller.RawEvent{}, api.Unusable("thin event list", "it contains a %q with ID %q",
			e.Object, e.ID)
	case at != "" && e.Context != "" && e.Context != at && !strings.HasSuffix(e.Context, "/"+at):
		return poller.RawEvent{}, api.Unusable("thin event list", "%s has context %q, but the list is for %s", e.ID,
			e.Context, at)
	case at != "" && e.Context == "":
		body.Truncate(body.Len() - 1)
		body.WriteString(`,"context":"` + at + `"}`)
	}
	return poller.RawEvent{ID: e.ID, Created: e.Created.UTC(), Body: body.Bytes()}, nil
}

// rawEvent reads the members that identify an event, and takes white space out of the body. Stripe
// names the account in events for a Connect endpoint, but not always in a list asked for in its name.
func rawEvent(at string, raw json.RawMessage) (poller.RawEvent, error) {
	var e struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		Account string `json:"account"`
	}
	var body bytes.Buffer
	switch {
	case json.Unmarshal(raw, &e) != nil || e.Object != "event" || !api.IsID(e.ID, "evt_") ||
		json.Compact(&body, raw) != nil:
		return poller.RawEvent{}, api.Unusable("event list", "it contains a %q with ID %q",
			e.Object, e.ID)
	case at != "" && e.Account != "" && e.Account != at:
		return poller.RawEvent{}, api.Unusable("event list", "%s belongs to account %q, but the list is for %s", e.ID, e.Account,
			at)
	case at != "" && e.Account == "": // at the end, where it overrides a null
		body.Truncate(body.Len() - 1)
		body.WriteString(`,"account":"` + at + `"}`)
	}
	return poller.RawEvent{ID: e.ID, Created: api.Instant(e.Created), Body: body.Bytes()}, nil
}

// beforeIntent is the most by which an invoice payment is older than its payment intent.
const beforeIntent = time.Hour

// ListObjects implements poller.Lister: subscriptions first, then schedules, payment intents, and
// the disputes made up to a year before since, because a verdict and an appeal come months later.
// since counts in whole seconds, rounded down. The list of invoice payments links payments and
// invoices, for which Finder.Object would ask one by one.
func (t Tracker) ListObjects(ctx context.Context, at string, since time.Time, each func(tracking.Object) error) error {
	if err := api.CheckAt(at); err != nil {
		return err
	}
	tags := map[string]tracking.Tag{} // by subscription
	visit := func(o tracking.Object) error {
		if o.Kind == tracking.KindSubscription && o.Tag != (tracking.Tag{}) {
			tags[o.ID] = o.Tag
		}
		return each(o)
	}
	if err := t.walk(ctx, at, tracking.KindSubscription, url.Values{"status": {"all"}}, visit); err != nil {
		return err
	}
	if err := t.walk(ctx, at, tracking.KindSchedule, api.CreatedBetween(since, time.Time{}), visit); err != nil {
		return err
	}
	err := t.payments(ctx, at, since, time.Time{}, func(o tracking.Object) error {
		o.Tag = firstTag(o.Tag, tags[o.Subscription])
		return each(o)
	})
	if err != nil {
		return err
	}
	return t.walk(ctx, at, tracking.KindDispute, api.CreatedBetween(since.Add(-api.DisputesLast), time.Time{}), each)
}

// payments lists the payment intents made from since until then, with the links of their invoices. A zero
// time is no limit.
func (t Tracker) payments(ctx context.Context, at string, since, until time.Time, each func(tracking.Object) error) error {
	links, err := t.links(ctx, at, since, until)
	if err != nil {
		return asTracked(err)
	}
	return t.walk(ctx, at, tracking.KindPayment, api.CreatedBetween(since, until), func(o tracking.Object) error {
		return each(madeBy(o, links[o.ID]))
	})
}

// walk calls visit for each object of a list, which must be of the kind.
func (t Tracker) walk(ctx context.Context, at, kind string, query url.Values, visit func(tracking.Object) error) error {
	path, _ := pathOf(kind)
	for raw, err := range t.api.Rows(ctx, at, strings.TrimSuffix(path, "/"), query, nil) {
		if err != nil {
			return asTracked(err)
		}
		o, err := fetched(kind, "", raw)
		if err != nil {
			return err
		}
		if err := visit(o); err != nil {
			return err
		}
	}
	return nil
}

// links returns the invoices of the payment intents made from since until then, by intent.
func (t Tracker) links(ctx context.Context, at string, since, until time.Time) (map[string]tracking.Object, error) {
	if !since.IsZero() {
		since = since.Add(-beforeIntent)
	}
	if !until.IsZero() {
		until = until.Add(beforeIntent)
	}
	query := api.CreatedBetween(since, until)
	query.Set("expand[]", "data.invoice")
	links, ranks := map[string]tracking.Object{}, map[string]int{}
	for raw, err := range t.api.Rows(ctx, at, "/v1/invoice_payments", query, nil) {
		if err != nil {
			return nil, err
		}
		p := readInvoicePayment(raw)
		intent := linkedID(p.Payment.Intent)
		if intent == "" || p.rank() <= ranks[intent] {
			continue
		}
		invoice := tracking.Object{ID: linkedID(p.Invoice)}
		if isObject(p.Invoice) {
			if invoice, err = fetched(tracking.KindInvoice, "", p.Invoice); err != nil {
				return nil, err
			}
		}
		invoice.Attached = !p.Default
		links[intent], ranks[intent] = invoice, p.rank()
	}
	return links, nil
}
