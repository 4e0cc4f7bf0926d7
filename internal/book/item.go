package book

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
)

// An attribute is a value in DynamoDB JSON: {"S": "text"}. Types outside the model stay empty.
type attribute struct {
	S *string
	N *json.Number
	M map[string]attribute
}

// An item is one of the model's sample data. Reading an attribute removes it, so that unknown
// attributes are left over.
type item struct {
	pk, sk   string
	rest     map[string]attribute
	problems []problem
}

func newItem(attributes map[string]attribute) *item {
	it := &item{rest: attributes}
	dropDefaultCard(it.rest)
	it.pk, it.sk = it.text(schema.PK), it.text(schema.SK)
	return it
}

// isOfStore reports an item of a store's own records, which mean nothing elsewhere: its identity,
// runs, leases, API keys, index rows, endpoints, mail and messages under way, periods (counted from its
// first), keys of requests, and history.
func (it *item) isOfStore() bool {
	kind, _, _ := strings.Cut(it.pk, "#")
	switch kind {
	// with the outbox's queues and the registry
	case "META", "SETTINGS", "RUN", "SUM", "NUM", "OUTLOOK", "LEASE", "ALARMS", "KEY", "KEYS", "OUT", "ACT", "INB", "ACCOUNT", "CUSTOMER",
		"QUARANTINE", "OWN", "ENDPOINTS", "DELIVERIES", "MAIL", "UNPAID", "IDX", "WHK":
		return true
	}
	return kind == "ACC" && (strings.HasPrefix(it.sk, "PER#") || strings.HasPrefix(it.sk, "KEY#") || strings.HasPrefix(it.sk, "HIS#"))
}

// isDefaultCard reports the model's member for a card number.
func isDefaultCard(name string) bool { return strings.EqualFold(name, schema.DefaultCard) }

func dropDefaultCard(attributes map[string]attribute) {
	for name, a := range attributes {
		if isDefaultCard(name) {
			delete(attributes, name)
		} else {
			dropDefaultCard(a.M)
		}
	}
}

func (it *item) fault(name, reason string) {
	it.problems = append(it.problems, problem{name, reason})
}

// text takes a string or a number; "" if it is absent.
func (it *item) text(name string) string { return it.take(it.rest, "", name) }

// details takes the known members of PaymentDetails.
func (it *item) details() (method, currency, address string) {
	d := it.rest[schema.PaymentDetails].M
	prefix := schema.PaymentDetails + "."
	method, currency = it.take(d, prefix, schema.PaymentMethod), it.take(d, prefix, schema.Currency)
	address = it.take(d, prefix, schema.DefaultAddress)
	it.refuse(d, prefix)
	if d != nil {
		delete(it.rest, schema.PaymentDetails)
	}
	return method, currency, address
}

func (it *item) take(from map[string]attribute, prefix, name string) string {
	a, ok := from[name]
	if !ok {
		return ""
	}
	delete(from, name)
	switch {
	case a.S != nil:
		return *a.S
	case a.N != nil:
		return a.N.String()
	}
	it.fault(prefix+name, "must be a string or a number")
	return ""
}

// refuse names the unknown attributes. One left out in silence, such as a status, could matter.
func (it *item) refuse(rest map[string]attribute, prefix string) {
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		it.fault(prefix+name, "is not an attribute that import knows")
	}
}

// keyParts reads the part of a sort key after SUB# or REC#: <first>#SKU#<sku>, or the published
// text's <first>#SKU<sku>. The model's own form wins if both are possible.
func keyParts(rest string) (first, sku string, ok bool) {
	first, sku, ok = strings.Cut(rest, "#SKU")
	return first, strings.TrimPrefix(sku, "#"), ok
}

