package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/book"
)

const (
	// batchRows fills a commit of a hundred writes when every row has an account of its own.
	batchRows = 48
	// batchMost ends a batch even within one account.
	batchMost = 1000
)

// A loader writes batches from several workers.
type loader struct {
	m       *importer
	s       *session
	stop    context.CancelCauseFunc
	batches chan []billing.NewSubscription
	batch   []billing.NewSubscription // owned by the reader
	mu      sync.Mutex                // guards m.sum
}

// load reads the file a second time and writes its good rows.
func (m *importer) load(ctx context.Context, s *session) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	l := &loader{m: m, s: s, stop: stop, batches: make(chan []billing.NewSubscription)}
	var workers sync.WaitGroup
	for range m.workers {
		workers.Go(func() { l.work(ctx) })
	}
	err := m.read("rows imported", m.sum.rows, func(rec book.Record, bad *book.Rejection) error {
		if bad != nil || m.refused[rec.Line] {
			return ctx.Err()
		}
		return l.take(ctx, rec)
	})
	if err == nil {
		err = l.send(ctx)
	}
	close(l.batches)
	workers.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (l *loader) take(ctx context.Context, rec book.Record) error {
	switch {
	case rec.Account != nil:
		a := rec.Account
		_, err := l.s.engine.CreateAccount(ctx, a.ID, a.Email, a.TimeZone, "")
		if errors.Is(err, billing.ErrExists) {
			return nil
		}
		return err
	case rec.Receipt != nil:
		stored, err := l.s.engine.ImportReceipt(ctx, *rec.Receipt)
		if stored {
			l.count(func(sum *importSummary) { sum.receipts++ })
		}
		return err
	}
	n := len(l.batch)
	if n >= batchMost || (n >= batchRows && l.batch[n-1].Account != rec.Subscription.Account) {
		if err := l.send(ctx); err != nil {
			return err
		}
	}
	l.batch = append(l.batch, *rec.Subscription)
	return nil
}

func (l *loader) count(add func(*importSummary)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	add(&l.m.sum)
}

func (l *loader) send(ctx context.Context) error {
	if len(l.batch) == 0 {
		return nil
	}
	select {
	case l.batches <- l.batch:
		l.batch = make([]billing.NewSubscription, 0, batchRows)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *loader) work(ctx context.Context) {
	for batch := range l.batches {
		if ctx.Err() != nil {
			continue
		}
		done, err := l.s.engine.ImportBatch(ctx, batch)
		l.count(func(sum *importSummary) {
			sum.created += done.Created
			sum.existing += done.Existing
			sum.due += done.Due
		})
		if err != nil {
			l.stop(err)
		}
	}
}

// A rejectedFile is FILE.rejected while it is written: under another name until it is whole, and
// only with --skip-bad and a bad row. Rows rejected by the check of the file come first, as they
// stand there; rows refused by the store come after them.
type rejectedFile struct {
	m     *importer
	file  *os.File // nil before the first bad row
	out   *bufio.Writer
	rows  *book.RejectedWriter
	later []map[string]any // the columns of rows refused by the store, without the empty ones
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
	if !r.m.skipBad || bad.Fatal {
		return nil
	}
	if err := r.begin(); err != nil {
		return err
	}
	return r.rows.Write(bad)
}

// addRow adds a row refused by the store.
func (r *rejectedFile) addRow(rec book.Record, field *billing.FieldError) {
	if !r.m.skipBad {
		return
	}
	n := rec.Subscription
	row := map[string]any{"rejected_line": rec.Line, "rejected_column": field.Field, "rejected_reason": field.Problem,
		"account": n.Account, "email": n.Email, "subscription": n.ID, "sku": n.SKU, "amount": n.Amount.Decimal(),
		"currency": n.Amount.Currency().Code(), "payment_day": strconv.Itoa(n.PaymentDay), "payment_method": n.Method,
		"start_date": date(n.Start), "next_payment_date": date(n.NextPayment), "interval": n.Interval.String(),
		"time_zone": n.TimeZone, "reminder_days": strconv.Itoa(n.ReminderDays),
		"installments": positive(n.Installments), "address": n.Address}
	maps.DeleteFunc(row, func(_ string, value any) bool { return value == "" })
	r.later = append(r.later, row)
}

// close finishes the file, or drops it when keep is false.
func (r *rejectedFile) close(keep bool) error {
	header := r.file == nil // no row rejected by the check of the file stands above the others
	if header && (!keep || len(r.later) == 0) {
		return nil
	}
	err := r.begin()
	if err != nil {
		return err
	}
	if keep {
		err = r.rows.Flush()
		if err == nil && len(r.later) > 0 {
			err = r.writeLater(header)
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

// writeLater writes the rows refused by the store, in the form of the file.
func (r *rejectedFile) writeLater(header bool) error {
	if r.m.format != book.CSV {
		for _, row := range r.later {
			b, err := json.Marshal(row)
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
	names = append([]string{"rejected_line", "rejected_column", "rejected_reason"}, names...)
	w := csv.NewWriter(r.out)
	if header {
		w.Write(names)
	}
	for _, row := range r.later {
		cells := make([]string, len(names))
		for i, name := range names {
			if value, ok := row[name]; ok && (i < 3 || !strings.HasPrefix(name, "rejected_")) { // of this import, first
				cells[i] = cell(value)
			}
		}
		w.Write(cells)
	}
	w.Flush()
	return w.Error()
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
