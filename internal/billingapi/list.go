package billingapi

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/history"
	"github.com/duesday/duesday/internal/lookup"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// A row is a decoded item in an account's partition, with its sort key.
type row[T any] struct {
	of  *T
	key string
}

// listed yields the account's items of one kind after the sort key, the last one first if reverse is set. It omits and
// logs items that another tool has made unreadable.
func listed[T any](ctx context.Context, s *server, account, prefix, after string, reverse bool, decode func(store.Item) (*T, error)) iter.Seq2[row[T], error] {
	q := store.Query{Table: s.Engine.Table, Partition: billing.AccountPK(account), Prefix: prefix, Reverse: reverse}
	if after != "" {
		q.After = store.Cursor{Key: store.Key{PK: q.Partition, SK: after}}
	}
	return sequence.Map(s.Engine.Store.Query(ctx, q), func(it store.Item) (row[T], error) {
		x, err := decode(it)
		if err != nil {
			s.Engine.Log.WarnContext(ctx, "a list omits an unreadable item", "error", err)
			err = sequence.ErrSkip
		}
		return row[T]{x, billing.KeyOf(it).SK}, err
	})
}

// A list sends the items of one kind in an account's partition.
type list[T any] struct {
	names  []string // parameters, beside limit and cursor; order=newest is the reverse order
	open   func(values url.Values) (account, prefix string, err error)
	decode func(store.Item) (*T, error)
	keep   func(*T) bool // nil: all
	view   func(*T) view.Object

	// made reports whether the request with the idempotency key created or changed the item. If it is nil,
	// the list has no parameter idempotency_key.
	made func(*T, *call.Row) bool
}

func (l list[T]) send(s *server, w http.ResponseWriter, r *web.Request) error {
	var of *call.Row // of the parameter idempotency_key
	if l.made != nil {
		l.names = append(l.names, keyParameter)
	}
	return web.List(r.Server, w, r, web.ListOptions[row[T]]{Names: l.names,
		Open: func(values url.Values, after string) (iter.Seq2[row[T], error], error) {
			var err error
			if of, err = s.keyed(r, values); err != nil {
				return nil, err
			}
			if of != nil && slices.Contains(l.names, "account") && !values.Has("account") {
				part := strings.Split(of.Object, "/")
				if len(part) < 2 || part[0] != "accounts" {
					part = []string{"", "none"} // an unknown key made nothing, in whatever account
				}
				values.Set("account", part[1])
			}
			account, prefix, err := l.open(values)
			return listed(r.Context(), s, account, prefix, after, values.Get("order") == "newest", l.decode), err
		},
		Place: func(x row[T]) string { return x.key },
		Keep:  func(x row[T]) bool { return (l.keep == nil || l.keep(x.of)) && (of == nil || l.made(x.of, of)) },
		View:  func(x row[T]) any { return l.view(x.of) }})
}

// keyParameter selects the object that the request with the idempotency key created or changed.
const keyParameter = "idempotency_key"

// keyed returns the row of the parameter idempotency_key, an empty row for an unknown key, or nil if the
// parameter is absent.
func (s *server) keyed(r *web.Request, values url.Values) (*call.Row, error) {
	if !values.Has(keyParameter) {
		return nil, nil
	}
	if err := web.CheckKey(values.Get(keyParameter)); err != nil {
		return nil, err
	}
	c := call.Call{Key: values.Get(keyParameter), Caller: r.Key.Merchant, Table: s.Engine.Table}
	of, err := c.Find(r.Context(), s.Engine.Store)
	if errors.Is(err, store.ErrNotFound) {
		return &call.Row{}, nil
	}
	return of, err
}

// isReceipt reports whether the request created or changed the receipt. A period that was both charged and
// paid manually has two receipts.
func isReceipt(of *call.Row, x *billing.Receipt) bool {
	k, err := billing.DecodeKeyed(of.Item)
	if err != nil || k.Account != x.Account || k.ID != x.ID || k.Period != x.Period {
		return false
	}
	if k.Kind == billing.KeyedReceipt {
		return x.Kind != billing.Charged
	}
	return x.Kind != billing.Overpayment
}

