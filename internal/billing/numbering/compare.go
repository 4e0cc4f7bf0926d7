package numbering

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Comparison finds gaps, numbers that were given twice, and receipts and rows that do not fit. It
// meets every item in any order, while drains work, and keeps hashes. What differs is read again,
// and only what differs then counts.
type Comparison struct {
	r      *billing.Records
	until  time.Time // what expires before it may be gone
	seed   maphash.Seed
	open   map[uint64]struct{} // of a receipt or a row, whose counterpart was not met yet
	series map[string]*extent
}

type extent struct{ rows, last int64 }

// NewComparison returns a Comparison of the store's items.
func NewComparison(r *billing.Records) *Comparison {
	return &Comparison{r: r, until: r.Now().AddDate(0, 0, 2), seed: maphash.MakeSeed(), open: map[uint64]struct{}{},
		series: map[string]*extent{}}
}

// A pair is a number and its object, by the receipt or by the row.
type pair struct {
	number string
	of     store.Key
}

// pairOf returns the pair of the item, or false for an item without a number and for what may have
// expired.
func (c *Comparison) pairOf(it store.Item) (p pair, x *Number, ok bool) {
	key := billing.KeyOf(it)
	if IsNumber(key) {
		x, err := Decode(it)
		if err != nil {
			return p, nil, false
		}
		return pair{x.String(), x.Of}, x, x.Expires.IsZero() || x.Expires.After(c.until)
	}
	if strings.HasPrefix(key.SK, billing.RecPrefix) || billing.IsReversal(it) {
		at := it.Int(schema.TTL)
		return pair{it.Str(schema.Number), key}, nil, it.Str(schema.Number) != "" && (at <= 0 || time.Unix(at, 0).After(c.until))
	}
	return p, nil, false
}

// Meet compares the item with those met before.
func (c *Comparison) Meet(it store.Item) {
	p, x, ok := c.pairOf(it)
	if x != nil {
		e := c.series[x.Series]
		if e == nil {
			e = new(extent)
			c.series[strings.Clone(x.Series)] = e
		}
		e.rows, e.last = e.rows+1, max(e.last, x.N)
	}
	if !ok {
		return
	}
	h := maphash.Comparable(c.seed, p)
	if _, met := c.open[h]; met {
		delete(c.open, h)
	} else {
		c.open[h] = struct{}{}
	}
}

// Report calls problem for each difference that is still there.
func (c *Comparison) Report(ctx context.Context, problem func(number, detail string)) error {
	if len(c.open) > 0 {
		for it, err := range c.r.Store.Scan(ctx, store.Scan{Table: c.r.Table}) {
			if err != nil {
				return err
			}
			if p, x, ok := c.pairOf(it); ok {
				if _, left := c.open[maphash.Comparable(c.seed, p)]; left {
					if err := c.lookAgain(ctx, p, x != nil, problem); err != nil {
						return err
					}
				}
			}
		}
	}
	now, err := read(ctx, c.r)
	if err != nil {
		if errors.Is(err, ErrCounter) {
			problem("", err.Error())
			return nil
		}
		return err
	}
	for series := range now.last {
		if c.series[series] == nil {
			c.series[series] = new(extent)
		}
	}
	for series, e := range c.series {
		if e.rows != e.last || e.last != now.last[series] {
			if err := c.recount(ctx, series, now.last[series], problem); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookAgain reads the receipt and the row of the pair.
func (c *Comparison) lookAgain(ctx context.Context, p pair, isRow bool, problem func(number, detail string)) error {
	object, err := c.r.Store.Get(ctx, c.r.Table, p.of)
	if billing.IgnoreNotFound(err) != nil {
		return err
	}
	n, _ := parse(p.number) // no row has the key of an illegible one
	row, err := c.r.Store.Get(ctx, c.r.Table, n.Key())
	if billing.IgnoreNotFound(err) != nil {
		return err
	}
	x, err := Decode(row)
	named := err == nil && x.Of == p.of
	switch has := object.Str(schema.Number); {
	case isRow && !named, !isRow && has != p.number: // it has changed since the scan
	case isRow && object == nil:
		problem(p.number, "its receipt or refund "+p.of.SK+" is missing")
	case isRow && has != p.number:
		problem(p.number, fmt.Sprintf("its receipt or refund %s has the number %q", p.of.SK, has))
	case !isRow && !named:
		problem(p.number, "no row gives it to "+p.of.SK)
	}
	return nil
}

// mostMissing limits the numbers that are named for each series.
const mostMissing = 10

// recount reads the series again. last is the counter's value, read before.
func (c *Comparison) recount(ctx context.Context, series string, last int64, problem func(number, detail string)) error {
	met := map[int64]bool{}
	highest := int64(0)
	for it, err := range c.r.Store.Query(ctx, store.Query{Table: c.r.Table, Partition: prefix + "#" + series}) {
		if err != nil {
			return err
		}
		if x, err := Decode(it); err == nil {
			met[x.N], highest = true, max(highest, x.N)
		}
	}
	missing := 0
	for n := int64(1); n <= max(highest, last) && missing < mostMissing; n++ {
		if !met[n] {
			missing++
			problem(Number{Series: series, N: n}.String(), "it was given, and its row is missing")
		}
	}
	now, err := read(ctx, c.r)
	if err == nil && now.last[series] < highest {
		problem(Number{Series: series, N: highest}.String(), fmt.Sprintf("the counter says that the last number is %d", now.last[series]))
	}
	return err
}
