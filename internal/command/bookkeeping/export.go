package bookkeeping

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/book"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

// These are the columns of exports, which are the names of members in the views. The columns of
// subscriptions match the columns that import accepts, so that another store can import the file.
var (
	accountColumns = append([]string{"account", "email", "time_zone", "created_at", "name", "locale", "customer", "payment_method",
		"fallback_payment_method"}, party.Names[:]...)
	receiptColumns = []string{"account", "subscription", "sku", "period", "due_date", "processed_at", "amount",
		"currency", "charge", "kind", "id", "number", "email", "refunded", "note", "unit_amount", "quantity", "discount",
		"net", "tax", "tax_rate", "tax_mode", "tax_country", "tax_note"}
	reversalColumns = []string{"account", "subscription", "sku", "period", "kind", "id", "created_at", "amount",
		"currency", "state", "reason", "charge", "refund", "processed_at", "number"}
)

type exportFlags struct {
	format screen.Flag[string]
	out    string
	all    bool
	days   screen.DaySpan
}

func (p *program) exportCommand() *cobra.Command {
	kind := func(name string) (*cobra.Command, *exportFlags) {
		f := &exportFlags{format: screen.ChoiceFlag("csv", "jsonl")}
		f.format.Value, f.format.Text = "csv", "csv"
		c := p.StoreLeaf(name, session.Need{Read: true},
			func(ctx context.Context, s *session.Session, _ []string) error { return p.export(ctx, s, name, f) })
		c.Flags().Var(&f.format, "format", "file format")
		c.Flags().StringVar(&f.out, "out", "", "`FILE` to write to (default standard output)")
		return session.Checked(c, func([]string) error {
			if p.AsJSON && !c.Flags().Changed("format") {
				f.format.Value = "jsonl"
			}
			return f.days.Check()
		}), f
	}
	accounts, _ := kind("accounts")
	subscriptions, f := kind("subscriptions")
	subscriptions.Flags().BoolVar(&f.all, "all", false, "also export subscriptions that are not active, with their status; that file cannot be imported")
	receipts, f := kind("receipts")
	f.days.Flags(receipts, "were paid")
	periods, f := kind("periods")
	f.days.Flags(periods, "ended")
	refunds, f := kind("refunds")
	f.days.Flags(refunds, "were created")
	return session.Group("export", accounts, subscriptions, receipts, periods, refunds)
}

