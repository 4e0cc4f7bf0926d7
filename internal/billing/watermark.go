package billing

import (
	"context"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Watermark is the item RUN#<kind>/FLOOR, the low watermark of that kind's index: no row
// is on an older date. A walk begins at it, if it is older than the walk's own start.
type Watermark struct {
	Date    civil.Date
	lowered time.Time // when a row was last written under its protection, to the hour

	raw store.Item
}

func watermarkKey(kind Kind) store.Key { return store.Key{PK: RunPK(kind), SK: WatermarkSK} }

// Watermark returns the low watermark, or nil if there is none.
func (e *Records) Watermark(ctx context.Context, kind Kind) (*Watermark, error) {
	it, err := e.Store.Get(ctx, e.Table, watermarkKey(kind))
	if err != nil {
		return nil, IgnoreNotFound(err)
	}
	f, err := DecodeWatermark(it)
	if err != nil { // a walk from the oldest date leaves nothing out, and then removes it
		e.Log.WarnContext(ctx, "the low watermark cannot be read, so the run looks at all dates", "job", kind, "reason", err)
	}
	return f, nil
}

// DecodeWatermark reads the item. If it returns an error, the watermark's date is the oldest
// possible date.
func DecodeWatermark(it store.Item) (*Watermark, error) {
	f, c := &Watermark{raw: it}, codec{stored: it}
	c.stamp(schema.LoweredDate, &f.lowered)
	if c.date(schema.RunDate, &f.Date); f.Date.IsZero() {
		c.fail(schema.RunDate, "is not a date", nil)
		f.Date = OldestDate()
	}
	return f, c.err
}

// conditions hold while the watermark is as it was read.
func (f *Watermark) conditions() []store.Condition {
	if f == nil {
		return []store.Condition{store.Absent()}
	}
	return []store.Condition{Unchanged(schema.RunDate, f.raw.Get(schema.RunDate)),
		Unchanged(schema.LoweredDate, f.raw.Get(schema.LoweredDate))}
}

// WatermarkWrites returns the writes that let walks find the past ones of these dates (zero: none).
// They must be in the commit which writes the dates into the indexes.
func (e *Records) WatermarkWrites(ctx context.Context, payment, reminder civil.Date) ([]store.Write, error) {
	var writes []store.Write
	for _, k := range [...]struct {
		kind Kind
		date civil.Date
	}{{Payments, payment}, {Reminders, reminder}} {
		if k.date.IsZero() || !k.date.Before(e.Today()) {
			continue
		}
		w, err := e.lowerWatermark(ctx, k.kind, k.date)
		if err != nil {
			return nil, err
		}
		writes = append(writes, w)
	}
	return writes, nil
}

func (e *Records) lowerWatermark(ctx context.Context, kind Kind, d civil.Date) (store.Write, error) {
	f, err := e.Watermark(ctx, kind)
	if err != nil {
		return store.Write{}, err
	}
	hour := e.Now().Truncate(time.Hour)
	if f != nil && !f.Date.After(d) && f.lowered.Equal(hour) {
		return store.Check(e.Table, watermarkKey(kind), f.conditions()...), nil
	}
	if f != nil {
		d = civil.Earlier(f.Date, d)
	}
	return store.Put(e.Table, ItemAt(watermarkKey(kind),
		store.Attribute{Name: schema.RunDate, Value: store.S(d.String())},
		store.Attribute{Name: schema.LoweredDate, Value: store.S(Stamp(hour))}), f.conditions()...), nil
}

// RaiseWatermark removes the watermark f, at which a walk started. It keeps the watermark if an
// older row was written since, or less than a day before the walk, because an index may not show
// that row yet.
func (e *Records) RaiseWatermark(ctx context.Context, kind Kind, f *Watermark, started time.Time) error {
	if f == nil || started.Sub(f.lowered) < 25*time.Hour {
		return nil
	}
	err := e.Store.Commit(ctx, store.Delete(e.Table, watermarkKey(kind), f.conditions()...))
	if store.Retryable(err) {
		return nil // it was lowered meanwhile, or the next run tries again
	}
	return err
}

// LatestRuns yields the records of the given number of runs, or of all if it is 0. The latest
// business day comes first.
func (e *Records) LatestRuns(ctx context.Context, kind Kind, limit int) iter.Seq2[store.Item, error] {
	return e.Store.Query(ctx, store.Query{Table: e.Table, Partition: RunPK(kind), To: "9999-12-31~", Reverse: true,
		Limit: limit})
}

// LowerWatermarks lowers the watermarks of both jobs to the past ones of the dates (zero: not): a
// run for an earlier business day may write rows older than the start of later walks.
func (e *Records) LowerWatermarks(ctx context.Context, payment, reminder civil.Date) error {
	return store.Retry(ctx, "the low watermarks", func() error {
		writes, err := e.WatermarkWrites(ctx, payment, reminder)
		if err != nil || len(writes) == 0 {
			return err
		}
		return e.Store.Commit(ctx, writes...)
	})
}

// LookBack is the days from a walk's start to the last completed day, for rows shown late.
const LookBack = 35

// WalkDates is the number of dates of a daily job: the last completed one, those before it with
// possible late rows, and the day ahead, which has begun in some time zones.
const WalkDates = LookBack + 2

// WalkStart returns the oldest date that a run of this kind would look at today.
func (e *Records) WalkStart(ctx context.Context, kind Kind) (civil.Date, error) {
	from, _, err := e.WalkFrom(ctx, kind, e.Today())
	return from, err
}

// WalkFrom returns the oldest date that a run of this kind looks at on the business day. It is the
// oldest of the last completed day, today and the business day, less LookBack; or the low watermark
// if that is older. Before any run has completed, the day on which the store was made stands for
// the completed one. A day that a clock ahead completed does not count: a day after today, or of a
// run that was accepted. w is the low watermark, or nil.
func (e *Records) WalkFrom(ctx context.Context, kind Kind, day civil.Date) (from civil.Date, w *Watermark, err error) {
	last := civil.Of(e.Opened.Created)
	completed, err := e.latestRun(ctx, kind, func(r *Run) bool {
		return r.Completed && !r.Accepted && !r.Date.After(e.Today())
	})
	if err != nil {
		return from, nil, err
	}
	if completed != nil {
		last = completed.Date
	}
	from = civil.Earlier(e.Today(), civil.Earlier(last, day)).AddDays(-LookBack)
	if w, err = e.Watermark(ctx, kind); w != nil {
		from = civil.Earlier(from, w.Date)
	}
	return from, w, err
}
