package serving

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/delivery"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) endpointCommand() *cobra.Command {
	var types []string
	create := p.StoreLeaf("create URL", session.Need{}, func(ctx context.Context, s *session.Session, args []string) error {
		e, from, err := s.Messages.Create(ctx, args[0], types)
		if err != nil {
			return err
		}
		p.Say("%s\n\nThis is the secret of endpoint %s, for verifying the signatures of its messages. It is shown only once.",
			e.Secret.Reveal(), e.ID)
		p.Say("From %s on, a running duesday serve sends every event to the endpoint.", view.Stamp(from))
		return p.JSON(append(view.Endpoint(e), "secret", e.Secret.Reveal(), "from", from))
	})
	typesFlag(create.Flags(), &types)
	list := p.StoreLeaf("list", session.Need{Read: true}, func(ctx context.Context, s *session.Session, _ []string) error {
		return screen.ListAll(p.Screen, screen.ListOrder{}, "endpoint", s.Messages.All(ctx), view.Endpoint,
			[]string{"ENDPOINT", "URL", "TYPES", "CREATED", "FAILING SINCE", "PAUSED", "REASON"}, func(e *delivery.Endpoint) []any {
				return []any{e.ID, e.URL, strings.Join(e.Types, ","), e.Created, e.Failing, e.Paused, e.Reason}
			})
	})
	remove := p.StoreLeaf("delete ENDPOINT", session.Need{}, func(ctx context.Context, s *session.Session, args []string) error {
		if err := s.Messages.Delete(ctx, args[0]); err != nil {
			return session.NotFound(err, "endpoint "+args[0])
		}
		p.Say("endpoint %s is deleted; its waiting messages are not sent", args[0])
		return p.JSON(view.Object{"deleted", args[0]})
	})
	return session.Group("endpoint", create, list, p.endpointUpdate(), p.endpointRotate(), remove)
}

func typesFlag(f *pflag.FlagSet, types *[]string) {
	f.StringSliceVar(types, "types", nil, "event `TYPES` to send, such as period.paid,subscription.* (default: all)")
}

func (p *program) endpointUpdate() *cobra.Command {
	var types []string
	var address string
	var pause, resume bool
	c := session.Leaf("update ENDPOINT", nil)
	f := c.Flags()
	c.RunE = func(cmd *cobra.Command, args []string) error {
		change := delivery.Change{URL: screen.Given(f, "url", address), Types: screen.Given(f, "types", types)}
		if pause || resume {
			change.Paused = &pause
		}
		if change == (delivery.Change{}) {
			return screen.Usagef("nothing changes; use --url, --types, --pause or --resume")
		}
		return p.With(cmd.Context(), session.Need{}, func(s *session.Session) error {
			e, err := s.Messages.Update(cmd.Context(), args[0], change)
			if err != nil {
				return session.NotFound(err, "endpoint "+args[0])
			}
			p.Say("endpoint %s is changed", e.ID)
			if resume {
				p.Say("To send the messages that it missed, run: %s", p.Hint("delivery replay --endpoint "+e.ID+" --from TIME"))
			}
			return p.JSON(view.Endpoint(e))
		})
	}
	f.StringVar(&address, "url", "", "new `URL`")
	typesFlag(f, &types)
	f.BoolVar(&pause, "pause", false, "stop sending; its messages fail")
	f.BoolVar(&resume, "resume", false, "send again")
	c.MarkFlagsMutuallyExclusive("pause", "resume")
	return c
}

func (p *program) endpointRotate() *cobra.Command {
	var now bool
	c := p.StoreLeaf("rotate ENDPOINT", session.Need{}, func(ctx context.Context, s *session.Session, args []string) error {
		e, err := s.Messages.Rotate(ctx, args[0], now)
		if err != nil {
			return session.NotFound(err, "endpoint "+args[0])
		}
		p.Say("%s\n\nThis is the new secret of endpoint %s. It is shown only once.", e.Secret.Reveal(), e.ID)
		if !e.Until.IsZero() {
			p.Say("Until %s, messages are also signed with the old secret.", view.Stamp(e.Until))
		}
		return p.JSON(append(view.Endpoint(e), "secret", e.Secret.Reveal()))
	})
	c.Flags().BoolVar(&now, "now", false, "stop signing with the old secret at once, because it was exposed")
	return c
}
