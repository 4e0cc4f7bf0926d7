package event

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/tracking"
)

// DecodeObject reads one of Stripe's objects in any version; see tracking.Object. The caller sets
// Fetched. An unusable member is zero. The error is an ErrBody: it is no object.
func DecodeObject(raw []byte) (tracking.Object, error) {
	r := jsonReader{text: raw}
	w := readWire(&r)
	switch {
	case !r.end():
		return tracking.Object{}, fmt.Errorf("%w: it is incomplete, not JSON, or nested too deep", tracking.ErrBody)
	case w.kind == "":
		return tracking.Object{}, fmt.Errorf("%w: object must name the object's kind", tracking.ErrBody)
	}
	return w.object(), nil
}

// A wire holds the members in use of an object of any kind: the kind need not come first.
type wire struct {
	kind, id, status, reason, currency string
	created, due                       time.Time
	amount, refunded                   int64
	tag, detailsTag                    tracking.Tag // detailsTag: of the subscription, as an invoice repeats it

	payment, invoice, subscription, released, schedule, customer string // links

	takenBy  string // the installation in the metadata that takes the subscription over
	told     bool   // the member invoice is there
	declined bool   // last_payment_error
	code     string // of it
	canceled string // the reason in cancellation_details
	paidBy   string // the payment intent of an invoice
	own      string // the one that it has made itself
	inner    string // the payment intent in the member payment, of an invoice payment
	parent   string // the subscription in parent.subscription_details
	refunds  []tracking.Refund
	terms    tracking.Terms
}

// readWire takes the next value, an object of Stripe's.
func readWire(r *jsonReader) (w wire) {
	for name := range r.members() {
		switch string(name) {
		case "id":
			w.id = r.id()
		case "object":
			w.kind = r.word()
		case "status":
			w.status = r.word()
		case "reason":
			w.reason = r.word()
		case "currency":
			w.currency = currencyIn(r.str())
		case "created":
			w.created = r.instant()
		case "amount":
			w.amount = r.number()
		case "amount_refunded":
			w.refunded = r.number()
		case "metadata":
			w.tag, w.takenBy = readTag(r)
		default:
			w.readLink(r, name)
		}
	}
	return w
}

// readLink takes the value of a member that links the object to another, if it is one.
func (w *wire) readLink(r *jsonReader, name []byte) {
	switch string(name) {
	case "payment_intent":
		w.payment = r.link()
	case "invoice":
		none := r.peek() == 'n'
		w.invoice = r.link()
		w.told = none || w.invoice != ""
	case "subscription":
		w.subscription = r.link()
	case "released_subscription":
		w.released = r.link()
	case "schedule":
		w.schedule = r.link()
	case "customer":
		w.customer = r.link()
	case "last_payment_error":
		w.declined, w.code = readDecline(r)
	case "cancellation_details":
		w.canceled = ""
		for range r.member("reason") {
			w.canceled = r.word()
		}
	case "payment":
		w.inner = readPayment(r)
	case "payments":
		w.paidBy, w.own = readPayments(r)
	case "refunds":
		w.refunds = readRefunds(r)
	case "items":
		readItems(r, &w.terms)
	case "cancel_at":
		w.terms.CancelAt = r.instant()
	case "evidence_details":
		for range r.member("due_by") {
			w.due = r.instant()
		}
	case "subscription_details":
		_, tag := readDetails(r)
		w.detailsTag = cmp.Or(tag, w.detailsTag)
	case "parent":
		for range r.member("subscription_details") {
			parent, tag := readDetails(r)
			w.parent, w.detailsTag = parent, cmp.Or(tag, w.detailsTag)
		}
	}
}

func (w *wire) object() tracking.Object {
	o := tracking.Object{Kind: w.kind, ID: w.id, Status: w.status, Created: w.created, Tag: w.tag}
	switch w.kind {
	case tracking.KindPayment:
		o.Amount, o.Currency, o.Customer, o.Invoice, o.InvoiceTold = w.amount, w.currency, w.customer, w.invoice, w.told
		if o.Failed = w.declined && w.status != "succeeded"; o.Failed {
			o.Code = w.code
		}
	case tracking.KindSubscription:
		o.Subscription, o.Schedule, o.Customer, o.Code, o.Terms = w.id, w.schedule, w.customer, w.canceled, w.terms
		o.TakenBy = w.takenBy
	case tracking.KindSchedule:
		o.Schedule, o.Subscription, o.Customer = w.id, cmp.Or(w.subscription, w.released), w.customer
	case tracking.KindInvoice:
		if w.status != "paid" { // a paid payment may be of a part, attached by hand
			w.paidBy = w.own
		}
		o.Invoice, o.Payment, o.Subscription = w.id, cmp.Or(w.payment, w.paidBy), cmp.Or(w.subscription, w.parent)
		o.Customer, o.Tag = w.customer, cmp.Or(w.tag, w.detailsTag)
	case tracking.KindInvoicePayment:
		o.Invoice, o.Payment = w.invoice, w.inner
	case tracking.KindCharge:
		o.Payment, o.Invoice, o.Customer = w.payment, w.invoice, w.customer
		o.Amount, o.Currency, o.Refunded, o.Refunds = w.amount, w.currency, w.refunded, w.refunds
	case tracking.KindRefund:
		o.Payment, o.Amount, o.Currency = w.payment, w.amount, w.currency
		if w.id != "" {
			o.Refunds = []tracking.Refund{{ID: w.id, Amount: w.amount, Status: w.status}}
		}
	case tracking.KindDispute:
		o.Payment, o.Amount, o.Currency, o.Code, o.Due = w.payment, w.amount, w.currency, w.reason, w.due
	}
	return o
}

// id takes the next value if it is an id, safe in a key or a path.
func (r *jsonReader) id() string { return id(r.str()) }

func id(s string) string {
	if api.IsID(s, "") {
		return s
	}
	return ""
}

// word takes the next value if it is one of Stripe's words, such as a status.
func (r *jsonReader) word() string { return word(r.str()) }

func word(s string) string {
	if len(s) <= 255 && !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return s
	}
	return ""
}

// link takes the next value if it is an id, or the object itself, expanded.
func (r *jsonReader) link() (id string) {
	if r.peek() != '{' {
		return r.id()
	}
	for range r.member("id") {
		id = r.id()
	}
	return id
}

// instant takes the next value if it is a time: Unix seconds, or RFC 3339 as in version 2 of the
// API. It is in UTC. It is zero if the value is no time after 1970 and before the year 10000.
func (r *jsonReader) instant() time.Time {
	const most = 253402300800
	if r.peek() == '"' {
		t, err := time.Parse(time.RFC3339, r.str())
		if err != nil || t.Unix() <= 0 || t.Unix() >= most {
			return time.Time{}
		}
		return t.UTC()
	}
	if seconds := r.number(); seconds > 0 && seconds < most {
		return api.Instant(seconds)
	}
	return time.Time{}
}

// currencyIn returns the currency in upper case, or "" if it is none.
func currencyIn(code string) string {
	if len(code) != 3 ||
		strings.ContainsFunc(code, func(c rune) bool { return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') }) {
		return ""
	}
	return strings.ToUpper(code)
}
