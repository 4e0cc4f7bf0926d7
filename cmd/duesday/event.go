package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/tracking"
)

func (p *program) eventCommand() *cobra.Command {
	g := group("event", "List and show the events of Stripe", p.eventList(), p.eventShow())
	g.Long = `List and show the events of Stripe. An event is kept for 30 days, and longer until it is
applied: event list --waiting lists those, and duesday replay applies one again.`
	return g
}

// An eventView is an event in JSON, without its body.
type eventView struct {
	ID            string               `json:"id"`
	Type          string               `json:"type"`
	StripeAccount string               `json:"stripe_account,omitempty"`
	Account       string               `json:"account,omitempty"`
	Subscription  string               `json:"subscription,omitempty"`
	Object        string               `json:"object,omitempty"` // the event's subject: its id at Stripe
	Status        tracking.EventStatus `json:"status"`
	Reason        string               `json:"reason,omitempty"`
	Source        tracking.Source      `json:"source,omitempty"`
	Live          *bool                `json:"live,omitempty"` // nil: its body is not there to tell
	APIVersion    string               `json:"api_version,omitempty"`
	Created       time.Time            `json:"created,omitzero"`
	Received      time.Time            `json:"received,omitzero"`
	Applied       time.Time            `json:"applied,omitzero"`
}

func viewEvent(e *tracking.Event) eventView {
	v := eventView{ID: e.ID, Type: e.Type, StripeAccount: e.StripeAccount, Account: e.Merchant,
		Subscription: e.Subscription, Object: e.Object.ID,
		Status: e.Status, Reason: e.Reason, Source: e.Source, APIVersion: e.APIVersion, Created: e.Created,
		Received: e.Received, Applied: e.Applied}
	if len(e.Body) > 0 {
		v.Live = &e.Live
	}
	return v
}

func (p *program) eventShow() *cobra.Command {
	var f backendFlags
	body := false
	c := &cobra.Command{
		Use:   "show EVENT",
		Short: "Show an event and its result",
		Args:  want("EVENT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withBackend(cmd.Context(), &f, backendNeed{}, func(b *backend) error {
				e, err := b.ledger.Event(cmd.Context(), args[0])
				if err != nil {
					return notFound(err, "event "+args[0])
				}
				if told, err := event.Decode(e.Body); err == nil { // the row has fewer fields than the body
					e.Live, e.APIVersion, e.Object = told.Live, told.APIVersion, told.Object
				}
				return p.showEvent(e, body)
			})
		},
	}
	c.Flags().BoolVar(&body, "body", false, "print its body, as Stripe sent it, and nothing else")
	return f.on(c)
}

func (p *program) showEvent(e *tracking.Event, body bool) error {
	switch {
	case body:
		p.stdout.Write(e.Body)
		if n := len(e.Body); n == 0 || e.Body[n-1] != '\n' {
			p.stdout.WriteByte('\n')
		}
		return nil
	case p.cfg.JSON:
		return p.object(viewEvent(e))
	}
	mode := "test"
	if e.Live {
		mode = "live"
	}
	fields(p.stdout, "event", e.ID, "type", e.Type, "about", e.Object.ID, "Stripe account", e.StripeAccount, "account",
		e.Merchant,
		"subscription", e.Subscription, "status", string(e.Status)+prefixed(": ", e.Reason), "came by", string(e.Source),
		"mode", mode,
		"API version", e.APIVersion, "created", stamp(e.Created), "received", stamp(e.Received), "applied", stamp(e.Applied))
	return nil
}

func (p *program) replayCommand() *cobra.Command {
	var f backendFlags
	c := &cobra.Command{
		Use:   "replay EVENT...",
		Short: "Apply stored events again",
		Long: `Apply stored events again: events that were put aside or given up, or any others. An event
is merged into the stored state, and no action is taken twice. Exits 3 if an event still
waits.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s: EVENT is missing", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withBackend(cmd.Context(), &f, backendNeed{stripe: true},
				func(b *backend) error { return p.replayEvents(cmd.Context(), b, args) })
		},
	}
	return f.on(c)
}

// replayEvents applies every event, and fails at the end if one is missing.
func (p *program) replayEvents(ctx context.Context, b *backend, ids []string) error {
	var missing []error
	verdicts := func(yield func(tracking.Verdict, error) bool) {
		for _, id := range ids {
			v, err := b.ledger.Replay(ctx, id)
			if errors.Is(err, store.ErrNotFound) {
				missing = append(missing, notFound(err, "event "+id))
				continue
			}
			if err == nil && !v.Status.Final() {
				p.code = exitPerson
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
	_, err := list(p, verdicts, as[tracking.Verdict], []string{"EVENT", "STATUS", "WHY"},
		func(v tracking.Verdict) []string {
			return []string{v.Event, string(v.Status), v.Reason}
		})
	return cmp.Or(err, errors.Join(missing...))
}
