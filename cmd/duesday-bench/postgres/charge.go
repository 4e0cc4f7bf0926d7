package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// dueBook loads subscriptions that are all due today.
const dueBook = `
INSERT INTO account SELECT 'a' || n, 'a' || n || '@example.com', now() FROM generate_series(0, $1 - 1) n;
INSERT INTO subscription SELECT 'a' || n, 'gym', 'GYM', 'active', 3900, 'GBP', 15, 0, current_date, NULL, 1,
	now() FROM generate_series(0, $1 - 1) n`

const (
	// bind stores the key with which the charge is made, unless the period has one.
	bind = `UPDATE subscription SET open_key = $3, opened_at = now(), version = version + 1
		WHERE account = $1 AND id = $2 AND version = $4 AND open_key IS NULL AND status = 'active'`
	// settle ends the period and moves both dates, if the key is still the charge's.
	settle = `UPDATE subscription SET open_key = NULL, opened_at = NULL, period = period + 1, version = version + 1,
		next_payment_date = next_payment_date + 30, next_reminder_date = next_payment_date + 23
		WHERE account = $1 AND id = $2 AND open_key = $3`
	receipt = `INSERT INTO period VALUES ($1, $2, $3, 'paid', $4, $5, now())`
	mail    = `INSERT INTO mail (account, subscription, period, template, created_at) VALUES ($1, $2, $3, 'receipt', now())`
)

// A due is a row of the subscriptions that are due.
type due struct {
	account, id     string
	version, period int
	date            time.Time
}

func (d *due) key() string { return fmt.Sprintf("%s/%s/%d", d.account, d.id, d.period) }

// A biller charges what is due by Duesday's protocol: the key of a charge is durable before the charge,
// and then the receipt, the mail and the new dates become durable together.
type biller struct {
	db        *pgxpool.Pool
	processor struct { // answers at once, from memory
		sync.Mutex
		charges map[string]string
	}
	day time.Time // of the subscriptions that are due next
}

// charge has so many workers take this many rows at a time, with two transactions for these rows, until
// the time has passed. When the whole book is paid, the next period follows. It returns how many were charged.
func (b *biller) charge(ctx context.Context, workers, atOnce int, length time.Duration) (charged int, err error) {
	for end := time.Now().Add(length); err == nil && time.Now().Before(end); {
		var n int
		n, err = b.period(ctx, workers, atOnce, end)
		charged += n
	}
	return charged, err
}

// period charges what is due on the day, until the end.
func (b *biller) period(ctx context.Context, workers, atOnce int, end time.Time) (int, error) {
	var (
		all     sync.WaitGroup
		charged atomic.Int64
		rows    = make(chan []due, workers)
		errs    = make([]error, workers+1)
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all.Go(func() {
		defer close(rows)
		errs[workers] = b.find(ctx, atOnce, func(batch []due) bool {
			select {
			case rows <- batch:
				return time.Now().Before(end)
			case <-ctx.Done():
				return false
			}
		})
	})
	for worker := range workers {
		all.Go(func() {
			for batch := range rows {
				if errs[worker] = b.one(ctx, batch); errs[worker] != nil {
					cancel()
					return
				}
				charged.Add(int64(len(batch)))
			}
		})
	}
	all.Wait()
	if time.Now().Before(end) {
		b.day = b.day.AddDate(0, 0, 30) // the book is paid: on to the next period
	}
	return int(charged.Load()), errors.Join(errs...)
}

// find streams what is due by the day, 5,000 rows with each query.
func (b *biller) find(ctx context.Context, atOnce int, take func([]due) bool) error {
	last := due{date: time.Unix(0, 0)}
	for {
		found, err := b.db.Query(ctx, `SELECT account, id, version, period, next_payment_date FROM subscription
			WHERE next_payment_date <= $1 AND (next_payment_date, account, id) > ($2, $3, $4)
			ORDER BY next_payment_date, account, id LIMIT 5000`, b.day, last.date, last.account, last.id)
		if err != nil {
			return err
		}
		page, err := pgx.CollectRows(found, func(r pgx.CollectableRow) (d due, err error) {
			return d, r.Scan(&d.account, &d.id, &d.version, &d.period, &d.date)
		})
		if err != nil || len(page) == 0 {
			return err
		}
		last = page[len(page)-1]
		for len(page) > 0 {
			n := min(atOnce, len(page))
			if !take(page[:n]) {
				return nil
			}
			page = page[n:]
		}
	}
}

// one charges the rows: each batch is one round trip and, without BEGIN, one transaction.
func (b *biller) one(ctx context.Context, rows []due) error {
	opened, ended := new(pgx.Batch), new(pgx.Batch)
	for i := range rows {
		d := &rows[i]
		opened.Queue(bind, d.account, d.id, d.key(), d.version)
	}
	if err := b.send(ctx, opened); err != nil {
		return err
	}
	for i := range rows {
		d := &rows[i]
		charge := b.confirm(d.key())
		ended.Queue(settle, d.account, d.id, d.key())
		ended.Queue(receipt, d.account, d.id, d.period, d.date, charge)
		ended.Queue(mail, d.account, d.id, d.period)
	}
	return b.send(ctx, ended)
}

// send commits the batch, in which every statement must change one row.
func (b *biller) send(ctx context.Context, batch *pgx.Batch) (err error) {
	results := b.db.SendBatch(ctx, batch)
	for range batch.Len() {
		tag, wrong := results.Exec()
		if wrong == nil && tag.RowsAffected() != 1 {
			wrong = errors.New("a row has changed meanwhile")
		}
		err = errors.Join(err, wrong)
	}
	return errors.Join(err, results.Close())
}

// confirm charges once for each key.
func (b *biller) confirm(key string) string {
	b.processor.Lock()
	defer b.processor.Unlock()
	charge, ok := b.processor.charges[key]
	if !ok {
		charge = fmt.Sprintf("pi_%d", len(b.processor.charges))
		b.processor.charges[key] = charge
	}
	return charge
}
