package main

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
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/server"
	"github.com/duesday/duesday/stripefake"
)

const (
	stripeFakeAddress = "127.0.0.1:12111"
	stripeFakeKey     = "sk_test_duesday"

	// Of webhooks to --webhook-url and --connect-webhook-url. The usual secrets are public, like the keys.
	envHookSecret      = "DUESDAY_STRIPE_FAKE_WEBHOOK_SECRET"
	usualHookSecret    = "whsec_duesday"
	envConnectSecret   = "DUESDAY_STRIPE_FAKE_CONNECT_SECRET"
	usualConnectSecret = "whsec_duesday_connect"
)

type stripeFakeFlags struct {
	listen   string
	version  string
	accounts []string // the connected ones
	events   string
	own      hookFlags
	connect  hookFlags
	faults   stripefake.Faults
}

// hookFlags are those of the webhook endpoints of one sort.
type hookFlags struct {
	urls       []string
	secretFile string
}

func (p *program) stripeFakeCommand() *cobra.Command {
	var o stripeFakeFlags
	c := leaf("stripe-fake", func(ctx context.Context, _ []string) error { return p.serveStripeFake(ctx, o) })
	f := c.Flags()
	f.StringVar(&o.listen, "listen", stripeFakeAddress, "`ADDR` to be reached at, HOST:PORT; port 0 takes a free one")
	f.StringVar(&o.version, "api-version", stripefake.NewestVersion,
		"`VERSION` of the API for requests and webhooks that name none")
	f.DurationVar(&o.faults.Latency, "latency", 0, "`TIME` that every request takes, such as 200ms")
	f.IntVar(&o.faults.Rate, "rate", 0,
		"`NUMBER` of requests a second on one endpoint above which it answers 429; 0 for no limit")
	f.Float64Var(&o.faults.LostRequests, "lost-requests", 0,
		"`RATE` of requests that are not carried out, while the connection breaks")
	f.Float64Var(&o.faults.LostReplies, "lost-replies", 0,
		"`RATE` of requests that are carried out, while the connection breaks")
	f.Float64Var(&o.faults.Errors, "errors", 0, "`RATE` of requests answered 500 and not carried out")
	f.Float64Var(&o.faults.LateErrors, "late-errors", 0, "`RATE` of requests answered 500 and carried out all the same")
	f.Float64Var(&o.faults.Busy, "busy", 0, "`RATE` of requests answered 429 or 409 and not carried out")
	f.Uint64Var(&o.faults.Seed, "seed", 0, "`NUMBER` that the dice start from")
	f.StringArrayVar(&o.accounts, "connect", nil,
		"`ACCOUNT`, acct_…, that is connected from the start; may be given several times")
	f.StringArrayVar(&o.own.urls, "webhook-url", nil,
		"`URL` that all events are sent to, but those of connected accounts; may be given several times")
	f.StringVar(&o.events, "events", string(stripefake.SnapshotEvents),
		"`FORM` of events: snapshot, thin (API v2 lists and sends them, v1 has none), or both for each change")
	f.StringVar(&o.own.secretFile, "webhook-secret-file", "",
		"`FILE` with what webhooks to --webhook-url are signed with (default $"+envHookSecret+", or "+usualHookSecret+")")
	f.StringArrayVar(&o.connect.urls, "connect-webhook-url", nil,
		"`URL` that all events of connected accounts are sent to; may be given several times")
	f.StringVar(&o.connect.secretFile, "connect-webhook-secret-file", "",
		"`FILE` with what webhooks to --connect-webhook-url are signed with (default $"+envConnectSecret+", or "+
			usualConnectSecret+")")
	f.Float64Var(&o.faults.EventLosses, "event-losses", 0,
		"`RATE` of changes of which there is no event at all, neither sent nor listed")
	f.Float64Var(&o.faults.WebhookCopies, "webhook-copies", 0, "`RATE` of webhooks that are sent twice")
	f.Float64Var(&o.faults.WebhookDrops, "webhook-drops", 0, "`RATE` of webhooks that are never sent")
	f.BoolVar(&o.faults.WebhookShuffle, "webhook-shuffle", false, "send webhooks in any order")
	f.DurationVar(&o.faults.WebhookDelay, "webhook-delay", 0,
		"`TIME` that a webhook waits at most before it is sent, by chance")
	return c
}

// useOfStripeFake is a command line for charging through the fake.
func useOfStripeFake(base string) string {
	return config.EnvStripeAPIBase + "=" + base + " " + config.EnvStripeKey + "=" + stripeFakeKey +
		" duesday run payments --processor stripe"
}

