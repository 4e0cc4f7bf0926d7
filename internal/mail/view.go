package mail

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/locale"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
)

// A view is an effect as templates see it. Every text is one line of bounded length, "" if it is not
// known. Dates and amounts are written out in the view's language.
type view struct {
	Kind, Language        string
	Merchant, Address     string // the merchant's name and postal address
	Account, Email, Name  string // Name is the customer's
	Subscription, Product string // the product is its name, else the SKU, else the subscription
	Amount, Before        string // before a change of the price
	Quantity, Discount    string // 3 × $4.33, and what the discount reduces the amount by
	Net, Tax              string // what the amount is without tax, and the tax: $2.07 (19%, reverse charge)
	Due, Paid, Retry      string
	PayBy, PayTo          string // of a payment by wire: it has to arrive before PayBy
	CollectUntil          string // of a failed payment: until then a new payment method collects it
	Refunded              string
	Receipt, Reference    string
	Card, CardUntil       string // the last month in which it is good
	Reason                string // a code of the template "reason"
	NoMethod, CardExpired bool
	Trial                 bool   // the first payment, after a free trial
	Fallback              bool   // it was tried with the account's second payment method
	Link                  *link  // nil: there is none
	Document              *link  // to the receipt's page; nil: there is none
	Page                  *link  // to the customer's page; nil: there is none
	Facts                 []fact // the known values, in their order
	arrears               []fact // of a cancelled subscription: the periods written off, and their sum
}

// A fact is a value, with the key of its label, and the label, which is set when the message is made.
type fact struct{ Key, Value, Label string }

// A link is the address for the customer's next step, unchanged: a cleaned one might lead elsewhere.
type link struct {
	URL   string
	Until string
}

// newView returns outbox.ErrPermanent for an effect that can never become a message.
func newView(e outbox.Effect, s *settings.Settings) (*view, error) {
	d := make(map[string]string, len(e.Data))
	for key, value := range e.Data {
		d[key] = clean(value)
	}
	language := locale.Language(d[outbox.DataLocale])
	f := form{locale.FormOf(language)}
	day := func(key string) string {
		text := d[key]
		return f.rewrite(text[:min(len(text), len(time.DateOnly))], time.DateOnly, f.Day, text)
	}
	amount := func(key, usual string) string { return f.amountIn(d[outbox.DataCurrency], d[key], d[usual]) }
	v := &view{Kind: e.Kind, Language: language, Merchant: clean(s.MerchantName), Address: clean(s.PostalAddress),
		Account: d[outbox.DataAccount], Email: d[outbox.DataEmail], Subscription: d[outbox.DataSubscription],
		Name:    d[outbox.DataName],
		Product: cmp.Or(clean(s.Products[e.Data[outbox.DataSKU]]), d[outbox.DataSKU], d[outbox.DataSubscription]),
		Amount:  amount(outbox.DataAmount, outbox.DataAmountText), Before: amount(outbox.DataBefore, outbox.DataBefore),
		Due: day(outbox.DataDueDate), Paid: day(outbox.DataProcessed), Retry: day(outbox.DataRetryDate),
		CollectUntil: day(outbox.DataCollect), PayBy: day(outbox.DataPayBy),
		Receipt: cmp.Or(d[outbox.DataNumber], d[outbox.DataReceipt]), Reference: d[outbox.DataCharge], Reason: reason(d[outbox.DataCode]),
		Card:      strings.Replace(d[outbox.DataCard], " ending in ", " •••• ", 1),
		CardUntil: f.rewrite(d[outbox.DataCardExpires], "2006-01", f.Month, d[outbox.DataCardExpires]),
		NoMethod:  d[outbox.DataNoMethod] != "", CardExpired: d[outbox.DataCardExpired] != "",
		Trial: d[outbox.DataTrial] != "", Fallback: d[outbox.DataFallback] != ""}
	if v.Subscription == "" || v.Amount == "" {
		return nil, fmt.Errorf("%w: the %s lacks %s or %s", outbox.ErrPermanent, clean(e.Kind), outbox.DataSubscription,
			outbox.DataAmountText)
	}
	v.Page = f.link(e, outbox.DataPage)
	v.Discount = amount(outbox.DataDiscount, outbox.DataDiscount)
	if v.Quantity = d[outbox.DataQuantity]; v.Quantity != "" {
		v.Quantity += " × " + amount(outbox.DataUnit, outbox.DataUnit)
	}
	v.Net, v.Tax = amount(outbox.DataNet, outbox.DataNet), amount(outbox.DataTax, outbox.DataTax)
	if v.Tax != "" {
		v.Tax += " (" + strings.TrimSuffix(f.Percent(d[outbox.DataTaxRate])+", "+d[outbox.DataTaxNote], ", ") + ")"
	}
	if v.PayBy != "" {
		v.PayTo = clean(s.PayTo)
	}
	switch e.Kind {
	case outbox.KindReceipt:
		v.Document = f.link(e, outbox.DataDocument)
	case outbox.KindRefund:
		v.Paid, v.Refunded = "", v.Paid
	case outbox.KindCancelled:
		v.Due = ""
		for pair := range slices.Chunk(strings.Fields(e.Data[outbox.DataArrears]), 2) {
			due, owed := clean(pair[0]), clean(pair[len(pair)-1])
			v.arrears = append(v.arrears, fact{"arrears", f.amountIn(d[outbox.DataCurrency], owed, owed) + " (" +
				f.rewrite(due, time.DateOnly, f.Day, due) + ")", ""})
		}
		v.arrears = append(v.arrears, fact{"arrears_sum", amount(outbox.DataArrearsSum, outbox.DataArrearsSum), ""})
	case outbox.KindReminder:
		if v.NoMethod || v.CardExpired {
			v.Link = f.link(e, outbox.DataLink)
		}
	case outbox.KindDeclined, outbox.KindFailed, outbox.KindActionRequired, outbox.KindCardExpires:
		v.Link = f.link(e, outbox.DataLink)
	}
	v.Facts = v.facts()
	return v, nil
}

