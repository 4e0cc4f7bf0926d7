package tracking

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/store"
)

// An application merges one object, told by an event or fetched, into the stored rows. It reads each
// row once and changes it in memory. One commit writes all, if nobody has changed one.
type application struct {
	s *Service
	source

	// The rows: nil if not read or not stored.
	purchase     *Purchase
	payment      *Payment
	subscription *Subscription
	changed      struct{ purchase, payment, subscription bool }

	fetched bool // the payment intent, a moment ago
	asked   []Action
	refresh string // what has to be fetched: sub_…, or the dispute pi_…/du_…
}

// A source says where an object comes from, and how far it may decide.
type source struct {
	at       string // the Stripe account
	merchant string // its owner
	event    string // evt_… of the object; "" if it was fetched
	force    bool   // decide even if Stripe does not tell how a schedule ended
	fresh    bool   // the object was fetched after the row had been read
}

// A need is the error of an object whose decision needs another one from Stripe.
type need struct {
	kind string // such as KindPayment
	id   string
	of   string // sub_… of the schedule
}

func (n need) Error() string { return "Stripe has to be asked for " + n.kind + " " + n.id }

// A refusal is the error of an object that must not change anything here.
type refusal string

func (r refusal) Error() string { return string(r) }

// errPoison: the fault is in the event or in a stored row; the store works.
var errPoison = errors.New("it cannot be applied")

// apply merges one object, and decides its event. After an error the application is of no more use.
func (a *application) apply(ctx context.Context, o Object) (decision, error) {
	d, err := a.merge(ctx, o)
	if r, refused := errors.AsType[refusal](err); refused {
		return decision{status: Refused, reason: string(r)}, nil
	}
	return d, err
}

func (a *application) merge(ctx context.Context, o Object) (decision, error) {
	switch {
	case o.Tag.Installation != "" && o.Tag.Installation != a.s.o.Installation:
		return ignored(others), nil
	case o.Tag.Charge:
		return ignored("a payment that Duesday takes itself"), nil
	}
	switch o.Kind {
	case KindSubscription, KindSchedule:
		return a.applySubscription(ctx, o)
	case KindPayment:
		o.Payment = o.ID
	case KindInvoice, KindInvoicePayment, KindCharge, KindRefund, KindDispute:
	default:
		return ignored(cmp.Or(o.Kind, "its object") + " is not followed"), nil
	}
	switch {
	case o.Thin:
		return ignored("what it tells of a " + o.Kind + " is not followed"), nil
	case o.Payment != "":
		return a.applyPayment(ctx, o)
	case o.Kind == KindInvoice && o.Status == "paid" && o.Tag.Purchase != "" && o.Subscription == "":
		return applied, a.paid(ctx, o.Tag.Purchase, o, o.ID) // nothing may have been due
	}
	return ignored("no payment intent"), nil
}

// paid asks for the effects of a purchase that was paid at once, by an invoice or a payment.
func (a *application) paid(ctx context.Context, purchase string, o Object, by string) error {
	err := a.loadPurchase(ctx, purchase, o)
	if err == nil && !recurring(a.purchase.Kind) {
		a.askEffects(true, "paid "+by)
	}
	return err
}

// loadPurchase reads the purchase, or makes it: its events may come before we know it, and after
// the store has lost it. A purchase of another Stripe account is refused: its owner can write any
// purchase into the metadata.
func (a *application) loadPurchase(ctx context.Context, id string, o Object) error {
	if a.purchase != nil && a.purchase.ID == id {
		return nil
	}
	p, err := a.s.loadPurchase(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		a.purchase = &Purchase{ID: id, Merchant: a.merchant, StripeAccount: a.at, Kind: o.Tag.Kind,
			Created: cmp.Or(o.Created, a.s.now())}
		a.changed.purchase = true
		a.note(&a.purchase.History, []string{"first heard of through Stripe"})
		return nil
	case err != nil:
		return err
	case p.StripeAccount != a.at:
		return refusal("it names a purchase of another Stripe account")
	}
	a.purchase = p
	return nil
}

func (a *application) note(history *[]Change, changes []string) {
	if len(changes) == 0 {
		return
	}
	what := strings.Join(changes, "; ")
	if a.event == "" {
		what = "seen at Stripe: " + what
	}
	*history = remember(*history, Change{At: a.s.now(), What: what, Event: a.event})
}

func (a *application) trouble(text string) {
	if a.purchase.Problem == text {
		return
	}
	a.purchase.Problem = text
	a.note(&a.purchase.History, []string{text})
	a.changed.purchase = true
}

// askEffects asks for the purchase's due effects, and notes them in its history.
func (a *application) askEffects(paid bool, reason string) {
	p := a.purchase
	before := p.Unsubscribe.State
	asked := askEffects(p, paid, reason, a.s.now())
	for _, action := range asked {
		a.note(&p.History, []string{string(action) + " asked for: " + reason})
	}
	switch after := p.Unsubscribe.State; {
	case before == NotAsked && after == Waits:
		a.note(&p.History, []string{"unsubscribe waits for the fulfilment: " + reason})
	case before != NotAsked && after == NotAsked:
		a.note(&p.History, []string{"unsubscribe is withdrawn: " + reason})
	}
	if len(asked) > 0 && ofCreating(p.Problem) { // the problem is solved
		p.Problem = ""
	}
	a.asked = append(a.asked, asked...)
	a.changed.purchase = a.changed.purchase || len(asked) > 0 || before != p.Unsubscribe.State
}

// about is the subscription of the event, if known.
func (a *application) about(told string) string {
	switch {
	case told != "":
		return told
	case a.subscription != nil:
		return a.subscription.ID
	case a.payment != nil:
		return a.payment.Subscription
	}
	return ""
}

// writes are the changed rows, with the effects asked for.
func (a *application) writes() (list []store.Write) {
	t, now := &a.s.o.Tables.Tracking, a.s.now()
	if a.changed.purchase {
		list = append(list, put(t.Purchases.Name, a.purchase.fields, now))
	}
	if a.changed.payment {
		list = append(list, put(t.Payments.Name, a.payment.fields, now))
	}
	if a.changed.subscription {
		list = append(list, put(t.Subscriptions.Name, a.subscription.fields, now))
	}
	for _, action := range a.asked {
		list = append(list, a.s.ask(a.purchase, action))
	}
	if a.refresh != "" {
		list = append(list, a.s.pending(pendingRefresh, a.at+"/"+a.refresh, 0))
	}
	return list
}

// ask writes the outbox's row for an action of the purchase.
func (s *Service) ask(p *Purchase, action Action) store.Write {
	asked := p.effect(action).Asked
	due := asked
	if action == ActionUnsubscribe {
		due = due.Add(s.o.UnsubscribeAfter)
	}
	return outbox.Write(s.o.Tables.Outbox.Name, outbox.Effect{Queue: outbox.Actions, ID: string(action) + "/" + p.ID,
		Kind: string(action), Created: asked, Due: due, Data: map[string]string{pendingID: p.ID}})
}