func (p *program) serveStripeFake(ctx context.Context, o stripeFakeFlags) (err error) {
	if _, err := listenHost("--listen", o.listen, stripeFakeAddress); err != nil {
		return err
	}
	if err := o.faults.Check(); err != nil {
		return usagef("--%s", strings.ReplaceAll(err.Error(), "_", "-"))
	}
	events := stripefake.EventForm(o.events)
	if err := events.Check(); err != nil {
		return usagef("--events %v", err)
	}
	hooks, err := p.hooks(o)
	if err != nil {
		return err
	}
	for _, id := range o.accounts {
		if err := stripefake.CheckAccount(id); err != nil || id == stripefake.DefaultAccount {
			return usagef("--connect %q: want acct_ and letters or digits, and not %s, whose keys it has", id,
				stripefake.DefaultAccount)
		}
	}
	log := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: p.cfg.LogLevel}))
	fake := stripefake.New(stripefake.Options{Now: p.now, Real: time.Now, Connected: o.accounts, Webhooks: hooks,
		Events: events, Faults: o.faults, Log: log})
	defer func() { err = errors.Join(err, fake.Close()) }()
	if err := fake.SetVersion(stripefake.DefaultAccount, o.version); err != nil {
		return usagef("--api-version: %v", err)
	}
	l, err := p.listenOpen(ctx, o.listen, "use and control this fake", func(at net.Addr, base string) error {
		p.say("A fake of Stripe is served at %s: use it with %s", at, useOfStripeFake(base))
		return p.sayServed(object{"address", at.String(), "base", base, // for DUESDAY_STRIPE_API_BASE
			"key", stripeFakeKey, // for DUESDAY_STRIPE_KEY: a fixed value, and no secret
			"control", base + "/_fake/", // of clock, faults, ledger and so on
			"env", map[string]string{config.EnvStripeAPIBase: base, config.EnvStripeKey: stripeFakeKey}})
	})
	if err != nil {
		return err
	}
	return listen.Serve(ctx, l, listen.NewServer(fake, 2*time.Minute), log) // requests may wait for each other
}

func (p *program) hooks(o stripeFakeFlags) (list []stripefake.Webhook, err error) {
	for _, sort := range [...]struct {
		name, env, usual string
		hookFlags
		connect bool
	}{{"webhook", envHookSecret, usualHookSecret, o.own, false},
		{"connect-webhook", envConnectSecret, usualConnectSecret, o.connect, true}} {
		key := cmp.Or(p.env(sort.env), sort.usual)
		if len(sort.urls) == 0 && sort.secretFile != "" {
			return nil, usagef("--%s-secret-file is for --%s-url, and there is none", sort.name, sort.name)
		}
		if sort.secretFile != "" {
			text, err := secret.FromFile(sort.secretFile)
			if err != nil {
				return nil, fmt.Errorf("--%s-secret-file: %w", sort.name, err)
			}
			key = cmp.Or(text.Reveal(), sort.usual)
		}
		for _, url := range sort.urls {
			if err := stripefake.CheckURL(url); err != nil {
				return nil, usagef("--%s-url: %v", sort.name, err)
			}
			list = append(list, stripefake.Webhook{URL: url, Secret: key, Connect: sort.connect})
		}
	}
	return list, nil
}

func listenHost(flag, address, usual string) (string, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", usagef("%s %q: want HOST:PORT, such as %s", flag, address, usual)
	}
	return host, nil
}

func listenAt(ctx context.Context, flag, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, address, err)
	}
	return l, nil
}

// listenOpen listens for a server without a password, and tells the address, and the URL at which
// this machine reaches it. It warns if other machines reach it too, with their power.
func (p *program) listenOpen(ctx context.Context, address, power string,
	tell func(at net.Addr, base string) error) (net.Listener, error) {
	l, err := listenAt(ctx, "--listen", address)
	if err != nil {
		return nil, err
	}
	at := l.Addr()
	if host, _, err := net.SplitHostPort(at.String()); err == nil && !net.ParseIP(host).IsLoopback() {
		p.warn("whoever reaches %s can %s: it asks for no password", at, power)
	}
	base, err := server.LocalBase(at)
	if err == nil {
		err = tell(at, base)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// sayServed prints the view as a line of JSON, by which a program finds the server, if JSON is
// wanted, and flushes the output: the starter of the server waits for it.
func (p *program) sayServed(view any) error {
	if p.cfg.JSON {
		if err := writeValue(p.stdout, view); err != nil {
			return err
		}
		p.stdout.WriteString("\n")
	}
	return p.stdout.Flush()
}
