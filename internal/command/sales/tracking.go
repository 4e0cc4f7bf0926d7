// Package sales contains the commands for payments that Stripe runs: connected accounts, purchases,
// payments, events, and the search for missing events.
//
// It does not charge and does not serve. Package serving follows Stripe with this package's Track.
package sales

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/person"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/stripe"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/stripe/sell"
	"github.com/duesday/duesday/internal/tracking"
)

// A program is one invocation. Its methods are the commands of this family.
type program struct{ *session.Program }

// Commands returns this family's commands.
func Commands(of *session.Program) []*cobra.Command {
	p := &program{of}
	return []*cobra.Command{
		session.Group("connect", p.connectAdd(), p.connectImport(), p.connectList(), p.connectShow()),
		session.Group("purchase", p.purchaseCreate(), p.purchaseList(), p.purchaseShow()),
		session.Group("payment", p.paymentList(), p.paymentShow()), session.Group("event", p.eventList(), p.eventShow()),
		p.trackingLeaf("replay EVENT...", trackingNeed{stripe: true}, p.replayEvents), p.jobCommand(), p.rebuildCommand(),
		p.pollCommand(), p.takeoverCommand(),
	}
}

// trackingNeed describes how a command uses the tracking service. The zero value only reads.
type trackingNeed struct {
	create bool // create the store if it does not exist
	stripe bool // ask Stripe
	write  bool // change the store without asking Stripe
}

// trackingLeaf returns a leaf command that uses the open store's tracking service.
func (p *program) trackingLeaf(use string, n trackingNeed,
	do func(ctx context.Context, t *tracking.Service, args []string) error) *cobra.Command {
	return session.Leaf(use, func(ctx context.Context, args []string) error {
		return p.withTracking(ctx, n, func(f Followed) error { return do(ctx, f.Service, args) })
	})
}

// withTracking opens the store and its tracking service, calls do, and closes both.
func (p *program) withTracking(ctx context.Context, n trackingNeed, do func(Followed) error) error {
	t, err := config.NewTracking(p.Config, p.Setting)
	if err != nil {
		return screen.Invalid(err)
	}
	err = p.With(ctx, session.Need{Create: n.create, Processor: n.stripe && p.Config.UsesStripe(), Read: n == trackingNeed{}},
		func(s *session.Session) error { return Track(ctx, p.Program, s, &t, n.stripe, tracking.Options{}, do) })
	if errors.Is(err, store.ErrMissing) {
		return fmt.Errorf("there is no store at %s yet; create one with duesday store create or duesday connect add",
			secret.Redact(p.Config.Store))
	}
	return p.explainTracking(err)
}

// Followed is an open tracking service, with the Stripe account and the mode that it follows.
type Followed struct {
	Service   *tracking.Service
	Processor *stripe.Processor // nil if the command does not ask Stripe
	Own       string            // acct_…
	Live      bool
}

// ownPatience is the maximum time to wait for Stripe to name the key's account, if the store
// already knows that account.
const ownPatience = 10 * time.Second

// Track opens the tracking service of the session's store and passes it to do. It completes the
// options first. do must not ask Stripe unless asks is set.
func Track(ctx context.Context, p *session.Program, s *session.Session, t *config.Tracking, asks bool, o tracking.Options,
	do func(Followed) error) (err error) {
	meta, err := s.Engine.Meta(ctx)
	if err != nil {
		return err
	}
	var f Followed
	if !asks {
		if f.Own, f.Live, err = tracking.Pinned(ctx, s.Store, s.Tables); errors.Is(err, store.ErrNotFound) {
			err = errors.New("this store does not follow a Stripe account yet; start with duesday serve or " +
				"duesday connect add")
		}
	} else {
		var opened bool
		if f.Processor, opened, err = stripeOf(s, t); err != nil {
			return err
		}
		if opened {
			defer func() { err = errors.Join(err, f.Processor.Close()) }()
		}
		asked := sell.New(f.Processor.API())
		o.Finder, o.Seller = asked, asked
		own, live, missing := tracking.Pinned(ctx, s.Store, s.Tables)
		pinned, asking := missing == nil && live == strings.Contains(t.Stripe.Key.Reveal(), "_live_"), ctx
		if pinned { // serve must store webhooks even if Stripe does not answer
			var stop context.CancelFunc
			asking, stop = context.WithTimeout(ctx, ownPatience)
			defer stop()
		}
		f.Own, f.Live, err = f.Processor.API().Own(asking)
		err = session.ExplainStripe(err, t.Stripe.APIBase)
		if err != nil && pinned && !errors.Is(err, processor.ErrRefused) && ctx.Err() == nil {
			p.Warn("%v; until Stripe answers, Duesday continues with %s, which the store follows", err, own)
			f.Own, f.Live, err = own, live, nil
		}
	}
	if err != nil {
		return err
	}
	if asks && f.Live && p.Clock != nil {
		return screen.Usagef("--clock is only for tests, but the Stripe key is live; leave one of them out")
	}
	if p.Config.UsesStripe() && s.Processor != nil { // events about billing's own payment intents settle their periods
		o.Settler = s.Engine
	}
	settings, err := settings.Read(ctx, s.Engine.Records)
	if err != nil {
		return err
	}
	o.Shared, o.EndedBy = s.Shared, settings.EndedBy
	o.UnsubscribeAfter = time.Duration(settings.UnsubscribeMinutes) * time.Minute
	o.Store, o.Tables, o.Now, o.Log, o.Installation = s.Store, s.Tables, p.Now, s.Log, meta.Installation
	o.Own, o.Live, o.Decode, o.Erases = f.Own, f.Live, event.Decode, person.Later(s.Engine.Records)
	if f.Service, err = tracking.Open(ctx, o); err != nil {
		return err
	}
	return do(f)
}

// stripeOf returns the session's processor if it is Stripe. Otherwise it opens a Stripe processor,
// which the caller must close.
func stripeOf(s *session.Session, t *config.Tracking) (processor *stripe.Processor, opened bool, err error) {
	if processor, ok := s.Processor.(*stripe.Processor); ok {
		return processor, false, nil
	}
	if err := t.Stripe.Key.Read(); err != nil {
		return nil, false, screen.Invalid(err)
	}
	processor, err = session.NewStripe(t.Processor, &t.Stripe, s.Now, s.Log)
	return processor, err == nil, err
}

// explainTracking adds advice to the tracking service's errors.
func (p *program) explainTracking(err error) error {
	switch {
	case errors.Is(err, tracking.ErrUnregistered):
		return fmt.Errorf("%w; to register it for its merchant, run: %s", err,
			p.Hint("connect add --account UUID ACCT"))
	case errors.Is(err, tracking.ErrDisconnected):
		return fmt.Errorf("%w; the merchant must connect it at Stripe again", err)
	}
	return err
}

// withoutOther removes the text of tracking.ErrOther from the end of the error.
func withoutOther(err error) string {
	return strings.TrimSuffix(err.Error(), ": "+tracking.ErrOther.Error())
}

// checkAccountFlag returns an error unless account is a merchant's UUID. If stripe is set, it also
// accepts the ID of a Stripe account, or "".
func checkAccountFlag(account string, stripe bool) error {
	switch {
	case tracking.IsUUID(account) || stripe && (account == "" || strings.HasPrefix(account, "acct_")):
		return nil
	case stripe:
		return screen.Usagef("--account must be a Stripe account, acct_…, or the UUID of a merchant (got %q)", account)
	}
	return screen.Usagef("--account must be a merchant's UUID, such as 0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58 (got %q)", account)
}
