package rehearsal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/listen"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/server"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/stripefake"
)

const (
	StripeFakeAddress = "127.0.0.1:12111"
	StripeFakeName    = "stripe-fake"
	StripeFakeKey     = "sk_test_duesday"

	// EnvHookSecret and EnvConnectSecret set the secrets for webhooks to --webhook-url and
	// --connect-webhook-url. The default secrets are public, like the keys.
	EnvHookSecret      = "DUESDAY_STRIPE_FAKE_WEBHOOK_SECRET"
	usualHookSecret    = "whsec_duesday"
	EnvConnectSecret   = "DUESDAY_STRIPE_FAKE_CONNECT_SECRET"
	usualConnectSecret = "whsec_duesday_connect"
)

type stripeFakeFlags struct {
	listen   string
	version  string
	accounts []string // connected accounts
	events   string
	clock    string
	own      hookFlags
	connect  hookFlags
	faults   stripefake.Faults
}

// hookFlags holds the flags for one kind of webhook endpoint.
type hookFlags struct {
	urls       []string
	secretFile string
}

func (p *program) stripeFakeCommand() *cobra.Command {
	var o stripeFakeFlags
	c := session.Leaf(StripeFakeName, func(ctx context.Context, _ []string) error { return p.serveStripeFake(ctx, o) })
	f := c.Flags()
	f.StringVar(&o.listen, "listen", StripeFakeAddress, "`ADDR` to listen on, HOST:PORT; port 0 picks a free port")
	f.StringVar(&o.version, "api-version", stripefake.NewestVersion, "API `VERSION` for requests and webhooks that do not name one")
	f.StringVar(&o.clock, "clock", "", "`START[,SPEED]` of the fake's clock, as for serve: 2026-01-01,1h/s (default: $"+config.EnvClock+", or the machine's)")
	f.DurationVar(&o.faults.Latency, "latency", 0, "`TIME` that every request takes, such as 200ms")
	f.IntVar(&o.faults.Rate, "rate", 0, "`NUMBER` of requests per second to one endpoint above which the fake answers 429; 0 for no limit")
	f.Float64Var(&o.faults.LostRequests, "lost-requests", 0, "`RATE` of requests that are not carried out, because the connection breaks")
	f.Float64Var(&o.faults.LostReplies, "lost-replies", 0, "`RATE` of requests that are carried out, but whose reply is lost because the connection breaks")
	f.Float64Var(&o.faults.Errors, "errors", 0, "`RATE` of requests that get status 500 and are not carried out")
	f.Float64Var(&o.faults.LateErrors, "late-errors", 0, "`RATE` of requests that get status 500 but are carried out")
	f.Float64Var(&o.faults.Busy, "busy", 0, "`RATE` of requests that get status 429 or 409 and are not carried out")
	f.Uint64Var(&o.faults.Seed, "seed", 0, "`NUMBER` that seeds the random faults")
	f.StringArrayVar(&o.accounts, "connect", nil, "`ACCOUNT`, acct_…, that is connected from the start (repeatable)")
	f.StringArrayVar(&o.own.urls, "webhook-url", nil, "`URL` that receives all events except those of connected accounts (repeatable)")
	f.StringVar(&o.events, "events", string(stripefake.SnapshotEvents),
		"`FORM` of events: snapshot, thin (API v2 lists and sends them, v1 has none), or both for each change")
	f.StringVar(&o.own.secretFile, "webhook-secret-file", "",
		"`FILE` that holds the signing secret for --webhook-url (default: $"+EnvHookSecret+", or "+usualHookSecret+")")
	f.StringArrayVar(&o.connect.urls, "connect-webhook-url", nil, "`URL` that receives all events of connected accounts (repeatable)")
	f.StringVar(&o.connect.secretFile, "connect-webhook-secret-file", "",
		"`FILE` that holds the signing secret for --connect-webhook-url (default: $"+EnvConnectSecret+", or "+
			usualConnectSecret+")")
	f.Float64Var(&o.faults.EventLosses, "event-losses", 0, "`RATE` of changes that cause no event at all, neither sent nor listed")
	f.Float64Var(&o.faults.WebhookCopies, "webhook-copies", 0, "`RATE` of webhooks that are sent twice")
	f.Float64Var(&o.faults.WebhookDrops, "webhook-drops", 0, "`RATE` of webhooks that are never sent")
	f.BoolVar(&o.faults.WebhookShuffle, "webhook-shuffle", false, "send webhooks in random order")
	f.DurationVar(&o.faults.WebhookDelay, "webhook-delay", 0, "maximum `TIME` that a webhook waits at random before it is sent")
	return c
}

