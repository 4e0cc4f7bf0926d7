package poller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/tracking"
)

// pollStart is noon, so that the date only changes if a test advances the clock far enough.
var pollStart = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// A pollEvent is an event in Stripe.
type pollEvent struct {
	id      string
	account string
	created time.Time // whole seconds
	visible time.Time // from when on Stripe lists it
	thin    bool      // it is in the list of thin events alone
	about   string    // its body; "": its id
}

// A pollWorld simulates Stripe and the service for a poller.
type pollWorld struct {
	mu        sync.Mutex
	stripe    time.Time     // Stripe's clock
	skew      time.Duration // of ours
	accounts  []*tracking.ConnectedAccount
	events    []pollEvent // in the order in which they were made
	objects   map[string][]tracking.Object
	stored    map[string]pollEvent // by id: processed, or on the way
	sent      []string             // ids, in the order in which they were taken
	wrong     []string             // what must not happen
	queries   []tracking.EventQuery
	asked     []string             // accounts that were listed, and since when
	askedThin []string             // accounts whose thin events were listed
	since     map[string]time.Time // of the last listing of events, by account
	swept     map[string]time.Time // of the last listing of objects, by account
	applied   []string
	saves     []tracking.PollState
	blind     bool // the account index shows nothing yet
	alone     bool // one account is served at a time, so that nothing is saved after the end
	unsorted  bool // Stripe lists events as they were made, whatever they say of when

	// fail returns the error to inject, or is nil to inject none. The caller holds mu.
	fail func(op, account string) error
	// between runs after each page of a list. The caller holds mu.
	between func(account string)
}

const pollPage = 3

func newPollWorld(accounts ...string) *pollWorld {
	w := &pollWorld{stripe: pollStart, stored: map[string]pollEvent{}, objects: map[string][]tracking.Object{},
		since: map[string]time.Time{}, swept: map[string]time.Time{}}
	for _, a := range accounts {
		w.register(a)
	}
	return w
}

func (w *pollWorld) register(account string) {
	w.accounts = append(w.accounts,
		&tracking.ConnectedAccount{StripeAccount: account, Own: account == "acct_own", Created: w.stripe,
			Status: tracking.Connected})
}

func (w *pollWorld) poller(change ...func(*Options)) *Poller {
	o := Options{Ledger: w, Lister: w, Now: func() time.Time {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.stripe.Add(w.skew)
	}}
	for _, c := range change {
		c(&o)
	}
	return New(o)
}

// happen creates an event that Stripe lists only after the delay late.
func (w *pollWorld) happen(account string, at time.Time, late time.Duration) pollEvent {
	e := pollEvent{fmt.Sprintf("evt_%s_%03d", account, len(w.events)), account, at.Truncate(time.Second), at.Add(late),
		false, ""}
	w.events = append(w.events, e)
	return e
}

// happenThin creates a thin event.
func (w *pollWorld) happenThin(account string, at time.Time) pollEvent {
	e := w.happen(account, at, 0)
	e.thin = true
	w.events[len(w.events)-1] = e
	return e
}

func (w *pollWorld) state(account string) *tracking.PollState {
	i := slices.IndexFunc(w.accounts, func(a *tracking.ConnectedAccount) bool { return a.StripeAccount == account })
	return &w.accounts[i].Polled
}

func (w *pollWorld) broken(op, account string) error {
	if w.fail == nil {
		return nil
	}
	return w.fail(op, account)
}

func (w *pollWorld) ConnectedAccounts(ctx context.Context) iter.Seq2[*tracking.ConnectedAccount, error] {
	return func(yield func(*tracking.ConnectedAccount, error) bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, a := range w.accounts {
			if err := cmp.Or(ctx.Err(), w.broken("accounts", "")); err != nil {
				yield(nil, err)
				return
			}
			if !yield(new(*a), nil) {
				return
			}
		}
	}
}

func (w *pollWorld) Events(ctx context.Context, q tracking.EventQuery) iter.Seq2[tracking.EventRow, error] {
	return func(yield func(tracking.EventRow, error) bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queries = append(w.queries, q)
		if q.StripeAccount == "" && !dayOf(q.From).Equal(dayOf(q.To.Add(-1))) || !q.From.Before(q.To) {
			w.wrong = append(w.wrong, fmt.Sprintf("the time index was asked for %v to %v", q.From, q.To))
		}
		rows := slices.SortedFunc(maps.Values(w.stored), func(a, b pollEvent) int { return a.created.Compare(b.created) })
		for _, e := range rows {
			if q.StripeAccount != "" && (w.blind || e.account != q.StripeAccount) || e.created.Before(q.From) ||
				!e.created.Before(q.To) {
				continue
			}
			if err := cmp.Or(ctx.Err(), w.broken("events", q.StripeAccount)); err != nil {
				yield(tracking.EventRow{}, err)
				return
			}
			if !yield(tracking.EventRow{ID: e.id, StripeAccount: e.account, At: e.created}, nil) {
				return
			}
		}
	}
}

func (w *pollWorld) SavePoll(ctx context.Context, account string, p tracking.PollState) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.alone && ctx.Err() != nil {
		w.wrong = append(w.wrong, account+" is saved after the end")
	}
	if err := cmp.Or(ctx.Err(), w.broken("save", account)); err != nil {
		return err
	}
	s := w.state(account)
	if p.Through.Before(s.Through) || p.Through.After(w.stripe) {
		w.wrong = append(w.wrong, fmt.Sprintf("%s: from %v through %v at %v", account, s.Through, p.Through, w.stripe))
	}
	for _, e := range w.events {
		if _, ok := w.stored[e.id]; e.account == account && e.created.Before(p.Through) && !ok &&
			!e.visible.After(w.stripe) && e.created.After(w.stripe.Add(-stripeKeeps)) && !e.created.Before(s.Through) {
			w.wrong = append(w.wrong, fmt.Sprintf("%s: through %v, and %s of %v is not stored", account, p.Through, e.id,
				e.created))
		}
	}
	*s = p
	w.saves = append(w.saves, p)
	return nil
}

