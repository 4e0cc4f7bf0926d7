package sales

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/server"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/stripe"
	"github.com/duesday/duesday/internal/stripe/sell"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
	"github.com/duesday/duesday/internal/view"
)

type pollFlags struct {
	once, all, sweep bool
	every            time.Duration
	to               string // URL of a server on another machine; "" for the local store
}

func (p *program) pollCommand() *cobra.Command {
	f := new(pollFlags)
	c := session.Leaf("poll", func(ctx context.Context, _ []string) error {
		if !f.once && (f.all || f.sweep) {
			return screen.Usagef("--all and --sweep are for a single round, so they need --once")
		}
		if f.to != "" && f.sweep {
			return screen.Usagef("--to and --sweep cannot be combined, because the server compares the objects itself")
		}
		if err := CheckPollEvery(f.every); err != nil {
			return err
		}
		if f.to != "" {
			return p.pollTo(ctx, f)
		}
		return p.withTracking(ctx, trackingNeed{stripe: true}, func(t Followed) error {
			return p.pollBy(ctx, f, t.Service, t.Processor, secret.Redact(p.Config.Store))
		})
	})
	c.Flags().BoolVar(&f.once, "once", false, "do a single round and print what it found")
	c.Flags().BoolVar(&f.all, "all", false, "with --once: poll every account, even those that are not due yet")
	c.Flags().BoolVar(&f.sweep, "sweep", false, "with --once: also compare stored objects with Stripe's, in case Stripe never created an event")
	c.Flags().DurationVar(&f.every, "poll-every", PollEvery, "`TIME` between rounds")
	c.Flags().StringVar(&f.to, "to", "", "`URL` of a duesday serve on another machine, instead of the store: https, or http on this machine")
	return c
}

// A pollView is one polling round. It includes the sweep if there was one.
type pollView struct {
	poller.Report
	Sweep        *poller.SweepReport // nil if there was no sweep
	Disconnected []string            // Stripe accounts that are skipped
}

func (v *pollView) view() view.Object {
	failures := func(all []poller.Failure) []view.Object {
		return view.List(all, func(f poller.Failure) view.Object {
			return view.Object{"stripe_account", f.StripeAccount, "error", f.Error}
		})
	}
	o := view.Object{"accounts", v.Accounts, "skipped", v.Skipped, "listed", v.Listed, "missing", v.Missing, "sent", v.Sent,
		"failed", v.Failed, "failures", failures(v.Failures), "lost", view.List(v.Lost, func(g poller.Gap) view.Object {
			return view.Object{"stripe_account", g.StripeAccount, "from", g.From, "to", g.To, "changed", g.Changed}
		}), "verified_through?", v.Through, "disconnected?", v.Disconnected}
	if s := v.Sweep; s != nil {
		o = append(o, "sweep", view.Object{"accounts", s.Accounts, "skipped", s.Skipped, "objects", s.Objects, "changed", s.Changed,
			"untold", s.Untold, "failed", s.Failed, "failures", failures(s.Failures)})
	}
	return o
}

// pollTo polls Stripe for a server on another machine.
func (p *program) pollTo(ctx context.Context, f *pollFlags) (err error) {
	at, err := url.Parse(f.to)
	if err != nil || at.Host == "" || at.User != nil || at.RawQuery+at.Fragment != "" || at.Scheme != "https" &&
		(at.Scheme != "http" || at.Hostname() != "localhost" && !net.ParseIP(at.Hostname()).IsLoopback()) {
		return screen.Usagef("--to must be an address such as https://pay.example, or http on this machine (got %s)", secret.Redact(f.to))
	}
	t, err := config.NewTracking(p.Config, p.Setting)
	if err != nil {
		return screen.Invalid(err)
	}
	if err := t.Read(); err != nil {
		return screen.Invalid(err)
	}
	if t.APIKey.IsZero() || t.Poll.IsZero() {
		return screen.Usagef("--to needs an API key with scope read in %s, and the server's poll secret in %s, or either of them with "+
			"_FILE", config.EnvAPIKey, config.EnvPollSecret)
	}
	stripe, err := session.NewStripe(t.Processor, &t.Stripe, p.Now, p.Logger())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stripe.Close()) }()
	remote := server.NewRemote(f.to, t.APIKey.Text, t.Poll.Text, p.Now)
	own, _, err := stripe.API().Own(ctx)
	if err != nil {
		return session.ExplainStripe(err, t.Stripe.APIBase)
	}
	for a, err := range remote.ConnectedAccounts(ctx) {
		if err != nil {
			return err
		}
		if a.Own && a.StripeAccount != own {
			return fmt.Errorf("the server at %s follows %s, but the Stripe key belongs to %s; use a key of the server's account",
				at.Host, a.StripeAccount, own)
		}
	}
	return p.pollBy(ctx, f, remote, stripe, at.Host)
}

