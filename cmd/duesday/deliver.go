package main

import (
	"context"

	"github.com/duesday/duesday/internal/mail"
	"github.com/duesday/duesday/internal/outbox"
)

// mailWorkers is how many mails are written at once; each waits for the disk.
const mailWorkers = 16

// outbox returns the outbox whose mail goes into the session's folder. Each delivery, done
// or not, moves the bar.
func (s *session) outbox(bar *progress) (*outbox.Outbox, error) {
	folder, err := mail.NewFolder(s.mail, "")
	if err != nil {
		return nil, err
	}
	return outbox.New(s.store, s.tables.Outbox, s.now, &countedDelivery{folder, bar}, s.engine.StillWanted), nil
}

type countedDelivery struct {
	outbox.Deliverer
	bar *progress
}

// Deliver implements outbox.Deliverer.
func (d *countedDelivery) Deliver(ctx context.Context, e outbox.Effect) error {
	defer d.bar.add(1)
	return d.Deliverer.Deliver(ctx, e)
}

// drain lets go what is due in the outbox.
func (s *session) drain(ctx context.Context, bar *progress) (outbox.Report, error) {
	o, err := s.outbox(bar)
	if err != nil {
		return outbox.Report{}, err
	}
	return o.Drain(ctx, mailWorkers)
}

// drain drains the outbox with a bar, and warns of what could not be delivered.
func (p *program) drain(ctx context.Context, s *session) (outbox.Report, error) {
	bar := p.progress("mails", 0, func(<-chan struct{}) int64 { return s.mailsLeft(ctx) })
	report, err := s.drain(ctx, bar)
	bar.end()
	if report.Failed > 0 {
		p.warn("%s to %s failed, to be tried again by later runs", plural(report.Failed, "mail"), s.mail)
	}
	if report.Dead > 0 {
		p.warn("%s to %s cannot be delivered at all: %s", plural(report.Dead, "mail"), s.mail, p.hint("outbox list"))
	}
	return report, err
}

// deliver drains the outbox after a job. What could not be delivered is no failure of the
// job: it stays in the outbox, and the next run tries again.
func (p *program) deliver(ctx context.Context, s *session) {
	if _, err := p.drain(ctx, s); err != nil && ctx.Err() == nil {
		p.warn("mail was left in the outbox and goes out with the next run: %v", err)
	}
}

// mailsLeft counts what is due in the outbox, for a bar; an error means that it is not known.
func (s *session) mailsLeft(ctx context.Context) int64 {
	o, err := s.outbox(nil)
	if err != nil {
		return 0
	}
	due, _, _, err := o.Pending(ctx)
	if err != nil {
		return 0
	}
	return int64(due)
}