func (w *pollWorld) Apply(ctx context.Context, at string, o tracking.Object) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := cmp.Or(ctx.Err(), w.broken("apply", cmp.Or(at, "acct_own")+"/"+o.ID)); err != nil {
		return false, err
	}
	w.applied = append(w.applied, at+"/"+o.ID)
	return o.Status == "changed", nil
}

func (w *pollWorld) Ingest(ctx context.Context, body []byte, from tracking.Origin) (v tracking.Verdict, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.events, func(e pollEvent) bool { return e.id == string(body) })
	if i < 0 {
		w.wrong = append(w.wrong, fmt.Sprintf("sent %q", body))
		return v, errors.New("no such event")
	}
	e := w.events[i]
	if _, ok := w.stored[e.id]; ok {
		w.wrong = append(w.wrong, e.id+" was sent, and is stored")
	}
	if from != (tracking.Origin{Connect: e.account != "acct_own", Source: tracking.FromPoll}) {
		w.wrong = append(w.wrong, fmt.Sprintf("%s was sent as %+v", e.id, from))
	}
	if err := cmp.Or(ctx.Err(), w.broken("send", e.account)); err != nil {
		return v, err
	}
	w.stored[e.id] = e
	w.sent = append(w.sent, e.id)
	return v, w.broken("reply", e.account)
}

func (w *pollWorld) ListThin(ctx context.Context, at string, since time.Time, each func(RawEvent) error) error {
	w.mu.Lock()
	w.askedThin = append(w.askedThin, cmp.Or(at, "acct_own"))
	err := w.broken("thin", cmp.Or(at, "acct_own"))
	w.mu.Unlock()
	if err != nil {
		return err
	}
	return w.list(ctx, at, since, true, each)
}

func (w *pollWorld) ListEvents(ctx context.Context, at string, since time.Time, each func(RawEvent) error) (time.Time,
	error) {
	account := cmp.Or(at, "acct_own")
	w.mu.Lock()
	now := w.stripe.Truncate(time.Second)
	w.asked, w.since[account] = append(w.asked, account), since
	w.mu.Unlock()
	if err := w.list(ctx, at, since, false, each); err != nil {
		return time.Time{}, err
	}
	return now, w.page(ctx, account)
}

func (w *pollWorld) list(ctx context.Context, at string, since time.Time, thin bool, each func(RawEvent) error) error {
	account := cmp.Or(at, "acct_own")
	w.mu.Lock()
	var list []pollEvent
	for _, e := range slices.Backward(w.events) {
		if e.thin == thin && e.account == account && !e.visible.After(w.stripe) && !e.created.Before(since.Truncate(time.Second)) &&
			e.created.After(w.stripe.Add(-stripeKeeps)) {
			list = append(list, e)
		}
	}
	w.mu.Unlock()
	if !w.unsorted {
		slices.SortStableFunc(list, func(a, b pollEvent) int { return b.created.Compare(a.created) })
	}
	buffer := []byte("evt_whatever, as a page is read into one buffer, and that is used again")
	for i, e := range list {
		if i%pollPage == 0 {
			if err := w.page(ctx, account); err != nil {
				return err
			}
		}
		if err := each(RawEvent{ID: e.id, Created: e.created, Body: buffer[:copy(buffer, cmp.Or(e.about, e.id))]}); err != nil {
			return fmt.Errorf("a page: %w", err)
		}
	}
	return nil
}

func (w *pollWorld) page(ctx context.Context, account string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.between != nil {
		w.between(account)
	}
	return cmp.Or(ctx.Err(), w.broken("list", account))
}

func (w *pollWorld) ListObjects(ctx context.Context, at string, since time.Time,
	each func(tracking.Object) error) error {
	account := cmp.Or(at, "acct_own")
	w.mu.Lock()
	w.asked, w.swept[account] = append(w.asked, account), since
	w.mu.Unlock()
	for _, o := range w.objects[account] {
		if err := w.page(ctx, account); err != nil {
			return err
		}
		if err := each(o); err != nil {
			return fmt.Errorf("a page: %w", err)
		}
	}
	return w.page(ctx, account)
}

// ListFollowed is not needed here: package tracking tests imports on the fake of Stripe.
func (w *pollWorld) ListFollowed(context.Context, string, time.Time, time.Time, time.Time, func(tracking.Object, string) error) error {
	return errors.New("nothing is imported")
}

// check fails the test if something wrong has happened.
func (w *pollWorld) check(t interface {
	Helper()
	Errorf(string, ...any)
}) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.wrong {
		t.Errorf("%s", text)
	}
	w.wrong = nil
}

// round runs a round that must succeed for all accounts.
func (w *pollWorld) round(t *testing.T, p *Poller, all bool) Report {
	t.Helper()
	r, err := p.Round(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	w.check(t)
	if held := p.held.Load(); held != 0 {
		t.Errorf("%d bytes are held after the round", held)
	}
	return r
}

// dice inject faults that do not depend on the order of the accounts.
func dice(seed uint64, percent map[string]int) func(op, account string) error {
	each := map[string]*rand.Rand{}
	return func(op, account string) error {
		d := each[account]
		if d == nil {
			d = rand.New(rand.NewPCG(seed, hashOf(account)))
			each[account] = d
		}
		if d.IntN(100) < percent[op] {
			return fmt.Errorf("%s fails, as the dice say", op)
		}
		return nil
	}
}
