// Package lookup maintains index rows and reads the lists that use them: subscriptions by status and SKU, or
// by the processor's subscription that they continue, and accounts by email address or processor customer.
//
// A row is a hint: readers read its item, and drop a row that no longer matches. The package decides
// nothing about payments.
package lookup

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// Prefix is the prefix of every row's partition key.
const Prefix = "IDX#"

const (
	byStatus   = Prefix + "SUB#"      // <status>[#<shard>]; sort key <sku>#<account>/<subscription>
	byEmail    = Prefix + "EMAIL"     // [#<shard>]; sort key <address in lower case>#<account>
	byOrigin   = Prefix + "ORIGIN#"   // <subscription at the processor>; sort key as in byStatus
	byCustomer = Prefix + "CUSTOMER#" // <connected account or nothing>/<customer>; sort key <account>
	fillPK     = Prefix + "FILL"      // not a row, but the progress of Fill
)

// statuses contains all statuses.
var statuses = [...]billing.Status{billing.Active, billing.Paused, billing.PastDue, billing.ParkedState,
	billing.CanceledSub, billing.Completed}

// OfSubscription returns the subscription's rows. If the SKU in the item's key differs from the current SKU,
// the row contains it as an attribute.
func OfSubscription(s *billing.Subscription, shards int) []store.Item {
	if strings.ContainsAny(s.SKU+s.Account, "#/") { // written by another tool: its row would be ambiguous
		return nil
	}
	rows := row(byStatus+string(s.Status)+billing.ShardOf(s.Name, shards), subscriptionSK(s))
	if s.Takeover != nil {
		rows = append(rows, row(byOrigin+s.Takeover.From, subscriptionSK(s))...)
	}
	for i := range rows {
		if s.SKU != s.Name.SKU {
			rows[i].Set(schema.SKU, store.S(s.Name.SKU))
		}
	}
	return rows
}

func subscriptionSK(s *billing.Subscription) string { return s.SKU + "#" + s.Name.String() }

// OfAccount returns the account's rows.
func OfAccount(a *billing.Account, shards int) (rows []store.Item) {
	if !secret.HasCardNumber(a.Email) {
		rows = row(emailPK(a.Email, shards), emailSK(a))
	}
	if a.Payer.Customer != "" {
		rows = append(rows, row(customerPK(a.Payer.At, a.Payer.Customer), a.ID)...)
	}
	return rows
}

func emailPK(email string, shards int) string {
	return byEmail + billing.ShardOf(billing.Name{Account: strings.ToLower(email)}, shards)
}

func emailSK(a *billing.Account) string { return strings.ToLower(a.Email) + "#" + a.ID }

func customerPK(at, customer string) string { return byCustomer + at + "/" + customer }

// row returns the row, or none if a key part from another tool is too long.
func row(pk, sk string) []store.Item {
	if len(pk) > store.MaxPartitionKeyBytes || len(sk) > store.MaxSortKeyBytes || sk == "" {
		return nil
	}
	return []store.Item{billing.ItemAt(store.Key{PK: pk, SK: sk})}
}

// Of returns the item's rows, or none if it is not an account or subscription. It returns an error if the
// item is unreadable.
func Of(it store.Item, shards int) ([]store.Item, error) {
	if it.Str(schema.SK) == billing.AccountSK {
		a, err := billing.DecodeAccount(it)
		if err != nil {
			return nil, err
		}
		return OfAccount(a, shards), nil
	}
	if _, is := billing.NameOf(billing.KeyOf(it)); !is {
		return nil, nil
	}
	s, err := billing.DecodeSubscription(it)
	if err != nil {
		return nil, err
	}
	return OfSubscription(s, shards), nil
}

// IsRow reports whether the item is a lookup row.
func IsRow(it store.Item) bool {
	pk := it.Str(schema.PK)
	return strings.HasPrefix(pk, Prefix) && pk != fillPK
}

// By describes the lists that use the row, for messages.
func By(r store.Item) string {
	switch pk := r.Str(schema.PK); {
	case strings.HasPrefix(pk, byStatus):
		return "by status and SKU"
	case strings.HasPrefix(pk, byEmail):
		return "by email address"
	case strings.HasPrefix(pk, byOrigin):
		return "by the subscription at the processor"
	}
	return "by customer"
}

