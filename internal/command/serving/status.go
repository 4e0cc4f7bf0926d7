package serving

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/worker"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/status"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) chargingCommand() *cobra.Command {
	var reason, other string
	off := session.Leaf("off", func(ctx context.Context, _ []string) error { return p.setCharging(ctx, false, reason, "") })
	off.Flags().StringVar(&reason, "reason", "", "reason `TEXT`, which runs and users see")
	on := session.Leaf("on", func(ctx context.Context, _ []string) error { return p.setCharging(ctx, true, "", other) })
	on.Flags().StringVar(&other, "accept-other-installation", "", "`ID` of another installation whose charges for this store's subscriptions are correct")
	return session.Group("charging", off, on)
}

func (p *program) setCharging(ctx context.Context, on bool, reason, other string) error {
	if err := billing.CheckText("reason", reason, 1024); err != nil {
		return err
	}
	return p.With(ctx, session.Need{Create: true}, func(s *session.Session) error {
		if other != "" {
			if err := s.Engine.Charging().Accept(ctx, other); err != nil {
				return err
			}
		}
		if err := s.Engine.SetCharging(ctx, on, reason); err != nil {
			return err
		}
		if on {
			p.Say("charging is on")
		} else {
			p.Say("charging is off; no run opens or confirms a payment")
		}
		return p.JSON(view.Charging(on, reason, other, call.Of(ctx).Actor))
	})
}

// installation returns what the status checks need to know about the session's store.
func (p *program) installation(s *session.Session) *status.Installation {
	in := &status.Installation{Engine: s.Engine, Messages: s.Messages, Version: session.BuildVersion().Number, Hint: p.Hint, Disk: status.Disk}
	if p.Clock != nil {
		in.Fresh = p.Clock.Shown(25 * leastLook)
	}
	if place, err := p.Place(); err == nil { // the store was opened, so its URL is valid
		in.Folder = place.Folder
	}
	if d, ok := s.Store.(*dynamostore.Store); ok {
		in.Tables = func(ctx context.Context) (wrong, weak, unknown []string, err error) {
			found, err := dynamotable.Describe(ctx, d.Client(), s.Tables.All())
			if dynamotable.Denied(err) {
				return nil, nil, []string{"this process is not allowed to describe them"}, nil
			}
			wrong, weak, unknown = dynamotable.Lacks(found)
			return wrong, weak, unknown, err
		}
	}
	return in
}

// leastLook is the minimum time between two status checks. A fast test clock would otherwise run
// them too often.
const leastLook = 100 * time.Millisecond

// watch returns the Watch that checks the session's store while this process serves.
func (p *program) watch(s *session.Session, c *clock.Clock) *status.Watch {
	in := p.installation(s)
	in.Serving, in.Runs, in.Meters, in.Post = true, new(status.Runs), status.NewMeters(), "mail is sent through "+s.Post.String()
	if s.Post.Server == nil {
		in.Post, in.Unsent = "mail is not sent: it is written to "+s.Post.Folder, !s.Post.Named
	}
	every := time.Minute
	if s.Shared {
		every, in.Keep = sharedWatch, sharedQueues
	}
	return &status.Watch{In: in, By: worker.ThisProcess(), Log: s.Log, Tell: in.Mail,
		After: func() <-chan time.Time { return time.After(max(leastLook, c.Real(every))) }}
}

func (p *program) statusCommand() *cobra.Command {
	var all bool
	c := p.StoreLeaf("status", session.Need{Read: true},
		func(ctx context.Context, s *session.Session, _ []string) error { return p.showStatus(ctx, s, all) })
	c.Flags().BoolVar(&all, "all", false, "list every check, including those that are ok")
	return c
}

func (p *program) showStatus(ctx context.Context, s *session.Session, all bool) error {
	checks := p.installation(s).Look(ctx)
	shown := slices.DeleteFunc(slices.Clone(checks), func(c status.Check) bool { return c.State == status.OK })
	title, alarms := "All is well.", len(status.Alarms(checks))
	switch {
	case alarms > 0:
		p.Code = screen.ExitPerson
		title = screen.Plural(alarms, "check") + " wrong or unknown:"
	case len(shown) > 0:
		title = "Nothing is wrong, with " + screen.Plural(len(shown), "warning") + ":"
	}
	p.Say("%s", title)
	listed := shown
	if all {
		listed = checks
	}
	if len(listed) > 0 {
		t := p.Table("CHECK", "STATE", "FOUND")
		for _, c := range listed {
			state := string(c.State)
			if c.State == status.Wrong {
				state = "WRONG"
			}
			t.Row(c.Name, state, c.Text)
		}
		t.Flush()
	}
	if len(shown) > 0 {
		p.Say("\nWhat to do:")
	}
	for _, c := range shown {
		p.Say("  %s: %s", c.Name, c.Next)
	}
	if ok := len(checks) - len(listed); ok > 0 {
		p.Say("\n%s ok; to list them, run: %s", screen.Plural(ok, "check"), p.Hint("status --all"))
	}
	return p.JSON(view.Object{"ok", alarms == 0, "checks", view.List(checks, view.Check)})
}

const (
	askTimeout = 5 * time.Second
	askEvery   = 5 * time.Minute // the poller may ask for a quiet account only every few hours
)

// askStripe reports whether Stripe refuses the key, and since when Stripe has not answered. silent
// is zero if Stripe answers. If Stripe refuses the key or is silent, or if its last answer is older
// than askEvery, askStripe asks again. Nothing else may ask Stripe, because a server that is not
// ready receives no orders.
func askStripe(ctx context.Context, client *api.Client) (refused bool, silent time.Time) {
	_, last := client.ClockAhead()
	if client.KeyRefused() || !client.Silent().IsZero() || !last.IsZero() && client.Now().Sub(last) > askEvery {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		_, _, _ = client.Own(ctx) // the client records the answer
	}
	return client.KeyRefused(), client.Silent()
}
