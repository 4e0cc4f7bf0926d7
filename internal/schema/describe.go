package schema

import (
	"slices"

	"github.com/duesday/duesday/internal/store"
)

// A Description is for people, beside the declaration of a table: which attributes its items have,
// which kinds of items there are, and samples. Nothing of it decides anything at run time.
type Description struct {
	Table      store.Table
	Attributes []Attribute  // all but the table's own keys
	Facets     []Facet      // the kinds of items, in a table with several
	Items      []store.Item // samples, in a table without facets
}

// An Attribute is a name and its type as DynamoDB writes it: S, N, BOOL, M or L.
type Attribute struct{ Name, Type string }

// A Facet is one kind of items.
type Facet struct {
	Name           string
	PartitionAlias string // name of the partition key for people
	SortAlias      string
	Attributes     []string     // names, without the table's keys
	Items          []store.Item // samples
}

// A Projection is what an index repeats of an item, as the model and the template write it.
type Projection struct {
	ProjectionType   string
	NonKeyAttributes []string `json:",omitempty"`
}

// ProjectionOf names the declared attributes, also the table's own keys, as the published model.
func ProjectionOf(x *store.Index) Projection {
	switch {
	case x.All:
		return Projection{ProjectionType: "ALL"}
	case len(x.Include) == 0:
		return Projection{ProjectionType: "KEYS_ONLY"}
	}
	return Projection{"INCLUDE", x.Include}
}

// The capacity of the published model, for each table and each index: a provisioned one
// begins with, and between which bounds it is scaled. Units are DynamoDB's, per second.
const (
	ReadUnits   = 5
	WriteUnits  = 5
	LeastUnits  = 1
	MostUnits   = 10
	TargetUse   = 70 // percent of the provisioned units
	ScalingRole = "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
)

// Describe returns the descriptions of all tables, in the order of All.
func (t Tables) Describe() []Description {
	return append([]Description{describeRecurring(t.RecurringPayments), describeOutbox(t.Outbox)},
		t.Tracking.describe()...)
}

// Samples returns the table's sample items, facet by facet.
func (d *Description) Samples() []store.Item {
	items := d.Items
	for _, f := range d.Facets {
		items = append(items[:len(items):len(items)], f.Items...)
	}
	return items
}

func typed(kind string, names ...string) []Attribute {
	list := make([]Attribute, len(names))
	for i, name := range names {
		list[i] = Attribute{name, kind}
	}
	return list
}

// facet makes a facet with one sample.
func facet(name, partitionAlias, sortAlias string, attributes []string, pairs ...any) Facet {
	return Facet{name, partitionAlias, sortAlias, attributes, []store.Item{sample(pairs...)}}
}

// sample makes an item of names and values in turn. A value is a string, an int, a bool or an item.
func sample(pairs ...any) (it store.Item) {
	for i := 0; i < len(pairs); i += 2 {
		name := pairs[i].(string)
		switch v := pairs[i+1].(type) {
		case string:
			it.Set(name, store.S(v))
		case int:
			it.Set(name, store.Int(int64(v)))
		case bool:
			it.Set(name, store.Bool(v))
		case store.Item:
			it.Set(name, store.M(v))
		}
	}
	return it
}

func describeOutbox(t store.Table) Description {
	const created, buried = "2023-06-21T14:15:39.247Z", "2023-05-21T14:15:39.247Z"
	data := sample("account", "123", "email", "s@s.com", "subscription", "123", "sku", "999", "amount", "12.99",
		"currency", "USD", "amount_text", "12.99 USD", "period", "1", "due_date", "2023-06-28")
	names := []string{Kind, Data, CreatedDate, Tries, LastError, Sums, Numbered, Until}
	return Description{Table: t,
		Attributes: slices.Concat(typed("S", Kind), typed("M", Data), typed("S", CreatedDate), typed("N", Tries),
			typed("S", LastError, DeadDate, Sums, Until), typed("L", Numbered)),
		Facets: []Facet{
			facet("Effects", "Shard", "Due#EffectId", names, PK, "OUT#00",
				SK, created+"#reminder/SAMPLE/123/123/999/1/2023-06-28", Kind, "reminder", Data, data, CreatedDate, created),
			facet("DeadLetters", "DEAD", "Due#EffectId", append(slices.Clone(names), DeadDate), PK, "OUT#DEAD",
				SK, buried+"#reminder/SAMPLE/123/123/999/0/2023-05-28", Kind, "reminder", Data, data, CreatedDate, buried,
				Tries, 10, LastError, "the mailbox is full", DeadDate, "2023-05-25T17:36:00.000Z"),
		}}
}

