package main

import (
	"context"
	"maps"

	"github.com/duesday/duesday/internal/billing"
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
	link := func(ctx context.Context, e outbox.Effect) (billing.CardLink, error) {
		l, err := s.engine.Link(ctx, e)
		if err != nil {
			s.linkless.Add(1)
		}
		return l, err
	}
	return outbox.New(s.store, s.tables.Outbox, s.now, &delivery{folder, link, bar}, s.engine.StillWanted), nil
}

// A delivery adds the customer's link to each mail. Links are short-lived secrets: they are made at
// delivery and never stored. A mail waits if its link cannot be made yet.
type delivery struct {
	outbox.Deliverer
	link func(context.Context, outbox.Effect) (billing.CardLink, error)
	bar  *progress
}

// Deliver implements outbox.Deliverer.
func (d *delivery) Deliver(ctx context.Context, e outbox.Effect) error {
	defer d.bar.add(1)
	l, err := d.link(ctx, e)
	if err != nil {
		return err
	}
	if l.URL != "" {
		e.Data = maps.Clone(e.Data) // the effect itself may be written again
		e.Data[outbox.DataLink], e.Data[outbox.DataLinkExpires] = l.URL, stamp(l.Expires)
	}
	return d.Deliverer.Deliver(ctx, e)
}

// drain delivers due mail.
func (s *session) drain(ctx context.Context, bar *progress) (outbox.Report, error) {
	o, err := s.outbox(bar)
	if err != nil {
		return outbox.Report{}, err
	}
	return o.Drain(ctx, mailWorkers)
}

// drain delivers due mail with a bar, and warns of failures.
func (p *program) drain(ctx context.Context, s *session) (outbox.Report, error) {
	bar := p.progress("mails", 0, func(<-chan struct{}) int64 { return s.mailsLeft(ctx) })
	report, err := s.drain(ctx, bar)
	bar.end()
	waiting := int(s.linkless.Swap(0))
	if waiting > 0 {
		p.warn("%s put off: the link in it could not be had from the processor for the moment; later runs try again",
			plural(waiting, "mail"))
	}
	if failed := report.Failed - waiting; failed > 0 {
		p.warn("%s to %s failed, to be tried again by later runs", plural(failed, "mail"), s.mail)
	}
	if report.Dead > 0 {
		p.warn("%s to %s cannot be delivered at all: %s", plural(report.Dead, "mail"), s.mail, p.hint("outbox list"))
	}
	return report, err
}

// deliver delivers mail after a job. A failed delivery is no failure of the job: the mail stays in
// the outbox, and the next run tries again.
func (p *program) deliver(ctx context.Context, s *session) {
	if _, err := p.drain(ctx, s); err != nil && ctx.Err() == nil {
		p.warn("mail was left in the outbox and goes out with the next run: %v", err)
	}
}

// mailsLeft counts the due mails, for a bar; 0 if it cannot.
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
