package tracking

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// An application is what one event, or a few objects that were seen, change: rows are read once,
// changed in memory, and written in one commit, each on the condition that nobody else has.
type application struct {
	s       *Service
	at      string // the Stripe account
	account string // its customer account
	event   string // evt_… that tells it; "" of what was seen
	seen    bool   // nobody told it: it was looked for
	force   bool   // decide what stays undecided
	fresh   bool   // the subscription's object was asked for after its row was read

	purchase     *Purchase
	payment      *Payment
	subscription *Subscription
	dirty        [3]bool // purchase, payment, subscription
	asked        []Action
	refresh      string // sub_… whose detail has to be asked for
}

// A need is what has to be asked of Stripe before an object can be applied.
type need struct {
	kind string // KindPayment, KindSubscription or KindSchedule
	id   string
	of   string // sub_… that the schedule runs
}

// A finding is what came of applying an object.
type finding struct {
	status EventStatus // Applied, Ignored or Refused; "" where there is a need
	reason string
	need   need
}

func ignored(reason string) finding { return finding{status: Ignored, reason: reason} }

// take merges one object. Nothing is kept of one that comes to a need.
func (a *application) take(ctx context.Context, o Object) (finding, error) {
	switch {
	case o.thin():
		return finding{need: need{kind: o.Kind, id: o.ID}}, nil
	case o.Tag.Installation != "" && o.Tag.Installation != a.s.o.Installation:
		return ignored("made by another installation"), nil
	case o.Tag.Charge:
		return ignored("a payment that Duesday takes itself"), nil
	case o.Kind == KindSubscription || o.Kind == KindSchedule:
		return a.takeSubscription(ctx, o)
	case o.Kind == KindPayment:
		o.Payment = o.ID
	case o.Kind == KindInvoicePayment: // its payment intent has events of its own
		return ignored(""), nil
	case o.Kind != KindInvoice && o.Kind != KindCharge && o.Kind != KindRefund && o.Kind != KindDispute:
		return ignored(""), nil
	}
	switch {
	case o.Payment != "":
		return a.takePayment(ctx, o)
	case o.Kind == KindInvoice && o.Status == "paid" && o.Tag.Purchase != "" && o.Subscription == "":
		return a.takeInvoice(ctx, o)
	}
	return ignored("no payment intent"), nil
}

// takeInvoice: the invoice of a product is paid, and does not say by what, or nothing was due.
func (a *application) takeInvoice(ctx context.Context, o Object) (finding, error) {
	if f, err := a.own(ctx, o); err != nil || f.status != "" {
		return f, err
	}
	if !recurring(a.purchase.Kind) {
		a.cross(true, "paid "+o.ID)
	}
	return finding{status: Applied}, nil
}

// thin reports whether an event told of the object and not how it is.
func (o *Object) thin() bool {
	return !o.Seen && o.Status == "" && (o.Kind == KindPayment || o.Kind == KindSubscription || o.Kind == KindSchedule)
}

func (a *application) takePayment(ctx context.Context, o Object) (finding, error) {
	if err := a.loadPayment(ctx, o.Payment); err != nil {
		return finding{}, err
	}
	if a.payment == nil {
		switch {
		case o.Tag.Purchase != "" && (o.InvoiceTold || o.Kind == KindInvoice || !recurring(o.Tag.Kind)):
		case o.Kind == KindPayment && o.InvoiceTold && (o.Seen || o.Invoice == "" && o.Customer == ""):
			// Of one with a customer, a version that tells the invoice may not tell those of newer
			// kinds: then Stripe is asked.
			return ignored("not ours"), nil
		case o.Kind == KindInvoice:
			return ignored("not ours"), nil
		default:
			return finding{need: need{kind: KindPayment, id: o.Payment}}, nil
		}
		if f, err := a.own(ctx, o); err != nil || f.status != "" {
			return f, err
		}
		created := o.Created
		if created.IsZero() {
			created = a.s.now()
		}
		a.payment = &Payment{ID: o.Payment, StripeAccount: a.at, Account: a.account, Purchase: o.Tag.Purchase, Status: PaymentNew, Created: created}
		a.dirty[1] = true
	}
	p := a.payment
	before := p.Status
	changes := mergePayment(p, o)
	if len(changes) == 0 && a.event != "" && o.Kind == KindPayment { // no index leads to it: it is in the story by this
		changes = append(changes, changedNothing)
	}
	a.note(&p.History, changes)
	a.dirty[1] = a.dirty[1] || len(changes) > 0
	settled := o.Kind == KindInvoice && o.Status == "paid" // by other means than this payment, it may be
	if !settled && (p.Status != PaymentPaid || before == PaymentPaid && !a.dirty[1]) {
		return finding{status: Applied}, nil
	}
	// A payment is recurring when an invoice made it that is for a subscription: then the
	// subscription is what is fulfilled.
	if p.Subscription != "" {
		return finding{status: Applied}, nil
	}
	if f, err := a.loadPurchase(ctx, p.Purchase, Object{}); err != nil || f.status != "" {
		return f, err
	}
	if reason := "paid " + p.ID; !recurring(a.purchase.Kind) {
		if settled {
			reason = "paid " + o.ID
		}
		a.cross(true, reason)
	}
	return finding{status: Applied}, nil
}