// The samples are about one customer, one purchase, one Stripe account.
const (
	sampleAccount  = "0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58"
	samplePurchase = "6a1d3f0a-52c7-4a3b-8f0d-9a0c6b1f2e47"
	sampleStripe   = "acct_sample"
	sampleCreated  = "2020-01-01 01:02:34.567"
	sampleUpdated  = "2020-01-01 01:03:00.000"
)

func (t Tracking) describe() []Description {
	record := func(pairs ...any) []store.Item {
		return []store.Item{sample(append(pairs, TrackedAccount, sampleAccount,
			TrackedCreated, sampleCreated, TrackedUpdated, sampleUpdated)...)}
	}
	of := func(table store.Table, id, status string) Description {
		return Description{Table: table,
			Attributes: typed("S", TrackedCreated, TrackedUpdated, TrackedAccount, TrackedPurchase, TrackedStatus),
			Items: record(TrackedID, id, TrackedStripeAccount, sampleStripe, TrackedPurchase, samplePurchase,
				TrackedStatus, status)}
	}
	return []Description{
		t.describeEvents(),
		{Table: t.Purchases,
			Attributes: slices.Concat(typed("S", TrackedCreated, TrackedUpdated, TrackedAccount, TrackedStripeAccount),
				typed("BOOL", TrackedFulfilled)),
			Items: record(TrackedID, samplePurchase, TrackedStripeAccount, sampleStripe, TrackedFulfilled, true)},
		of(t.Subscriptions, "sub_sample", "active"),
		of(t.Payments, "pi_sample", "paid"),
		{Table: t.Registry,
			Attributes: slices.Concat(typed("S", TrackedCreated, TrackedUpdated, TrackedAccount, TrackedStripeAccount,
				TrackedStatus), typed("M", TrackedPolled)),
			Items: record(PK, "ACCOUNT", SK, sampleStripe, TrackedStatus, "connected")},
	}
}

// describeEvents has two samples: one not about a subscription, and so not in that index.
func (t Tracking) describeEvents() Description {
	event := func(id, kind, time string, expiration int, more ...any) store.Item {
		return sample(append(more, TrackedID, id, TrackedType, kind, TrackedStripeAccount, sampleStripe,
			TrackedTimestamp, "2020-01-01 "+time, TrackedDate, "2020-01-01", TrackedTime, time,
			TrackedExpiration, expiration)...)
	}
	return Description{Table: t.Events,
		Attributes: slices.Concat(typed("S", TrackedType, TrackedStripeAccount, TrackedTimestamp, TrackedDate, TrackedTime),
			typed("N", TrackedExpiration), typed("S", TrackedSubscription)),
		Items: []store.Item{
			event("evt_sample_1", "payment_intent.succeeded", "01:02:34.567", 1580432554),
			event("evt_sample_2", "customer.subscription.updated", "01:02:35.000", 1580432555,
				TrackedSubscription, "sub_sample"),
		}}
}

