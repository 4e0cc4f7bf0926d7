// Package outbox stores effects on other systems, such as mail, and delivers them. An effect is written in
// the commit that causes it, delivered at least once under a stable ID, and deleted after delivery.
//
// It does not know the meaning of an effect: its deliverer does (package mail).
package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Queue is a part of the outbox with its own deliverer. The zero Queue is Mail.
type Queue string

// The queues.
const (
	Mail    Queue = "OUT" // mail to customers
	Actions Queue = "ACT" // actions of purchases in other systems: fulfil, unsubscribe
	Held    Queue = "HLD" // mail that waits for a decision; see Decide
	Inbox   Queue = "INB" // events that cannot be applied at once, for Duesday's own worker

	Deliveries Queue = "WHK" // messages to endpoints; package delivery drains it
)

// An Effect is one piece of work for another system, such as sending an email.
type Effect struct {
	Queue   Queue
	ID      string            // stable and unique: a receiver recognises a repetition by it
	Kind    string            // tells the deliverer how to read Data
	Due     time.Time         // not delivered before; UTC, milliseconds
	Created time.Time         // when its cause was committed; UTC, milliseconds
	Data    map[string]string // input of the delivery; no secret, no card data
	Tries   int               // failed deliveries so far
	Error   string            // of the last failed delivery
	Dead    bool              // in the dead letters
	Sums    string            // what its cause adds to the sums of money, until it has been added; see Counting

	// Numbered contains the keys of the receipts, or of the refund, that its cause has made. Until the
	// Sums are added, they have no numbers.
	Numbered []store.Key
}

// The kinds of effects. The deliverer uses the kind to decide what to do.
const (
	KindReceipt        = "receipt"         // a payment was taken
	KindReminder       = "reminder"        // a payment will be taken
	KindDeclined       = "declined"        // a payment was declined and will be tried again
	KindFailed         = "failed"          // a payment was declined for good
	KindActionRequired = "action_required" // the customer has to confirm a payment
	KindRefund         = "refund"          // money went back to the customer
	KindCancelled      = "cancelled"       // the subscription has ended
	KindOperator       = "operator"        // something is wrong with the installation, or all is well again
	KindPriceChange    = "price_change"    // the subscription costs another amount, or is another plan, from a day on
	KindCardExpires    = "card_expires"    // the card will have expired before the payment after the next
	KindPaymentRequest = "payment_request" // the customer, who pays by wire, has to pay
	KindSum            = "sum"             // nothing to deliver: the row is there for its Sums alone
)

// NoMethodTopic is the detail of the first mail about a period for which there is no payment method.
const NoMethodTopic = "no_method"

// Topic returns the topic of a mail, which is what the mail reports about its subscription. Two
// mails with the same topic report the same thing. For a decline, details is the day of the next
// attempt. For a failed period, details is empty, because a period fails only once.
func Topic(kind string, period int, details string) string {
	return kind + "/" + strconv.Itoa(period) + "/" + details
}

// Topic returns the topic of a mail about a subscription. The effect's ID ends with the period, followed
// by the details if there are any.
func (f Effect) Topic() string {
	var details string
	if parts := strings.SplitN(f.ID, "/", 7); len(parts) == 7 {
		details = parts[6]
	}
	switch f.Kind {
	case KindFailed:
		details = ""
	case KindDeclined:
		details = f.Data[DataRetryDate]
	case KindReceipt:
		details = f.Data[DataAmount] + " " + f.Data[DataCharge]
	case KindActionRequired:
		parts := strings.SplitN(details, "/", 3) // generation, attempt, the day of a mail that asks again
		details = strings.Join(append([]string{f.Data[DataRef]}, parts[min(2, len(parts)):]...), "/")
	}
	return f.Kind + "/" + f.Data[DataPeriod] + "/" + details
}

// In reports whether the topics contain this topic, or the topic of a later decline of the same
// period.
func (f Effect) In(topics []string) bool {
	topic := f.Topic()
	declines := KindDeclined + "/" + f.Data[DataPeriod] + "/"
	return slices.ContainsFunc(topics, func(t string) bool {
		return t == topic || f.Kind == KindDeclined && strings.HasPrefix(t, declines) && t > topic
	})
}

