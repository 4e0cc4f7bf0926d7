package person

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/maillog"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

// metaAccount is the name of the account in the metadata that billing gives to Stripe's objects.
const metaAccount = "duesday_account"

// A search finds the items about one or several persons. An event is about a person if it names an
// account, one of the person's customers at Stripe, or the person's address.
type search struct {
	*billing.Records
	own                         string          // the platform's Stripe account; "" if unknown
	accounts, emails, customers map[string]bool // emails in lower case; customers as <Stripe account>/<customer>
}

func newSearch(ctx context.Context, r *billing.Records) (*search, error) {
	own, _, err := tracking.Pinned(ctx, r.Store, r.Tables)
	return &search{r, own, map[string]bool{}, map[string]bool{}, map[string]bool{}}, billing.IgnoreNotFound(err)
}

func (s *search) add(a *billing.Account) {
	s.accounts[a.ID] = true
	s.addCustomer(cmp.Or(a.Payer.At, s.own), a.Payer.Customer)
	if a.Email != "" {
		s.emails[strings.ToLower(a.Email)] = true
	}
}

func (s *search) addCustomer(at, customer string) {
	if customer != "" {
		s.customers[at+"/"+customer] = true
	}
}

// of returns a search for one account's person.
func of(ctx context.Context, r *billing.Records, account string) (*search, *billing.Account, error) {
	a, err := r.Account(ctx, account)
	if err != nil {
		return nil, nil, err
	}
	s, err := newSearch(ctx, r)
	if err == nil {
		s.add(a)
	}
	return s, a, err
}

// items yields the items about the persons. Purchases come before events, because events may name a
// purchase's customer.
func (s *search) items(ctx context.Context) iter.Seq2[Item, error] {
	t := &s.Tables
	return func(yield func(Item, error) bool) {
		for _, x := range []struct {
			table *store.Table
			about func(store.Item) bool
		}{{&t.RecurringPayments, s.aboutRecord}, {&t.Outbox, s.aboutMail}, {&t.Tracking.Purchases, s.aboutPurchase},
			{&t.Tracking.Events, s.aboutEvent}} {
			for it, err := range s.Store.Scan(ctx, store.Scan{Table: x.table.Name}) {
				if (err != nil || x.about(it)) && !yield(Item{x.table, it}, err) || err != nil {
					return
				}
			}
		}
	}
}

func (s *search) aboutRecord(it store.Item) bool {
	pk := it.Str(schema.PK)
	if strings.HasPrefix(pk, call.KeyPrefix) {
		part := strings.Split(it.Str(schema.Object), "/")
		return len(part) > 1 && part[0] == "accounts" && s.accounts[part[1]]
	}
	if maillog.IsRecord(it) {
		return s.accounts[it.Get(schema.Data).Map().Str(outbox.DataAccount)]
	}
	if job.IsUnpaid(it) {
		return s.accounts[it.Str(schema.Account)]
	}
	return pk == billing.AccountPK(billing.AccountOf(pk)) && s.accounts[billing.AccountOf(pk)]
}

// kindOf returns the prefix of the item's key that tells its kind.
func kindOf(it store.Item) string {
	key := billing.KeyOf(it)
	if strings.HasPrefix(key.PK, call.KeyPrefix) {
		return billing.KeyPrefix
	}
	if maillog.IsRecord(it) {
		return maillog.Prefix
	}
	if job.IsUnpaid(it) {
		return job.UnpaidPrefix
	}
	return key.SK[:strings.IndexByte(key.SK, '#')+1]
}

func (s *search) aboutMail(it store.Item) bool {
	e, _ := outbox.Decode(it)
	return (e.Queue == outbox.Held || e.Queue == outbox.Mail) && s.accounts[e.Data[outbox.DataAccount]]
}

func (s *search) aboutPurchase(it store.Item) bool {
	p, err := tracking.DecodePurchase(it)
	if err != nil {
		return false
	}
	about := s.emails[strings.ToLower(p.Order.Email)] || s.customers[customerOf(p)]
	if about {
		s.addCustomer(p.StripeAccount, cmp.Or(p.Customer, p.Order.Customer))
	}
	return about
}

func customerOf(p *tracking.Purchase) string {
	return p.StripeAccount + "/" + cmp.Or(p.Customer, p.Order.Customer)
}

func (s *search) aboutEvent(it store.Item) bool {
	e, err := tracking.DecodeEvent(it)
	return err == nil && s.names(e.StripeAccount, e.Body)
}

// names reports whether the event's body is about one of the persons.
func (s *search) names(at string, body []byte) bool {
	ours := bytes.Contains(body, []byte(s.Opened.Installation)) // other installations may have an account with this ID
	d := json.NewDecoder(bytes.NewReader(body))
	for name := ""; ; {
		token, err := d.Token()
		if err != nil {
			return false
		}
		text, _ := token.(string)
		if s.emails[strings.ToLower(text)] || s.customers[at+"/"+text] || ours && name == metaAccount && s.accounts[text] {
			return true
		}
		name = text
	}
}