func (p *program) export(ctx context.Context, s *session.Session, what string, f *exportFlags) error {
	if f.out == "" {
		return p.exportTo(ctx, s, what, f, p.Out, new(screen.Progress))
	}
	temporary := p.Path(f.out) + ".tmp"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(file, 1<<20)
	bar := p.Progress("rows", 0, nil)
	err = p.exportTo(ctx, s, what, f, w, bar)
	bar.End()
	if err = errors.Join(err, w.Flush(), file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return os.Rename(temporary, p.Path(f.out))
}

func (p *program) exportTo(ctx context.Context, s *session.Session, what string, f *exportFlags, w io.Writer,
	bar *screen.Progress) error {
	asJSON := f.format.Value == "jsonl"
	switch what {
	case "accounts":
		return exportRows(w, asJSON, bar, accountColumns, screen.Readable(p.Screen, s.Engine.Accounts(ctx)),
			func(a *billing.Account) view.Object {
				v := row(view.Account(a), "id", "account")
				for _, name := range []any{"company?", "address?", "tax_id?"} { // detailsOf has them
					at := slices.Index(v, name)
					v = slices.Delete(v, at, at+2)
				}
				return append(v, detailsOf(a)...)
			})
	case "receipts":
		reversals, err := gatherReversals(screen.Readable(p.Screen, s.Engine.ReversalRecords(ctx)))
		if err != nil {
			return err
		}
		return exportRows(w, asJSON, bar, receiptColumns, sequence.Filter(screen.Readable(p.Screen, s.Engine.Receipts(ctx)),
			func(r *billing.Receipt) bool { return f.days.Has(r.Processed) }),
			func(r *billing.Receipt) view.Object {
				note := ""
				if r.Kind == billing.External || r.Kind == billing.Overpayment {
					note = r.Charge
				}
				v := view.Object{"account", r.Account, "subscription", r.ID, "sku", r.SKU, "period?", view.PeriodOf(r), "due_date", r.Due,
					"processed_at", r.Processed, "amount", r.Amount.Decimal(), "currency", r.Amount.Currency().Code(),
					"charge", r.Charge, "kind", r.Kind, "id", r.Number(s.Engine.Opened.Installation),
					"number?", r.InSeries, "email", r.Email,
					"refunded", view.Refunded(r, reversals.of(r)).Decimal(), "note?", note}
				if x := r.Price; x != nil {
					v = append(v, "unit_amount", x.Unit.Decimal(), "quantity", x.Terms.Count(), "discount", x.Discount.Decimal())
				}
				return append(v, row(view.Taxed(r.Price), "", "")...)
			})
	case "periods":
		return exportRows(w, asJSON, bar, periodColumns, sequence.Filter(screen.Readable(p.Screen, s.Engine.EndedPeriods(ctx)),
			func(x *billing.EndedPeriod) bool { return f.days.Has(x.Ended) }),
			func(x *billing.EndedPeriod) view.Object { return row(view.Period(x), "detail?", "reason") })
	case "refunds":
		return exportRows(w, asJSON, bar, reversalColumns, sequence.Filter(screen.Readable(p.Screen, s.Engine.ReversalRecords(ctx)),
			func(r *billing.ReversalRecord) bool { return f.days.Has(r.Created) }),
			func(r *billing.ReversalRecord) view.Object { return row(view.Reversal(r), "", "") })
	}
	return p.exportBook(ctx, s, f, w, bar)
}

// detailsOf returns the account's details as columns.
func detailsOf(a *billing.Account) (v view.Object) {
	for i, text := range a.Details.Fields() {
		v = append(v, party.Names[i]+"?", *text)
	}
	return v
}

// row returns the view as a row of an export, in which amounts are decimal texts, and the member old is
// called name.
func row(v view.Object, old, name string) view.Object {
	v = slices.Clone(v)
	for i, x := range v {
		if a, ok := x.(money.Amount); ok {
			v[i] = a.Decimal()
		} else if i%2 == 0 && x == old {
			v[i] = name
		}
	}
	return v
}

// exportBook writes the subscriptions in the format that import accepts. Each row includes the data
// of its account and its product.
func (p *program) exportBook(ctx context.Context, s *session.Session, f *exportFlags, w io.Writer,
	bar *screen.Progress) error {
	now, err := settings.Read(ctx, s.Engine.Records)
	if err != nil {
		return err
	}
	columns := book.Columns()
	if f.all {
		columns = append(columns, "status")
	}
	holder := new(billing.Account) // the previous row's account, because an account's rows are adjacent
	var failed error
	view := func(sub *billing.Subscription) view.Object {
		if holder.ID != sub.Account {
			holder = &billing.Account{ID: sub.Account}
			if a, err := s.Engine.Account(ctx, sub.Account); err == nil {
				holder = a
			} else if _, illegible := errors.AsType[*billing.IllegibleError](err); !illegible && billing.CheckID("account", sub.Account) == nil {
				failed = cmp.Or(failed, billing.IgnoreNotFound(err))
			}
			if holder.Fallback == sub.Method { // import refuses that row, and a fact that only later rows have
				holder.Fallback = ""
			}
		}
		fallback := holder.Fallback
		if fallback == sub.Method {
			fallback = ""
		}
		row := append(viewBookRow(sub), "customer?", holder.Payer.Customer, "name?", holder.Name, "locale?", holder.Locale,
			"fallback?", fallback, "product?", now.Products[sub.SKU])
		row = append(row, detailsOf(holder)...)
		if f.all {
			row = append(row, "status", sub.Status)
		}
		return row
	}
	left, pending := 0, 0
	// Another store would start the payments of the excluded subscriptions again, or charge for a
	// period that the processor may still charge.
	all := sequence.Filter(screen.Readable(p.Screen, s.Engine.Subscriptions(ctx)), func(s *billing.Subscription) bool {
		if f.all || s.Status == billing.Active && !s.CancelAtEnd && s.Requested == "" && !s.Held() {
			if s.Pending != nil {
				pending++
			}
			return true
		}
		left++
		return false
	})
	err = cmp.Or(exportRows(w, f.format.Value == "jsonl", bar, columns, all, view), failed)
	if err == nil && left > 0 {
		p.Warn("left out %s that another store should not charge (not active, ending, or held by a takeover); --all exports them too",
			screen.Plural(left, "subscription"))
	}
	if err == nil && pending > 0 {
		p.Warn("%s with a pending plan change: the file contains only the current plan", screen.Plural(pending, "subscription"))
	}
	return err
}

// exportRows writes the view of each element as a line of JSON, or as a CSV row below a header with
// the columns. It advances the progress bar for each row.
//
// Text cells in CSV go through book.AsCell, so a spreadsheet never evaluates one as a formula.
func exportRows[T any](w io.Writer, asJSON bool, bar *screen.Progress, columns []string, seq iter.Seq2[T, error],
	view func(T) view.Object) error {
	enc, table := json.NewEncoder(w), csv.NewWriter(w)
	enc.SetEscapeHTML(false)
	if !asJSON {
		table.Write(columns) // the writer keeps its first error for Error
	}
	cells := make([]string, len(columns))
	for v, err := range seq {
		bar.Done.Add(1)
		if err != nil {
			return err
		}
		row := view(v)
		if asJSON {
			err = enc.Encode(row)
		} else {
			for i, name := range columns {
				cells[i] = book.AsCell(screen.Text(row, name))
			}
			err = table.Write(cells)
		}
		if err != nil {
			return err
		}
	}
	table.Flush()
	return table.Error()
}

// viewBookRow returns the subscription as a row that import accepts.
func viewBookRow(s *billing.Subscription) view.Object {
	// left is the number of installments to be paid, or 0 for no end. Import refuses a negative
	// number, which means that the record is broken.
	left, discount := 0, s.Terms.Discount.Left(s.Period)
	if s.Installments > 0 {
		left = s.Installments - s.Paid
	}
	v := view.Object{"account", s.Account, "email", s.Email, "subscription", s.ID, "sku", s.SKU,
		"amount", s.Amount.Decimal(), "currency", s.Amount.Currency().Code(), "payment_day", s.PaymentDay,
		"payment_method", s.Method, "next_payment_date?", view.DueOf(s), "interval", s.Interval.String(),
		"time_zone", cmp.Or(s.TimeZone, "UTC"), "reminder_days", s.ReminderDays,
		"installments?", left, "address?", s.Address, "collection?", view.CollectionOf(s),
		"quantity?", s.Terms.Quantity, "discount?", discount.String(), "discount_periods?", discount.Periods}
	if t := s.Terms.Tax; t.Mode != price.Untaxed {
		v = append(v, "tax_rate", t.Rate.String(), "tax", t.Mode, "tax_note?", t.Note)
	}
	return v
}
