package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/mail/smtp"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

func (p *program) outboxCommand() *cobra.Command {
	list := p.storeLeaf("list", "Count the rows that wait, and list those that were given up", need{read: true},
		func(ctx context.Context, s *session, _ []string) error { return p.listOutbox(ctx, s) })
	replay := p.storeLeaf("replay ID", "Make a row that was given up due again, with all its tries", need{},
		func(ctx context.Context, s *session, args []string) error { return p.replay(ctx, s, args[0]) })
	send := leaf("send", "Deliver the mail that is due, as every run does", func(ctx context.Context, _ []string) error {
		return p.with(ctx, need{processor: p.cfg.UsesStripe()}, func(s *session) error { return p.send(ctx, s) })
	})
	send.Long = `Deliver the mail that is due, as every run does when it is done. Exits 3 when some of it
could not be delivered.`
	return group("outbox", "List and deliver the mail that has not been sent",
		`Look at the mail that has not left, and deliver it. A mail that fails is tried ten times
over three days and then given up; one that can never be sent is given up at once. The same
goes for what duesday serve has to do: the actions of purchases, and the inbox of what came
in and could not be dealt with at once. Those it takes itself; duesday job and
duesday event list --waiting show them. What is later in the inbox is mostly purchases, each
of which is looked for at Stripe once more some minutes after it was begun.`, list, replay, send)
}

// A queue is a queue of the outbox, by its name for people, with the number of its rows.
type queue struct {
	name string // "" of mail
	in   outbox.Queue
	outbox.Backlog
}

func queues() []*queue {
	return []*queue{{in: outbox.Mail}, {name: "actions", in: outbox.Actions}, {name: "inbox", in: outbox.Inbox}}
}

func (q *queue) view() object { return object{"due", q.Due, "later", q.Later, "dead", q.Dead} }

// viewDead is a row that was given up, with its readable fields.
func viewDead(e outbox.Effect, queue string) object {
	return object{"id", e.ID, "lane?", queue, "kind", e.Kind, "email", e.Data[outbox.DataEmail],
		"account", e.Data[outbox.DataAccount], "subscription", e.Data[outbox.DataSubscription], "tries", e.Tries,
		"reason", secret.Clean(e.Error), "created_at", e.Created}
}

func (p *program) listOutbox(ctx context.Context, s *session) error {
	o := s.outbox(nil)
	var err error
	all, dead := queues(), 0
	for _, q := range all {
		if q.Backlog, err = o.On(q.in).Backlog(ctx, 0); err != nil {
			return err
		}
		dead += q.Dead
		if q.name == "" {
			p.say("%d due, %d later, %d given up", q.Due, q.Later, q.Dead)
		} else if q.Due+q.Later+q.Dead > 0 {
			p.say("%s: %d due, %d later, %d given up", q.name, q.Due, q.Later, q.Dead)
		}
	}
	if dead == 0 && !p.cfg.JSON {
		return nil
	}
	p.say("")
	t, list := p.table("ID", "KIND", "TO", "TRIES", "WHY"), &listWriter{out: p.stdout, name: "dead_letters"}
	var counts object // of the mail, and of the other queues that have rows
	for _, q := range all {
		q.Dead = 0 // counted while they are listed: another process may change them
		for e, err := range o.On(q.in).Dead(ctx) {
			if err == nil && p.cfg.JSON {
				err = list.add(viewDead(e, q.name))
			}
			if err != nil {
				return err
			}
			q.Dead++
			t.row(e.ID, e.Kind, cmp.Or(e.Data[outbox.DataEmail], q.name), e.Tries, secret.Clean(e.Error))
		}
		if q.name == "" {
			counts = q.view()
		} else if q.Due+q.Later+q.Dead > 0 {
			counts = append(counts, q.name, q.view())
		}
	}
	if p.cfg.JSON {
		return list.end(counts)
	}
	t.flush()
	p.say("\nPut one back: %s", p.hint("outbox replay ID"))
	return nil
}

func (p *program) replay(ctx context.Context, s *session, id string) error {
	o := s.outbox(nil)
	var err error
	for _, q := range queues() {
		if err = o.On(q.in).Replay(ctx, id); errors.Is(err, store.ErrNotFound) {
			continue
		}
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnknown) {
			err = fmt.Errorf("%w: %s shows whether it is still there", err, p.hint("outbox list"))
		}
		if err != nil {
			return err
		}
		if q.name == "" {
			p.say("mail %s is due again: %s", id, p.hint("outbox send"))
		} else {
			p.say("%s is due again: a running duesday serve takes it", id)
		}
		return p.json(object{"replayed", id})
	}
	return notFound(err, "mail "+id+" that was given up")
}

func (p *program) send(ctx context.Context, s *session) error {
	r, err := p.drain(ctx, s)
	if err != nil {
		return err
	}
	if r.Failed+r.Dead > 0 {
		p.code = exitPerson
	}
	p.say("%s delivered", plural(r.Delivered, "mail"))
	p.fields("  not wanted any more", positive(r.Dropped), "  put off", positive(r.Failed), "  given up",
		positive(r.Dead))
	// dropped: reminders of periods paid, paused or canceled since
	return p.json(object{"delivered", r.Delivered, "dropped", r.Dropped, "failed", r.Failed, "dead", r.Dead})
}