// UseOfStripeFake returns the environment variables with which a command charges through the fake.
func UseOfStripeFake(base string) string {
	return config.EnvStripeAPIBase + "=" + base + " " + config.EnvStripeKey + "=" + StripeFakeKey +
		" duesday run payments --processor stripe"
}

func (p *program) serveStripeFake(ctx context.Context, o stripeFakeFlags) (err error) {
	if _, err := session.ListenHost("--listen", o.listen, StripeFakeAddress); err != nil {
		return err
	}
	if err := o.faults.Check(); err != nil {
		return screen.Usagef("--%s", strings.ReplaceAll(err.Error(), "_", "-"))
	}
	events := stripefake.EventForm(o.events)
	if err := events.Check(); err != nil {
		return screen.Usagef("--events %v", err)
	}
	hooks, err := p.hooks(o)
	if err != nil {
		return err
	}
	for _, id := range o.accounts {
		if err := stripefake.CheckAccount(id); err != nil || id == stripefake.DefaultAccount {
			return screen.Usagef("--connect must be acct_ and letters or digits, except %s, which owns the fake's keys (got %q)",
				stripefake.DefaultAccount, id)
		}
	}
	log := slog.New(slog.NewTextHandler(p.Err, &slog.HandlerOptions{Level: p.Config.LogLevel}))
	if o.clock == session.ProcessorClock {
		return screen.Usagef("--clock must be START[,SPEED], because --clock processor is for commands that use the fake")
	}
	if err := p.SetClock(ctx, "--clock", o.clock); err != nil {
		return err
	}
	fake := stripefake.New(stripefake.Options{Now: p.Machine(), Real: time.Now, Connected: o.accounts, Webhooks: hooks,
		Events: events, Faults: o.faults, Log: log})
	defer func() { err = errors.Join(err, fake.Close()) }()
	if err := fake.SetVersion(stripefake.DefaultAccount, o.version); err != nil {
		return screen.Usagef("--api-version: %v", err)
	}
	if c := p.Clock; c != nil {
		fake.SetNow(c.Now())
		if err := fake.SetSpeed(c.Speed()); err != nil {
			return screen.Usagef("--clock: %v", err)
		}
	}
	l, err := session.ListenAt(ctx, "--listen", o.listen)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }() // Serve has already closed it, unless it did not start
	at := l.Addr().String()
	if host, _, err := net.SplitHostPort(at); err == nil && !net.ParseIP(host).IsLoopback() {
		p.Warn("anyone who can reach %s can use and control this fake, because it has no password", at)
	}
	base, err := server.LocalBase(l.Addr())
	if err != nil {
		return err
	}
	p.Say("A fake Stripe is served at %s; use it with %s", at, UseOfStripeFake(base))
	if err := p.Served(view.Object{"address", at, "base", base, // for DUESDAY_STRIPE_API_BASE
		"key", StripeFakeKey, // for DUESDAY_STRIPE_KEY; a fixed value that is not a secret
		"control", base + "/_fake/", // controls the clock, faults, ledger and so on
		"env", map[string]string{config.EnvStripeAPIBase: base, config.EnvStripeKey: StripeFakeKey}}); err != nil {
		return err
	}
	go renew(ctx, fake)
	return listen.Serve(ctx, l, listen.NewServer(fake, 2*time.Minute), log) // requests may wait for each other
}

// renew runs what is due by the fake's clock, such as renewals and their webhooks, even if no
// request arrives.
func renew(ctx context.Context, fake *stripefake.Fake) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			fake.Advance(0)
		case <-ctx.Done():
			return
		}
	}
}

func (p *program) hooks(o stripeFakeFlags) (list []stripefake.Webhook, err error) {
	for _, sort := range [...]struct {
		name, env, usual string
		hookFlags
		connect bool
	}{{"webhook", EnvHookSecret, usualHookSecret, o.own, false},
		{"connect-webhook", EnvConnectSecret, usualConnectSecret, o.connect, true}} {
		key := cmp.Or(p.Env(sort.env), sort.usual)
		if len(sort.urls) == 0 && sort.secretFile != "" {
			return nil, screen.Usagef("--%s-secret-file needs --%s-url", sort.name, sort.name)
		}
		if sort.secretFile != "" {
			text, err := secret.FromFile(p.Path(sort.secretFile))
			if err != nil {
				return nil, fmt.Errorf("--%s-secret-file: %w", sort.name, err)
			}
			key = cmp.Or(text.Reveal(), sort.usual)
		}
		for _, url := range sort.urls {
			if err := stripefake.CheckURL(url); err != nil {
				return nil, screen.Usagef("--%s-url %v", sort.name, err)
			}
			list = append(list, stripefake.Webhook{URL: url, Secret: key, Connect: sort.connect})
		}
	}
	return list, nil
}