// changedNothing is what an event did that told what was known.
const changedNothing = "told again"

// maxCourses is how many subscriptions one purchase has at most: its item has to hold them.
const maxCourses = 100

func recurring(k Kind) bool { return k == Subscribe || k == SplitPayment }

func (a *application) takeSubscription(ctx context.Context, o Object) (finding, error) {
	id := o.ID
	if o.Kind == KindSchedule && o.Subscription != "" {
		id = o.Subscription
	}
	if err := a.loadSubscription(ctx, id); err != nil {
		return finding{}, err
	}
	if a.subscription == nil {
		if o.Tag.Purchase == "" {
			return ignored("not tracked"), nil
		}
		if f, err := a.own(ctx, o); err != nil || f.status != "" {
			return f, err
		}
		if len(a.purchase.Courses) >= maxCourses { // whoever owns the Stripe account writes its metadata
			return finding{status: Refused, reason: "the purchase has too many subscriptions"}, nil
		}
		created := o.Created
		if created.IsZero() {
			created = a.s.now()
		}
		a.subscription = &Subscription{ID: id, StripeAccount: a.at, Account: a.account, Purchase: o.Tag.Purchase, Status: SubscriptionNew, Created: created}
		a.dirty[2] = true
	}
	sub := a.subscription
	if sub.unchanged(o, a) {
		return finding{status: Applied}, nil
	}
	if f, err := a.loadPurchase(ctx, sub.Purchase, o); err != nil || f.status != "" {
		return f, err
	}
	if a.purchase.Kind == SplitPayment && o.Kind == KindSubscription && ended(o.Status) && sub.Schedule == "" && o.Schedule == "" && !a.force {
		return a.undecided(need{kind: KindSubscription, id: id}), nil
	}
	before, was := sub.Status, sub.fields()
	changes, undecided, ask := mergeSubscription(sub, o, rule{a.s.o.EndedBy, a.force, a.fresh})
	if undecided {
		schedule := sub.Schedule
		if schedule == "" {
			schedule = o.Schedule
		}
		return a.undecided(need{kind: KindSchedule, id: schedule, of: id}), nil
	}
	if ask {
		a.refresh = sub.ID
	}
	a.note(&sub.History, changes)
	a.dirty[2] = a.dirty[2] || len(changes) > 0 || ask || was != sub.fields()
	if sub.Ending == EndSetting && a.fresh && o.Status == "active" && before == SubscriptionTerminated {
		a.trouble("subscription " + sub.ID + " is active again at Stripe, after it had ended here because it was not paid: decide what the buyer gets")
	}
	a.dirty[0] = mergeCourse(a.purchase, sub) || a.dirty[0]
	if sub.Status == SubscriptionActive && before != SubscriptionActive && (a.purchase.Unsubscribe.State == DoneWith || a.purchase.Unsubscribe.State == Begun) {
		a.trouble("subscription " + sub.ID + " is active, and the buyer was unsubscribed when the others had ended: decide what the buyer gets")
	}
	reason := string(sub.Status) + " " + sub.ID
	if sub.Ending != "" {
		reason = string(sub.Ending) + " " + sub.ID
	}
	a.cross(false, reason)
	return finding{status: Applied}, nil
}

// unchanged reports whether the object says nothing of the subscription that is not known: most
// events of a subscription, such as its renewals. Its purchase need not be read then.
func (s *Subscription) unchanged(o Object, a *application) bool {
	if a.dirty[2] || ended(o.Status) || s.Ending != "" {
		return false
	}
	trial := *s
	changes, undecided, ask := mergeSubscription(&trial, o, rule{a.s.o.EndedBy, a.force, a.fresh})
	return len(changes) == 0 && !undecided && !ask && trial.fields() == s.fields()
}

// undecided forgets what was begun.
func (a *application) undecided(n need) finding {
	a.purchase, a.payment, a.subscription, a.dirty, a.asked, a.refresh = nil, nil, nil, [3]bool{}, nil, ""
	return finding{need: n}
}

// own loads the purchase that the object's tag names, or makes it: its events may come here
// before we know of it, and after it was lost. One of another Stripe account is not touched,
// whatever that account's owner has written into the metadata.
func (a *application) own(ctx context.Context, o Object) (finding, error) {
	if a.account == "" {
		return finding{status: Quarantined, reason: "the Stripe account is not registered"}, nil
	}
	return a.loadPurchase(ctx, o.Tag.Purchase, o)
}

