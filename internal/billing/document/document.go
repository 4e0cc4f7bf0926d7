// Package document renders a payment's receipt or invoice as one HTML page in the account's
// language, and signs the links to it.
//
// It does not number receipts, send mail or listen.
package document

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/numbering"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/locale"
	"github.com/duesday/duesday/internal/store"
)

// A Document is a payment with what its page shows.
type Document struct {
	Receipt      *billing.Receipt
	Account      *billing.Account          // without details if it does not exist
	Reversals    []*billing.ReversalRecord // of the receipt's charge
	Settings     settings.Settings
	Installation string
}

// Of reads what the receipt's document shows. The seller and the customer of a receipt are those of
// today, and those of an invoice never change. Every refund is on the same page.
func Of(ctx context.Context, e *billing.Records, r *billing.Receipt) (*Document, error) {
	d := &Document{Receipt: r, Installation: e.Opened.Installation}
	var err error
	if d.Settings, err = settings.Read(ctx, e); err != nil {
		return nil, err
	}
	d.Account, err = e.Account(ctx, r.Account)
	if errors.Is(err, store.ErrNotFound) {
		d.Account, err = &billing.Account{ID: r.Account}, nil
	}
	if err != nil || r.Kind != billing.Charged {
		return d, err
	}
	d.Reversals, err = e.ReversalsOf(ctx, r.Account)
	d.Reversals = slices.DeleteFunc(d.Reversals, func(x *billing.ReversalRecord) bool { return x.Charge != r.Charge })
	return d, err
}

// Find returns the account's receipt with the number or id, or store.ErrNotFound. Only a number
// identifies the account too, which may then be empty.
func Find(ctx context.Context, e *billing.Records, account, id string) (*billing.Receipt, error) {
	if err := billing.CheckGiven(account, func(text string) error { return billing.CheckID("account", text) }); err != nil {
		return nil, err
	}
	key, err := numbering.Lookup(ctx, e, id)
	switch {
	case err == nil && strings.HasPrefix(key.SK, billing.RecPrefix) && (account == "" || key.PK == billing.AccountPK(account)):
		it, err := e.Store.Get(ctx, e.Table, key)
		if err != nil {
			return nil, err
		}
		return billing.DecodeReceipt(it)
	case err == nil || account == "" || !errors.Is(err, store.ErrNotFound):
		return nil, cmp.Or(err, store.ErrNotFound)
	}
	return findID(ctx, e, account, id)
}

func findID(ctx context.Context, e *billing.Records, account, id string) (*billing.Receipt, error) {
	prefixes := []string{billing.RecPrefix}
	if day, err := time.Parse("20060102", id[:min(8, len(id))]); err == nil { // an id begins with the day, and so does the key
		prefixes = []string{billing.RecPrefix + day.Format(time.DateOnly), billing.RecPrefix}
	}
	var illegible error // it may be the receipt
	for _, prefix := range prefixes {
		for it, err := range e.Store.Query(ctx, store.Query{Table: e.Table, Partition: billing.AccountPK(account), Prefix: prefix}) {
			if err != nil {
				return nil, err
			}
			r, err := billing.DecodeReceipt(it)
			if err == nil && r.Number(e.Opened.Installation) == id {
				return r, nil
			}
			illegible = cmp.Or(illegible, err)
		}
	}
	return nil, cmp.Or(illegible, store.ErrNotFound)
}

//go:embed page.html page.css words
var files embed.FS

// parsed is the design of documents.
var parsed = sync.OnceValue(func() *Design { return NewDesign(files) })

// Policy returns the Content-Security-Policy of all documents, which have no forms.
func Policy() string { return parsed().Policy("'none'") }

// HTML returns the document's page. It needs no other file, and prints on one sheet of A4 unless it
// has many refunds.
func (d *Document) HTML() ([]byte, error) { return parsed().Render(d.page()) }

// Missing returns the page for a link that leads nowhere.
func Missing(language string) ([]byte, error) { return notice(language, "missing") }

// Unavailable returns the page for a document that cannot be read at the moment.
func Unavailable(language string) ([]byte, error) { return notice(language, "later") }

func notice(language, key string) ([]byte, error) {
	p := newPage(language)
	p.Title, p.Foot = p.Word(key), p.Word(key+"_text")
	return parsed().Render(p)
}

// A page is what the template shows. Every text is one clean line.
type page struct {
	locale.Form
	Language, Title, Number string
	Stamp                   string // of a refunded payment
	Seller, Customer        []string
	Facts                   []row
	Rows                    []row // none: the page is a notice
	Foot                    string
}

// Dense reports whether the page is printed smaller, because its texts are long or it has many
// refunds.
func (p *page) Dense() bool {
	const most, rows = 700, 8 // what a sheet has room for in the usual size
	n := 0
	for _, text := range slices.Concat(p.Seller, p.Customer) {
		n += utf8.RuneCountInString(text)
	}
	for _, r := range slices.Concat(p.Facts, p.Rows) {
		n += utf8.RuneCountInString(r.Label + r.Value + strings.Join(r.Notes, ""))
	}
	return n > most || len(p.Rows) > rows
}

// A row is a line of a table.
type row struct {
	Label, Value string
	Notes        []string // below the label
	Strong       bool
}

func newPage(language string) *page {
	language = locale.Language(language)
	return &page{Form: locale.FormOf(language), Language: language}
}

// Word returns a text of the page's language.
func (p *page) Word(key string) string { return parsed().Word(p.Language, key) }

// fact adds a fact unless its value is empty.
func (p *page) fact(key, value string) {
	if value = locale.Clean(value); value != "" {
		p.Facts = append(p.Facts, row{Label: p.Word(key), Value: value})
	}
}

// lines returns the texts that are not empty, cleaned.
func lines(texts ...string) (all []string) {
	for _, text := range texts {
		if text = locale.Clean(text); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// labeled returns "label: value", or "" without a value.
func labeled(label, value string) string {
	if value == "" {
		return ""
	}
	return label + ": " + value
}
