package billing

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// DoubtPK is the partition of the periods that were perhaps paid twice: found without a scan.
const DoubtPK = "DOUBTS"

// A Doubt is a period that was settled, or that failed, while another tool moved or removed
// NextPaymentDate: that tool may have taken its payment, too. It stands until a person has
// answered.
type Doubt struct {
	Name
	Period  int
	Moved   civil.Date // NextPaymentDate as the other tool wrote it; zero: removed
	Created time.Time
}

// Write returns the put of the item.
func (d *Doubt) Write(table string) store.Write {
	it := ItemAt(store.Key{PK: DoubtPK, SK: d.Account + "#" + PeriodKey(d.Name, d.Period).SK},
		store.Attribute{Name: schema.CreatedDate, Value: store.S(Stamp(d.Created))})
	if !d.Moved.IsZero() {
		it.Set(schema.AlteredDate, store.S(d.Moved.String()))
	}
	return store.Put(table, it)
}

// DecodeDoubt reads the item. Its key names the period, so that another tool's attributes cannot hide it.
func DecodeDoubt(it store.Item) (*Doubt, error) {
	account, rest, _ := strings.Cut(it.Str(schema.SK), "#"+PerPrefix)
	at := max(strings.LastIndex(rest, "#"), 0)
	name, ok := NameOf(store.Key{PK: AccountPK(account), SK: SubPrefix + rest[:at]})
	period, err := strconv.Atoi(strings.TrimPrefix(rest[at:], "#"))
	if !ok || err != nil {
		return nil, &IllegibleError{schema.SK, "is not that of a period", nil}
	}
	moved, _ := civil.Parse(it.Str(schema.AlteredDate))
	return &Doubt{Name: name, Period: period, Moved: moved, Created: ParseStamp(it.Str(schema.CreatedDate))}, nil
}

// Doubts yields all of them, and an ItemError for one that cannot be read.
func (e *Records) Doubts(ctx context.Context) iter.Seq2[*Doubt, error] {
	return decoded(e, ctx, store.Query{Table: e.Table, Partition: DoubtPK}, DecodeDoubt)
}

// AnswerDoubts ends the doubts about the subscription's periods, each in a commit that also raises the
// subscription's version, and returns how many there were.
func (e *Records) AnswerDoubts(ctx context.Context, n Name) (answered int, err error) {
	q := store.Query{Table: e.Table, Partition: DoubtPK, Prefix: n.Account + "#" + PerPrefix + n.ID + "#SKU#"}
	for it, err := range e.Store.Query(ctx, q) {
		if err == nil {
			err = store.Retry(ctx, "subscription "+n.String(), func() error {
				s, err := e.Subscription(ctx, n)
				if errors.Is(err, store.ErrNotFound) { // another tool has removed it
					return e.Store.Commit(ctx, store.Delete(e.Table, KeyOf(it)))
				}
				if err == nil {
					_, err = e.Store.Get(ctx, e.Table, KeyOf(it))
				}
				if err != nil {
					return IgnoreNotFound(err) // it was answered meanwhile
				}
				return e.Put(ctx, s, store.Delete(e.Table, KeyOf(it)))
			})
		}
		if err != nil {
			return answered, err
		}
		answered++
	}
	return answered, nil
}