func (a *application) loadPurchase(ctx context.Context, id string, o Object) (finding, error) {
	if a.purchase != nil && a.purchase.ID == id {
		return finding{}, nil
	}
	p, err := a.s.loadPurchase(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		created := o.Created
		if created.IsZero() {
			created = a.s.now()
		}
		p = &Purchase{ID: id, Account: a.account, StripeAccount: a.at, Kind: o.Tag.Kind, Created: created}
		a.note(&p.History, []string{"first heard of through Stripe"})
		a.dirty[0] = true
	case err != nil:
		return finding{}, err
	case p.StripeAccount != a.at:
		return finding{status: Refused, reason: "it names a purchase of another Stripe account"}, nil
	}
	a.purchase = p
	return finding{}, nil
}

func (a *application) loadPayment(ctx context.Context, id string) (err error) {
	if a.payment != nil && a.payment.ID == id {
		return nil
	}
	if a.payment != nil && a.dirty[1] {
		return fmt.Errorf("%w: two payments in one commit: %s and %s", errPoison, a.payment.ID, id)
	}
	a.payment, err = a.s.Payment(ctx, a.at, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

func (a *application) loadSubscription(ctx context.Context, id string) (err error) {
	if a.subscription != nil && a.subscription.ID == id {
		return nil
	}
	if a.subscription != nil && a.dirty[2] {
		return fmt.Errorf("%w: two subscriptions in one commit: %s and %s", errPoison, a.subscription.ID, id)
	}
	a.subscription, err = a.s.Subscription(ctx, a.at, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

func (a *application) note(history *[]Change, changes []string) {
	if len(changes) > 0 {
		what := strings.Join(changes, "; ")
		if a.seen {
			what = "seen at Stripe: " + what
		}
		*history = remember(*history, Change{At: a.s.now(), What: what, Event: a.event})
	}
}

// trouble says on the purchase that a person is needed.
func (a *application) trouble(text string) {
	if a.purchase.Problem == text {
		return
	}
	a.purchase.Problem = text
	a.note(&a.purchase.History, []string{text})
	a.dirty[0] = true
}

func (a *application) cross(paid bool, reason string) {
	before := a.purchase.Unsubscribe.State
	asked := cross(a.purchase, paid, reason, a.s.now())
	for _, action := range asked {
		a.note(&a.purchase.History, []string{string(action) + " asked for: " + reason})
	}
	switch after := a.purchase.Unsubscribe.State; {
	case before == NotAsked && after == Waits:
		a.note(&a.purchase.History, []string{"unsubscribe waits for the fulfilment: " + reason})
	case before != NotAsked && after == NotAsked:
		a.note(&a.purchase.History, []string{"unsubscribe is withdrawn: " + reason})
	}
	if len(asked) > 0 && ofCreating(a.purchase.Problem) { // what stood in its way does not any more
		a.purchase.Problem = ""
	}
	a.asked = append(a.asked, asked...)
	a.dirty[0] = a.dirty[0] || len(asked) > 0 || before != a.purchase.Unsubscribe.State
}

// writes are what the application changes, with the effects that it asks for.
func (a *application) writes() ([]store.Write, error) {
	var list []store.Write
	now := a.s.now()
	put := func(table string, version *int64, item func() (store.Item, error)) error {
		condition := store.AttributeEquals(schema.TrackedVersion, store.Int(*version))
		if *version == 0 {
			condition = store.Absent()
		}
		*version++
		it, err := item()
		list = append(list, store.Put(table, it, condition))
		return err
	}
	t := &a.s.o.Tables.Tracking
	var errs [3]error
	if p := a.purchase; a.dirty[0] {
		p.Updated = now
		errs[0] = put(t.Purchases.Name, &p.version, p.item)
	}
	if p := a.payment; a.dirty[1] {
		p.Updated = now
		errs[1] = put(t.Payments.Name, &p.version, func() (store.Item, error) { return p.item(), nil })
	}
	if s := a.subscription; a.dirty[2] {
		s.Updated = now
		errs[2] = put(t.Subscriptions.Name, &s.version, func() (store.Item, error) { return s.item(), nil })
	}
	for _, action := range a.asked {
		list = append(list, a.s.ask(a.purchase, action))
	}
	if a.refresh != "" {
		list = append(list, a.s.pending(pendingRefresh, a.at+"/"+a.refresh, 0))
	}
	return list, errors.Join(errs[:]...)
}

// ask is the outbox's row for what a purchase asks for.
func (s *Service) ask(p *Purchase, action Action) store.Write {
	e := p.Fulfilment
	if action == ActionUnsubscribe {
		e = p.Unsubscribe
	}
	return outbox.Write(s.o.Tables.Outbox.Name, outbox.Effect{Lane: outbox.Actions, ID: string(action) + "/" + p.ID, Kind: string(action), Created: e.Asked, Due: e.Asked,
		Data: map[string]string{pendingID: p.ID}})
}
