package billing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
)

// A DueRow is a row of an index. It is a hint: the base item decides.
type DueRow struct {
	Name
	SKU          string // what is subscribed to
	Problem      string // why its key or amount cannot be read; then it has no amount
	Email        string
	Amount       money.Amount // due payments only
	PaymentDay   string       // due payments only
	Method       string       // due payments only
	NextPayment  string
	NextReminder string // due reminders only
}

// GetDueRemindersByDate is access pattern 4: the rows of GSI-1 whose NextReminderDate is the date.
func (e *Records) GetDueRemindersByDate(ctx context.Context, d civil.Date) iter.Seq2[DueRow, error] {
	return e.dueRows(ctx, schema.ReminderIndex, d)
}

// GetDuePaymentsByDate is access pattern 5: the rows of GSI-2 whose NextPaymentDate is the date.
func (e *Records) GetDuePaymentsByDate(ctx context.Context, d civil.Date) iter.Seq2[DueRow, error] {
	return e.dueRows(ctx, schema.PaymentIndex, d)
}

func (e *Records) dueRows(ctx context.Context, index string, d civil.Date) iter.Seq2[DueRow, error] {
	return sequence.Map(e.Indexed(ctx, index, d), func(it store.Item) (DueRow, error) { return e.DueRow(ctx, index, it) })
}

// DueRow returns the row of the index.
func (e *Records) DueRow(ctx context.Context, index string, it store.Item) (DueRow, error) {
	n, illegible, err := e.FindRow(ctx, it)
	if err != nil {
		return DueRow{}, err
	}
	row := DueRow{Name: n, SKU: secret.MaskCards(cmp.Or(it.Str(schema.SKU), n.SKU)),
		Email: secret.MaskCards(it.Str(schema.Email)), PaymentDay: textOf(it.Get(schema.PaymentDay)),
		NextPayment: IndexDate(it.Str(schema.NextPaymentDate)), NextReminder: IndexDate(it.Str(schema.NextReminderDate))}
	if index == schema.PaymentIndex {
		details := it.Get(schema.PaymentDetails).Map()
		row.Method = secret.MaskMethod(details.Str(schema.PaymentMethod))
		var wrong error
		row.Amount, wrong = amountOf(textOf(it.Get(schema.PaymentAmount)), details.Str(schema.Currency))
		illegible = cmp.Or(illegible, wrong)
	}
	if illegible != nil {
		row.Problem = UnreadableReason(illegible)
	}
	return row, nil
}

// FindRow returns RowName, and names the second of two items of one subscription: other tools may
// write it under both forms of key. Such a twin is illegible, because every command and every
// charge means the item under Duesday's form.
func (e *Records) FindRow(ctx context.Context, row store.Item) (n Name, illegible, err error) {
	n, illegible = RowName(row)
	if k := KeyOf(row); illegible == nil && k == n.TextKey() {
		if _, err = e.Store.Get(ctx, e.Table, n.Key()); err == nil {
			illegible = &IllegibleError{schema.SK, "is the second key of the subscription under " + secret.MaskCards(n.Key().SK), nil}
			n = Name{Account: n.Account, ID: secret.MaskCards(k.SK)}
		}
	}
	return n, illegible, IgnoreNotFound(err)
}

// Indexed yields the rows of an index on the date, shard by shard.
func (e *Records) Indexed(ctx context.Context, index string, d civil.Date) iter.Seq2[store.Item, error] {
	return sequence.Flat(e.Partitions(d), func(partition string) iter.Seq2[store.Item, error] {
		return e.Store.Query(ctx, store.Query{Table: e.Table, Index: index, Partition: partition})
	})
}

// GetSubscriptionsByAccount is access pattern 6: the account's items SUB#…, by their sort key.
func (e *Records) GetSubscriptionsByAccount(ctx context.Context, account string) iter.Seq2[*Subscription, error] {
	return decoded(e, ctx, store.Query{Table: e.Table, Partition: AccountPK(account), Prefix: SubPrefix}, DecodeSubscription)
}

// GetReceiptsByAccount is access pattern 7: the account's items REC#… not expired, oldest first.
func (e *Records) GetReceiptsByAccount(ctx context.Context, account string) iter.Seq2[*Receipt, error] {
	return decoded(e, ctx, store.Query{Table: e.Table, Partition: AccountPK(account), Prefix: RecPrefix}, DecodeReceipt)
}

// GetEndedPeriods yields the subscription's periods not ended paid, parked ones too, oldest first.
func (e *Records) GetEndedPeriods(ctx context.Context, n Name) iter.Seq2[*EndedPeriod, error] {
	prefix := PerPrefix + n.ID + "#SKU#" + n.SKU + "#"
	return decoded(e, ctx, store.Query{Table: e.Table, Partition: AccountPK(n.Account), Prefix: prefix}, DecodePeriod)
}

