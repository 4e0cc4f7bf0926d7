package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/billing/document"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/outlook"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/mail"
	"github.com/duesday/duesday/internal/mail/smtp"
	"github.com/duesday/duesday/internal/maillog"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/status"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/view"
)

const (
	mailClaim = 5 * time.Minute // longer than the delivery of one mail takes
	mailGrace = 5 * time.Second // for mail that is being sent when the program stops
)

// Outbox returns the session's outbox, which delivers through d. If d is nil, callers can only
// inspect it.
func (s *Session) Outbox(d outbox.Deliverer) *outbox.Outbox {
	o := outbox.New(s.Store, s.Tables.Outbox, s.Now, d, s.mail.StillWanted).Counting(report.Tally(s.Engine.Records)).
		Numbering(s.numbers).Recording(func(row store.Item, e outbox.Effect, out outbox.Outcome) []store.Write {
		return maillog.Record(s.Tables.RecurringPayments.Name, s.Now(), row, e, out)
	})
	if s.Shared { // every serve process drains it
		o = o.Claiming(mailClaim)
	}
	return o
}

// Mails returns the log of the session's mail.
func (s *Session) Mails() *maillog.Log {
	return &maillog.Log{Store: s.Store, Tables: s.Tables, Now: s.Now}
}

// A mailing adds the customer's language and links to each mail. It creates a link only when the
// mail is delivered and never stores it, because a link is a short-lived secret. If the link cannot
// be created yet, the mail waits. Every delivery advances the progress bar, whether it succeeds or
// fails.
type mailing struct {
	outbox.Deliverer
	accounts  accounts
	documents *document.Links
	page      func(context.Context, outbox.Effect) (string, error) // link to the customer's page, or ""
	linkless  *atomic.Int64                                        // mails that wait for their link
	bar       *screen.Progress
	failed    atomic.Pointer[error] // the first failure
}

// accounts is the part of the engine that looks up the customer of a mail and records bounces.
type accounts interface {
	Holder(context.Context, outbox.Effect) (locale, name string, err error)
	Link(context.Context, outbox.Effect) (processor.CardLink, error)
	Arrears(context.Context, outbox.Effect) (map[string]string, error)
	NumberOf(context.Context, outbox.Effect) (string, error)
	NoteBounce(ctx context.Context, e outbox.Effect, code string) error
}

// Deliver implements outbox.Deliverer. When ctx ends, a mail that is being sent gets mailGrace to
// finish, because a server may already have accepted a message whose connection is cut. A second
// delivery would then send it again.
func (d *mailing) Deliver(ctx context.Context, e outbox.Effect) (err error) {
	defer func() {
		if err != nil {
			d.failed.CompareAndSwap(nil, &err)
		}
		d.bar.Done.Add(1)
	}()
	ended := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(call.Without(ctx))) // what mail causes is nobody's request
	defer cancel()
	defer context.AfterFunc(ended, func() { time.AfterFunc(mailGrace, cancel) })()
	locale, name, err := d.accounts.Holder(ctx, e)
	if err != nil {
		return err
	}
	l, err := d.accounts.Link(ctx, e)
	if err != nil {
		d.linkless.Add(1)
		return err
	}
	arrears, err := d.accounts.Arrears(ctx, e)
	if err != nil {
		return err
	}
	number, err := d.accounts.NumberOf(ctx, e)
	if err != nil {
		return err
	}
	page, err := d.page(ctx, e)
	if err != nil {
		return err
	}
	e = completed(e, arrears, map[string]string{outbox.DataLocale: locale, outbox.DataName: name, outbox.DataNumber: number, outbox.DataPage: page,
		outbox.DataLink: l.URL, outbox.DataLinkExpires: view.Stamp(l.Expires)}, d.documents)
	err = d.Deliverer.Deliver(ctx, e)
	if refused, ok := errors.AsType[*smtp.Bounce](err); ok {
		if err := d.accounts.NoteBounce(ctx, e, refused.Code); err != nil {
			return fmt.Errorf("%s; recording this on the account failed: %w", refused.Error(), err)
		}
	}
	return err
}