// record returns the item by its keys, or its problems by attribute.
func (m *model) record(line int, it *item) (Record, []problem) {
	id, ok := strings.CutPrefix(it.pk, "ACC#")
	if !ok {
		return Record{}, []problem{{schema.PK, "must be ACC#<account>"}}
	}
	m.reset()
	r := Record{Line: line}
	switch kind, rest, _ := strings.Cut(it.sk, "#"); {
	case it.sk == "ACC":
		r.Account = accountItem(id, it)
	case kind == "SUB":
		r.Subscription = m.subscriptionItem(line, id, rest, it)
	case kind == "REC":
		r.Receipt = m.receiptItem(id, rest, it)
	default:
		return Record{}, []problem{{schema.SK, "is not an item that import knows; must be ACC, SUB#<subscription>#SKU#<sku> or " +
			"REC#<processed>#SKU#<sku>"}}
	}
	it.refuse(it.rest, "")
	problems := m.checked(it.problems, r.Subscription)
	if len(it.problems) == 0 && len(problems) > 0 {
		if col, ok := columnNamed(problems[0].column); ok {
			problems[0].column = subscriptionAttributes[col]
		}
	}
	return r, problems
}

func accountItem(id string, it *item) *billing.Account {
	a := &billing.Account{ID: id, Email: it.text(schema.Email), TimeZone: it.text(schema.TimeZone)}
	it.stamp(schema.CreatedDate) // it must be one, and is not kept
	it.check(schema.PK, billing.CheckID("account", id))
	it.checkText(schema.Email, a.Email, billing.CheckEmail(a.Email))
	if a.TimeZone != "" {
		_, err := civil.Zone(a.TimeZone)
		it.checkText(schema.TimeZone, a.TimeZone, err)
	}
	it.text(schema.Version)
	return a
}

func (m *model) subscriptionItem(line int, id, rest string, it *item) *billing.NewSubscription {
	var row texts
	var ok bool
	row[account] = id
	if row[subscription], row[sku], ok = keyParts(rest); !ok {
		it.fault(schema.SK, "must be SUB#<subscription>#SKU#<sku>")
		row[sku] = it.text(schema.SKU)
	} else if s := it.text(schema.SKU); s != "" && s != row[sku] {
		it.fault(schema.SKU, "differs from the SKU in SK")
	}
	names := subscriptionAttributes
	row[paymentMethod], row[currency], row[address] = it.details()
	if row[paymentMethod] == "" {
		row[paymentMethod], names[paymentMethod] = m.options.PaymentMethod, "--payment-method"
	}
	if row[currency] == "" {
		row[currency], names[currency] = m.currency(), "--currency"
	}
	for _, col := range [...]column{email, amount, paymentDay, nextPaymentDate, interval, timeZone, reminderDays,
		installments, collection} {
		row[col] = it.text(names[col])
	}
	if row[nextPaymentDate] == "" {
		it.fault(schema.NextPaymentDate, "is missing; in the model, a subscription without it is not charged")
	}
	if s := it.text(schema.Status); s != "" && s != string(billing.Active) {
		it.fault(schema.Status, "must be active, because import accepts only active subscriptions")
	}
	n := m.subscription(line, &row)
	for _, p := range m.problems {
		if col, ok := columnNamed(p.column); ok {
			p.column = names[col]
		}
		it.problems = append(it.problems, p)
	}
	if row[paymentMethod] == "" && n.Collection != billing.ByWire { // accounts in a model have none
		it.problems = append(it.problems, problem{names[paymentMethod], "is missing; set the processor's token, such as " +
			"pm_card_visa"})
	}
	n.Created, n.LastPayment = it.stamp(schema.CreatedDate), it.stamp(schema.LastPaymentDate)
	n.LastReminder = it.stamp(schema.LastReminderDate)
	if text := it.text(schema.NextReminderDate); text != "" {
		var err error
		n.NextReminder, err = civil.Parse(text)
		it.checkText(schema.NextReminderDate, text, err)
	}
	return n
}

