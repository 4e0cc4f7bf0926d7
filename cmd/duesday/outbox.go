package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

func (p *program) outboxCommand() *cobra.Command {
	list := &cobra.Command{
		Use:   "list",
		Short: "Count the rows that wait, and list those that were given up",
		Args:  want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return besideServe(p.with(cmd.Context(), need{read: true},
				func(s *session) error { return p.listOutbox(cmd.Context(), s) }))
		},
	}
	replay := &cobra.Command{
		Use:   "replay ID",
		Short: "Make a row that was given up due again, with all its tries",
		Args:  want("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return besideServe(p.with(cmd.Context(), need{},
				func(s *session) error { return p.replay(cmd.Context(), s, args[0]) }))
		},
	}
	send := &cobra.Command{
		Use:   "send",
		Short: "Deliver the mail that is due, as every run does",
		Long: `Deliver the mail that is due, as every run does when it is done. Exits 3 when some of it
could not be delivered.`,
		Args: want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.with(cmd.Context(), need{processor: p.cfg.UsesStripe()},
				func(s *session) error { return p.send(cmd.Context(), s) })
		},
	}
	g := group("outbox", "List and deliver the mail that has not been sent", list, replay, send)
	g.Long = `Look at the mail that has not left, and deliver it. A mail that fails is tried ten times
over three days and then given up; one that can never be sent is given up at once. The same
goes for what duesday serve has to do: the actions of purchases, and the inbox of what came
in and could not be dealt with at once. Those it takes itself; while it runs, duesday job and
duesday event list --waiting show them. What is later in the inbox is mostly purchases, each
of which is looked for at Stripe once more some minutes after it was begun.`
	return g
}

// besideServe names the commands to use while duesday serve has the store open.
func besideServe(err error) error {
	if errors.Is(err, store.ErrLocked) {
		return fmt.Errorf("%w; if duesday serve has it: duesday job list shows what it has to do and what it gave up, and "+
			"duesday job replay has that tried again, with --server or %s", err, config.EnvServer)
	}
	return err
}

// A queue is a queue of the outbox, by its name for people.
type queue struct {
	name string // "" of mail
	in   outbox.Queue
}

func queues() []queue {
	return []queue{{"", outbox.Mail}, {"actions", outbox.Actions}, {"inbox", outbox.Inbox}}
}

// A deadView is an element of outbox list: a row that was given up, with its readable fields.
type deadView struct {
	ID           string `json:"id"`
	Lane         string `json:"lane,omitempty"` // actions or inbox; none of mail
	Kind         string `json:"kind"`
	Email        string `json:"email"`
	Account      string `json:"account"`
	Subscription string `json:"subscription"`
	Tries        int    `json:"tries"`
	Reason       string `json:"reason"`
	Created      string `json:"created_at"`
}

func viewDead(e outbox.Effect, queue string) deadView {
	return deadView{ID: e.ID, Lane: queue, Kind: e.Kind, Email: e.Data[outbox.DataEmail],
		Account:      e.Data[outbox.DataAccount],
		Subscription: e.Data[outbox.DataSubscription], Tries: e.Tries, Reason: secret.Clean(e.Error),
		Created: stamp(e.Created)}
}

// A queueView counts the rows of a queue.
type queueView struct {
	Due   int `json:"due"`
	Later int `json:"later"` // such as put off after a failure
	Dead  int `json:"dead"`
}

// An outboxView is the JSON of outbox list, after its list of dead letters: the mail, and the
// other queues that have rows.
type outboxView struct {
	queueView
	Actions queueView `json:"actions,omitzero"`
	Inbox   queueView `json:"inbox,omitzero"`
}

// of returns the counts of a queue.
func (v *outboxView) of(q queue) *queueView {
	switch q.in {
	case outbox.Actions:
		return &v.Actions
	case outbox.Inbox:
		return &v.Inbox
	}
	return &v.queueView
}

func (p *program) listOutbox(ctx context.Context, s *session) error {
	o, err := s.outbox(nil)
	if err != nil {
		return err
	}
	var v outboxView
	dead := 0
	for _, q := range queues() {
		c := v.of(q)
		if c.Due, c.Later, c.Dead, err = o.On(q.in).Pending(ctx); err != nil {
			return err
		}
		dead += c.Dead
	}
	if p.cfg.JSON {
		return p.listOutboxJSON(ctx, o, &v)
	}
	for _, q := range queues() {
		if c := v.of(q); q.name == "" || *c != (queueView{}) {
			p.say("%s%d due, %d later, %d given up", suffixed(q.name, ": "), c.Due, c.Later, c.Dead)
		}
	}
	if dead == 0 {
		return nil
	}
	p.say("")
	t := newTable(p.stdout, "ID", "KIND", "TO", "TRIES", "WHY")
	for _, q := range queues() {
		for e, err := range o.On(q.in).Dead(ctx) {
			if err != nil {
				return err
			}
			d := viewDead(e, q.name)
			t.row(d.ID, d.Kind, firstText(d.Email, d.Lane), strconv.Itoa(d.Tries), d.Reason)
		}
	}
	t.flush()
	p.say("\nPut one back: %s", p.hint("outbox replay ID"))
	return nil
}

func (p *program) listOutboxJSON(ctx context.Context, o *outbox.Outbox, v *outboxView) error {
	list := newObjectWriter(p.stdout, "dead_letters")
	for _, q := range queues() {
		c := v.of(q)
		c.Dead = 0 // counted while they are listed: another process may change them
		for e, err := range o.On(q.in).Dead(ctx) {
			if err == nil {
				err = list.add(viewDead(e, q.name))
			}
			if err != nil {
				return err
			}
			c.Dead++
		}
	}
	return list.end(v)
}

func suffixed(text, suffix string) string {
	if text == "" {
		return ""
	}
	return text + suffix
}

type replayView struct {
	Replayed string `json:"replayed"`
}

func (p *program) replay(ctx context.Context, s *session, id string) error {
	o, err := s.outbox(nil)
	if err != nil {
		return err
	}
	for _, q := range queues() {
		if err = o.On(q.in).Replay(ctx, id); errors.Is(err, store.ErrNotFound) {
			continue
		}
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnknown) {
			err = fmt.Errorf("%w: %s shows whether it is still there", err, p.hint("outbox list"))
		}
		switch {
		case err != nil:
			return err
		case p.cfg.JSON:
			return p.object(replayView{id})
		case q.name == "":
			p.say("mail %s is due again: %s", id, p.hint("outbox send"))
		default:
			p.say("%s is due again: a running duesday serve takes it", id)
		}
		return nil
	}
	return notFound(err, "mail "+id+" that was given up")
}

type sendView struct {
	Delivered int `json:"delivered"`
	Dropped   int `json:"dropped"` // reminders of periods paid, paused or canceled since
	Failed    int `json:"failed"`
	Dead      int `json:"dead"`
}

func (p *program) send(ctx context.Context, s *session) error {
	r, err := p.drain(ctx, s)
	if err != nil {
		return err
	}
	if r.Failed+r.Dead > 0 {
		p.code = exitPerson
	}
	if p.cfg.JSON {
		return p.object(sendView{r.Delivered, r.Dropped, r.Failed, r.Dead})
	}
	p.say("%s delivered", plural(r.Delivered, "mail"))
	fields(p.stdout, "  not wanted any more", positive(r.Dropped), "  put off", positive(r.Failed), "  given up",
		positive(r.Dead))
	return nil
}
