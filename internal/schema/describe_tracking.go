package schema

import (
	"slices"

	"github.com/duesday/duesday/internal/store"
)

// The samples are about one customer, one purchase, one Stripe account.
const (
	sampleAccount  = "0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58"
	samplePurchase = "6a1d3f0a-52c7-4a3b-8f0d-9a0c6b1f2e47"
	sampleStripe   = "acct_sample"
	sampleCreated  = "2020-01-01 01:02:34.567"
	sampleUpdated  = "2020-01-01 01:03:00.000"
)

func (t Tracking) describe() []Description {
	record := func(id string, more ...store.Attribute) []store.Item {
		return []store.Item{store.NewItem(append(more, text(TrackedID, id), text(TrackedStripeAccount, sampleStripe),
			text(TrackedAccount, sampleAccount), text(TrackedCreated, sampleCreated), text(TrackedUpdated, sampleUpdated))...)}
	}
	times := typed("S", TrackedCreated, TrackedUpdated)
	return []Description{
		t.describeEvents(),
		{Table: t.Purchases,
			Attributes: slices.Concat(times, typed("S", TrackedAccount, TrackedStripeAccount), typed("BOOL", TrackedFulfilled)),
			Items:      record(samplePurchase, truth(TrackedFulfilled, true))},
		{Table: t.Subscriptions,
			Attributes: slices.Concat(times, typed("S", TrackedAccount, TrackedPurchase, TrackedStatus)),
			Items:      record("sub_sample", text(TrackedPurchase, samplePurchase), text(TrackedStatus, "active"))},
		{Table: t.Payments,
			Attributes: slices.Concat(times, typed("S", TrackedAccount, TrackedPurchase, TrackedStatus)),
			Items:      record("pi_sample", text(TrackedPurchase, samplePurchase), text(TrackedStatus, "paid"))},
		{Table: t.Registry,
			Attributes: slices.Concat(times, typed("S", TrackedAccount, TrackedStripeAccount, TrackedStatus),
				typed("M", TrackedPolled)),
			Items: []store.Item{store.NewItem(text(PK, "ACCOUNT"), text(SK, sampleStripe), text(TrackedAccount, sampleAccount),
				text(TrackedStatus, "connected"), text(TrackedCreated, sampleCreated), text(TrackedUpdated, sampleUpdated))}},
	}
}

// describeEvents has two samples: an event need not be about a subscription, and is then not
// in that index.
func (t Tracking) describeEvents() Description {
	event := func(id, kind, time string, expiration int64, more ...store.Attribute) store.Item {
		return store.NewItem(append(more, text(TrackedID, id), text(TrackedType, kind),
			text(TrackedStripeAccount, sampleStripe),
			text(TrackedTimestamp, "2020-01-01 "+time), text(TrackedDate, "2020-01-01"), text(TrackedTime, time),
			number(TrackedExpiration, expiration))...)
	}
	return Description{Table: t.Events,
		Attributes: slices.Concat(typed("S", TrackedType, TrackedStripeAccount, TrackedTimestamp, TrackedDate, TrackedTime),
			typed("N", TrackedExpiration), typed("S", TrackedSubscription)),
		Items: []store.Item{
			event("evt_sample_1", "payment_intent.succeeded", "01:02:34.567", 1580432554),
			event("evt_sample_2", "customer.subscription.updated", "01:02:35.000", 1580432555,
				text(TrackedSubscription, "sub_sample")),
		}}
}