func (v *view) facts() []fact {
	email, amount := "", v.Amount
	switch v.Kind {
	case outbox.KindReceipt:
		email = strings.TrimPrefix(v.Name+", "+v.Email, ", ") // a receipt is kept as a document
	case outbox.KindCancelled:
		amount = ""
	}
	all := []fact{{"receipt", v.Receipt, ""}, {"email", email, ""}, {"subscription", v.Subscription, ""},
		{"product", v.Product, ""}, {"quantity", v.Quantity, ""}, {"discount", v.Discount, ""}, {"net", v.Net, ""}, {"tax", v.Tax, ""},
		{"amount", amount, ""}, {"paid", v.Paid, ""}, {"refunded", v.Refunded, ""},
		{"due", v.Due, ""}, {"reference", v.Reference, ""}, {"card", v.Card, ""}, {"card_until", v.CardUntil, ""},
		{"reason", v.Reason, ""}, {"retry", v.Retry, ""}, {"pay_by", v.PayBy, ""}, {"pay_to", v.PayTo, ""}}
	return slices.DeleteFunc(append(all, v.arrears...), func(f fact) bool {
		return f.Value == "" || f.Key == "product" && f.Value == v.Subscription
	})
}

// A form also writes what an effect has as text.
type form struct{ locale.Form }

// amountIn writes out an amount. It returns usual for one that cannot be read.
func (f form) amountIn(currency, amount, usual string) string {
	c, err := money.ParseCurrency(currency)
	if err != nil {
		return usual
	}
	a, err := money.Parse(amount, c)
	if err != nil {
		return usual
	}
	return f.Amount(a)
}

// rewrite writes out the date of the layout by another one. It returns usual for any other text.
func (f form) rewrite(text, layout, by, usual string) string {
	t, err := time.Parse(layout, text)
	if err != nil {
		return usual
	}
	return f.Date(t, by)
}

// link returns the effect's link if it is a web address in one line, or nil.
func (f form) link(e outbox.Effect, key string) *link {
	address := e.Data[key]
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil ||
		strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil
	}
	l := &link{URL: address}
	if t, err := time.Parse(time.RFC3339, e.Data[outbox.DataLinkExpires]); err == nil && key == outbox.DataLink {
		l.Until = f.Date(t.UTC(), f.Moment)
	}
	return l
}

// reason returns the code if a reader of the mail may learn of it (not of a card reported stolen).
func reason(code string) string {
	switch code {
	case "insufficient_funds", "expired_card", "authentication_required", "processing_error":
		return code
	}
	return ""
}
