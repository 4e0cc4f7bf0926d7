package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
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

// A loader writes batches from several workers. All rows of an account go to one worker: each commit
// changes the account, and two of them would be in each other's way.
type loader struct {
	m     *importer
	s     *session
	stop  context.CancelCauseFunc
	lanes []lane
	seed  maphash.Seed
	mu    sync.Mutex // guards m.sum
}

// A lane leads to a worker.
type lane struct {
	batches chan batch
	batch   batch // owned by the reader
}

// A batch has its updates made first: they may be of the accounts of its new subscriptions.
type batch struct {
	updates []rowUpdate
	created []billing.NewSubscription
}

// load reads the file a second time, with the same checks in the same order, and writes its good rows.
func (m *importer) load(ctx context.Context, s *session) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	n := 0
	clear(m.told)
	m.options.Check = func(sub billing.NewSubscription, given func(string) bool) *billing.FieldError {
		n++
		if m.row = (verdict{}); m.changes[n] { // what others have changed since the check stays
			return cmp.Or(m.refused[n], m.judge(ctx, s, sub, given))
		}
		return m.refused[n]
	}
	l := &loader{m: m, s: s, stop: stop, lanes: make([]lane, m.workers), seed: maphash.MakeSeed()}
	var workers sync.WaitGroup
	for i := range l.lanes {
		batches := make(chan batch)
		l.lanes[i].batches = batches
		workers.Go(func() { l.work(ctx, batches) })
	}
	err := m.read("rows imported", m.sum.rows, func(rec book.Record, bad *book.Rejection) error {
		if err := cmp.Or(m.failed, ctx.Err()); bad != nil || err != nil {
			return err
		}
		return l.take(ctx, rec)
	})
	for i := range l.lanes {
		if err == nil {
			err = l.lanes[i].send(ctx)
		}
		close(l.lanes[i].batches)
	}
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
	to := &l.lanes[maphash.String(l.seed, rec.Subscription.Account)%uint64(len(l.lanes))]
	n, b := len(to.batch.created), &to.batch
	if n >= batchMost || (n >= batchRows && b.created[n-1].Account != rec.Subscription.Account) ||
		len(b.updates) >= batchRows {
		if err := to.send(ctx); err != nil {
			return err
		}
	}
	if l.m.row.changes() {
		b.updates = append(b.updates, rowUpdate{rec.Line, rec.Subscription, l.m.row})
	}
	if !l.m.row.exists {
		rec.Subscription.SkipOverdue = l.m.overdue.value == overdueSkip
		b.created = append(b.created, *rec.Subscription)
	}
	return nil
}

func (l *loader) count(add func(*importSummary)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	add(&l.m.sum)
}

func (l *lane) send(ctx context.Context) error {
	if len(l.batch.created)+len(l.batch.updates) == 0 {
		return nil
	}
	select {
	case l.batches <- l.batch:
		l.batch = batch{created: make([]billing.NewSubscription, 0, batchRows)}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *loader) work(ctx context.Context, batches <-chan batch) {
	for batch := range batches {
		if ctx.Err() != nil {
			continue
		}
		err := l.update(ctx, batch.updates)
		if err != nil {
			l.stop(err)
			continue
		}
		done, err := l.s.engine.ImportBatch(ctx, batch.created)
		l.count(func(sum *importSummary) {
			sum.created += done.Created
			sum.due += done.Due
			if !l.m.looks { // else the check has counted them
				sum.existing += done.Existing
			}
		})
		if err != nil {
			l.stop(err)
		}
	}
}

// A rejectedFile is FILE.rejected: made at the first bad row, and under its name once it is whole.
type rejectedFile struct {
	m    *importer
	file *os.File // nil before the first bad row
	rows *book.RejectedWriter
}

func (r *rejectedFile) temporary() string { return r.m.name + ".rejected.tmp" }

func (r *rejectedFile) add(bad *book.Rejection) error {
	if !r.m.skipBad || bad.Fatal || r.m.dryRun {
		return nil
	}
	if r.file == nil {
		file, err := os.OpenFile(r.temporary(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return fmt.Errorf("write the rejected rows: %w", err)
		}
		r.file, r.rows = file, book.NewRejectedWriter(file, r.m.format)
	}
	return r.rows.Write(bad)
}

// close finishes the file, or drops it when keep is false.
func (r *rejectedFile) close(keep bool) (err error) {
	if r.file == nil {
		return nil
	}
	if keep {
		err = errors.Join(r.rows.Flush(), r.file.Sync())
	}
	err = errors.Join(err, r.file.Close())
	if !keep || err != nil {
		return errors.Join(err, os.Remove(r.temporary()))
	}
	r.m.sum.rejected = r.m.name + ".rejected"
	return os.Rename(r.temporary(), r.m.sum.rejected)
}

// read ranges over the file with a bar. Rows not counted before are estimated from the bytes read.
func (m *importer) read(what string, rows int, each func(book.Record, *book.Rejection) error) error {
	file, err := os.Open(m.name)
	if err != nil {
		return err
	}
	defer file.Close()
	bar := m.p.progress(what, int64(rows), nil)
	defer bar.end()
	done := int64(0)
	for rec, bad := range book.Read(bufio.NewReaderSize(file, 1<<20), m.format, m.options) {
		if done++; rows == 0 && done%1024 == 0 {
			if read, err := file.Seek(0, io.SeekCurrent); err == nil {
				bar.total.Store(done * m.size / read)
			}
		}
		bar.done.Store(done)
		if err := each(rec, bad); err != nil {
			return err
		}
	}
	return nil
}

// check reads the file once, and reports every bad row. Without a store yet s is nil.
func (m *importer) check(ctx context.Context, s *session) (fatal bool, err error) {
	rejected := &rejectedFile{m: m}
	defer func() { err = errors.Join(err, rejected.close(err == nil && !fatal)) }()
	if m.looks = s != nil; m.looks && !m.dryRun {
		there, err := billing.AnyItem(s.engine.Accounts(ctx))
		m.looks = there || err != nil // an error shows again
	}
	n := 0
	m.options.Check = func(sub billing.NewSubscription, given func(string) bool) *billing.FieldError {
		n++
		field := m.judge(ctx, s, sub, given)
		if field != nil {
			m.refused[n] = field
		}
		if m.row.overdue > 0 {
			m.sum.overdue++
		}
		return field
	}
	err = m.read("rows checked", 0, func(rec book.Record, bad *book.Rejection) error {
		if err := cmp.Or(m.failed, ctx.Err()); err != nil {
			return err
		}
		if bad == nil {
			m.sum.rows++
			return m.count(ctx, s, n, rec)
		}
		if bad.Fatal {
			fatal = true
		} else if bad.Row > m.sum.bad {
			m.sum.bad++
			m.sum.rows++
		}
		m.report(bad.Line, bad.Column, bad.Reason)
		return rejected.add(bad)
	})
	return fatal, err
}

// shownRows is how many bad rows people get, and how many differences and warnings; --json has all.
const shownRows = 50

func (m *importer) report(line int, column, reason string) {
	if m.p.cfg.JSON {
		m.list.add(object{"line", line, "column", column, "reason", reason})
		return
	}
	if m.shown == nil {
		m.shown = m.p.table("LINE", "COLUMN", "REASON")
	}
	switch {
	case m.shown.rows < shownRows:
		m.shown.row(line, column, reason)
	case m.shown.rows == shownRows:
		m.shown.row("…", "", "there are more; --json prints all of them, and --skip-bad writes them to a file")
	}
}
