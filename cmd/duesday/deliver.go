package main

import (
	"context"

	"github.com/duesday/duesday/internal/mail"
	"github.com/duesday/duesday/internal/outbox"
)

// mailWorkers is how many mails are written at once; each waits for the disk.
const mailWorkers = 16

// drain lets go what is due in the outbox, as mail in the session's folder.
func (s *session) drain(ctx context.Context) (outbox.Report, error) {
	folder, err := mail.NewFolder(s.mail, "")
	if err != nil {
		return outbox.Report{}, err
	}
	return outbox.New(s.store, s.tables.Outbox, s.now, folder, s.engine.StillWanted).Drain(ctx, mailWorkers)
}

// deliver drains the outbox. What could not be delivered is no failure of the job: it stays
// in the outbox, and the next run tries again.
func (p *program) deliver(ctx context.Context, s *session) {
	report, err := s.drain(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		p.warn("mail was left in the outbox and goes out with the next run: %v", err)
	case report.Dead > 0:
		p.warn("%d mails to %s failed and are tried again by later runs; %d cannot be delivered at all", report.Failed, s.mail, report.Dead)
	case report.Failed > 0:
		p.warn("%d mails to %s failed and are tried again by later runs", report.Failed, s.mail)
	}
}
