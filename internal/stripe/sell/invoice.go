package sell

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/tracking"
)

// invoice makes the invoice of a product, and pays it: the draft, then an item that names it, then
// the payment. In the published diagram of this flow the item comes before the invoice and belongs
// to none. Another invoice of the customer made in between, such as a renewal's, would then take
// the item, and the buyer would pay for it there.
func (s *sale) invoice(ctx context.Context) (tracking.Sale, error) {
	buyer, declined, err := s.payer(ctx)
	if err != nil || declined != "" {
		return refusedAt(buyer.customer, declined), err
	}
	raw, err := s.post(ctx, "invoice", "/v1/invoices", s.invoiceForm(buyer))
	if err != nil {
		return tracking.Sale{}, err
	}
	return s.advance(ctx, raw)
}

func (s *sale) invoiceForm(buyer payer) url.Values {
	form := with(url.Values{
		"customer": {buyer.customer}, "default_payment_method": {buyer.method}, "collection_method": {"charge_automatically"},
		"auto_advance":                   {"false"},   // only this package asks for the payment
		"pending_invoice_items_behavior": {"exclude"}, // the buyer's other debts are not paid here
	}, s.meta)
	if s.units > 0 {
		form.Set("currency", strings.ToLower(s.o.Currency))
	}
	setNonEmpty(form, "description", s.o.Description)
	return form
}

// expandPayments asks for an invoice with its payments.
func expandPayments() url.Values {
	return url.Values{"expand[]": {"payments.data.payment.payment_intent"}}
}

// A bill is an invoice with its payment.
type bill struct {
	tracking.Object
	method  string  // that it is to be paid with
	lines   int     // on the first page of them
	payment payment // zero: there is none yet
}

// lookUp asks for an invoice as it is now, with its payment.
func (s *sale) lookUp(ctx context.Context, id string) (bill, error) {
	if !api.IsID(id, "in_") {
		return bill{}, api.Unusable("invoice", "the ID must be in_… (got %.60q)", id)
	}
	raw, err := s.t.api.Get(ctx, s.o.At, "/v1/invoices/"+id, expandPayments())
	if err != nil {
		return bill{}, err
	}
	return s.readBill(ctx, id, raw)
}

// readBill reads an invoice, asked for with expandPayments.
func (s *sale) readBill(ctx context.Context, id string, raw json.RawMessage) (b bill, err error) {
	if b.Object, err = fetched(tracking.KindInvoice, id, raw); err != nil {
		return bill{}, err
	}
	var more struct {
		Method json.RawMessage `json:"default_payment_method"`
		Lines  struct {
			Data []json.RawMessage `json:"data"`
		} `json:"lines"`
		Payments struct {
			Data []invoicePayment `json:"data"`
		} `json:"payments"`
	}
	if json.Unmarshal(raw, &more) != nil {
		return bill{}, api.Unusable("invoice", "%s cannot be decoded", b.ID)
	}
	b.method, b.lines = linkedID(more.Method), len(more.Lines.Data)
	var best invoicePayment
	for _, p := range more.Payments.Data {
		attached := b.Status != "paid" && !p.Default // perhaps a part
		if !attached && p.rank() > best.rank() && linkedID(p.Payment.Intent) != "" {
			best = p
		}
	}
	intent := best.Payment.Intent
	if best.ID == "" {
		return b, nil
	}
	if id := linkedID(intent); !isObject(intent) {
		if !api.IsID(id, "pi_") {
			return bill{}, api.Unusable("invoice", "%s has a payment with ID %.60q", b.ID, id)
		}
		if intent, err = s.t.api.Get(ctx, s.o.At, "/v1/payment_intents/"+id, nil); err != nil {
			return bill{}, err
		}
	}
	if b.payment, err = s.readPayment(intent); err != nil {
		return bill{}, err
	}
	b.payment.Invoice, b.payment.Subscription, b.payment.InvoiceTold = b.ID, b.Subscription, true
	return b, nil
}

// isUntried reports whether there was no attempt to pay it yet.
func (b bill) isUntried() bool {
	p := b.payment
	return b.Status == "open" && (p.ID == "" || !p.Failed &&
		(p.Status == "requires_payment_method" || p.Status == "requires_confirmation"))
}

// isDeclined reports whether an attempt to pay it was refused.
func (b bill) isDeclined() bool {
	return b.payment.ID != "" && b.Status != "paid" && (b.payment.Status == "canceled" || b.payment.Failed && b.payment.Status != actionStatus)
}

func (b bill) sale() tracking.Sale {
	sale := tracking.Sale{Customer: b.Customer}
	if b.payment.ID != "" {
		sale.Objects = []tracking.Object{b.payment.Object}
	}
	if b.Status == "paid" && b.payment.Status != "succeeded" { // by the customer's credit, or outside Stripe
		sale.Objects = append(sale.Objects, b.Object)
	}
	if b.isDeclined() {
		sale.Objects[0].Failed, sale.Declined = true, cmp.Or(b.payment.decline, "declined")
	}
	if b.payment.Status == actionStatus {
		sale.Action, sale.ClientSecret = true, b.payment.secret
	}
	return sale
}

