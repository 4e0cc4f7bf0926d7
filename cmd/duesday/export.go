package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/book"
)

// The columns of exports. Those of subscriptions are what import takes, so that a book can
// be carried on elsewhere.
var (
	accountColumns = []string{"account", "email", "time_zone", "created_at"}
	receiptColumns = []string{"account", "subscription", "sku", "period", "due_date", "processed_at", "amount",
		"currency", "charge"}
)

type exportFlags struct {
	format choiceFlag
	out    string
	all    bool
}

func (p *program) exportCommand() *cobra.Command {
	kind := func(name, short, long string) *cobra.Command {
		f := &exportFlags{format: choiceFlag{choices: []string{"csv", "jsonl"}, value: "csv"}}
		c := &cobra.Command{
			Use:   name,
			Short: short,
			Long:  long,
			Args:  want(),
			RunE: func(cmd *cobra.Command, _ []string) error {
				if p.cfg.JSON && !cmd.Flags().Changed("format") {
					f.format.value = "jsonl"
				}
				return p.export(cmd.Context(), name, f)
			},
		}
		c.Flags().Var(&f.format, "format", "of the lines")
		c.Flags().StringVar(&f.out, "out", "", "`FILE` to write to (default standard output)")
		if name == "subscriptions" {
			c.Flags().BoolVar(&f.all, "all", false,
				"also those that are not active, with their status; that file cannot be imported")
		}
		return c
	}
	return group("export", "Write accounts, subscriptions, receipts or refunds as CSV or JSON lines",
		kind("accounts", "Write all accounts", ""),
		kind("subscriptions", "Write the active subscriptions, as a book that can be imported",
			`Write the active subscriptions as a book that import takes. Paused, past_due, parked and
cancelled ones are left out, since an import would charge them again; --all adds them
and a column status, which import refuses.`),
		kind("receipts", "Write all receipts that have not expired", ""),
		kind("refunds", "Write all refunds and disputes", ""))
}

func (p *program) export(ctx context.Context, what string, f *exportFlags) error {
	return p.with(ctx, need{read: true}, func(s *session) error {
		if f.out == "" {
			return p.exportTo(ctx, s, what, f, p.stdout, nil)
		}
		temporary := f.out + ".tmp"
		file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		w := bufio.NewWriterSize(file, 1<<20)
		bar := p.progress("rows", 0, nil)
		err = p.exportTo(ctx, s, what, f, w, bar)
		bar.end()
		if err = errors.Join(err, w.Flush(), file.Sync(), file.Close()); err != nil {
			return errors.Join(err, os.Remove(temporary))
		}
		return os.Rename(temporary, f.out)
	})
}

func (p *program) exportTo(ctx context.Context, s *session, what string, f *exportFlags, w io.Writer,
	bar *progress) error {
	asJSON := f.format.value == "jsonl"
	switch what {
	case "accounts":
		return exportRows(w, asJSON, accountColumns, counted(s.engine.Accounts(ctx), bar),
			func(a *billing.Account) ([]string, any) {
				v := viewAccount(a)
				return []string{v.Account, v.Email, v.TimeZone, v.Created}, v
			})
	case "receipts":
		return exportRows(w, asJSON, receiptColumns, counted(s.engine.Receipts(ctx), bar),
			func(r *billing.Receipt) ([]string, any) {
				v := viewReceipt(r)
				return []string{v.Account, v.Subscription, v.SKU, receiptPeriod(r), v.Due, v.Processed, v.Amount, v.Currency,
					v.Charge}, v
			})
	}
	if what == "refunds" {
		return exportRows(w, asJSON, returnColumns, counted(s.engine.ReversalRecords(ctx), bar),
			func(r *billing.ReversalRecord) ([]string, any) {
				v := viewReturn(r)
				return []string{v.Account, v.Subscription, v.SKU, strconv.Itoa(v.Period), v.Kind, v.ID, v.Created, v.Amount,
					v.Currency, v.State, v.Reason, v.Charge, v.Ref}, v
			})
	}
	left := 0
	columns := book.Columns()
	if f.all {
		columns = append(columns, "status")
	}
	err := exportRows(w, asJSON, columns, counted(exported(s.engine.Subscriptions(ctx), f.all, &left), bar),
		func(sub *billing.Subscription) ([]string, any) {
			v := viewBookRow(sub, f.all)
			return v.cells(f.all), v
		})
	if err == nil && left > 0 {
		p.warn("%s that should not be charged elsewhere left out (not active, or ending); --all writes them too",
			plural(left, "subscription"))
	}
	return err
}

// exported leaves out the subscriptions of which an import would revive a payment, and counts them.
func exported(all iter.Seq2[*billing.Subscription, error], every bool,
	left *int) iter.Seq2[*billing.Subscription, error] {
	return func(yield func(*billing.Subscription, error) bool) {
		for s, err := range all {
			if err == nil && !every && (s.Status != billing.Active || s.CancelAtEnd || s.Requested != "") {
				*left++
				continue
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// counted moves the bar with each row.
func counted[T any](seq iter.Seq2[T, error], bar *progress) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range seq {
			bar.add(1)
			if !yield(v, err) {
				return
			}
		}
	}
}

func exportRows[T any](w io.Writer, asJSON bool, columns []string, seq iter.Seq2[T, error],
	row func(T) ([]string, any)) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		for v, err := range seq {
			if err != nil {
				return err
			}
			_, object := row(v)
			if err := enc.Encode(object); err != nil {
				return err
			}
		}
		return nil
	}
	out, err := book.NewWriter(w, book.CSV, columns)
	if err != nil {
		return err
	}
	for v, err := range seq {
		if err != nil {
			return err
		}
		cells, _ := row(v)
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	return out.Flush()
}

// A bookRowView is a subscription as import takes it, in the order of book.Columns.
type bookRowView struct {
	Account      string `json:"account"`
	Email        string `json:"email"`
	Subscription string `json:"subscription"`
	SKU          string `json:"sku"`
	Amount       string `json:"amount"`
	Currency     string `json:"currency"`
	PaymentDay   int    `json:"payment_day"`
	Method       string `json:"payment_method"`
	Next         string `json:"next_payment_date,omitempty"`
	Interval     string `json:"interval"`
	TimeZone     string `json:"time_zone"`
	ReminderDays int    `json:"reminder_days"`
	Installments int    `json:"installments,omitempty"` // still to be paid
	Address      string `json:"address,omitempty"`
	Status       string `json:"status,omitempty"`
}

func viewBookRow(s *billing.Subscription, status bool) bookRowView {
	v := bookRowView{Account: s.Account, Email: s.Email, Subscription: s.ID, SKU: s.SKU, Amount: s.Amount.Decimal(),
		Currency: s.Amount.Currency().Code(), PaymentDay: s.PaymentDay, Method: s.Method, Next: dueOf(s),
		Interval: s.Interval.String(),
		TimeZone: cmp.Or(s.TimeZone, "UTC"), ReminderDays: s.ReminderDays, Address: s.Address}
	if s.Installments > 0 {
		v.Installments = s.Installments - s.Paid
	}
	if status {
		v.Status = string(s.Status)
	}
	return v
}

func (v *bookRowView) cells(status bool) []string {
	cells := []string{v.Account, v.Email, v.Subscription, v.SKU, v.Amount, v.Currency, strconv.Itoa(v.PaymentDay),
		v.Method, "", v.Next,
		v.Interval, v.TimeZone, strconv.Itoa(v.ReminderDays), positive(v.Installments), v.Address}
	if status {
		cells = append(cells, v.Status)
	}
	return cells
}
