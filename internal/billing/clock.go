package billing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// ErrClock: this machine's clock stands before the end of an earlier run, or apart from a witness.
var ErrClock = errors.New("the clock is wrong")

const (
	// clockSlack is how far apart the clocks of two processes on one store, or a witness's, may stand.
	clockSlack = 5 * time.Minute
	// clockLeap is how long after an instant at which the clock was right it is still believed.
	clockLeap = 36 * time.Hour
	// clockAge is the age of a witness's answer above which it is asked again: ours may have leapt.
	clockAge = time.Minute
)

// A Witness is another clock, with which this machine's is compared.
type Witness struct {
	Name  string                                     // whose, for messages
	Ahead func() (ahead time.Duration, at time.Time) // of our clock, by its last answer; a zero at: none
	Ask   func(context.Context) error                // for another answer
}

// Compare returns ErrClock if a witness's clock stands more than five minutes apart from ours, in
// two answers. It reports whether any witness has shown its clock: one that shows none is no error.
func (e *Records) Compare(ctx context.Context) (shown bool, err error) {
	for _, w := range e.Witnesses {
		ahead, known := e.ahead(&w)
		for range 2 { // for an answer of now, and for one that confirms an odd one
			if known && ahead.Abs() <= clockSlack {
				break
			}
			if err := w.Ask(ctx); err != nil {
				return false, fmt.Errorf("asking %s for the time: %w", w.Name, err)
			}
			was := known
			if ahead, known = e.ahead(&w); was {
				break
			}
		}
		if known && ahead.Abs() > clockSlack {
			now := e.Now()
			return false, fmt.Errorf("%w: this machine shows %s, but %[4]s shows %[3]s; correct the clock, because no one is charged until then",
				ErrClock, Stamp(now), Stamp(now.Add(ahead)), w.Name)
		}
		shown = shown || known
	}
	return shown, nil
}

// ahead returns what the witness shows by an answer of the last minute, or false without one.
func (e *Records) ahead(w *Witness) (time.Duration, bool) {
	ahead, at := w.Ahead()
	return ahead, e.Now().Sub(at).Abs() <= clockAge
}

// CheckClock returns the end of the last payment run. It returns ErrClock if that end is in the
// future, or if Compare refuses our clock.
func (e *Records) CheckClock(ctx context.Context) (ended time.Time, err error) {
	if ended, err = e.LastRunEnded(ctx); err != nil {
		return ended, err
	}
	if now := e.Now(); now.Before(ended.Add(-clockSlack)) {
		return ended, fmt.Errorf("%w: it is %s, but the last run ended at %s; correct the clock, or, if it is right "+
			"now, run: duesday charging on", ErrClock, Stamp(now), Stamp(ended))
	}
	_, err = e.Compare(ctx)
	return ended, err
}

// MayChange returns ErrMoved as Live does, or ErrClock as CheckClock does.
func (e *Records) MayChange(ctx context.Context) error {
	if err := e.Live(ctx); err != nil {
		return err
	}
	_, err := e.CheckClock(ctx)
	return err
}

// ClockShown reports whether anything but this machine's clock shows that it is right: it stands at
// most 36 hours after the instant since, or a witness agrees with it. At that instant the clock was
// right by the end of a run, by a person's word or, before both, by the making of the store.
func (e *Records) ClockShown(ctx context.Context) (shown bool, since time.Time, err error) {
	meta, err := e.Meta(ctx)
	if err != nil {
		return false, since, err
	}
	if since = meta.ClockRight; since.IsZero() { // an older Duesday wrote none
		if since, err = e.LastRunEnded(ctx); err != nil {
			return false, since, err
		}
		since = cmp.Or(since, meta.Created)
	}
	if !e.Now().After(since.Add(clockLeap)) {
		return true, since, nil
	}
	shown, err = e.Compare(ctx)
	return shown, since, err
}

// LastRunEnded returns when the latest payment run ended, by the clock of that run. A run whose
// clock was ahead does not count once the clock has been accepted.
func (e *Records) LastRunEnded(ctx context.Context) (time.Time, error) {
	meta, err := e.Meta(ctx)
	if err != nil || !meta.RunEnded.IsZero() {
		return meta.RunEnded, err
	}
	return e.latestEnd(ctx, 10*LookBack) // an older Duesday has recorded it
}

// latestEnd returns the latest end of so many payment runs, 0 for all, or zero. What else a record
// has and this build cannot read is no matter.
func (e *Records) latestEnd(ctx context.Context, limit int) (last time.Time, err error) {
	for it, err := range e.LatestRuns(ctx, Payments, limit) {
		if err != nil {
			return last, err
		}
		if ended := ParseStamp(it.Str(schema.EndedDate)); ended.After(last) && !it.Get(schema.Accepted).Bool() {
			last = ended
		}
	}
	return last, nil
}

// RunEnd returns the writes of META's notes about an ended run, for the commit of its record. The
// end of the last run never moves back by a clock that is a little behind: what that run has told
// of would be new again.
func (e *Records) RunEnd(ctx context.Context, r *Run, told time.Time) []store.Write {
	var set store.Item
	if r.Kind == Payments {
		ended := r.Ended
		if told.After(ended) {
			ended = told
		}
		set.Set(schema.EndedDate, store.S(Stamp(ended)))
	}
	switch shown, since, err := e.ClockShown(ctx); {
	case err == nil && shown:
		set.Set(schema.ClockDate, store.S(Stamp(r.Ended)))
	case r.Kind == Payments: // an older Duesday noted no such instant: the end of this run must not become it
		if meta, err := e.Meta(ctx); err == nil && meta.ClockRight.IsZero() && since.After(meta.Created) {
			set.Set(schema.ClockDate, store.S(Stamp(since)))
		}
	}
	if o := &e.Opened; r.Started.Before(o.Created) { // it lives by a test clock: the audit believes no sum from before it was made
		for name, at := range map[string]time.Time{schema.CreatedDate: o.Created, schema.SumsDate: o.Summed, schema.CausesDate: o.Caused} {
			if at.Equal(o.Created) {
				set.Set(name, store.S(Stamp(r.Started)))
			}
		}
	}
	if len(set) == 0 {
		return nil
	}
	return []store.Write{store.Update(e.Table, MetaKey, set, nil)}
}

// AcceptClock marks the runs that ended later than now: the clock was ahead then, and is right now.
// It returns the change of META that goes with it.
func (e *Records) AcceptClock(ctx context.Context) (set store.Item, remove []string, err error) {
	for _, kind := range [...]Kind{Payments, Reminders} {
		for it, err := range e.LatestRuns(ctx, kind, 0) {
			if err != nil {
				return nil, nil, err
			}
			if !ParseStamp(it.Str(schema.EndedDate)).After(e.Now()) {
				continue
			}
			mark := store.NewItem(store.Attribute{Name: schema.Accepted, Value: store.Bool(true)})
			if err := e.Store.Commit(ctx, store.Update(e.Table, KeyOf(it), mark, nil)); err != nil {
				return nil, nil, err
			}
		}
	}
	set = store.NewItem(store.Attribute{Name: schema.ClockDate, Value: store.S(Stamp(e.Now()))})
	ended, err := e.latestEnd(ctx, 0)
	if ended.IsZero() {
		return set, []string{schema.EndedDate}, err
	}
	set.Set(schema.EndedDate, store.S(Stamp(ended)))
	return set, nil, err
}