// completed returns the effect with what a mail gets when it is delivered. Empty values do not count.
func completed(e outbox.Effect, arrears, more map[string]string, documents *document.Links) outbox.Effect {
	e.Data = maps.Clone(e.Data) // the outbox may still write the effect itself
	maps.Copy(e.Data, arrears)
	for name, value := range more {
		if value != "" {
			e.Data[name] = value
		}
	}
	if e.Kind == outbox.KindReceipt {
		e.Data[outbox.DataDocument] = documents.To(e.Data[outbox.DataAccount], e.Data[outbox.DataReceipt])
	}
	return e
}

// Render returns the subject and the text of a mail with the current templates, settings and customer. It
// makes no link to a page of the processor, because such a link is a secret of the customer.
func (s *Session) Render(ctx context.Context, e outbox.Effect) (subject, text string, err error) {
	rules, err := settings.Read(ctx, s.Engine.Records)
	if err != nil {
		return "", "", err
	}
	w, err := mail.NewWriter(s.Post.Templates, rules)
	if err != nil {
		return "", "", err
	}
	locale, name, err := s.mail.Holder(ctx, e)
	if err != nil && !errors.Is(err, outbox.ErrPermanent) { // of a refused address
		return "", "", err
	}
	arrears, err := s.mail.Arrears(ctx, e)
	if err != nil {
		return "", "", err
	}
	number, _ := s.mail.NumberOf(ctx, e) // the mail may still wait for it
	e = completed(e, arrears, map[string]string{outbox.DataLocale: locale, outbox.DataName: name, outbox.DataNumber: number,
		outbox.DataLink: s.mail.Placeholder(ctx, e)}, document.NewLinks(&rules, s.Engine.Opened.Salt))
	return w.Preview(e, false)
}

// A Posted is the outcome of delivering the mail that was due.
type Posted struct {
	outbox.Report
	Left   int    // number of mails that are still due, because delivery was not attempted
	Reason string // first error that stopped a mail; "" if unknown
}

// Stays returns the number of mails that are still in the outbox.
func (m *Posted) Stays() int { return m.Failed + m.Dead + m.Left }

// Drain delivers the mail that is due, with the store's current settings.
func (s *Session) Drain(ctx context.Context, bar *screen.Progress) (m Posted, err error) {
	settings, err := settings.Read(ctx, s.Engine.Records)
	if err != nil {
		return m, err
	}
	if err := s.Post.Check(settings); err != nil {
		return m, err
	}
	d, done, err := s.Post.Open(settings)
	if err != nil {
		return m, err
	}
	defer done()
	to := &mailing{Deliverer: d, accounts: s.mail, page: s.mail.PageLink, documents: document.NewLinks(&settings, s.Engine.Opened.Salt), linkless: &s.Linkless, bar: bar}
	m.Report, err = s.Outbox(to).Drain(ctx, s.Post.workers())
	if failed := to.failed.Load(); failed != nil {
		m.Reason = secret.Clean((*failed).Error())
	}
	return m, err
}

// Drain delivers the mail that is due, shows a progress bar, and prints a warning about each kind
// of failure.
func (p *Program) Drain(ctx context.Context, s *Session) (Posted, error) {
	bar := p.Progress("mails", 0, func(<-chan struct{}) int64 {
		b, _ := s.Outbox(nil).Backlog(ctx, 0) // on an error, the bar shows no total
		return int64(b.Due)
	})
	m, err := s.Drain(ctx, bar)
	bar.End()
	waiting, why := int(s.Linkless.Swap(0)), screen.Prefixed("; first error: ", m.Reason)
	if waiting > 0 {
		p.Warn("%s put off, because the processor did not provide a link that the mail needs; later runs try again%s",
			screen.Plural(waiting, "mail"), why)
	}
	if failed := m.Failed - waiting; failed > 0 {
		p.Warn("%s to %s failed; later runs try again%s", screen.Plural(failed, "mail"), s.Post, why)
	}
	if m.Dead > 0 {
		p.Warn("%s to %s can never be delivered; for details, run: %s%s", screen.Plural(m.Dead, "mail"), s.Post, p.Hint("outbox list"), why)
	}
	return m, err
}

