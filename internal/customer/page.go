package customer

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/document"
	"github.com/duesday/duesday/internal/billing/portal"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/locale"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// maxReceipts is how many receipts the page lists, the newest ones.
const maxReceipts = 120

//go:embed page.html page.css words
var files embed.FS

// design is how the pages look.
var design = sync.OnceValue(func() *document.Design { return document.NewDesign(files) })

// A page is what the template shows. Every text is one clean line.
type page struct {
	*visitor
	locale.Form
	Language, Title, Text, Seller, Contact string
	Pass                                   string     // hidden field of the forms
	Button                                 string     // of a link's page
	Agreed                                 *agreement // about a new card of the account, or of the link; nil: none
	Whole                                  bool       // it is the account's page, with these parts
	Name                                   string
	Subscriptions                          []subscription
	Receipts                               []receipt
}

// A receipt is a row of the page.
type receipt struct{ Day, Product, Amount, Refunded, Link string }

// newPage returns a page in the account's language.
func (v *visitor) newPage(title, text string) *page {
	language := locale.Language(v.account.Locale)
	p := &page{visitor: v, Form: locale.FormOf(language), Language: language, Seller: locale.Clean(v.SellerName()), Contact: locale.Clean(v.ReplyTo)}
	p.Title, p.Text = p.Say(title), p.Say(text)
	return p
}

// Say returns a text of the page's language, in which the pairs and {seller} are replaced.
func (p *page) Say(key string, pairs ...string) string {
	return strings.NewReplacer(append(pairs, "{seller}", p.Seller)...).Replace(design().Word(p.Language, key))
}

// date writes out a day.
func (p *page) date(day civil.Date) string { return p.Date(day.In(time.UTC), p.Day) }

// product returns the name that customers see.
func (v *visitor) product(sku, id string) string {
	return locale.Clean(cmp.Or(v.Products[sku], sku, id))
}

func (p *page) reply(status int) (reply, error) {
	forms := "'self' https:" // the processor's page, to which a form is redirected
	if strings.HasPrefix(p.PublicURL, "http:") {
		forms += " http:" // on this machine
	}
	text, err := design().Render(p)
	return reply{status: status, policy: design().Policy(forms), text: text}, err
}

// notice returns a page that only has a text.
func (v *visitor) notice(status int, key string) (reply, error) {
	return v.newPage(key, key+"_text").reply(status)
}

// page returns the page of the visitor's pass. A link's page shows nothing of the account, except
// what a new card pays.
func (v *visitor) page(ctx context.Context) (reply, error) {
	p := v.newPage("title", "")
	switch v.pass.Purpose {
	case portal.Page:
		p.Text, p.Button = p.Say("link_text"), p.Say("open")
		return p.reply(http.StatusOK)
	case portal.Card:
		p.Title, p.Text, p.Button = p.Say("card"), p.Say("card_text"), p.Say("card")
	default:
		p.Whole, p.Name = true, locale.Clean(v.account.Name)
		if err := errors.Join(p.addSubscriptions(ctx), p.addReceipts(ctx)); err != nil {
			return reply{}, err
		}
	}
	p.Pass = v.form()
	if p.wallet() {
		paid, err := v.paidBy(ctx, v.pass.Of)
		if err != nil {
			return reply{}, err
		}
		p.Agreed = p.agreement(paid...)
	}
	return p.reply(http.StatusOK)
}

// wallet reports whether the processor keeps cards.
func (v *visitor) wallet() bool {
	_, is := v.billing.Cards().Processor.(processor.Wallet)
	return is
}

// addSubscriptions adds what the customer pays, and last what is over.
func (p *page) addSubscriptions(ctx context.Context) error {
	all, err := p.subscriptions(ctx)
	for _, over := range [...]bool{false, true} {
		for _, s := range all {
			if s.Over() == over {
				p.Subscriptions = append(p.Subscriptions, p.subscriptionOf(s))
			}
		}
	}
	return err
}

// addReceipts adds the newest receipts, which link to their documents, with what was refunded of each.
func (p *page) addReceipts(ctx context.Context) error {
	refunds := map[string]money.Amount{} // by charge
	q := store.Query{Table: p.records.Table, Partition: billing.AccountPK(p.account.ID), Prefix: billing.RefPrefix}
	for it, err := range p.records.Store.Query(ctx, q) {
		if err != nil {
			return err
		}
		if x, err := billing.DecodeReversal(it); err == nil && x.Kind == processor.Refunded && x.State == processor.ReversalSucceeded {
			if sum, err := refunds[x.Charge].Add(x.Amount); err == nil {
				x.Amount = sum
			}
			refunds[x.Charge] = x.Amount
		}
	}
	q.Prefix, q.Reverse, q.Limit = billing.RecPrefix, true, maxReceipts
	for it, err := range p.records.Store.Query(ctx, q) {
		if err != nil {
			return err
		}
		if r, err := billing.DecodeReceipt(it); err == nil {
			x := receipt{Day: p.date(billing.TodayIn(p.account.TimeZone, r.Processed)), Product: p.product(r.SKU, r.ID), Amount: p.Amount(r.Amount),
				Link: p.documents.To(p.account.ID, r.Number(p.records.Opened.Installation))}
			if back := refunds[r.Charge]; r.Kind == billing.Charged && back.IsPositive() {
				x.Refunded = p.Say("refunded", "{amount}", p.Amount(back))
			}
			p.Receipts = append(p.Receipts, x)
		}
	}
	return nil
}
