package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/store"
)

func (p *program) outboxCommand() *cobra.Command {
	list := &cobra.Command{
		Use:   "list",
		Short: "Count the mail that waits, and list what was given up",
		Args:  want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.with(cmd.Context(), need{read: true}, func(s *session) error { return p.listOutbox(cmd.Context(), s) })
		},
	}
	replay := &cobra.Command{
		Use:   "replay ID",
		Short: "Put a mail that was given up back: it is due now and tried afresh",
		Args:  want("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(cmd.Context(), need{}, func(s *session) error { return p.replay(cmd.Context(), s, args[0]) })
		},
	}
	send := &cobra.Command{
		Use:   "send",
		Short: "Deliver the mail that is due, as every run does",
		Long: `Deliver the mail that is due, as every run does when it is done. Exits 3 when some of it
could not be delivered.`,
		Args: want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.with(cmd.Context(), need{processor: p.cfg.UsesStripe()}, func(s *session) error { return p.send(cmd.Context(), s) })
		},
	}
	g := group("outbox", "Look at the mail that has not left, and deliver it", list, replay, send)
	g.Long = `Look at the mail that has not left, and deliver it. A mail that fails is tried ten times
over three days and then given up; one that can never be sent is given up at once.`
	return g
}

// A deadView is an element of outbox list: a mail that was given up. Of one that cannot be
// read it has what can be.
type deadView struct {
	ID           string `json:"id"`
	Kind         string `json:"kind"`
	Email        string `json:"email"`
	Account      string `json:"account"`
	Subscription string `json:"subscription"`
	Tries        int    `json:"tries"`
	Reason       string `json:"reason"`
	Created      string `json:"created_at"`
}

func viewDead(e outbox.Effect) deadView {
	return deadView{ID: e.ID, Kind: e.Kind, Email: e.Data[outbox.DataEmail], Account: e.Data[outbox.DataAccount],
		Subscription: e.Data[outbox.DataSubscription], Tries: e.Tries, Reason: billing.MaskCards(e.Error), Created: stamp(e.Created)}
}

// An outboxView is the JSON of outbox list, after its list of dead letters.
type outboxView struct {
	Due   int `json:"due"`
	Later int `json:"later"` // such as put off after a failure
	Dead  int `json:"dead"`
}

func (p *program) listOutbox(ctx context.Context, s *session) error {
	o, err := s.outbox(nil)
	if err != nil {
		return err
	}
	var v outboxView
	if v.Due, v.Later, v.Dead, err = o.Pending(ctx); err != nil {
		return err
	}
	if p.cfg.JSON {
		list := newObjectWriter(p.stdout, "dead_letters")
		v.Dead = 0 // as many as are listed, whatever another process does meanwhile
		for e, err := range o.Dead(ctx) {
			if err == nil {
				err = list.add(viewDead(e))
			}
			if err != nil {
				return err
			}
			v.Dead++
		}
		return list.end(v)
	}
	p.say("%d due, %d later, %d given up", v.Due, v.Later, v.Dead)
	if v.Dead == 0 {
		return nil
	}
	p.say("")
	t := newTable(p.stdout, "ID", "KIND", "TO", "TRIES", "WHY")
	for e, err := range o.Dead(ctx) {
		if err != nil {
			return err
		}
		d := viewDead(e)
		t.row(d.ID, d.Kind, d.Email, strconv.Itoa(d.Tries), d.Reason)
	}
	t.flush()
	p.say("\nPut one back: %s", p.hint("outbox replay ID"))
	return nil
}

type replayView struct {
	Replayed string `json:"replayed"`
}

func (p *program) replay(ctx context.Context, s *session, id string) error {
	o, err := s.outbox(nil)
	if err != nil {
		return err
	}
	switch err := o.Replay(ctx, id); {
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrUnknown):
		return fmt.Errorf("%w: %s shows whether it is still there", err, p.hint("outbox list"))
	case err != nil:
		return notFound(err, "mail "+id+" that was given up")
	}
	if p.cfg.JSON {
		return p.object(replayView{id})
	}
	p.say("mail %s is due again: %s", id, p.hint("outbox send"))
	return nil
}

type sendView struct {
	Delivered int `json:"delivered"`
	Dropped   int `json:"dropped"` // a reminder of what is paid, paused or cancelled by now
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
	fields(p.stdout, "  not wanted any more", positive(r.Dropped), "  put off", positive(r.Failed), "  given up", positive(r.Dead))
	return nil
}
