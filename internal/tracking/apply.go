package tracking

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// An application merges objects into copies of the stored rows. It is pure: it reads no clock and no
// store. If it lacks a row or an object, apply returns an unread or a need, and changes nothing that
// counts: the caller gets the row or the object, and applies all objects again.
type application struct {
	at           string // the Stripe account
	merchant     string // its owner
	event        string // evt_… of the object; "" if it was fetched
	installation string
	noted        time.Time // when it is applied
	rule
	known map[unread]any // the rows as they were read: *Purchase, *Payment or *Subscription, or nil if there is none

	outcome
}

// An outcome is the result of an application: the decision, and the changed rows with their effects.
type outcome struct {
	decision
	purchase     *Purchase // nil: not needed; so are the other two
	payment      *Payment
	subscription *Subscription
	changed      struct{ purchase, payment, subscription bool }

	fetched bool // the payment intent, a moment ago
	asked   []Action
	refetch string // what has to be fetched: sub_…, or the dispute pi_…/du_…
}

// A decision is the new status of an event, and the reason for people.
type decision struct {
	status EventStatus
	reason string
	// foreign: Stripe says that the payment is not ours. mark says how much Stripe could tell.
	foreign bool
	mark    string
}

func (d *decision) set(status EventStatus, reason string) {
	*d = decision{status: status, reason: reason}
}

// An unread is the error of an application that needs a row of this kind.
type unread struct{ kind, id string }

func (u unread) Error() string { return "the row of " + u.kind + " " + u.id + " has to be read" }

// rowOfPurchase is the kind of a purchase's row. The others have the kind of their object.
const rowOfPurchase = "purchase"

// A need is the error of an application that needs another object from Stripe.
type need struct {
	kind string // such as KindPayment
	id   string
	of   string // sub_… of the schedule
}

func (n need) Error() string { return "Stripe has to be asked for " + n.kind + " " + n.id }

// A refusal is the error of an object that must not change anything here.
type refusal string

func (r refusal) Error() string { return string(r) }

var (
	// errPoison: the fault is in the event or in a stored row; the store works.
	errPoison = errors.New("it cannot be applied")
	// errUndecided: Stripe was asked, and does not tell enough, or not yet.
	errUndecided = errors.New("what Stripe tells does not decide it yet")
)

// apply merges objects about one payment or subscription. The outcome is the last object's, or that of
// a fetched one that is foreign.
func (a *application) apply(objects []Object) error {
	a.outcome = outcome{}
	for i, o := range objects {
		a.decision = decision{}
		err := a.merge(o)
		if r, refused := errors.AsType[refusal](err); refused {
			a.set(Refused, string(r))
			err = nil
		}
		last := i == len(objects)-1
		if _, lacks := errors.AsType[need](err); lacks && !last { // the fetched object does not tell either
			return fmt.Errorf("%s %s: %w", o.Kind, o.ID, errUndecided)
		}
		if err != nil || a.status != Applied {
			return err
		}
	}
	return nil
}

func (a *application) merge(o Object) error {
	if o.Kind == KindPayment {
		o.Payment = o.ID
	}
	switch {
	case o.Tag.Installation != "" && o.Tag.Installation != a.installation:
		a.decision = decision{status: Ignored, reason: "made by another installation", foreign: true, mark: markedLinked}
	case o.Tag.Charge:
		a.set(Ignored, "a payment that Duesday takes itself")
	case o.Kind == KindSubscription || o.Kind == KindSchedule:
		return a.applySubscription(o)
	case !slices.Contains([]string{KindPayment, KindInvoice, KindInvoicePayment, KindCharge, KindRefund, KindDispute}, o.Kind):
		a.set(Ignored, cmp.Or(o.Kind, "its object")+" is not followed")
	case o.Thin:
		a.set(Ignored, "what it tells of a "+o.Kind+" is not followed")
	case o.Payment != "":
		return a.applyPayment(o)
	case o.Kind == KindInvoice && o.Status == "paid" && o.Tag.Purchase != "" && o.Subscription == "":
		a.set(Applied, "")
		return a.paid(o.Tag.Purchase, o, o.ID) // nothing may have been due
	default:
		a.set(Ignored, "no payment intent")
	}
	return nil
}

// row returns a copy of the stored row, or nil if there is none.
func row[T any](a *application, kind, id string) (*T, error) {
	stored, read := a.known[unread{kind, id}]
	if !read {
		return nil, unread{kind, id}
	}
	there, _ := stored.(*T)
	if there == nil {
		return nil, nil
	}
	c := *there
	return &c, nil
}

// needPurchase gets the purchase's row, or makes it: its events may come before we know it, and after
// the store has lost it. A purchase of another Stripe account is refused: its owner can write any
// purchase into the metadata.
func (a *application) needPurchase(id string, o Object) error {
	if a.purchase != nil && a.purchase.ID == id {
		return nil
	}
	p, err := row[Purchase](a, rowOfPurchase, id)
	switch {
	case err != nil:
		return err
	case p == nil:
		p = &Purchase{ID: id, Merchant: a.merchant, StripeAccount: a.at, Kind: o.Tag.Kind, Created: cmp.Or(o.Created, a.noted)}
		a.changed.purchase = true
		a.note(&p.History, "first heard of through Stripe")
	case p.StripeAccount != a.at:
		return refusal("it names a purchase of another Stripe account")
	}
	p.Subscriptions = maps.Clone(p.Subscriptions)
	a.purchase = p
	return nil
}

func (a *application) note(history *[]Change, changes ...string) {
	if len(changes) == 0 {
		return
	}
	what := strings.Join(changes, "; ")
	if a.event == "" {
		what = "seen at Stripe: " + what
	}
	*history = remember(*history, Change{At: a.noted, What: what, Event: a.event})
}

func (a *application) trouble(text string) {
	if a.purchase.Problem == text {
		return
	}
	a.purchase.Problem = text
	a.note(&a.purchase.History, text)
	a.changed.purchase = true
}

// paid asks for the effects of a purchase that was paid at once, by an invoice or a payment.
func (a *application) paid(purchase string, o Object, by string) error {
	err := a.needPurchase(purchase, o)
	if err == nil && !recurring(a.purchase.Kind) {
		a.askEffects(true, "paid "+by)
	}
	return err
}

// askEffects asks for the purchase's due effects, and notes them in its history.
func (a *application) askEffects(paid bool, reason string) {
	p := a.purchase
	before := p.Unsubscribe.State
	asked := askEffects(p, paid, reason, a.noted)
	for _, action := range asked {
		a.note(&p.History, string(action)+" asked for: "+reason)
	}
	switch after := p.Unsubscribe.State; {
	case before == NotAsked && after == Waits:
		a.note(&p.History, "unsubscribe waits for the fulfilment: "+reason)
	case before != NotAsked && after == NotAsked:
		a.note(&p.History, "unsubscribe is withdrawn: "+reason)
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