const (
	mailClaim = 5 * time.Minute // longer than the delivery of a mail takes
	mailGrace = 5 * time.Second // for mail under way when the program is to stop
)

// outbox returns the session's outbox. Without a deliverer it can only be looked at.
func (s *session) outbox(d outbox.Deliverer) *outbox.Outbox {
	o := outbox.New(s.store, s.tables.Outbox, s.now, d, s.engine.StillWanted)
	if s.shared { // every serve drains it
		o = o.Claiming(mailClaim)
	}
	return o
}

// A delivery adds the customer's language and link to each mail. Links are short-lived secrets: they
// are made at delivery and never stored. A mail waits if its link cannot be made yet. Each delivery,
// done or not, moves the bar.
type delivery struct {
	outbox.Deliverer
	accounts accounts
	linkless *atomic.Int64 // mails that wait for their link
	bar      *progress
	failed   atomic.Pointer[error] // the first failure, for the log
}

// accounts is what an engine knows of the customer of a mail.
type accounts interface {
	Locale(context.Context, outbox.Effect) (string, error)
	Link(context.Context, outbox.Effect) (billing.CardLink, error)
	NoteBounce(ctx context.Context, e outbox.Effect, code string) error
}

// Deliver implements outbox.Deliverer. Mail under way when ctx ends may still leave: a server may
// have taken a message that is cut off, and would get it again.
func (d *delivery) Deliver(ctx context.Context, e outbox.Effect) error {
	defer d.bar.done.Add(1)
	ended := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ended, func() { time.AfterFunc(mailGrace, cancel) })()
	locale, err := d.accounts.Locale(ctx, e)
	if err != nil {
		return err
	}
	l, err := d.accounts.Link(ctx, e)
	if err != nil {
		d.linkless.Add(1)
		return err
	}
	e.Data = maps.Clone(e.Data) // the effect itself may be written again
	if locale != "" {
		e.Data[outbox.DataLocale] = locale
	}
	if l.URL != "" {
		e.Data[outbox.DataLink], e.Data[outbox.DataLinkExpires] = l.URL, stamp(l.Expires)
	}
	if err = d.Deliverer.Deliver(ctx, e); err != nil {
		d.failed.CompareAndSwap(nil, &err)
	}
	if refused, ok := errors.AsType[*smtp.Bounce](err); ok {
		if err := d.accounts.NoteBounce(ctx, e, refused.Code); err != nil {
			return fmt.Errorf("%s; this cannot be noted at the account: %w", refused.Error(), err)
		}
	}
	return err
}

// drain delivers due mail by the settings that the store has now.
func (s *session) drain(ctx context.Context, bar *progress) (outbox.Report, error) {
	settings, err := s.engine.Settings(ctx)
	if err != nil {
		return outbox.Report{}, err
	}
	if err := s.post.check(settings); err != nil {
		return outbox.Report{}, err
	}
	d, done, err := s.post.open(settings)
	if err != nil {
		return outbox.Report{}, err
	}
	defer done()
	to := &delivery{Deliverer: d, accounts: s.engine, linkless: &s.linkless, bar: bar}
	r, err := s.outbox(to).Drain(ctx, s.post.workers())
	if failed := to.failed.Load(); failed != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "mail could not be delivered", "first_error", secret.Clean((*failed).Error()))
	}
	return r, err
}

// drain delivers due mail with a bar, and warns of failures.
func (p *program) drain(ctx context.Context, s *session) (outbox.Report, error) {
	bar := p.progress("mails", 0, func(<-chan struct{}) int64 {
		b, _ := s.outbox(nil).Backlog(ctx, 0) // a bar does without
		return int64(b.Due)
	})
	report, err := s.drain(ctx, bar)
	bar.end()
	waiting := int(s.linkless.Swap(0))
	if waiting > 0 {
		p.warn("%s put off: the link in it could not be had from the processor for the moment; later runs try again",
			plural(waiting, "mail"))
	}
	if failed := report.Failed - waiting; failed > 0 {
		p.warn("%s to %s failed, to be tried again by later runs", plural(failed, "mail"), s.post)
	}
	if report.Dead > 0 {
		p.warn("%s to %s cannot be delivered at all: %s", plural(report.Dead, "mail"), s.post, p.hint("outbox list"))
	}
	return report, err
}

// deliver delivers mail after a job. A failed delivery is no failure of the job: the mail stays in
// the outbox, and the next run tries again.
func (p *program) deliver(ctx context.Context, s *session) {
	_, err := p.drain(ctx, s)
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, errNoServer):
		p.warn("mail was left in the outbox for a process with a mail server: %v", err)
	default:
		p.warn("mail was left in the outbox and goes out with the next run: %v", err)
	}
}

// forget deletes records of runs and dead letters that are too old to be kept. What it leaves, the
// next run deletes.
func (p *program) forget(ctx context.Context, s *session) {
	before, err := s.engine.ForgetRuns(ctx)
	if err == nil && !before.IsZero() {
		for _, q := range queues() {
			err = errors.Join(err, outbox.New(s.store, s.tables.Outbox, s.now, nil, nil).On(q.in).Forget(ctx, before))
		}
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("old records were not deleted", "error", err)
	}
}