// pollBy polls Stripe for the ledger. name identifies the ledger in messages.
func (p *program) pollBy(ctx context.Context, f *pollFlags, ledger poller.Ledger, at *stripe.Processor,
	name string) error {
	finder := poller.New(poller.Options{Ledger: ledger, Lister: sell.New(at.API()), Now: p.Now, Log: p.Logger(),
		Interval: f.every, NoSweeps: f.to != ""})
	if !f.once {
		p.Say("Every %s, this command looks for events that %s is missing; --log-level info prints what it finds", f.every, name)
		if err := p.Out.Flush(); err != nil {
			return err
		}
		return finder.Run(ctx)
	}
	v, err := pollOnce(ctx, ledger, finder, f)
	if err != nil {
		return err
	}
	p.sayPoll(v)
	return p.JSON(v.view())
}

func pollOnce(ctx context.Context, t poller.Ledger, finder *poller.Poller,
	f *pollFlags) (v *pollView, err error) {
	v = new(pollView)
	if v.Report, err = finder.Round(ctx, f.all); err != nil {
		return nil, err
	}
	if f.sweep {
		v.Sweep = new(poller.SweepReport)
		if *v.Sweep, err = finder.Sweep(ctx, true); err != nil {
			return nil, err
		}
	}
	for a, err := range t.ConnectedAccounts(ctx) {
		if err != nil {
			return nil, err
		}
		if a.Status == tracking.Disconnected {
			v.Disconnected = append(v.Disconnected, a.StripeAccount)
		}
	}
	return v, nil
}

func (p *program) sayPoll(v *pollView) {
	if v.Failed+len(v.Lost) > 0 || v.Sweep != nil && v.Sweep.Failed > 0 {
		p.Code = screen.ExitPerson
	}
	if p.AsJSON { // the JSON report includes the warnings below
		return
	}
	p.Say("%s polled, %d skipped: %s, %d missing, %d of them sent", screen.Plural(v.Accounts, "Stripe account"), v.Skipped,
		screen.Plural(v.Listed, "event"), v.Missing, v.Sent)
	if !v.Through.IsZero() {
		p.Say("all events before %s are stored", view.Stamp(v.Through))
	}
	if len(v.Disconnected) > 0 {
		p.Say("skipped, because no longer connected: %s", strings.Join(v.Disconnected, ", "))
	}
	failures := v.Failures
	if s := v.Sweep; s != nil {
		p.Say("%s compared in %s: %d had changed, %d of them without an event", screen.Plural(s.Objects, "object"),
			screen.Plural(s.Accounts, "Stripe account"), s.Changed, s.Untold)
		failures = append(failures, s.Failures...)
	}
	for _, l := range v.Lost {
		p.Warn("events of %s from %s to %s are lost, because Stripe no longer lists them; run: %s", l.StripeAccount, view.Stamp(l.From),
			view.Stamp(l.To), p.Hint("poll --once --all --sweep"))
	}
	screen.Section(p.Screen, "\nNot reached:", []string{"  STRIPE ACCOUNT", "REASON"}, failures,
		func(x poller.Failure) []any { return []any{"  " + x.StripeAccount, secret.Clean(x.Error)} })
}

// These are the limits of --poll-every. Stripe lists an event for 30 days.
const (
	PollEvery      = 10 * time.Minute
	leastPollEvery = time.Second
	mostPollEvery  = 24 * time.Hour
)

// CheckPollEvery returns a UsageError if --poll-every is outside its limits.
func CheckPollEvery(every time.Duration) error {
	if every < leastPollEvery || every > mostPollEvery {
		return screen.Usagef("--poll-every must be %s to %s (got %s)", leastPollEvery, mostPollEvery, every)
	}
	return nil
}
