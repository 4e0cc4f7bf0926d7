package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/stripefake"
)

// idTail ends every id of Stripe's in the bodies, before so many digits: real ids are as long.
const (
	idTail = "1Ty8qLDuesdayX"
	digits = 10
)

// stripeID is the id of the n-th object whose ids begin so.
func stripeID(prefix string, n int) string { return fmt.Sprintf("%s_%s%010d", prefix, idTail, n) }

// A slot is a difference between the bodies of one type.
type slot int

const (
	slotEvent slot = iota
	slotCreated
	slotAccount
	slotPurchase
	slotCustomer
	slotPayment
	slotSubscription
	slotInvoice
	slots
)

// A template is the body of a type of events, in which only the bytes in the slots differ.
type template struct {
	body []byte
	at   [slots][]int // where each of a slot's values begins; of an id, where its digits do
	made time.Time    // of the object
}

// text puts the value of a slot that is no number, always of one length, into a copy of the body.
func (t *template) text(body []byte, s slot, value string) {
	for _, at := range t.at[s] {
		copy(body[at:], value)
	}
}

// number makes the ids in a slot those of the n-th object.
func (t *template) number(body []byte, s slot, n int) {
	for _, at := range t.at[s] {
		for i, left := at+digits-1, n; i >= at; i, left = i-1, left/10 {
			body[i] = byte('0' + left%10)
		}
	}
}

// templates have the fake of Stripe make a payment, and a subscription with its invoice.
func templates(ctx context.Context) ([]template, error) {
	const account, purchase = "acct_" + idTail + "0000000000", "00000000-0000-4000-8000-000000000000"
	fake := stripefake.New(stripefake.Options{Connected: []string{account}})
	a := asker{ctx: ctx, fake: fake, account: account}
	tag := func(kind tracking.Kind) []string {
		return []string{"metadata[" + tracking.MetaInstallation + "]", installation, "metadata[" + tracking.MetaPurchase +
			"]", purchase,
			"metadata[" + tracking.MetaKind + "]", string(kind)}
	}
	customer := a.post("customers", "email", "buyer@example.com", "name", "B. Uyer", "payment_method", "pm_card_visa")
	method := a.post("payment_methods/pm_card_visa/attach", "customer", customer)
	payment := a.post("payment_intents", append(tag(tracking.Legacy), "amount", "4900", "currency", "usd", "customer",
		customer, "payment_method", method,
		"payment_method_types[0]", "card", "confirm", "true")...)
	price := a.post("prices", "currency", "usd", "unit_amount", "4900", "recurring[interval]", "month", "product",
		a.post("products", "name", "A plan"))
	subscription := a.post("subscriptions",
		append(tag(tracking.Subscribe), "customer", customer, "default_payment_method", method, "items[0][price]", price)...)
	a.post("subscriptions/"+subscription, "description", "renewed")
	if a.err != nil {
		return nil, errors.Join(fmt.Errorf("bodies of events: %w", a.err), fake.Close())
	}
	bodies := map[string][]byte{}
	for _, e := range fake.Events(account, false, bodyVersion) {
		// not the subscription's own payment
		if bytes.Contains(e.Body, []byte(payment)) || bytes.Contains(e.Body, []byte(subscription)) {
			bodies[e.Type] = e.Body
		}
	}
	var list []template
	for _, typ := range eventTypes {
		t, err := newTemplate(bodies[typ], map[slot]string{slotAccount: account, slotPurchase: purchase,
			slotCustomer: customer,
			slotPayment:  payment, slotSubscription: subscription})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", typ, err), fake.Close())
		}
		list = append(list, t)
	}
	return list, fake.Close()
}

// bodyVersion is a version of the API in which an invoice says which payment paid it, so that
// the event changes something.
const bodyVersion = "2024-06-20"

// eventTypes are those that are sent, a third each.
var eventTypes = [...]string{"payment_intent.succeeded", "customer.subscription.updated", "invoice.paid"}

// newTemplate finds the slots, and gives them their length at Stripe.
func newTemplate(body []byte, values map[slot]string) (template, error) {
	var e struct {
		ID      string
		Created json.Number
		Data    struct {
			Object struct {
				ID, Object string
				Created    int64
				Payment    string `json:"payment_intent"`
			}
		}
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return template{}, err
	}
	values[slotEvent] = e.ID
	if e.Data.Object.Object == "invoice" {
		values[slotInvoice], values[slotPayment] = e.Data.Object.ID, e.Data.Object.Payment
	}
	t := template{made: time.Unix(e.Data.Object.Created, 0)}
	for s, value := range values {
		if prefix, _, ok := strings.Cut(value, "_fake"); ok {
			long := stripeID(prefix, int(s))
			body, values[s] = bytes.ReplaceAll(body, []byte(value), []byte(long)), long
		}
	}
	t.body = body
	for s, value := range values {
		for at := 0; ; {
			i := bytes.Index(body[at:], []byte(value))
			if i < 0 {
				break
			}
			at += i + len(value)
			switch s {
			case slotPurchase:
				t.at[s] = append(t.at[s], at-len(value))
			default:
				t.at[s] = append(t.at[s], at-digits)
			}
		}
	}
	// the event's own comes first
	t.at[slotCreated] = []int{bytes.Index(body, []byte(`"created": `+string(e.Created))) + len(`"created": `)}
	return t, nil
}

// An asker asks the fake without a network, until something fails.
type asker struct {
	ctx     context.Context
	fake    *stripefake.Fake
	account string
	err     error
}

// post returns the id of the new object. The parameters are names and values in turn.
func (a *asker) post(path string, params ...string) (id string) {
	if a.err != nil {
		return ""
	}
	form := url.Values{}
	for i := 0; i < len(params); i += 2 {
		form.Set(params[i], params[i+1])
	}
	r, err := http.NewRequestWithContext(a.ctx, http.MethodPost, "http://localhost/v1/"+path,
		strings.NewReader(form.Encode()))
	if err != nil {
		a.err = err
		return ""
	}
	r.Header.Set("Authorization", "Bearer "+stripefake.DefaultKeys()[0].Secret)
	r.Header.Set("Stripe-Account", a.account)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	a.fake.ServeHTTP(w, r)
	var o struct{ ID string }
	if err := json.Unmarshal(w.Body.Bytes(), &o); err != nil || w.Code != http.StatusOK {
		a.err = fmt.Errorf("POST %s: %d %s", path, w.Code, w.Body)
	}
	return o.ID
}
