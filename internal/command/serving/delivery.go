package serving

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/delivery"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/view"
)

// A messageFilter holds the flags that select messages.
type messageFilter struct {
	endpoint, id string
	state        screen.Flag[string]
	from, to     screen.Flag[time.Time]
}

func newMessageFilter(f *pflag.FlagSet) *messageFilter {
	m := &messageFilter{state: screen.ChoiceFlag(delivery.Waiting, delivery.Delivered, delivery.Failed), from: screen.InstantFlag(),
		to: screen.InstantFlag()}
	f.StringVar(&m.endpoint, "endpoint", "", "only messages to this `ENDPOINT`")
	f.Var(&m.state, "state", "only messages in this state")
	f.Var(&m.from, "from", "only messages about events from this time on")
	f.Var(&m.to, "to", "only messages about events before this time")
	return m
}

func (m *messageFilter) filter() delivery.Filter {
	return delivery.Filter{Endpoint: m.endpoint, ID: m.id, State: m.state.Value, From: m.from.Value, Until: m.to.Value}
}

func (m *messageFilter) check() error {
	if m.to.Text != "" && !m.to.Value.After(m.from.Value) {
		return screen.Usagef("--to %s must be after --from %s", view.Stamp(m.to.Value), view.Stamp(m.from.Value))
	}
	return nil
}

// ofPurchase returns a function that creates the event for a purchase's finished action.
func ofPurchase(to *delivery.Service) func(context.Context, tracking.Action, *tracking.Purchase) ([]store.Write, error) {
	return func(ctx context.Context, a tracking.Action, p *tracking.Purchase) ([]store.Write, error) {
		kind := "purchase.fulfilled"
		if a == tracking.ActionUnsubscribe {
			kind = "purchase.unsubscribed"
		}
		return to.Effect(ctx, kind+"/"+p.ID, delivery.Event{Type: kind, Data: map[string]any{"purchase": p.ID, "merchant": p.Merchant}})
	}
}

func (p *program) deliveryList() *cobra.Command {
	var m *messageFilter
	var o screen.ListOrder
	c := p.StoreLeaf("list", session.Need{Read: true}, func(ctx context.Context, s *session.Session, _ []string) error {
		return screen.ListAll(p.Screen, o, "message", s.Messages.Messages(ctx, m.filter(), ""), view.Message,
			[]string{"MESSAGE", "ENDPOINT", "TYPE", "EVENT", "STATE", "ATTEMPTS", "LAST", "NEXT"}, func(m *delivery.Message) []any {
				last := m.Last()
				return []any{m.ID, m.Endpoint, m.Type, m.Created, m.State, len(m.Attempts), cmp.Or(last.Code, screen.Cell(screen.Positive(last.Status))),
					m.Due}
			})
	})
	m = newMessageFilter(c.Flags())
	session.Ordered(c, &o, "event", "state", "type")
	return session.Checked(c, func([]string) error { return m.check() })
}

func (p *program) deliveryReplay() *cobra.Command {
	var m *messageFilter
	c := p.StoreLeaf("replay", session.Need{}, func(ctx context.Context, s *session.Session, _ []string) error {
		n, reaches, err := s.Messages.Replay(ctx, m.filter())
		if err != nil {
			return err
		}
		p.Say("%s due again; a running duesday serve sends them", screen.Plural(n, "message"))
		if m.id == "" && m.from.Value.Before(reaches) {
			p.Say("Messages that ended before %s are not kept, so they are not replayed.", view.Stamp(reaches))
		}
		return p.JSON(view.Object{"replayed", n, "reaches", reaches})
	})
	m = newMessageFilter(c.Flags())
	c.Flags().StringVar(&m.id, "message", "", "only this `MESSAGE`")
	return session.Checked(c, func([]string) error {
		if m.id == "" && m.from.Text == "" && m.state.Text == "" {
			return screen.Usagef("a replay needs --message, --from or --state")
		}
		return m.check()
	})
}