// Deliver delivers the mail that is due after a job. A failed delivery does not fail the job,
// because the mail stays in the outbox and the next run tries again.
func (p *Program) Deliver(ctx context.Context, s *Session) Posted {
	m, err := p.Drain(ctx, s)
	if err == nil || ctx.Err() != nil {
		return m
	}
	if b, err := s.Outbox(nil).Backlog(ctx, 0); err == nil { // otherwise the job reports the error
		m.Left = b.Due
	}
	m.Reason = secret.Clean(err.Error())
	if errors.Is(err, errNoServer) {
		p.Warn("mail stays in the outbox for a process with a mail server: %v", err)
		if s.served(ctx) {
			m.Left = 0 // the other process sends the mail within seconds
		}
	} else {
		p.Warn("mail stays in the outbox, and the next run sends it: %v", err)
	}
	return m
}

// View returns the JSON members that describe a run's mail. The count is named "sent" if a mail
// server sent the mail, or "written" if it is in the folder.
func (m *Posted) View(by *Post) view.Object {
	how := "written"
	if by.Server != nil {
		how = "sent"
	}
	return view.Object{how, m.Delivered, "to", by.String(), "dropped?", m.Dropped, "put_off?", m.Failed, "given_up?", m.Dead,
		"left?", m.Left, "detail?", m.Reason}
}

// served reports whether another process is known to serve the store.
func (s *Session) served(ctx context.Context) bool {
	_, running := errors.AsType[*store.ClaimedError](s.askServe(ctx))
	return running
}

// askServe returns a *store.ClaimedError if a process serves the folder, nil if none does or the store is no
// folder, or why that is not known.
func (s *Session) askServe(ctx context.Context) error {
	c, ok := s.Store.(store.Claimer)
	if !ok {
		return nil
	}
	_, _, err := c.Claim(ctx, status.ClaimName, "")
	return err
}

// Forget deletes old run records and old dead letters. The next run deletes any that remain.
func (s *Session) Forget(ctx context.Context) {
	before, err := job.Forget(ctx, s.Engine.Records)
	if err == nil && !before.IsZero() {
		for _, q := range []outbox.Queue{outbox.Mail, outbox.Actions, outbox.Inbox, outbox.Deliveries} {
			err = errors.Join(err, outbox.New(s.Store, s.Tables.Outbox, s.Now, nil, nil).On(q).Forget(ctx, before))
		}
	}
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("old records were not deleted", "error", err)
	}
}

// Alone reports whether this machine alone has the store and no process serves it at the moment. It reports
// false if that is not known.
func (s *Session) Alone(ctx context.Context) bool { return !s.Shared && s.askServe(ctx) == nil }

// Outlook makes the pass over the subscriptions that is due after the day's payment run. Unless it is alone, it
// leaves room for other work. An error only delays it.
func (s *Session) Outlook(ctx context.Context, alone bool) {
	if _, err := outlook.Refresh(ctx, s.Engine, alone); err != nil && ctx.Err() == nil {
		s.Log.Warn("the pass for recurring revenue and expected charges failed; the next payment run or start makes it", "error", err)
	}
}

// SayHeld prints how to handle the held mails, if there are any.
func (p *Program) SayHeld(held int) {
	if held > 0 {
		p.Say("%s held, because the lost store may have sent them. List them with %s, then send or delete them:\n  %s\n  %s",
			screen.Plural(held, "mail"), p.Hint("outbox list"), p.Hint("outbox release"), p.Hint("outbox drop"))
	}
}
