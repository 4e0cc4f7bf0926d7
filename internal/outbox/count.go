package outbox

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
)

// An effect may say what its cause adds to sums of money. A drain adds it before it delivers: the
// commit that changes the sums takes the text off a batch of rows, and deletes those of KindSum, which
// have nothing else. It holds only while each row has its text. So each row is added once: by one of
// several drains, and by one of two commits if the answer of the first was lost. Where effects are
// claimed, the same commit claims the batch, and nothing is written that was not written before.

// A Tally returns the writes that add the effects' Sums to the totals. Their conditions must fail if
// the totals have changed since they were read.
type Tally func(ctx context.Context, sums []string) ([]store.Write, error)

// Counting returns an outbox whose drains add up the Sums of rows with the tally. An outbox without
// a tally deletes delivered rows without counting them.
func (o Outbox) Counting(t Tally) *Outbox {
	o.tally = t
	return &o
}

// SetSums sets the Sums attribute on an effect's put.
func SetSums(w *store.Write, sums string) {
	if sums != "" {
		w.Item.Set(schema.Sums, store.S(sums))
	}
}

// Uncounted yields the undelivered effects whose Sums have not been added up yet.
func (o *Outbox) Uncounted(ctx context.Context) iter.Seq2[Effect, error] {
	return sequence.Filter(o.Waiting(ctx), func(e Effect) bool { return e.Sums != "" })
}

// countRows is how many rows one commit counts, at most. There is room for the sums, for two more writes for each
// number, and for their counter. Claimed rows of a process that dies wait for the end of their lease.
const countRows = 32

// A row is one that is due. One that was counted is claimed already, where effects are claimed.
type row struct {
	store.Item
	claimed bool
}

// countAndSend adds the sums of the rows, and sends those that are to be delivered.
func (o *Outbox) countAndSend(ctx context.Context, rows []store.Item, send func(row) error) error {
	rows, err := o.ours(ctx, rows)
	if err != nil {
		return err
	}
	counted, err := o.countBatch(ctx, rows)
	for _, it := range counted {
		if err == nil {
			err = send(row{it, o.lease > 0})
		}
	}
	return err
}

// A manyError is the number of writes that are too many for one commit.
type manyError int

func (e manyError) Error() string { return fmt.Sprint("too many writes for one commit: ", int(e)) }

// countBatch adds the sums of the rows in one commit, or in several if they change many sums. It
// returns the rows to be delivered, as they now are: without those of KindSum, and without those
// that others are changing, which wait for the next drain.
func (o *Outbox) countBatch(ctx context.Context, rows []store.Item) (rest []store.Item, err error) {
	again := false
	var counted []store.Item
	err = store.Retry(ctx, "counting the outbox", func() (err error) {
		if again {
			if rows, err = o.lookAgain(ctx, rows, &rest); err != nil {
				return err
			}
		}
		again = true
		counted, err = o.add(ctx, rows)
		return err
	})
	many, tooMany := errors.AsType[manyError](err)
	switch {
	case errors.Is(err, store.ErrOvertaken):
		return rest, nil
	case tooMany && len(rows) > 1:
		fit := max(1, len(rows)*store.MaxWrites/int(many))
		for _, part := range [][]store.Item{rows[:fit], rows[fit:]} {
			counted, err := o.countBatch(ctx, part)
			if err != nil {
				return nil, err
			}
			rest = append(rest, counted...)
		}
		return rest, nil
	case err != nil:
		return nil, err
	}
	return append(rest, counted...), nil
}

// add commits the sums of uncounted rows, and returns the rows to be delivered, as they then are.
func (o *Outbox) add(ctx context.Context, rows []store.Item) (counted []store.Item, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	var writes []store.Write
	sums := make([]string, len(rows))
	var named []store.Key
	for i, it := range rows {
		sums[i] = it.Str(schema.Sums)
		named = append(named, numbered(it)...)
		if it.Str(schema.Kind) == KindSum {
			writes = append(writes, store.Delete(o.table.Name, o.table.KeyOf(it),
				store.AttributeEquals(schema.Sums, it.Get(schema.Sums))))
			continue
		}
		writes = append(writes, o.claim(&it, schema.Sums))
		counted = append(counted, it)
	}
	added, err := o.tally(ctx, sums)
	if err == nil && o.numbers != nil && len(named) > 0 {
		var given []store.Write
		given, err = o.numbers.Give(ctx, named)
		added = append(added, given...)
	}
	switch {
	case err != nil:
		return nil, err
	case len(writes)+len(added) > store.MaxWrites:
		return nil, manyError(len(writes) + len(added))
	}
	return counted, o.store.Commit(ctx, append(writes, added...)...)
}

// lookAgain reads the rows after a commit that has not, or may not have landed. It returns those not
// counted yet, and adds to rest those that are, to be delivered: they have kept their place, so nobody
// has claimed them. The others are gone.
func (o *Outbox) lookAgain(ctx context.Context, rows []store.Item, rest *[]store.Item) (waiting []store.Item, err error) {
	for _, it := range rows {
		now, err := o.store.Get(ctx, o.table.Name, o.table.KeyOf(it))
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return nil, err
		case now.Str(schema.Sums) != "":
			waiting = append(waiting, now)
		case o.lease == 0:
			*rest = append(*rest, now)
		}
	}
	return waiting, nil
}
