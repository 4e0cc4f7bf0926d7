package billing

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// An Outcome is the state in which one run leaves one due period.
type Outcome string

// AwaitsCustomer has the amounts of the pending periods that wait for the customer. They are also among those of pending.
const AwaitsCustomer Outcome = "pending_customer"

// A Run is the record of a run: the item RUN#<kind>/<id>. It is written when the run begins, every
// few seconds, and at the end. Only an ended run has an end, and only it may be completed: nothing
// else about a run decides what later runs look at.
type Run struct {
	Kind      Kind
	ID        string     // <date>#<started>-<random>
	Date      civil.Date // its business day
	From      civil.Date // the oldest date of its walk
	Process   string     // <pid>@<host>
	Actor     string     // who started it, such as "user anna" or "schedule"; "": not known
	Started   time.Time
	Seen      time.Time // when the record was written
	Ended     time.Time // zero: it is under way, or was broken off
	Completed bool
	Off       bool   // charging was switched off meanwhile
	Reason    string // why it has not completed
	Settings  string // that it kept to
	Rows      int    // subscriptions looked at
	Waits     int    // pending periods that wait since this run
	Declined  int    // periods declined for the first time: retries are not among them
	Counts    map[Outcome]int
	Amounts   money.Totals             // taken
	Unpaid    map[Outcome]money.Totals // of the periods that were not paid; nil: an older build has kept none
	Awaited   int                      // pending periods that wait for the customer
	Told      time.Time                // when a monitor was told of the finished day; zero: not
	Accepted  bool                     // its clock was ahead, and a person has accepted the clock since: it decides nothing
}

// PathID returns the ID in a form that fits in a URL's path. job.Find accepts both forms.
func (r *Run) PathID() string { return strings.Replace(r.ID, "#", "~", 1) }

// Due is the number of due periods: the sum of all outcomes.
func (r *Run) Due() int {
	n := 0
	for _, c := range r.Counts {
		n += c
	}
	return n
}

func (r *Run) key() store.Key { return store.Key{PK: RunPK(r.Kind), SK: r.ID} }

// Write returns the write of the record. The record of a running run never replaces the record of
// its end.
func (r *Run) Write(table string) store.Write {
	c := writer(nil)
	r.attributes(c)
	if r.Ended.IsZero() {
		return store.Put(table, c.item, store.AttributeAbsent(schema.EndedDate))
	}
	return store.Put(table, c.item)
}

func (r *Run) attributes(c *codec) {
	c.flag(schema.Accepted, &r.Accepted)
	text(c, schema.Actor, &r.Actor)
	attribute(c, schema.Amounts, &r.Amounts, r.Amounts.Len() == 0, store.KindMap, c.totals, writeTotals)
	c.flag(schema.ChargingOff, &r.Off)
	c.flag(schema.Completed, &r.Completed)
	attribute(c, schema.Counts, &r.Counts, false, store.KindMap, readCounts, func(map[Outcome]int) store.Value { return r.counts() })
	c.count(schema.Declined, &r.Declined, 0)
	c.stamp(schema.EndedDate, &r.Ended)
	c.date(schema.FromDate, &r.From)
	c.stamp(schema.HeartbeatDate, &r.Told)
	c.only(schema.PK, RunPK(r.Kind))
	c.count(schema.PendingCustomer, &r.Awaited, 0)
	text(c, schema.Process, &r.Process)
	text(c, schema.Reason, &r.Reason)
	c.count(schema.Rows, &r.Rows, 0)
	c.date(schema.RunDate, &r.Date)
	c.only(schema.SK, r.ID)
	c.stamp(schema.SeenDate, &r.Seen)
	text(c, schema.Settings, &r.Settings)
	c.stamp(schema.StartedDate, &r.Started)
	attribute(c, schema.UnpaidAmounts, &r.Unpaid, len(r.Unpaid) == 0, store.KindMap, c.unpaid, writeUnpaid)
	c.count(schema.Waits, &r.Waits, 0)
}

// due is the member of the counts with their sum.
const due = "due"