// describeRecurring has the published model's attributes first, then Duesday's own; its
// two facets first, with its sample data, then those of Duesday's other items. Three errors of
// the model are not repeated: the misspelt name of the table, the stray 1 in the sample receipt's
// sort key, and the sample card number. The processor's token stands in its place.
func describeRecurring(t store.Table) Description {
	attributes := slices.Concat(
		typed("S", Email, PaymentDay, PaymentAmount, LastPaymentDate, NextPaymentDate, LastReminderDate, NextReminderDate,
			SKU),
		typed("M", PaymentDetails), typed("S", CreatedDate, ProcessedDate, ProcessedAmount), typed("N", TTL),
		typed("S", Status, Anchor, Interval, TimeZone, Kept, LastCharge, Parked, PausedDate, Requested),
		typed("N", Period, Paid, Installments, AnchorPeriod, ReminderDays, Version),
		typed("BOOL", CancelAtEnd), typed("M", OpenPeriod), typed("S", PaymentMethod), typed("BOOL", FanOut),
		typed("S", Subscription, DueDate, Currency, Charge, Kind, Amount, EndedDate, Reason, Ref), typed("L", Attempts, Mailed),
		typed("S", RunDate, FromDate, StartedDate), typed("BOOL", Completed, Accepted), typed("M", Counts),
		typed("S", LoweredDate, Installation, Program), typed("N", Format, Shards), typed("BOOL", Charging),
		typed("S", Moved, Owner, Until, Settings), typed("M", Data, Before, After, Manual),
		typed("S", Locale, CardTold, AgendaDate, DueBefore, ClockDate), typed("M", EmailBounced, BillingDetails),
		typed("M", Amounts, UnpaidAmounts), typed("BOOL", ChargingOff), typed("S", Process, SeenDate, HeartbeatDate), typed("N", Rows),
		typed("N", Waits, Declined, PendingCustomer, Collect, Generation, LinkEpoch), typed("S", CollectUntil),
		typed("M", Pending, Upgrade, Takeover, Changes, PriceTerms, Price), typed("S", TrialEnds),
		typed("S", SumsDate, Recovered, DeclinedSum, Note, Fallback, RequestedDate, TakenDate, CausesDate, CancelDate, SkipUntil, LookupDate, Salt, LinkKey,
			AlteredDate),
		typed("S", ErasedDate, Number, Letter, Known, RetryDate), typed("L", Numbered), typed("M", Last, InvoicedTo),
		typed("S", Name, Scope, Merchant, SecretHash, ExpiresDate, RevokedDate, UsedDate, Actor, RequestHash, Object, Token, Account),
		typed("S", URL, Types, Secret, PreviousSecret, FailingDate, DeadDate, State, Answer), typed("N", Tries))
	return Description{Table: t, Attributes: attributes,
		Facets: slices.Concat(publishedFacets(), recordFacets(), storeFacets())}
}

func publishedFacets() []Facet {
	return []Facet{
		facet("Subscription", "AccountId", "SubId#SKU", []string{Email, PaymentDay, PaymentAmount, LastPaymentDate,
			NextPaymentDate, LastReminderDate, NextReminderDate, SKU, PaymentDetails, CreatedDate},
			PK, "ACC#123", SK, "SUB#123#SKU#999", Email, "s@s.com", PaymentDay, "28", PaymentAmount, "12.99",
			LastPaymentDate, "2023-05-18T14:15:39.247Z", NextPaymentDate, "2023-06-28",
			LastReminderDate, "2023-05-21T14:15:39.247Z", NextReminderDate, "2023-06-21", SKU, "999",
			PaymentDetails, sample(PaymentMethod, "pm_card_visa", DefaultAddress, "12 Bridge Street, Birmingham, B12 7ST"),
			CreatedDate, "2023-05-18T09:41:25.856Z"),
		facet("Receipts", "AccountId", "ProcessedDate#SKU", []string{Email, SKU, ProcessedDate, ProcessedAmount, TTL},
			PK, "ACC#123", SK, "REC#2023-05-28T14:15:39.24#SKU#999", Email, "s@s.com", SKU, "999",
			ProcessedDate, "2023-05-28T14:15:39.247Z", ProcessedAmount, "12.99", TTL, 1700318200),
	}
}