// subscriptionAttributes are the attributes of a book's columns.
var subscriptionAttributes = [columns]string{
	account: schema.PK, email: schema.Email, subscription: schema.SK, sku: schema.SK, amount: schema.PaymentAmount,
	currency: schema.PaymentDetails + "." + schema.Currency, paymentDay: schema.PaymentDay,
	paymentMethod: schema.PaymentDetails + "." + schema.PaymentMethod, startDate: schema.CreatedDate,
	nextPaymentDate: schema.NextPaymentDate, interval: schema.Interval, timeZone: schema.TimeZone,
	reminderDays: schema.ReminderDays, installments: schema.Installments,
	address: schema.PaymentDetails + "." + schema.DefaultAddress, collection: schema.CollectionMethod,
}

// receiptItem takes the payment's time from ProcessedDate: the sample's sort key has a wrong one.
func (m *model) receiptItem(id, rest string, it *item) *billing.Receipt {
	r := &billing.Receipt{Name: billing.Name{Account: id, ID: it.text(schema.Subscription), SKU: it.text(schema.SKU)},
		Email: it.text(schema.Email), Processed: it.stamp(schema.ProcessedDate), Expires: it.expiry()}
	if _, s, ok := keyParts(rest); ok && r.Name.SKU == "" {
		r.Name.SKU, _, _ = strings.Cut(s, "#")
	}
	it.check(schema.PK, billing.CheckID("account", id))
	it.check(schema.SK, billing.CheckText(schema.SK, it.sk, 1024))
	it.check(schema.SKU, billing.CheckID("sku", r.Name.SKU))
	if r.ID != "" {
		it.check(schema.Subscription, billing.CheckID("subscription", r.ID))
	}
	if r.Email != "" {
		it.checkText(schema.Email, r.Email, billing.CheckEmail(r.Email))
	}
	if r.Processed.IsZero() &&
		!slices.ContainsFunc(it.problems, func(p problem) bool { return p.column == schema.ProcessedDate }) {
		it.fault(schema.ProcessedDate, "is missing")
	}
	code, name := it.text(schema.Currency), schema.Currency
	if code == "" {
		code, name = m.currency(), "--currency"
	}
	r.Amount = m.amount(it.text(schema.ProcessedAmount), code)
	for _, p := range m.problems {
		if p.column == columnNames[currency] {
			it.fault(name, p.reason)
		} else {
			it.fault(schema.ProcessedAmount, p.reason)
		}
	}
	if r.Amount.Minor() < 0 {
		it.fault(schema.ProcessedAmount, "must not be negative")
	}
	return r
}

func (m *model) currency() string { return cmp.Or(m.options.Currency, "USD") }

// check notes the error of a rule, if there is one.
func (it *item) check(name string, err error) {
	if f, ok := errors.AsType[*billing.FieldError](err); ok {
		it.fault(name, f.Problem)
	} else if err != nil {
		it.fault(name, err.Error())
	}
}

// checkText is check for errors that quote the text. A quote that is cut off, or has escapes that
// end in digits, could show a card number to which the mask is blind.
func (it *item) checkText(name, text string, err error) {
	if err != nil && secret.HasCardNumber(text) {
		it.fault(name, cardReason(text))
		return
	}
	it.check(name, err)
}

// stamp takes a timestamp, to the millisecond; a date is its midnight in UTC.
func (it *item) stamp(name string) time.Time {
	text := it.text(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t, err = time.Parse(time.DateOnly, text)
	}
	if err != nil {
		it.checkText(name, text, fmt.Errorf("must be a time such as 2023-05-18T14:15:39.247Z (got %.40q)", text))
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// lastSecond is the end of year 9999. A TTL beyond it is in another unit.
const lastSecond = 253402300799

func (it *item) expiry() time.Time {
	text := it.text(schema.TTL)
	if text == "" {
		return time.Time{}
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 || seconds > lastSecond {
		it.checkText(schema.TTL, text, fmt.Errorf("must be seconds since 1970 (got %.40q)", text))
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}