// A finder sends the objects that a filter finds with an index.
type finder[T any] struct {
	names []string
	find  func(values url.Values, after string) (iter.Seq2[*T, error], error)
	place func(*T) string
	path  func(*T) string // of the object
	view  func(*T) view.Object
}

func (f finder[T]) send(s *server, w http.ResponseWriter, r *web.Request) error {
	var of *call.Row // of the parameter idempotency_key
	return web.List(r.Server, w, r, web.ListOptions[*T]{Names: append(f.names, keyParameter), Place: f.place,
		View: func(x *T) any { return f.view(x) },
		Keep: func(x *T) bool { return of == nil || f.path(x) == of.Object },
		Open: func(values url.Values, after string) (_ iter.Seq2[*T, error], err error) {
			if of, err = s.keyed(r, values); err != nil {
				return nil, err
			}
			if of != nil && !slices.ContainsFunc(f.names, values.Has) {
				found, err := s.load(r.Context(), of.Object)
				x, ok := found.(*T)
				if !ok || errors.Is(err, store.ErrNotFound) {
					return sequence.Of[*T](nil), billing.IgnoreNotFound(err)
				}
				return sequence.Of([]*T{x}), err
			}
			found, err := f.find(values, after)
			return func(yield func(*T, error) bool) {
				for x, err := range found {
					if bad, ok := errors.AsType[*billing.ItemError](err); ok {
						s.Engine.Log.WarnContext(r.Context(), "a list omits an unreadable item", "error", bad)
					} else if !yield(x, err) {
						return
					}
				}
			}, err
		}})
}

// accounts lists all accounts, or the accounts with an email address (ignoring case) or processor customer.
func (s *server) accounts(w http.ResponseWriter, r *web.Request) error {
	var p processor.Payer
	return finder[billing.Account]{names: []string{"email", "customer"}, view: view.Account,
		place: func(a *billing.Account) string { return lookup.PlaceOf(a, p) }, path: func(a *billing.Account) string { return "accounts/" + a.ID },
		find: func(values url.Values, after string) (iter.Seq2[*billing.Account, error], error) {
			email, customer := values.Get("email"), values.Get("customer")
			if p.Customer = customer; email != "" && customer != "" {
				return nil, billing.Invalid("email", "cannot be combined with customer")
			}
			return lookup.Accounts(r.Context(), s.Engine.Records, email, p, after), nil
		}}.send(s, w, r)
}

// subscriptions lists the subscriptions of all accounts, filtered by status, SKU or email address.
func (s *server) subscriptions(w http.ResponseWriter, r *web.Request) error {
	var f lookup.Filter
	return finder[billing.Subscription]{names: []string{"status", "sku", "email"}, view: view.Subscription,
		place: func(x *billing.Subscription) string { return f.Place(x) }, path: func(x *billing.Subscription) string { return pathOf(x.Name) },
		find: func(values url.Values, after string) (iter.Seq2[*billing.Subscription, error], error) {
			f = lookup.Filter{Status: billing.Status(values.Get("status")), SKU: values.Get("sku"), Email: values.Get("email")}
			if !slices.Contains([]billing.Status{"", billing.Active, billing.Paused, billing.PastDue, billing.ParkedState, billing.CanceledSub,
				billing.Completed}, f.Status) {
				return nil, billing.Invalid("status", "must be active, paused, past_due, parked, canceled or completed")
			}
			return lookup.Subscriptions(r.Context(), s.Engine.Records, f, after), nil
		}}.send(s, w, r)
}

// history lists the changes of an account and its subscriptions, or of one subscription, newest first.
func (s *server) history(w http.ResponseWriter, r *web.Request) error {
	return web.List(r.Server, w, r, web.ListOptions[*history.Entry]{Names: []string{"subscription"},
		Place: func(e *history.Entry) string { return e.Place }, View: func(e *history.Entry) any { return view.History(e) },
		Open: func(values url.Values, after string) (iter.Seq2[*history.Entry, error], error) {
			n := billing.Name{Account: r.PathValue("account"), ID: values.Get("subscription")}
			_, err := s.Engine.Account(r.Context(), n.Account)
			if err == nil && n.ID != "" {
				_, err = s.Engine.Subscription(r.Context(), n)
			}
			return history.Of(r.Context(), s.Engine.Records, n.Account, n.ID, after), err
		}})
}