func readCounts(v store.Value) map[Outcome]int {
	counts := map[Outcome]int{}
	for _, a := range v.Map() {
		if a.Name != due {
			counts[Outcome(a.Name)] = readInt(a.Value)
		}
	}
	return counts
}

func (r *Run) counts() store.Value {
	it := store.Item{{Name: due, Value: writeInt(r.Due())}}
	for outcome, n := range r.Counts {
		it.Set(string(outcome), writeInt(n))
	}
	return store.M(it)
}

func (c *codec) totals(v store.Value) (t money.Totals) {
	for _, sum := range v.Map() {
		a, err := decodeAmount(sum.Value.Str(), sum.Name)
		if err = errors.Join(err, t.Add(a)); err != nil {
			c.fail(schema.Amounts, "has a sum that is not an amount", err)
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

func (c *codec) unpaid(v store.Value) map[Outcome]money.Totals {
	all := map[Outcome]money.Totals{}
	for _, a := range v.Map() {
		all[Outcome(a.Name)] = c.totals(a.Value)
	}
	return all
}

func writeUnpaid(all map[Outcome]money.Totals) store.Value {
	var it store.Item
	for outcome, t := range all {
		it.Set(string(outcome), writeTotals(t))
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

// Runs yields the records of the given number of runs, or of all if it is 0. The latest business
// day comes first.
func (e *Records) Runs(ctx context.Context, kind Kind, limit int) iter.Seq2[*Run, error] {
	return decodeEach(e.LatestRuns(ctx, kind, limit), nil,
		func(it store.Item) (*Run, error) { return decodeRun(kind, it) })
}

// RunsSince yields the records of the runs of the business day and later ones. The latest day comes first.
func (e *Records) RunsSince(ctx context.Context, kind Kind, day civil.Date) iter.Seq2[*Run, error] {
	q := store.Query{Table: e.Table, Partition: RunPK(kind), From: day.String(), To: "9999-12-31~", Reverse: true}
	return decodeEach(e.Store.Query(ctx, q), nil, func(it store.Item) (*Run, error) { return decodeRun(kind, it) })
}

// latestRun returns the latest day's wanted run, or nil. A few come first: all may be a megabyte.
func (e *Records) latestRun(ctx context.Context, kind Kind, wanted func(*Run) bool) (*Run, error) {
	for _, limit := range [...]int{16, 0} {
		for it, err := range e.LatestRuns(ctx, kind, limit) {
			if err != nil {
				return nil, err
			}
			// A part that cannot be read, such as a currency of a newer build, stops no later run.
			if r, _ := decodeRun(kind, it); !r.Date.IsZero() && wanted(r) {
				return r, nil
			}
		}
	}
	return nil, nil
}

// HasDealt reports whether any payment run has processed a period.
func (e *Records) HasDealt(ctx context.Context) (bool, error) {
	r, err := e.latestRun(ctx, Payments, func(r *Run) bool { return r.Due() > 0 })
	return r != nil, err
}

// LastDailyRun returns the run that began last and completed the day on which it began; the zero
// Run if there is none. A run for an earlier business day is not a daily one. Nor is one that a
// clock ahead of this one recorded: until that instant it would stop the job.
func (e *Records) LastDailyRun(ctx context.Context, kind Kind) (*Run, error) {
	r, err := e.latestRun(ctx, kind, func(r *Run) bool {
		return r.Completed && !r.Accepted && !r.Date.Before(civil.Of(r.Started)) &&
			!r.Started.After(e.Now().Add(clockSlack))
	})
	return cmp.Or(r, new(Run)), err
}

// NoteHeartbeat durably records that the monitor was notified about the day that the run finished.
func (e *Records) NoteHeartbeat(ctx context.Context, r *Run) error {
	set := store.NewItem(store.Attribute{Name: schema.HeartbeatDate, Value: store.S(Stamp(e.Now()))})
	return e.Store.Commit(ctx, store.Update(e.Table, r.key(), set, nil))
}

func decodeRun(kind Kind, it store.Item) (*Run, error) {
	r := &Run{Kind: kind, ID: it.Str(schema.SK)}
	c := &codec{stored: it}
	r.attributes(c)
	return r, c.err
}
