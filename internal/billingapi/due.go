package billingapi

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/due"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// A dueRow is an index row with its place: one of the date's partitions, and the cursor in it.
type dueRow struct {
	billing.DueRow
	at duePlace
}

type duePlace struct {
	Partition string       `json:"partition"`
	Cursor    store.Cursor `json:"cursor"`
}

func (r dueRow) place() string {
	text, _ := json.Marshal(r.at) // never fails: it contains only strings
	return string(text)
}

// due lists the rows of the index that are due on the parameter date.
func (s *server) due(index string, show func(billing.DueRow) view.Object) web.Handler {
	return func(w http.ResponseWriter, r *web.Request) error {
		return web.List(r.Server, w, r, web.ListOptions[dueRow]{Names: []string{"date"},
			Open: func(values url.Values, after string) (iter.Seq2[dueRow, error], error) {
				day, err := civil.Parse(values.Get("date"))
				if err != nil {
					return nil, billing.Invalid("date", "must be a date such as 2027-01-31")
				}
				var from duePlace
				if after != "" {
					err = json.Unmarshal([]byte(after), &from)
				}
				return s.dueOn(r.Context(), index, day, from), err
			},
			Place: dueRow.place,
			View:  func(x dueRow) any { return show(x.DueRow) }})
	}
}

func (s *server) dueOn(ctx context.Context, index string, day civil.Date, from duePlace) iter.Seq2[dueRow, error] {
	e, table := s.Engine, &s.Engine.Tables.RecurringPayments
	return sequence.Flat(e.Partitions(day), func(partition string) iter.Seq2[dueRow, error] {
		if from.Partition != "" && partition != from.Partition {
			return sequence.Of[dueRow](nil)
		}
		q := store.Query{Table: e.Table, Index: index, Partition: partition, After: from.Cursor}
		from = duePlace{}
		return sequence.Map(e.Store.Query(ctx, q), func(it store.Item) (row dueRow, err error) {
			row.at = duePlace{partition, table.CursorAt(index, it)}
			row.DueRow, err = e.DueRow(ctx, index, it)
			if err == nil && !due.Complete(ctx, e.Records, &row.DueRow) { // the run will cancel the subscription
				err = sequence.ErrSkip
			}
			return row, err
		})
	})
}
