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

// An application merges objects into copies of the stored rows. It is pure: it does not read the
// clock or the store. If a row or an object is missing, apply returns a need. The caller supplies
// what is missing and applies all objects again.
type application struct {
	at           string // the Stripe account
	merchant     string // the merchant who owns that account
	event        string // ID of the event that contains the object; "" if the object was fetched
	installation string
	noted        time.Time // time of the merge
	rule
	known map[need]any // rows read so far: *Purchase, *Payment or *Subscription, or nil if none exists
	// importing returns the ID of an imported subscription's purchase; nil unless this is an import.
	importing func(subscription string) string

	outcome
}

// An outcome is the result of an application. It holds the decision and the changed rows with their
// effects.
type outcome struct {
	decision
	purchase     *Purchase // like the other two rows, nil if not needed
	payment      *Payment
	subscription *Subscription
	changed      struct{ purchase, payment, subscription bool }
	imported     bool // the import creates the payment or subscription

	fetched bool // the payment intent was fetched for this application
	asked   []Action
	refetch string // what the inbox must fetch: sub_…, or a dispute as pi_…/du_…
}

// A decision sets the new status of an event and gives the reason for people to read.
type decision struct {
	status EventStatus
	reason string
	// foreign is set if Stripe reports that the payment is not ours. mark records how certain that
	// answer is.
	foreign bool
	mark    string
}

func (d *decision) set(status EventStatus, reason string) {
	*d = decision{status: status, reason: reason}
}

// A need is the error that apply returns when it requires a stored row or another Stripe object.
type need struct {
	row  bool
	kind string // such as KindPayment, or rowOfPurchase
	id   string
	of   string // sub_…, if the need is for that subscription's schedule
}

// rowOfPurchase is the kind used in a need for a purchase row. Payments and subscriptions use the
// kind of their Stripe object.
const rowOfPurchase = "purchase"

func (n need) Error() string { return "Stripe has to be asked for " + n.kind + " " + n.id }

// A refusal is the error for an object that must not change any stored row.
type refusal string

func (r refusal) Error() string { return string(r) }

// apply merges objects about one payment or subscription. Their outcome is that of the last object,
// except that apply stops at the first object that is not applied.
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
		if n, lacks := errors.AsType[need](err); lacks && !n.row && !last { // even the fetched object lacks the answer
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
		return a.paid(o.Tag.Purchase, o, o.ID) // an invoice without a payment intent may have had nothing due
	default:
		a.set(Ignored, "no payment intent")
	}
	return nil
}

// row returns a copy of the stored row, or nil if the row does not exist.
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

// needPurchase loads the purchase's row or creates it. An event can arrive before we have stored
// the purchase, or after the store has lost it. needPurchase refuses a purchase that belongs to
// another Stripe account, because an account owner can write any purchase ID into the metadata.
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
		if a.imported {
			p.Imported, p.Customer = a.noted, o.Customer
		}
		a.note(&p.History, "first heard of through Stripe")
	case p.StripeAccount != a.at:
		return refusal("it names a purchase of another Stripe account")
	}
	p.Subscriptions = maps.Clone(p.Subscriptions)
	a.purchase = p
	return nil
}