// The keys of Effect.Data. Every kind has the first group, receipts the second; DataRetryDate
// belongs to KindDeclined, DataCode to that and to KindFailed, DataRef to KindActionRequired, the
// card to KindReminder and KindCardExpires, and with DataFallback to KindReceipt and KindFailed,
// DataBefore to KindPriceChange, DataPayBy to all that is paid by wire. An unknown value is "".
//
// The last two groups are never in a stored effect: links are short-lived secrets, and the locale, the
// name and the arrears are as they are at the delivery. The deliverer adds them.
const (
	DataAccount      = "account"
	DataEmail        = "email" // one bare address
	DataSubscription = "subscription"
	DataSKU          = "sku"
	DataKeySKU       = "key_sku" // of the subscription's key, if it is another one
	DataPeriod       = "period"
	DataDueDate      = "due_date"    // 2023-06-28
	DataAmount       = "amount"      // 12.99
	DataCurrency     = "currency"    // USD
	DataAmountText   = "amount_text" // $12.99: for people

	DataProcessed = "processed" // 2023-06-28, in the zone of the account; older: a timestamp in UTC
	DataCharge    = "charge"    // the processor's reference
	DataReceipt   = "receipt"   // the receipt's id

	DataRetryDate = "retry_date"    // 2023-07-01
	DataBefore    = "before"        // 9.99: the amount until then, in the same currency
	DataCode      = "code"          // the processor's decline code
	DataCollect   = "collect_until" // 2023-07-31: until then a new payment method collects the failed period
	DataSubject   = "subject"       // of KindOperator, which has these two and an address alone
	DataText      = "text"

	DataPayBy = "pay_by" // 2023-07-12: the payment must arrive before that day

	// of KindReceipt, KindReminder and KindPaymentRequest
	DataQuantity = "quantity"    // 3: units; "" for one
	DataUnit     = "unit_amount" // 4.33: of one unit; "" for one
	DataDiscount = "discount"    // 1.30: what the amount is reduced by; "": nothing
	DataNet      = "net"         // 10.92: the amount without DataTax; "": the subscription has no tax rate
	DataTax      = "tax"         // 2.07; with DataNet
	DataTaxRate  = "tax_rate"    // 19: percent; with DataNet
	DataTaxNote  = "tax_note"    // reverse charge

	DataRef = "ref" // of the payment intent waiting for the customer

	DataCard        = "card"         // Visa ending in 4242
	DataCardExpires = "card_expires" // 2026-12: the last month in which it is valid
	DataTrial       = "trial"        // "true": it is the first payment, after a free trial
	DataNoMethod    = "no_method"    // "true": no payment method is stored
	DataCardExpired = "card_expired" // "true": it expires before the payment is due

	DataFallback = "fallback" // "true": it was tried with the account's second method, whose card DataCard is

	// of KindCancelled
	DataArrears    = "arrears"     // 2023-06-28 12.99 2023-07-28 12.99: the periods that the cancellation has written off
	DataArrearsSum = "arrears_sum" // 25.98

	DataLink        = "link"         // where the customer can confirm or replace the card
	DataLinkExpires = "link_expires" // a timestamp; "" if unknown
	DataDocument    = "document"     // link to the receipt; "" if there are none
	DataPage        = "page"         // link to the customer's page; "" if there are none
	DataLocale      = "locale"       // pt-BR; "" if the account has none
	DataNumber      = "number"       // R-2026-000123: of the receipt or refund; "" if it has none
	DataName        = "name"         // of the customer; "" if it is not known
)

// A row is the item of one effect. Its key is <queue>#<shard> / <due>#<id>, so a query up to
// now yields the due rows, oldest first. A dead letter is at <queue>#DEAD under the same sort
// key. The due time stands in the key alone: moving a row deletes it and puts it elsewhere,
// and of two workers only one can delete it.
const (
	shards      = 16                         // of a queue; fixed: a row's shard is computed from its id
	stampLayout = "2006-01-02T15:04:05.000Z" // the order of the texts is the order of the times
	maxReason   = 500                        // bytes of LastError, at most
)

func (q Queue) shard(n int) string { return fmt.Sprintf("%s#%02d", q.prefix(), n) }

func (q Queue) dead() string { return q.prefix() + "#DEAD" }

func (q Queue) prefix() string { return cmp.Or(string(q), string(Mail)) }

func (q Queue) keyOf(id string, due time.Time) store.Key {
	h := fnv.New32a()
	h.Write([]byte(id)) // never fails
	return store.Key{PK: q.shard(int(h.Sum32() % shards)), SK: stamp(due) + "#" + id}
}

