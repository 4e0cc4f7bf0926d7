package numbering

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A store that went back in time never continues a series, because the lost store may have given
// the next numbers to other receipts. It takes the next letter instead: R-2026B-000001.

// A counter is the item with the last number of each series.
type counter struct {
	last    map[string]int64
	letter  string    // of the series since the store went back; "": it never did
	known   string    // the last numbers of the series before letter, with spaces between
	begun   time.Time // when the letter was taken
	version int64
}

func read(ctx context.Context, r *billing.Records) (*counter, error) {
	it, err := r.Store.Get(ctx, r.Table, CounterKey)
	if billing.IgnoreNotFound(err) != nil {
		return nil, err
	}
	return decode(it)
}

func decode(it store.Item) (*counter, error) {
	c := &counter{last: map[string]int64{}, letter: it.Str(schema.Letter), known: it.Str(schema.Known),
		begun: billing.ParseStamp(it.Str(schema.CreatedDate)), version: it.Int(schema.Version)}
	for _, a := range it.Get(schema.Last).Map() {
		n, ok := a.Value.Int64()
		if !ok || n < 0 {
			return nil, fmt.Errorf("%w: the last number of %s is not a whole number", ErrCounter, a.Name)
		}
		c.last[a.Name] = n
	}
	if it != nil && (it.Get(schema.Last).Kind() != store.KindMap || c.version < 1 || strings.Trim(c.letter, alphabet) != "") {
		return nil, fmt.Errorf("%w: %s, %s or %s is missing or wrong", ErrCounter, schema.Last, schema.Letter, schema.Version)
	}
	return c, nil
}

// put returns the write of the counter. Its condition fails if the counter has changed since it was
// read.
func (c *counter) put(table string) store.Write {
	still := store.Absent()
	if c.version > 0 {
		still = store.AttributeEquals(schema.Version, store.Int(c.version))
	}
	last := store.NewItem()
	for series, n := range c.last {
		last.Set(series, store.Int(n))
	}
	it := billing.ItemAt(CounterKey, store.Attribute{Name: schema.Last, Value: store.M(last)},
		store.Attribute{Name: schema.Version, Value: store.Int(c.version + 1)})
	if c.letter != "" {
		it.Set(schema.CreatedDate, store.S(billing.Stamp(c.begun)))
		it.Set(schema.Letter, store.S(c.letter))
	}
	if c.known != "" {
		it.Set(schema.Known, store.S(c.known))
	}
	return store.Put(table, it, still)
}

// begin takes the letter after those of the counters, and notes the last numbers of both as known.
func (c *counter) begin(lost *counter, now time.Time) {
	last := map[string]int64{}
	for _, x := range []*counter{c, lost} {
		if len(x.letter) > len(c.letter) || len(x.letter) == len(c.letter) && x.letter > c.letter {
			c.letter = x.letter
		}
		for text := range strings.FieldsSeq(x.known) {
			if n, ok := parse(text); ok {
				last[n.Series] = max(last[n.Series], n.N)
			}
		}
		for series, n := range x.last {
			last[series] = max(last[series], n)
		}
	}
	var known []string
	for series, n := range last {
		known = append(known, Number{Series: series, N: n}.String())
	}
	slices.Sort(known)
	c.letter, c.known, c.begun = nextLetter(c.letter), strings.Join(known, " "), now
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// nextLetter returns B after "", C after B, and AA after Z.
func nextLetter(letter string) string {
	n := 0
	for _, r := range letter {
		n = n*len(alphabet) + int(r-'A') + 1
	}
	text := ""
	for n = max(n, 1) + 1; n > 0; n = (n - 1) / len(alphabet) {
		text = alphabet[(n-1)%len(alphabet):][:1] + text
	}
	return text
}

// A Lost is what the store that another store replaces knows about its numbers.
type Lost struct{ *counter }

// LostOf reads it from the replaced store.
func LostOf(ctx context.Context, r *billing.Records) (*Lost, error) {
	c, err := read(ctx, r)
	return &Lost{c}, err
}

// Begin begins a new series in a store that was restored from a backup, and returns the last known
// numbers, or "" if there are none. lost is the replaced store, or nil if it cannot be read.
func Begin(ctx context.Context, r *billing.Records, lost *Lost) (known string, err error) {
	err = store.Retry(ctx, "beginning a series of receipt numbers", func() error {
		c, err := read(ctx, r)
		if err != nil {
			return waive(ctx, r, err)
		}
		other := c
		if lost != nil && lost.counter != nil {
			other = lost.counter
		}
		c.begin(other, r.Now())
		known = c.known
		return r.Store.Commit(ctx, c.put(r.Table))
	})
	return known, err
}

// BeginSince begins a new series, unless the current letter was taken after the end of the last
// payment run. A reconciliation calls it, also after each interruption.
func BeginSince(ctx context.Context, r *billing.Records) error {
	meta, err := r.Meta(ctx)
	if err != nil {
		return err
	}
	return store.Retry(ctx, "beginning a series of receipt numbers", func() error {
		c, err := read(ctx, r)
		if err != nil || c.letter != "" && !c.begun.Before(meta.RunEnded) {
			return waive(ctx, r, err)
		}
		c.begin(c, r.Now())
		return r.Store.Commit(ctx, c.put(r.Table))
	})
}

// waive returns the error unless the counter is illegible: then no number is given before its
// repair, and neither a restore nor a reconciliation waits for that.
func waive(ctx context.Context, r *billing.Records, err error) error {
	if errors.Is(err, ErrCounter) {
		r.Log.WarnContext(ctx, "no new series of receipt numbers begins", "error", err)
		return nil
	}
	return err
}
