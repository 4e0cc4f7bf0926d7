package person

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

// metaAccount is the name of the account in the metadata that billing gives to Stripe's objects.
const metaAccount = "duesday_account"

// A search finds the items about one person. An event is about the person if it names the account, one of the
// person's customers at Stripe, or the person's address.
type search struct {
	*billing.Records
	account   *billing.Account
	own       string              // the platform's Stripe account; "" if unknown
	customers map[string]struct{} // <Stripe account>/<customer>
}

func newSearch(ctx context.Context, r *billing.Records, account string) (*search, error) {
	a, err := r.Account(ctx, account)
	if err != nil {
		return nil, err
	}
	s := &search{Records: r, account: a, customers: map[string]struct{}{}}
	s.own, _, err = tracking.Pinned(ctx, r.Store, r.Tables)
	s.add(cmp.Or(a.Payer.At, s.own), a.Payer.Customer)
	return s, billing.IgnoreNotFound(err)
}

func (s *search) add(at, customer string) {
	if at != "" && customer != "" {
		s.customers[at+"/"+customer] = struct{}{}
	}
}

func (s *search) hasCustomer(at, customer string) bool {
	_, has := s.customers[at+"/"+customer]
	return has
}

// items yields the items about the person. Purchases come before events, because events may name a purchase's
// customer.
func (s *search) items(ctx context.Context) iter.Seq2[Item, error] {
	t := &s.Tables
	return func(yield func(Item, error) bool) {
		for _, x := range []struct {
			table string
			about func(store.Item) bool
		}{{s.Table, s.aboutRecord}, {t.Outbox.Name, s.aboutMail}, {t.Tracking.Purchases.Name, s.aboutPurchase},
			{t.Tracking.Events.Name, s.aboutEvent}} {
			for it, err := range s.Store.Scan(ctx, store.Scan{Table: x.table}) {
				if (err != nil || x.about(it)) && !yield(Item{x.table, it}, err) || err != nil {
					return
				}
			}
		}
	}
}

func (s *search) aboutRecord(it store.Item) bool {
	object, is := strings.CutPrefix(it.Str(schema.Object), "accounts/"+s.account.ID)
	return it.Str(schema.PK) == billing.AccountPK(s.account.ID) ||
		is && (object == "" || object[0] == '/') && strings.HasPrefix(it.Str(schema.PK), call.KeyPrefix)
}

// kindOf returns the prefix of the item's key that tells its kind.
func kindOf(it store.Item) string {
	key := billing.KeyOf(it)
	if strings.HasPrefix(key.PK, call.KeyPrefix) {
		return billing.KeyPrefix
	}
	return key.SK[:strings.IndexByte(key.SK, '#')+1]
}

func (s *search) aboutMail(it store.Item) bool {
	return it.Get(schema.Data).Map().Str(outbox.DataAccount) == s.account.ID
}

// isAddress reports whether the text is the person's address.
func (s *search) isAddress(text string) bool {
	return s.account.Email != "" && strings.EqualFold(text, s.account.Email)
}

func (s *search) aboutPurchase(it store.Item) bool {
	p, err := tracking.DecodePurchase(it)
	if err != nil {
		return false
	}
	about := s.isAddress(p.Order.Email) || s.hasCustomer(p.StripeAccount, p.Customer) || s.hasCustomer(p.StripeAccount, p.Order.Customer)
	if about {
		s.add(p.StripeAccount, cmp.Or(p.Customer, p.Order.Customer))
	}
	return about
}

func (s *search) aboutEvent(it store.Item) bool {
	e, err := tracking.DecodeEvent(it)
	if err != nil || len(e.Body) == 0 {
		return false
	}
	ours := bytes.Contains(e.Body, []byte(s.Opened.Installation)) // other installations may have an account with this ID
	d := json.NewDecoder(bytes.NewReader(e.Body))
	for name := ""; ; {
		token, err := d.Token()
		if err != nil {
			return false
		}
		text, _ := token.(string)
		if s.isAddress(text) || s.hasCustomer(e.StripeAccount, text) || ours && name == metaAccount && text == s.account.ID {
			return true
		}
		name = text
	}
}
