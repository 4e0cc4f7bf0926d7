package tracking

import (
	"cmp"
	"fmt"
)

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
