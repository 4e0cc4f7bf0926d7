package engine

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A write is one of the other writes of a subscription's commit. Every receipt and every record of a
// period is written as one: it adds to the sums of money that reports show. The outbox row of a mail in
// the commit carries the sums. Only an account without an address costs one row more.
type write struct {
	store.Write
	sums []report.Sum
	of   string // sort key of the receipt or record; "" of other items
}

// put is billing.Records.Put. The commit also says what it adds to the sums.
func (e *Engine) put(ctx context.Context, s *billing.Subscription, others ...write) error {
	others, err := e.withoutGone(ctx, others)
	if err != nil {
		return err
	}
	return e.Put(ctx, s, e.writes(s, others)...)
}

// withoutGone returns the writes without deletions of records that another tool has removed: the store
// would refuse such a commit at every try. s.Version guards against a settlement meanwhile.
func (e *Engine) withoutGone(ctx context.Context, others []write) (there []write, err error) {
	for _, w := range others {
		if w.Op == store.OpDelete && w.Table == e.Table {
			if _, err = e.Store.Get(ctx, w.Table, w.Key); errors.Is(err, store.ErrNotFound) {
				continue
			} else if err != nil {
				return nil, err
			}
		}
		there = append(there, w)
	}
	return there, nil
}

// writes returns the store's writes, with their sums.
func (e *Engine) writes(s *billing.Subscription, others []write) []store.Write {
	sums, _ := report.Parse(s.Adds)
	var receipts []store.Key
	first := ""
	for _, w := range others {
		sums, first = append(sums, w.sums...), cmp.Or(first, w.of)
		if strings.HasPrefix(w.of, billing.RecPrefix) {
			receipts = append(receipts, billing.KeyOf(w.Item))
		}
	}
	s.Adds = ""
	return e.withSums(others, sums, receipts, s.Account, cmp.Or(first, s.Key().SK), strconv.FormatInt(s.Version, 10))
}

// declined returns what the first decline of the open period has added to the sums. was is what is stored of that. If
// that is nothing and an attempt was declined, the next commit adds it. An upgrade adds nothing before it is paid,
// because an unpaid one leaves no record.
func declined(s *billing.Subscription, was string, o *billing.OpenPeriod) string {
	if was != "" || o == nil || len(o.Attempts) == 0 || s.Upgrading() {
		return was
	}
	s.Adds = report.Text([]report.Sum{report.SumAt(report.Declined, cmp.Or(o.Attempts[0].At, o.Opened), o.Amount)})
	return s.Adds
}

// plain returns writes that add nothing to the sums.
func plain(writes ...store.Write) []write {
	all := make([]write, len(writes))
	for i, w := range writes {
		all[i].Write = w
	}
	return all
}

// putReceipt returns the write of a new receipt. An overpayment never expires, because it settles the
// period if the charge is reversed.
func (e *Engine) putReceipt(r *billing.Receipt) write {
	if r.Kind == billing.Overpayment {
		r.Expires = time.Time{}
	}
	it := r.Item()
	return write{store.Put(e.Table, it, store.Absent()), report.OfReceipt(r), it.Str(schema.SK)}
}

// putRecord returns the write of the period's record.
func (e *Engine) putRecord(p *billing.EndedPeriod) write {
	w := p.Write(e.Table)
	return write{w, report.OfPeriod(p), w.Item.Str(schema.SK)}
}

// putAgain returns the write of a record that was there, with that ending. A period that fails again adds
// nothing.
func (e *Engine) putAgain(p *billing.EndedPeriod, was billing.Ending) write {
	w := e.putRecord(p)
	if was == billing.EndFailed {
		w.sums = nil
	}
	return w
}

// dropRecord returns the deletion of the period's record.
func (e *Engine) dropRecord(s *billing.Subscription, period int) write {
	return write{Write: store.Delete(e.Table, billing.PeriodKey(s.Name, period))}
}

// collected returns the record of the past period that is open, or nil if none is, or if its record is
// illegible or gone. If someone has settled the period meanwhile, s.Version has the commit refused.
func (e *Engine) collected(ctx context.Context, s *billing.Subscription) (*billing.EndedPeriod, error) {
	if !s.Collecting() {
		return nil, nil
	}
	p, err := e.RecordOf(ctx, s.Name, s.Open.Period)
	if errors.Is(err, store.ErrNotFound) || errors.As(err, new(*billing.IllegibleError)) {
		return nil, nil
	}
	return p, err
}

// withSums is report.Carry for an event of the engine's store.
func (e *Engine) withSums(others []write, sums []report.Sum, objects []store.Key, id ...string) []store.Write {
	writes := make([]store.Write, len(others))
	for i, w := range others {
		writes[i] = w.Write
	}
	return report.Carry(e.Records, writes, sums, objects, id...)
}