// GetEndedPeriodsByAccount yields those of all the account's subscriptions, in order of their keys.
func (e *Records) GetEndedPeriodsByAccount(ctx context.Context, account string) iter.Seq2[*EndedPeriod, error] {
	return decoded(e, ctx, store.Query{Table: e.Table, Partition: AccountPK(account), Prefix: PerPrefix}, DecodePeriod)
}

// RecordOf returns the record of a period that did not end paid, or store.ErrNotFound.
func (e *Records) RecordOf(ctx context.Context, n Name, period int) (*EndedPeriod, error) {
	it, err := e.Store.Get(ctx, e.Table, PeriodKey(n, period))
	if err != nil {
		return nil, err
	}
	return DecodePeriod(it)
}

// EndedPeriods yields those of all subscriptions. It scans.
func (e *Records) EndedPeriods(ctx context.Context) iter.Seq2[*EndedPeriod, error] {
	return scanned(e, ctx, func(it store.Item) bool { return strings.HasPrefix(it.Str(schema.SK), PerPrefix) }, DecodePeriod)
}

// WrittenOff returns the periods that the subscription's cancellation has written off, and their sum.
func (e *Records) WrittenOff(ctx context.Context, n Name) (list []*EndedPeriod, sum money.Amount, err error) {
	for p, err := range e.GetEndedPeriods(ctx, n) {
		if errors.As(err, new(*IllegibleError)) || err == nil && (p.Ending != EndVoid || p.Reason != CancelledVoid) {
			continue
		}
		if err == nil {
			list = append(list, p)
			sum, err = cmp.Or(sum, money.New(0, p.Amount.Currency())).Add(p.Amount)
		}
		if err != nil {
			return nil, sum, err
		}
	}
	return list, sum, nil
}

// ReceiptsOf returns the receipts of a period of the subscription that have not expired.
func (e *Records) ReceiptsOf(ctx context.Context, n Name, period int) (found []*Receipt, err error) {
	for r, err := range e.GetReceiptsByAccount(ctx, n.Account) {
		if err != nil {
			return nil, err
		}
		if r.ID == n.ID && r.Period == period && r.Kind != Imported {
			found = append(found, r)
		}
	}
	return found, nil
}

// A decoder reads an item.
type decoder[T any] func(store.Item) (*T, error)

func decoded[T any](e *Records, ctx context.Context, q store.Query, decode decoder[T]) iter.Seq2[*T, error] {
	return decodeEach(e.Store.Query(ctx, q), nil, decode)
}

// scanned yields the items of one kind in the whole table.
func scanned[T any](e *Records, ctx context.Context, is func(store.Item) bool, decode decoder[T]) iter.Seq2[*T, error] {
	return decodeEach(e.Store.Scan(ctx, store.Scan{Table: e.Table}), is, decode)
}

// decodeEach yields the items of one kind; nil: of any. It yields an ItemError for an unreadable
// item and goes on after it. It ends with the first error of the store.
func decodeEach[T any](items iter.Seq2[store.Item, error], is func(store.Item) bool,
	decode decoder[T]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for it, err := range items {
			if err != nil {
				yield(nil, err)
				return
			}
			if is != nil && !is(it) {
				continue
			}
			v, err := decode(it)
			if err != nil {
				v, err = nil, &ItemError{KeyOf(it), err}
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

// Subscription finds the subscription by its name, SKU or not, or returns store.ErrNotFound.
func (e *Records) Subscription(ctx context.Context, n Name) (*Subscription, error) {
	if n.SKU != "" {
		return e.Load(ctx, n)
	}
	q := store.Query{Table: e.Table, Partition: AccountPK(n.Account), Prefix: SubPrefix + n.ID + "#SKU", Limit: 1}
	for s, err := range decoded(e, ctx, q, DecodeSubscription) {
		if bad, ok := errors.AsType[*ItemError](err); ok {
			err = bad.Err // names the subscription
		}
		return s, err
	}
	return nil, fmt.Errorf("subscription %s: %w", n, store.ErrNotFound)
}

// Subscriptions yields all subscriptions, and an ItemError for a stray row. It scans.
func (e *Records) Subscriptions(ctx context.Context) iter.Seq2[*Subscription, error] {
	is := func(it store.Item) bool { _, ok := NameOf(KeyOf(it)); return ok || StrayRow(it) != nil }
	return scanned(e, ctx, is, DecodeSubscription)
}

// Receipts yields all unexpired receipts. It scans.
func (e *Records) Receipts(ctx context.Context) iter.Seq2[*Receipt, error] {
	return scanned(e, ctx, isReceipt, DecodeReceipt)
}