// lastDue is the inclusive upper end of the sort keys that are due at now: '$' follows '#'.
func lastDue(now time.Time) string { return stamp(now) + "$" }

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

// Write returns the put of an effect. The cause includes it in its own commit, so the effect exists
// if, and only if, the cause happened. The put has no condition, because the conditions of the
// cause decide. If an effect is written twice with the same ID, it may be delivered twice. A zero
// Due means immediately. If the id is longer than 999 bytes, or the data has hundreds of kilobytes,
// the commit fails with store.ErrTooLarge. The keys of the table must be schema.PK and schema.SK.
func Write(table string, e Effect) store.Write {
	key := e.Queue.keyOf(e.ID, e.Due)
	data := make(store.Item, 0, len(e.Data))
	for _, name := range slices.Sorted(maps.Keys(e.Data)) {
		data.Set(name, store.S(e.Data[name]))
	}
	it := store.NewItem(
		store.Attribute{Name: schema.CreatedDate, Value: store.S(stamp(e.Created))},
		store.Attribute{Name: schema.Data, Value: store.M(data)},
		store.Attribute{Name: schema.Kind, Value: store.S(e.Kind)},
		store.Attribute{Name: schema.PK, Value: store.S(key.PK)},
		store.Attribute{Name: schema.SK, Value: store.S(key.SK)},
	)
	setFailure(&it, e.Tries, e.Error)
	w := store.Put(table, it)
	SetSums(&w, e.Sums)
	SetNumbered(&w, e.Numbered)
	return w
}

// setFailure records the failed tries and the reason. Zero and "" remove their attributes.
func setFailure(it *store.Item, tries int, reason string) {
	it.Remove(schema.Tries)
	if tries > 0 {
		it.Set(schema.Tries, store.Int(int64(tries)))
	}
	it.Remove(schema.LastError)
	if reason = strings.ToValidUTF8(reason[:min(len(reason), maxReason)], ""); reason != "" {
		it.Set(schema.LastError, store.S(reason))
	}
}

// Decode reads a row. With an error, the effect has the readable attributes.
func Decode(it store.Item) (Effect, error) {
	var wrong []error
	queue, shard, _ := strings.Cut(it.Str(schema.PK), "#")
	e := Effect{Queue: Queue(queue), Dead: shard == "DEAD", Kind: it.Str(schema.Kind), Error: it.Str(schema.LastError),
		Sums: it.Str(schema.Sums), Numbered: numbered(it)}
	e.Tries = int(max(it.Int(schema.Tries), 0))
	due, id, ok := strings.Cut(it.Str(schema.SK), "#")
	if !ok || id == "" {
		wrong, id = append(wrong, errors.New("its key has no ID")), it.Str(schema.SK)
	}
	e.ID = id
	var err error
	if e.Due, err = time.Parse(stampLayout, due); err != nil {
		wrong = append(wrong, errors.New("its key has no due time"))
	}
	if e.Created, err = time.Parse(stampLayout, it.Str(schema.CreatedDate)); err != nil {
		wrong = append(wrong, fmt.Errorf("%s is not a timestamp", schema.CreatedDate))
	}
	if e.Kind == "" {
		wrong = append(wrong, fmt.Errorf("%s is missing", schema.Kind))
	}
	if it.Get(schema.Data).Kind() != store.KindMap {
		wrong = append(wrong, fmt.Errorf("%s is not a map", schema.Data))
	}
	e.Data = make(map[string]string)
	for _, a := range it.Get(schema.Data).Map() {
		if a.Value.Kind() != store.KindString {
			wrong = append(wrong, fmt.Errorf("%s: %s is not a string", schema.Data, a.Name))
			continue
		}
		e.Data[a.Name] = a.Value.Str()
	}
	if len(wrong) > 0 {
		return e, fmt.Errorf("unreadable effect: %w", errors.Join(wrong...))
	}
	return e, nil
}

// NextDue returns when an effect with so many failed deliveries is due again, or false after the
// last one, by the schedule of Standard Webhooks 1.0: the tenth failure, a bit over three days after
// the first delivery, is the last. The wait counts from now, not from the last due time: an outbox
// that nobody drained for days must not use up its tries in a minute.
func NextDue(tries int, now time.Time) (time.Time, bool) {
	waits := [...]time.Duration{0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
		10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	if tries < 0 || tries >= len(waits) {
		return time.Time{}, false
	}
	return now.Add(waits[tries]).UTC().Truncate(time.Millisecond), true
}