// advance takes the invoice on until it is paid, declined, or waits. raw need not have its payments.
func (s *sale) advance(ctx context.Context, raw json.RawMessage) (tracking.Sale, error) {
	id, err := api.IDIn(raw)
	if err != nil {
		return tracking.Sale{}, err
	}
	b, err := s.readBill(ctx, id, raw)
	if err == nil && b.Status != "draft" { // a draft has no payments
		b, err = s.lookUp(ctx, id)
	}
	if err != nil || s.lookOnly {
		return b.sale(), err
	}
	if b.Status == "draft" {
		open, err := s.finalize(ctx, b)
		if api.IsRejected(err) {
			err = s.discard(ctx, b, err)
		}
		if err != nil {
			return tracking.Sale{}, err
		}
		b = open
	}
	if b.isUntried() {
		if b, err = s.pay(ctx, b); err != nil {
			return tracking.Sale{}, err
		}
	}
	if b.Status == "open" && b.isDeclined() {
		return s.close(ctx, b)
	}
	return b.sale(), nil
}

// finalize puts the item on the draft, unless it is there, and finalizes the invoice.
func (s *sale) finalize(ctx context.Context, draft bill) (bill, error) {
	if draft.lines == 0 {
		if err := s.item(ctx, draft); err != nil {
			return bill{}, err
		}
	}
	form := with(expandPayments(), url.Values{"auto_advance": {"false"}})
	raw, err := s.post(ctx, "finalize", "/v1/invoices/"+draft.ID+"/finalize", form)
	if err != nil {
		return bill{}, err
	}
	b, err := s.readBill(ctx, draft.ID, raw)
	if err == nil && b.Status == "draft" {
		err = api.Unusable("invoice", "Stripe finalized %s, but still shows it as a draft", b.ID)
	}
	return b, err
}

func (s *sale) item(ctx context.Context, b bill) error {
	form := with(url.Values{"customer": {b.Customer}, "invoice": {b.ID}}, s.meta)
	if s.units > 0 {
		form.Set("amount", strconv.FormatInt(s.units, 10))
		form.Set("currency", strings.ToLower(s.o.Currency))
	} else {
		form.Set("pricing[price]", s.o.Price)
	}
	setNonEmpty(form, "description", s.o.Description)
	_, err := s.post(ctx, "item", "/v1/invoiceitems", form)
	return err
}

// pay asks Stripe to collect the invoice, and returns the invoice as it is afterwards. The payment
// decides whether it was declined, whatever the answer to the request. Only a refusal without a
// charge is read from the answer.
func (s *sale) pay(ctx context.Context, b bill) (bill, error) {
	form := with(expandPayments(), url.Values{"off_session": {"false"}})
	setNonEmpty(form, "payment_method", b.method)
	raw, err := s.post(ctx, "pay", "/v1/invoices/"+b.ID+"/pay", form)
	if err == nil {
		var paid bill
		if paid, err = s.readBill(ctx, b.ID, raw); err == nil && !paid.isUntried() {
			return paid, nil
		}
		err = api.Unusable("invoice", "Stripe accepted the payment of %s, but shows no attempt", b.ID)
	}
	if f, ok := api.Is(err, api.Busy, api.Refused, api.AccountRefused); ok {
		return bill{}, f
	}
	now, problem := s.lookUp(ctx, b.ID)
	if problem != nil {
		return bill{}, err
	}
	if !now.isUntried() {
		return now, nil
	}
	if text, is := isDecline(err); is && now.payment.ID != "" { // a refusal without a charge
		now.payment.Failed, now.payment.decline = true, text
		return now, nil
	}
	if api.IsRejected(err) {
		return bill{}, s.discard(ctx, now, err)
	}
	return bill{}, err
}

// close voids an invoice whose payment was declined. Otherwise somebody could pay it after the
// buyer has bought elsewhere or again. Voiding cancels the payment, which stays declined. close
// returns the decline only after the invoice is closed, so that until then Sell is called again.
func (s *sale) close(ctx context.Context, b bill) (tracking.Sale, error) {
	_, err := s.post(ctx, "void", "/v1/invoices/"+b.ID+"/void", nil)
	if err == nil {
		return b.sale(), nil
	}
	if !api.IsRejected(err) {
		return tracking.Sale{}, err
	}
	now, problem := s.lookUp(ctx, b.ID) // it may be paid or closed by now
	if problem == nil && now.Status == "open" {
		problem = api.Unusable("invoice", "%s cannot be voided: %v", b.ID, err)
	}
	return now.sale(), problem
}

// discard takes back an invoice that cannot become the order, and returns the cause. A draft is
// deleted, and an open invoice voided. The error is another one if the invoice may be left.
func (s *sale) discard(ctx context.Context, b bill, cause error) error {
	var err error
	if b.Status == "draft" {
		_, _, err = s.t.api.Ask(ctx, http.MethodDelete, "/v1/invoices/"+b.ID, s.o.At, "", nil)
	} else {
		_, err = s.post(ctx, "void", "/v1/invoices/"+b.ID+"/void", nil)
	}
	if _, was := api.Is(err, api.Gone); err != nil && !was {
		return api.Unusable("invoice", "%s could not be removed (%v) after this error: %v", b.ID, err, cause)
	}
	return cause
}
