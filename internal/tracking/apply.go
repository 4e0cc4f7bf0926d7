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
// store. If it lacks a row or an object, apply returns a need: the caller gets it, and applies
// all objects again.
type application struct {
	at           string // the Stripe account
	merchant     string // its owner
	event        string // evt_… of the object; "" if it was fetched
	installation string
	noted        time.Time // when it is applied
	rule
	known map[need]any // the rows as they were read: *Purchase, *Payment or *Subscription, or nil if there is none

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

// A need is the error of an application that needs a row, or another object from Stripe.
type need struct {
	row  bool
	kind string // such as KindPayment, or rowOfPurchase
	id   string
	of   string // sub_… of the schedule
}

// rowOfPurchase is the kind of a purchase's row. The others have the kind of their object.
const rowOfPurchase = "purchase"

func (n need) Error() string { return "Stripe has to be asked for " + n.kind + " " + n.id }

// A refusal is the error of an object that must not change anything here.
type refusal string

func (r refusal) Error() string { return string(r) }

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
		if n, lacks := errors.AsType[need](err); lacks && !n.row && !last { // the fetched object does not tell either
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
	n := need{row: true, kind: kind, id: id}
	stored, read := a.known[n]
	if !read {
		return nil, n
	}
	there, is := stored.(*T)
	if !is {
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

// maxSubscriptions is the most subscriptions in one purchase's item.
const maxSubscriptions = 100

func (a *application) applySubscription(o Object) error {
	id := o.ID
	if o.Kind == KindSchedule {
		id = cmp.Or(o.Subscription, o.ID)
	}
	if err := a.needSubscription(id, o); err != nil || a.status != "" {
		return err
	}
	sub, before := a.subscription, *a.subscription
	changes, undecided, ask := mergeSubscription(sub, o, a.rule)
	a.set(Applied, "")
	changed := a.changed.subscription || len(changes) > 0 || ask || sub.differs(&before)
	if !changed && !undecided && !ended(o.Status) && before.Ending == "" { // as most renewals
		return nil
	}
	if err := a.needPurchase(sub.Purchase, o); err != nil {
		return err
	}
	switch {
	case a.purchase.Kind == SplitPayment && o.Kind == KindSubscription && ended(o.Status) &&
		before.Schedule == "" && o.Schedule == "" && !a.force: // an old event, which names no schedule
		return need{kind: KindSubscription, id: id}
	case undecided:
		return need{kind: KindSchedule, id: cmp.Or(sub.Schedule, o.Schedule), of: id}
	case ask:
		a.refetch = sub.ID
	}
	a.note(&sub.History, changes...)
	a.changed.subscription = changed
	a.changed.purchase = mergeSubscriptionState(a.purchase, sub) || a.changed.purchase
	a.troubleOf(sub, before.Status, o)
	a.askEffects(false, cmp.Or(string(sub.Ending), string(sub.Status))+" "+sub.ID)
	return nil
}

// needSubscription gets the subscription's row, or makes that of a purchase's subscription. It decides
// the event if the subscription is not ours.
func (a *application) needSubscription(id string, o Object) (err error) {
	switch {
	case a.subscription != nil && a.subscription.ID == id:
		return nil
	case a.changed.subscription:
		return fmt.Errorf("%w: one commit would write two subscriptions, %s and %s", errPoison, a.subscription.ID, id)
	}
	if a.subscription, err = row[Subscription](a, KindSubscription, id); err != nil || a.subscription != nil {
		return err
	}
	if o.Tag.Purchase == "" {
		a.set(Ignored, "not tracked")
		return nil
	}
	if err := a.needPurchase(o.Tag.Purchase, o); err != nil {
		return err
	}
	if len(a.purchase.Subscriptions) >= maxSubscriptions { // the owner of the Stripe account writes its metadata
		return refusal("the purchase has too many subscriptions")
	}
	a.subscription = &Subscription{ID: id, StripeAccount: a.at, Merchant: a.merchant, Purchase: o.Tag.Purchase,
		Status: SubscriptionNew, Created: cmp.Or(o.Created, a.noted)}
	a.changed.subscription = true
	return nil
}

// troubleOf notes a subscription that is active although its buyer has nothing any more.
func (a *application) troubleOf(sub *Subscription, before SubscriptionStatus, o Object) {
	if sub.Ending == EndSetting && a.fresh && o.Status == "active" && before == SubscriptionTerminated {
		a.trouble("subscription " + sub.ID + " is active again at Stripe, " +
			"after it had ended here because it was not paid: decide what the buyer gets")
	}
	unsubscribed := a.purchase.Unsubscribe.State == DoneWith || a.purchase.Unsubscribe.State == Begun
	if sub.Status == SubscriptionActive && before != SubscriptionActive && unsubscribed {
		a.trouble("subscription " + sub.ID + " is active, " +
			"and the buyer was unsubscribed when the others had ended: decide what the buyer gets")
	}
}

func (a *application) applyPayment(o Object) error {
	if err := a.needPayment(o); err != nil || a.status != "" {
		return err
	}
	p, before := a.payment, a.payment.Status
	a.fetched = a.fetched || o.Kind == KindPayment && o.Fetched
	if o.Kind == KindInvoicePayment && o.Status == "paid" && p.Status != PaymentPaid && !a.fetched {
		return need{kind: KindPayment, id: p.ID} // its own events may have come before this link
	}
	if p.attached && o.Kind == KindPayment && o.Fetched && !o.Attached {
		p.attached, a.changed.payment = false, true
	}
	changes, ask := mergePayment(p, o, a.fresh)
	a.note(&p.History, changes...)
	if a.changed.payment = a.changed.payment || len(changes) > 0 || ask; ask {
		a.refetch = p.ID + "/" + o.ID
	}
	a.set(Applied, "")
	by, settled := p.ID, o.Kind == KindInvoice && o.Status == "paid" // perhaps by other means than this payment
	if settled {
		by = o.ID
	}
	paid := p.Status == PaymentPaid && (before != PaymentPaid || a.changed.payment)
	// The payment of a subscription's invoice fulfils nothing: the subscription does. Nor does a part of an
	// invoice, which tells when it is paid.
	if p.Subscription != "" || !settled && (!paid || p.attached) {
		return nil
	}
	return a.paid(p.Purchase, Object{}, by)
}

// needPayment gets the payment's row, or makes that of a purchase's payment. It decides the event if the
// payment is not ours.
func (a *application) needPayment(o Object) (err error) {
	switch {
	case a.payment != nil && a.payment.ID == o.Payment:
		return nil
	case a.changed.payment:
		return fmt.Errorf("%w: one commit would write two payments, %s and %s", errPoison, a.payment.ID, o.Payment)
	}
	if a.payment, err = row[Payment](a, KindPayment, o.Payment); err != nil {
		return err
	}
	if a.payment != nil {
		a.payment.Refunds = maps.Clone(a.payment.Refunds)
		return nil
	}
	switch {
	case o.Tag.Purchase != "" && (o.InvoiceTold || o.Kind == KindInvoice || !recurring(o.Tag.Kind)):
	case o.Kind == KindInvoice:
		a.set(Ignored, notOurs)
		return nil
	case o.Kind == KindPayment && o.InvoiceTold && (o.Fetched || o.Invoice == "" && o.Customer == ""):
		// An event's payment with a customer may have an invoice of a newer kind, which its version
		// of the API does not tell: then Stripe is asked.
		a.decision = decision{status: Ignored, reason: notOurs, foreign: true, mark: markOf(o)}
		return nil
	default:
		return need{kind: KindPayment, id: o.Payment}
	}
	if err := a.needPurchase(o.Tag.Purchase, o); err != nil {
		return err
	}
	a.payment = &Payment{ID: o.Payment, StripeAccount: a.at, Merchant: a.merchant, Purchase: o.Tag.Purchase,
		Status: PaymentNew, Created: cmp.Or(o.Created, a.noted), attached: o.Attached}
	a.changed.payment = true
	return nil
}

func markOf(o Object) string {
	switch {
	case o.Invoice != "":
		return markedLinked
	case o.Status == "succeeded":
		return markedPaid
	}
	return ""
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

func recurring(k Kind) bool { return k == Subscribe || k == SplitPayment }

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
