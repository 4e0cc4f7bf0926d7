package billing

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Run is the record of a run: the item RUN#<kind>/<id>. It is written when the run begins, every
// few seconds, and at the end. Only an ended run has an end, and only it may be completed: nothing
// else about a run decides what later runs look at.
type Run struct {
	Kind      Kind
	ID        string     // <date>#<started>-<random>
	Date      civil.Date // its business day
	From      civil.Date // the oldest date of its walk
	Process   string     // <pid>@<host>
	Started   time.Time
	Seen      time.Time // when the record was written
	Ended     time.Time // zero: it is under way, or was broken off
	Completed bool
	Off       bool   // charging was switched off meanwhile
	Reason    string // why it has not completed
	Settings  string // that it kept to
	Rows      int    // subscriptions looked at
	Counts    map[string]int
	Amounts   money.Totals // taken
}

func (r *Run) key() store.Key { return store.Key{PK: RunPK(r.Kind), SK: r.ID} }

// Write returns the write of the record. A record of a run under way never replaces that of its end.
func (r *Run) Write(table string) store.Write {
	c := writer(nil)
	r.attributes(c)
	if r.Ended.IsZero() {
		return store.Put(table, c.item, store.AttributeAbsent(schema.EndedDate))
	}
	return store.Put(table, c.item)
}

func (r *Run) attributes(c *codec) {
	attribute(c, schema.Amounts, &r.Amounts, r.Amounts.Len() == 0, c.totals, writeTotals)
	c.flag(schema.ChargingOff, &r.Off)
	c.flag(schema.Completed, &r.Completed)
	attribute(c, schema.Counts, &r.Counts, false, readCounts, writeCounts)
	c.stamp(schema.EndedDate, &r.Ended)
	c.date(schema.FromDate, &r.From)
	c.only(schema.PK, RunPK(r.Kind))
	text(c, schema.Process, &r.Process)
	text(c, schema.Reason, &r.Reason)
	c.count(schema.Rows, &r.Rows, 0)
	c.date(schema.RunDate, &r.Date)
	c.only(schema.SK, r.ID)
	c.stamp(schema.SeenDate, &r.Seen)
	text(c, schema.Settings, &r.Settings)
	c.stamp(schema.StartedDate, &r.Started)
}

func readCounts(v store.Value) map[string]int {
	counts := map[string]int{}
	for _, a := range v.Map() {
		counts[a.Name] = readInt(a.Value)
	}
	return counts
}

func writeCounts(counts map[string]int) store.Value {
	var it store.Item
	for name, n := range counts {
		it.Set(name, writeInt(n))
	}
	return store.M(it)
}

func (c *codec) totals(v store.Value) (t money.Totals) {
	for _, sum := range v.Map() {
		a, err := decodeAmount(sum.Value.Str(), sum.Name)
		if err = errors.Join(err, t.Add(a)); err != nil {
			c.fail(schema.Amounts, "has a sum that is no amount", err)
		}
	}
	return t
}

func writeTotals(t money.Totals) store.Value {
	var it store.Item
	for sum := range t.All() {
		it.Set(sum.Currency().Code(), store.S(sum.Decimal()))
	}
	return store.M(it)
}

// Run returns the record of a run, or store.ErrNotFound.
func (e *Records) Run(ctx context.Context, kind Kind, id string) (*Run, error) {
	r := &Run{Kind: kind, ID: id}
	it, err := e.Store.Get(ctx, e.Table, r.key())
	if err != nil {
		return nil, err
	}
	return decodeRun(kind, it)
}

// Runs yields the records of that many runs, the latest business day first; 0 for all.
func (e *Records) Runs(ctx context.Context, kind Kind, limit int) iter.Seq2[*Run, error] {
	return func(yield func(*Run, error) bool) {
		for it, err := range e.LatestRuns(ctx, kind, limit) {
			var r *Run
			if err == nil {
				r, err = decodeRun(kind, it)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

func decodeRun(kind Kind, it store.Item) (*Run, error) {
	r := &Run{Kind: kind, ID: it.Str(schema.SK)}
	c := &codec{stored: it}
	r.attributes(c)
	if c.err != nil {
		return nil, &IllegibleError{Err: c.err}
	}
	return r, nil
}
