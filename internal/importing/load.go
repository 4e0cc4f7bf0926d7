package importing

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/bulk"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/book"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/secret"
)

const (
	// batchRows is small enough for one commit of a hundred writes, even if every row has its own
	// account.
	batchRows = 48
	// batchMost limits a batch whose rows all belong to the same account.
	batchMost = 1000
)

// A loader distributes batches to several workers. All rows of an account go to the same worker,
// because each commit changes the account and two workers would conflict.
type loader struct {
	m     *Import
	e     *engine.Engine
	stop  context.CancelCauseFunc
	lanes []lane
	seed  maphash.Seed
	mu    sync.Mutex // guards m.Sum
}

// A lane sends batches to one worker.
type lane struct {
	batches chan batch
	batch   batch // owned by the reader
}

// A batch is the unit of work for one worker. The worker applies the updates first, because they
// may change accounts to which the new subscriptions belong.
type batch struct {
	updates []rowUpdate
	created []billing.NewSubscription
}

// A rowUpdate is a row with the changes that make the store match it.
type rowUpdate struct {
	line int
	row  *billing.NewSubscription
	verdict
}

// Load reads the file again, and writes what Check decided.
func (m *Import) Load(ctx context.Context, e *engine.Engine) error {
	if err := m.load(ctx, e); err != nil {
		return fmt.Errorf("%w; before it, %d subscriptions were imported: import the file again for the rest", err, m.Sum.Created)
	}
	return nil
}

func (m *Import) load(ctx context.Context, e *engine.Engine) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	l := &loader{m: m, e: e, stop: stop, lanes: make([]lane, m.Workers), seed: maphash.MakeSeed()}
	var workers sync.WaitGroup
	for i := range l.lanes {
		batches := make(chan batch)
		l.lanes[i].batches = batches
		workers.Go(func() { l.work(ctx, batches) })
	}
	clear(m.told)
	decisions, now := m.decisions, pass // for the current row
	m.Options.Check = func(n billing.NewSubscription, given func(string) bool) *billing.FieldError {
		if now = pass; len(decisions) > 0 { // otherwise the file has grown since Check
			now, decisions = decisions[0], decisions[1:]
		}
		if now == update { // compare again, because the store may have changed since Check
			return m.judge(ctx, e, n, given)
		}
		return nil
	}
	err := m.read(ctx, "rows imported", func(rec book.Record, bad *book.Rejection) error {
		switch {
		case bad != nil || rec.Subscription != nil && now == pass:
			return nil
		case now == create:
			m.row = verdict{}
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
		_, err := account.Create(ctx, l.e.Records, a.ID, *a)
		if errors.Is(err, billing.ErrExists) {
			return nil
		}
		return err
	case rec.Receipt != nil:
		stored, err := l.e.ImportReceipt(ctx, *rec.Receipt)
		if stored {
			l.count(func(sum *Summary) { sum.Receipts++ })
		}
		return err
	}
	rec.Subscription.Taxes = l.m.taxes
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
		rec.Subscription.SkipOverdue = l.m.Overdue == Skip
		b.created = append(b.created, *rec.Subscription)
	}
	return nil
}

func (l *loader) count(add func(*Summary)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	add(&l.m.Sum)
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
		done, err := bulk.Create(ctx, l.e.Records, batch.created)
		l.count(func(sum *Summary) {
			sum.Created += done.Created
			sum.Due += done.Due
			if !l.m.looks { // otherwise Check has counted them
				sum.Existing += done.Existing
			}
		})
		if err != nil {
			l.stop(err)
		}
	}
}

// update applies the changes in the rows. If the store refuses a change, update notes that and
// continues with the next row.
func (l *loader) update(ctx context.Context, all []rowUpdate) error {
	for _, u := range all {
		var err error
		name := billing.Name{Account: u.row.Account, ID: u.row.ID}
		if u.account != (account.Change{}) {
			_, err = account.Update(ctx, l.e.Records, u.row.Account, u.account)
		}
		if err == nil && u.terms != (billing.Change{}) {
			_, err = l.e.UpdateSubscription(ctx, name, u.terms)
		}
		refused := errors.As(err, new(*billing.FieldError)) || errors.Is(err, billing.ErrState) ||
			errors.Is(err, processor.ErrInvalid)
		if err != nil && !refused {
			return err
		}
		l.count(func(sum *Summary) {
			if !refused {
				sum.Updated++
				return
			}
			sum.Differing++
			l.m.Note(Note{Line: u.line, Name: name, Warning: "not updated: " + secret.Clean(err.Error())})
		})
	}
	return nil
}
