package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) outboxCommand() *cobra.Command {
	list := p.StoreLeaf("list", session.Need{Read: true},
		func(ctx context.Context, s *session.Session, _ []string) error { return p.listOutbox(ctx, s) })
	replay := p.StoreLeaf("replay ID", session.Need{},
		func(ctx context.Context, s *session.Session, args []string) error { return p.replay(ctx, s, args[0]) })
	send := session.Leaf("send", func(ctx context.Context, _ []string) error {
		return p.With(ctx, session.Need{Processor: p.Config.UsesStripe()}, func(s *session.Session) error { return p.send(ctx, s) })
	})
	release := p.StoreLeaf("release", session.Need{}, p.decideHeld(outbox.Release))
	drop := p.StoreLeaf("drop", session.Need{}, p.decideHeld(outbox.Drop))
	return session.Group("outbox", list, replay, send, release, drop)
}

// A queue is one of the outbox's queues, with its name in the output and the number of its rows.
type queue struct {
	name string // "" for mail
	in   outbox.Queue
	outbox.Backlog
}

func queues() []*queue {
	return []*queue{{in: outbox.Mail}, {name: "actions", in: outbox.Actions}, {name: "inbox", in: outbox.Inbox},
		{name: "deliveries", in: outbox.Deliveries}}
}

func (q *queue) view() view.Object {
	return view.Object{"due", q.Due, "later", q.Later, "dead", q.Dead}
}

func viewDead(e outbox.Effect, queue string) view.Object {
	return view.Object{"id", e.ID, "lane?", queue, "kind", e.Kind, "email", e.Data[outbox.DataEmail],
		"account", e.Data[outbox.DataAccount], "subscription", e.Data[outbox.DataSubscription], "tries", e.Tries,
		"detail", secret.Clean(e.Error), "created_at", e.Created}
}

func (p *program) listOutbox(ctx context.Context, s *session.Session) error {
	o := s.Outbox(nil)
	var err error
	all, dead := queues(), 0
	for _, q := range all {
		if q.Backlog, err = o.On(q.in).Backlog(ctx, 0); err != nil {
			return err
		}
		dead += q.Dead
		if q.name == "" {
			p.Say("%d due, %d later, %d given up", q.Due, q.Later, q.Dead)
		} else if q.Due+q.Later+q.Dead > 0 {
			p.Say("%s: %d due, %d later, %d given up", q.name, q.Due, q.Later, q.Dead)
		}
	}
	held, err := p.listHeld(ctx, s)
	if err != nil || dead == 0 && !p.AsJSON {
		return err
	}
	p.Say("")
	t, list := p.Table("ID", "KIND", "TO", "TRIES", "REASON"), &screen.ListWriter{Out: p.Out, Name: "dead_letters"}
	var counts view.Object // counts for mail, and for other queues that have rows
	for _, q := range all {
		q.Dead = 0 // recount while listing, because another process may change them
		for e, err := range o.On(q.in).Dead(ctx) {
			if err == nil && p.AsJSON {
				err = list.Add(viewDead(e, q.name))
			}
			if err != nil {
				return err
			}
			q.Dead++
			t.Row(e.ID, e.Kind, cmp.Or(e.Data[outbox.DataEmail], q.name), e.Tries, secret.Clean(e.Error))
		}
		if q.name == "" {
			counts = q.view()
		} else if q.Due+q.Later+q.Dead > 0 {
			counts = append(counts, q.name, q.view())
		}
	}
	if p.AsJSON {
		return list.End(append(counts, "held?", held))
	}
	t.Flush()
	p.Say("\nTo retry one, run: %s", p.Hint("outbox replay ID"))
	return nil
}

// listHeld prints the held mail, and returns the number of held mails.
func (p *program) listHeld(ctx context.Context, s *session.Session) (held int, err error) {
	t := p.Table("HELD", "KIND", "TO")
	for e, err := range s.Outbox(nil).On(outbox.Held).Waiting(ctx) {
		if err != nil {
			return held, err
		}
		held++
		t.Row(e.ID, e.Kind, e.Data[outbox.DataEmail])
	}
	if p.SayHeld(held); held > 0 && !p.AsJSON {
		t.Flush()
	}
	return held, nil
}

func (p *program) replay(ctx context.Context, s *session.Session, id string) error {
	o := s.Outbox(nil)
	var err error
	for _, q := range queues() {
		if err = o.On(q.in).Replay(ctx, id); errors.Is(err, store.ErrNotFound) {
			continue
		}
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnknown) {
			err = fmt.Errorf("%w; to check whether it still exists, run: %s", err, p.Hint("outbox list"))
		}
		if err != nil {
			return err
		}
		if q.name == "" {
			p.Say("mail %s is due again; to send it, run: %s", id, p.Hint("outbox send"))
		} else {
			p.Say("%s is due again; a running duesday serve processes it", id)
		}
		return p.JSON(view.Object{"replayed", id})
	}
	return session.NotFound(err, "mail "+id+" that was given up")
}

func (p *program) send(ctx context.Context, s *session.Session) error {
	r, err := p.Drain(ctx, s)
	if err != nil {
		return err
	}
	if r.Stays() > 0 {
		p.Code = screen.ExitPerson
	}
	p.Say("%s", s.Post.Done(r.Delivered))
	p.Fields("  no longer needed", screen.Positive(r.Dropped), "  put off", screen.Positive(r.Failed), "  given up",
		screen.Positive(r.Dead))
	// A dropped mail is a reminder whose period was paid, paused or canceled in the meantime.
	return p.JSON(view.Object{"delivered", r.Delivered, "dropped", r.Dropped, "failed", r.Failed, "dead", r.Dead, "detail?", r.Reason})
}

// decideHeld returns an action that releases or drops all held mail.
func (p *program) decideHeld(fate outbox.Fate) func(context.Context, *session.Session, []string) error {
	return func(ctx context.Context, s *session.Session, _ []string) error {
		count, err := s.Outbox(nil).On(outbox.Held).Decide(ctx, func(outbox.Effect) (outbox.Fate, error) { return fate, nil })
		if err != nil {
			return err
		}
		if fate == outbox.Drop {
			p.Say("%s deleted unsent", screen.Plural(count[fate], "held mail"))
			return p.JSON(view.Object{"dropped", count[fate]})
		}
		p.Say("%s released; %s, or a running duesday serve, sends them", screen.Plural(count[fate], "held mail"), p.Hint("outbox send"))
		return p.JSON(view.Object{"released", count[fate]})
	}
}