// recordFacets are the items of an account beyond the model.
func recordFacets() []Facet {
	return []Facet{
		facet("Account", "AccountId", "ACC", []string{Email, TimeZone, PaymentMethod, CreatedDate, FanOut, BillingDetails, LinkEpoch, Version},
			PK, "ACC#123", SK, "ACC", Email, "s@s.com", CreatedDate, "2023-05-18T09:41:25.856Z", Version, 1),
		facet("Periods", "AccountId", "SubId#SKU#Period",
			[]string{Subscription, SKU, Period, DueDate, Status, Reason, Amount, Currency, EndedDate, Ref, Attempts},
			PK, "ACC#123", SK, "PER#122#SKU#998#000003", Subscription, "122", SKU, "998", Period, 3,
			DueDate, "2023-05-28", Status, "void", Reason, "cancelled", Amount, "4.99", Currency, "USD",
			EndedDate, "2023-05-28T14:15:39.247Z"),
		facet("History", "AccountId", "HIS#CreatedDate#Random",
			[]string{Actor, CreatedDate, Kind, Subscription, Changes, Note, Currency, Version, TTL},
			PK, "ACC#123", SK, "HIS#2023-05-28T14:15:39.247Z#SAMPLE4SAM", Actor, "user ann", CreatedDate, "2023-05-28T14:15:39.247Z",
			Kind, "subscription.updated", Subscription, "122", Changes, sample("payment_method", "changed"), Currency, "USD",
			Version, 3, TTL, 1748441739),
		facet("RequestKeys", "KeyHash", "KEY",
			[]string{Actor, RequestHash, Object, Token, CreatedDate, Account, Subscription, SKU, Kind, Period, Amount, Currency,
				Note, TakenDate},
			PK, "KEY#0123456789abcdef0123456789abcdef", SK, "KEY", Actor, "user ann", Token, "SAMPLE4SAMPLE4SAMPLE4SAMPL",
			CreatedDate, "2023-05-28T14:15:39.247Z", Account, "123", Subscription, "122", SKU, "998",
			Kind, "receipt", Period, 3, Amount, "4.99", Currency, "USD", Note, "transfer 4711", TakenDate, "2023-05-27"),
	}
}