// maxSubscriptions is the maximum number of subscriptions stored with one purchase.
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
	r := a.rule
	sub.activated = sub.activated || a.imported && o.Status == "canceled" // what was never active expires instead
	r.fresh = r.fresh || a.imported                                       // no event has changed a row that does not exist
	changes, undecided, ask := mergeSubscription(sub, o, r)
	a.set(Applied, "")
	changed := a.changed.subscription || len(changes) > 0 || ask || sub.differs(&before)
	if !changed && !undecided && !ended(o.Status) && before.Ending == "" { // most renewals change nothing
		return nil
	}
	if err := a.needPurchase(sub.Purchase, o); err != nil {
		return err
	}
	switch {
	case a.purchase.Kind == SplitPayment && o.Kind == KindSubscription && ended(o.Status) &&
		before.Schedule == "" && o.Schedule == "" && !a.force && !a.imported: // an old event may not name the schedule
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

// needSubscription loads the subscription's row or creates it for a purchase. If the subscription
// is not ours, needSubscription ignores the event.
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
	if a.imported = a.importing != nil; a.imported && o.Tag.Purchase == "" && o.Kind == KindSubscription {
		o.Tag = Tag{Purchase: a.importing(id), Kind: Subscribe}
	}
	if o.Tag.Purchase == "" {
		a.set(Ignored, "not tracked")
		return nil
	}
	if err := a.needPurchase(o.Tag.Purchase, o); err != nil {
		return err
	}
	if len(a.purchase.Subscriptions) >= maxSubscriptions { // the owner of the Stripe account can write any metadata
		return refusal("the purchase has too many subscriptions")
	}
	a.subscription = &Subscription{ID: id, StripeAccount: a.at, Merchant: a.merchant, Purchase: o.Tag.Purchase,
		Status: SubscriptionNew, Created: cmp.Or(o.Created, a.noted)}
	a.changed.subscription = true
	return nil
}

// troubleOf records a problem if a subscription is active although its buyer has already lost
// access.
func (a *application) troubleOf(sub *Subscription, before SubscriptionStatus, o Object) {
	if a.imported {
		return
	}
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
		return need{kind: KindPayment, id: p.ID} // events of the payment may have arrived before this link
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
	by, settled := p.ID, o.Kind == KindInvoice && o.Status == "paid" // the invoice may have been paid by other means
	if settled {
		by = o.ID
	}
	paid := p.Status == PaymentPaid && (before != PaymentPaid || a.changed.payment)
	// A payment for a subscription's invoice does not fulfil the purchase, because the subscription
	// does. A partial payment does not either, because the paid invoice does.
	if p.Subscription != "" || !settled && (!paid || p.attached) {
		return nil
	}
	return a.paid(p.Purchase, Object{}, by)
}

// needPayment loads the payment's row or creates it for a purchase. If the payment is not ours,
// needPayment ignores the event.
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
	if o.Tag.Purchase == "" && o.Subscription != "" { // the subscription may be an imported one, without our metadata
		sub, err := row[Subscription](a, KindSubscription, o.Subscription)
		if err != nil {
			return err
		}
		if sub != nil {
			o.Tag = Tag{Purchase: sub.Purchase, Kind: Subscribe}
		}
	}
	a.imported = a.importing != nil
	switch {
	case o.Tag.Purchase != "" && (o.InvoiceTold || o.Kind == KindInvoice || !recurring(o.Tag.Kind)):
	case o.Kind == KindInvoice:
		a.set(Ignored, notOurs)
		return nil
	case o.Kind == KindPayment && o.InvoiceTold && (o.Fetched || o.Invoice == "" && o.Customer == ""):
		// A payment intent with a customer may belong to a newer kind of invoice that the event's
		// API version does not show, so the caller must ask Stripe.
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
	switch {
	case a.imported:
		what = importedReason + ": " + what
	case a.event == "":
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

// paid requests the effects of a one-time purchase that an invoice or a payment has paid.
func (a *application) paid(purchase string, o Object, by string) error {
	err := a.needPurchase(purchase, o)
	if err == nil && !recurring(a.purchase.Kind) {
		a.askEffects(true, "paid "+by)
	}
	return err
}

func recurring(k Kind) bool { return k == Subscribe || k == SplitPayment }

// askEffects requests the purchase's due effects and records them in its history.
func (a *application) askEffects(paid bool, reason string) {
	p := a.purchase
	if a.imported && p.doneElsewhere(paid, a.noted) {
		a.changed.purchase = true
		return
	}
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
	if len(asked) > 0 && ofCreating(p.Problem) { // an effect means that creating the purchase succeeded
		p.Problem = ""
	}
	a.asked = append(a.asked, asked...)
	a.changed.purchase = a.changed.purchase || len(asked) > 0 || before != p.Unsubscribe.State
}

// about returns the ID of the event's subscription, or "" if it is unknown.
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