// Beside updates the rows of each changed item in the commit that changes it. It reads the store only if it
// removes rows.
func Beside(e *billing.Records) billing.Beside {
	return func(ctx context.Context, was, now store.Item, _ []store.Write) (writes []store.Write, err error) {
		if same(was, now) {
			return nil, nil
		}
		old, _ := Of(was, e.Opened.Shards) // an unreadable item has none
		rows, err := Of(now, e.Opened.Shards)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if !has(old, r) || !ours(was) {
				writes = append(writes, store.Put(e.Table, r))
			}
		}
		for _, r := range old {
			if has(rows, r) {
				continue
			}
			w, err := drop(ctx, e, billing.KeyOf(r))
			if err != nil {
				return nil, err
			}
			writes = append(writes, w)
		}
		return writes, nil
	}
}

// same reports whether both items have the same rows, because their source attributes are equal. An item that
// another tool wrote may have no rows yet.
func same(was, now store.Item) bool {
	made := [...]string{schema.Email, schema.Customer, schema.ProcessorAccount}
	names := made[:]
	if now.Str(schema.SK) != billing.AccountSK {
		names = append(names[:0], schema.Status, schema.SKU)
	}
	return ours(was) && !slices.ContainsFunc(names, func(name string) bool { return !was.Get(name).Equal(now.Get(name)) })
}

// ours reports whether Duesday has written the item before.
func ours(it store.Item) bool {
	_, is := it.Get(schema.Version).Int64()
	return is
}

func has(rows []store.Item, r store.Item) bool {
	return slices.ContainsFunc(rows, func(x store.Item) bool { return billing.KeyOf(x) == billing.KeyOf(r) })
}

// drop returns the deletion of a row. If the row is absent, drop returns the condition that it stays absent,
// because a fill may be about to write it.
func drop(ctx context.Context, e *billing.Records, key store.Key) (store.Write, error) {
	switch _, err := e.Store.Get(ctx, e.Table, key); {
	case errors.Is(err, store.ErrNotFound):
		return store.Check(e.Table, key, store.Absent()), nil
	case err != nil:
		return store.Write{}, err
	}
	return store.Delete(e.Table, key), nil
}

// A fit reports whether a row matches an item with the rows.
type fit func(rows []store.Item, r store.Item) bool

// hasSK is like has, but compares only sort keys.
func hasSK(rows []store.Item, r store.Item) bool {
	return slices.ContainsFunc(rows, func(x store.Item) bool { return x.Str(schema.SK) == r.Str(schema.SK) })
}

// Item returns the row's item, or nil if no item has this row. It also returns an unreadable item, which may
// have the row.
func Item(ctx context.Context, e *billing.Records, r store.Item) (store.Item, error) {
	return itemOf(ctx, e, r, has)
}

func itemOf(ctx context.Context, e *billing.Records, r store.Item, fits fit) (store.Item, error) {
	for key := range named(r) {
		it, err := e.Store.Get(ctx, e.Table, key)
		if billing.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil {
			if rows, illegible := Of(it, e.Opened.Shards); illegible != nil || fits(rows, r) {
				return it, nil
			}
		}
	}
	return nil, nil
}

// named yields the possible keys of the row's item.
func named(r store.Item) iter.Seq[store.Key] {
	return func(yield func(store.Key) bool) {
		if n := NameIn(r); n.SKU == "" {
			yield(billing.AccountKey(n.Account))
		} else if yield(n.Key()) {
			yield(n.TextKey())
		}
	}
}

// NameIn returns the name of the row's account or subscription.
func NameIn(r store.Item) billing.Name {
	k := billing.KeyOf(r)
	if !strings.HasPrefix(k.PK, byStatus) && !strings.HasPrefix(k.PK, byOrigin) { // an address may contain #
		return billing.Name{Account: k.SK[strings.LastIndexByte(k.SK, '#')+1:]}
	}
	sku, name, _ := strings.Cut(k.SK, "#")
	account, id, _ := strings.Cut(name, "/")
	return billing.Name{Account: account, ID: id, SKU: cmp.Or(r.Str(schema.SKU), sku)}
}