// storeFacets are the items about the store itself and its jobs.
func storeFacets() []Facet {
	return []Facet{
		facet("Runs", "Job", "Date#Started",
			[]string{RunDate, FromDate, StartedDate, EndedDate, Completed, Counts, Accepted, Settings, Amounts, ChargingOff,
				Process, Actor, Reason, Rows, SeenDate, HeartbeatDate, Waits, Declined, UnpaidAmounts, PendingCustomer},
			PK, "RUN#payments", SK, "2023-05-28#2023-05-28T14:15:30.000Z-ABCDEF", RunDate, "2023-05-28",
			FromDate, "2023-05-27", StartedDate, "2023-05-28T14:15:30.000Z", EndedDate, "2023-05-28T14:15:40.000Z",
			Completed, true, Counts, sample("due", 1, "paid", 1), Amounts, sample("USD", "12.99"), Rows, 1,
			Process, "1234@host", SeenDate, "2023-05-28T14:15:40.000Z"),
		facet("Unpaid", "Run", "Subscription#Period", []string{Account, Subscription, Period, SKU, State, Amount, Currency, DueDate, RetryDate, Reason, TTL},
			PK, "UNPAID#2023-05-28#2023-05-28T14:15:30.000Z-ABCDEF", SK, "123/122#000003", Account, "123", Subscription, "122", Period, 3, SKU, "998",
			State, "retry", Amount, "4.99", Currency, "USD", DueDate, "2023-05-28", RetryDate, "2023-05-29", Reason, "insufficient_funds", TTL, 1693059330),
		facet("Floors", "Job", "FLOOR", []string{RunDate, LoweredDate},
			PK, "RUN#payments", SK, "FLOOR", RunDate, "2023-05-28", LoweredDate, "2023-05-28T14:00:00.000Z"),
		facet("Store", "META", "META", []string{Installation, Format, Program, Shards, Charging, Reason, CreatedDate, Moved,
			EndedDate, ClockDate, SumsDate, LookupDate, Salt, LinkKey},
			PK, "META", SK, "META", Installation, "SAMPLE", Format, 2, Shards, 1, Charging, true,
			CreatedDate, "2023-05-18T09:41:25.856Z"),
		facet("SubscriptionsByStatus", "Status#Shard", "SKU#Name", []string{SKU}, PK, "IDX#SUB#active", SK, "998#123/122", SKU, "999"),
		facet("SubscriptionsByOrigin", "ProcessorSubscription", "SKU#Name", []string{SKU}, PK, "IDX#ORIGIN#sub_123", SK, "998#123/122", SKU, "999"),
		facet("AccountsByEmail", "Email", "Email#AccountId", nil, PK, "IDX#EMAIL", SK, "s@s.com#123"),
		facet("AccountsByCustomer", "ConnectedAccount/Customer", "AccountId", nil, PK, "IDX#CUSTOMER#/cus_123", SK, "123"),
		facet("LookupProgress", "IDX#FILL", "Id", nil, PK, "IDX#FILL", SK, "SAMPLE"),
		facet("Settings", "SETTINGS", "NOW", []string{Data, Version}, PK, "SETTINGS", SK, "NOW",
			Data, sample("receipt-months", "6", "retry-days", "1,3,5,7"), Version, 2),
		facet("SettingsChanges", "SETTINGS", "Version#Id", []string{CreatedDate, Version, Before, After},
			PK, "SETTINGS", SK, "CHANGE#000000002#SAMPLE", CreatedDate, "2023-05-18T09:41:25.856Z", Version, 2,
			Before, sample("retry-days", "2"), After, sample("retry-days", "1,3,5,7")),
		facet("Sums", "Month", "Quarter#Currency", []string{Amounts, Version}, PK, "SUM#2023-05", SK, "2023-05-28T14:15#USD",
			Amounts, sample("collected", "12.99"), Version, 1),
		facet("Outlooks", "OUTLOOK", "Month", []string{Amounts, Data, Counts, CreatedDate, TimeZone}, PK, "OUTLOOK", SK, "2023-05",
			Amounts, sample("USD", "12.99"), Data, sample("2023-06-28#USD", "12.99 1"), Counts, sample("subscriptions", 1, "unreadable", 0),
			CreatedDate, "2023-05-28T14:15:41.000Z", TimeZone, "UTC"),
		facet("Numbers", "Series", "Number", []string{Numbered, CreatedDate, ExpiresDate}, PK, "NUM#R-2023", SK, "000001",
			CreatedDate, "2023-05-28T14:15:42.000Z", ExpiresDate, "2023-11-18T14:36:40.000Z"),
		facet("LastNumbers", "NUM", "NOW", []string{Last, Letter, Known, CreatedDate, Version}, PK, "NUM", SK, "NOW",
			Last, sample("R-2023", 1), Version, 1),
		facet("Keys", "KEYS", "KeyId", []string{Name, Scope, Merchant, SecretHash, CreatedDate, ExpiresDate, RevokedDate, UsedDate,
			TTL}, PK, "KEYS", SK, "dd_sample2345", Name, "shop", Scope, "charge", Merchant, sampleAccount,
			SecretHash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
			CreatedDate, "2023-05-18T09:41:25.856Z", ExpiresDate, "2024-05-18T00:00:00.000Z", TTL, 1750550400),
		facet("KeysMade", "KEYS", "MADE", []string{Version}, PK, "KEYS", SK, "MADE", Version, 1),
		facet("Endpoints", "ENDPOINTS", "EndpointId", []string{URL, Types, Secret, PreviousSecret, Until, CreatedDate, PausedDate,
			Reason, FailingDate, DeadDate, Version}, PK, "ENDPOINTS", SK, "ep_sample234567890", URL, "https://shop.example/webhooks",
			Types, "period.paid subscription.*", Secret, "whsec_c2FtcGxl", CreatedDate, "2023-05-18T09:41:25.856Z", Version, 1),
		facet("Deliveries", "EndpointId", "CreatedDate#MessageId", []string{Kind, Data, State, CreatedDate, EndedDate, TTL},
			PK, "DELIVERIES#ep_sample234567890", SK, "2023-05-28T14:15:39.247Z#msg_sample", Kind, "message", State, "delivered",
			Data, sample("message", `{"endpoint":"ep_sample234567890","type":"period.paid","data":{}}`), CreatedDate, "2023-05-28T14:15:39.247Z",
			EndedDate, "2023-05-28T14:15:40.000Z", TTL, 1687875340),
		facet("Mails", "Month#Shard", "CreatedDate#EffectId", []string{Kind, Data, State, Tries, Answer, Numbered, CreatedDate, EndedDate, TTL},
			PK, "MAIL#2023-06#a", SK, "2023-06-21T14:15:39.247Z#reminder/SAMPLE/123/123/999/1/2023-06-28", Kind, "reminder", State, "sent",
			Data, sample("account", "123", "email", "s@s.com", "subscription", "123", "period", "1"), Tries, 1, Answer, "250 2.0.0 queued",
			CreatedDate, "2023-06-21T14:15:39.247Z", EndedDate, "2023-06-21T14:15:41.000Z", TTL, 1695132939),
		facet("Leases", "Job", "Date#Shard", []string{Owner, Until, TTL},
			PK, "LEASE#payments", SK, "2023-05-28", Owner, "SAMPLE", Until, "2023-05-28T14:17:30.000Z", TTL, 1685369850),
	}
}
