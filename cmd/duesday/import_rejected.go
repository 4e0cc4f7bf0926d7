package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/book"
)

// A rejectedFile is FILE.rejected while it is written: under another name until it is whole, and
// only with --skip-bad and a bad row. Rows rejected by the check of the file come first, as they
// stand there; rows refused by the store come after them.
type rejectedFile struct {
	m     *importer
	file  *os.File // nil before the first bad row
	out   *bufio.Writer
	rows  *book.RejectedWriter
	later []refusedRow
}

type refusedRow struct {
	line  int
	row   billing.NewSubscription
	field *billing.FieldError
}

func (r *rejectedFile) temporary() string { return r.m.name + ".rejected.tmp" }

func (r *rejectedFile) begin() error {
	if r.file != nil {
		return nil
	}
	file, err := os.OpenFile(r.temporary(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the rejected rows: %w", err)
	}
	r.file, r.out = file, bufio.NewWriter(file)
	r.rows = book.NewRejectedWriter(r.out, r.m.format)
	return nil
}

// add adds a row rejected by the check of the file.
func (r *rejectedFile) add(bad *book.Rejection) error {
	if !r.m.flags.skipBad || bad.Fatal {
		return nil
	}
	if err := r.begin(); err != nil {
		return err
	}
	return r.rows.Write(bad)
}

// addRow adds a row refused by the store.
func (r *rejectedFile) addRow(rec book.Record, field *billing.FieldError) error {
	if r.m.flags.skipBad {
		r.later = append(r.later, refusedRow{rec.Line, *rec.Subscription, field})
	}
	return nil
}

// close finishes the file, or drops it when keep is false.
func (r *rejectedFile) close(keep bool) error {
	if r.file == nil && (!keep || len(r.later) == 0) {
		return nil
	}
	err := r.begin()
	if err != nil {
		return err
	}
	if keep {
		begun := r.out.Buffered() > 0
		err = r.rows.Flush()
		begun = begun || r.out.Buffered() > 0 || written(r.file)
		if err == nil && len(r.later) > 0 {
			err = r.writeLater(!begun)
		}
		err = errors.Join(err, r.out.Flush(), r.file.Sync())
	}
	err = errors.Join(err, r.file.Close())
	if !keep || err != nil {
		return errors.Join(err, os.Remove(r.temporary()))
	}
	r.m.sum.rejected = r.m.name + ".rejected"
	return os.Rename(r.temporary(), r.m.sum.rejected)
}

func written(f *os.File) bool {
	at, err := f.Seek(0, io.SeekCurrent)
	return err == nil && at > 0
}

// writeLater writes the rows refused by the store, in the form of the file.
func (r *rejectedFile) writeLater(header bool) error {
	if r.m.format != book.CSV {
		for _, x := range r.later {
			b, err := json.Marshal(rejectedObject(x))
			if err != nil {
				return err
			}
			r.out.Write(append(b, '\n'))
		}
		return nil
	}
	names, err := csvHeader(r.m.name)
	if err != nil {
		return err
	}
	w := csv.NewWriter(r.out)
	if header {
		w.Write(append([]string{"rejected_line", "rejected_column", "rejected_reason"}, names...))
	}
	for _, x := range r.later {
		values := bookRow(&x.row)
		cells := []string{strconv.Itoa(x.line), x.field.Field, x.field.Problem}
		for _, name := range names {
			cells = append(cells, values[name])
		}
		w.Write(cells)
	}
	w.Flush()
	return w.Error()
}

func rejectedObject(x refusedRow) map[string]any {
	o := map[string]any{"rejected_line": x.line, "rejected_column": x.field.Field, "rejected_reason": x.field.Problem}
	for name, value := range bookRow(&x.row) {
		if value != "" {
			o[name] = value
		}
	}
	return o
}

func csvHeader(name string) ([]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := csv.NewReader(bufio.NewReader(f)).Read()
	for i := range names {
		names[i] = strings.TrimSpace(strings.TrimPrefix(names[i], "\ufeff"))
	}
	return names, err
}

// bookRow returns the row's values by the names of book.Columns.
func bookRow(n *billing.NewSubscription) map[string]string {
	row := map[string]string{
		"account": n.Account, "email": n.Email, "subscription": n.ID, "sku": n.SKU, "amount": n.Amount.Decimal(),
		"currency": n.Amount.Currency().Code(), "payment_day": strconv.Itoa(n.PaymentDay), "payment_method": n.Method,
		"start_date": date(n.Start), "next_payment_date": date(n.NextPayment), "interval": n.Interval.String(),
		"time_zone": n.TimeZone, "reminder_days": strconv.Itoa(n.ReminderDays), "address": n.Address,
	}
	if n.Installments > 0 {
		row["installments"] = strconv.Itoa(n.Installments)
	}
	return row
}
