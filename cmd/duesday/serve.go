package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
)

const (
	serveAddress = "127.0.0.1:8080"
	hookPath     = "/hooks/stripe"         // of events of our own account
	connectPath  = "/hooks/stripe/connect" // of events of connected accounts

	serveGCPercent = 400 // a fifth of the CPU of a webhook less than at 150
)

// The bounds of --poll-every: Stripe lists an event for 30 days.
const (
	pollEvery      = 10 * time.Minute
	leastPollEvery = time.Second
	mostPollEvery  = 24 * time.Hour
)

// serveFlags are those of duesday serve.
type serveFlags struct {
	listen              string
	behindProxy         bool
	fulfil, unsubscribe string
	endedBy             []string
	every               time.Duration
	noPoll              bool
}

func (p *program) serveCommand() *cobra.Command {
	var o serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Follow what Stripe runs: take its webhooks, sell, and have purchases fulfilled",
		Long: `Follow what Stripe runs: take its webhooks, sell, and have purchases fulfilled. It makes the
store when there is none, has it to itself, and runs until it is interrupted; then it
finishes what it has begun.

  ` + hookPath + `          webhooks for events of our own account
  ` + connectPath + `  webhooks for events of connected accounts
  /v1                    purchases and payments, for programs
  /internal              events and accounts, for other commands with --server
  /healthz, /readyz      whether it runs, and whether it can work

Secrets are in the environment, or in files that nobody else can read, and never on the
command line. Of an endpoint there may be several, separated by commas, spaces or lines:

  ` + config.EnvStripeKey + ` or _FILE              the API key at Stripe
  ` + config.EnvWebhookSecrets + ` or _FILE  of ` + hookPath + `
  ` + config.EnvConnectSecrets + ` or _FILE  of ` + connectPath + `
  ` + config.EnvAPIKey + ` or _FILE                 for /v1 and /internal

A command of yours for --on-fulfil or --on-unsubscribe is run by sh. The job is its standard
input, as a line of JSON; DUESDAY_ACTION, DUESDAY_PURCHASE, DUESDAY_KEY (the order's, by whoever
made the purchase), DUESDAY_ACCOUNT, DUESDAY_STRIPE_ACCOUNT and DUESDAY_JOB_ID are in its
environment, and of ours PATH and HOME alone. It may be run before purchase create has
answered, and more than once for one job, which DUESDAY_JOB_ID tells. Exit 0 is done, 100 can
never be done, and everything else is tried again, as is what takes longer than 30 seconds.
What it leaves running is not waited for. What waits or was given up is listed by duesday job.

Requests to Stripe are held to 20 a second on each endpoint, sales and the search for missing
events together: --processor 'stripe:?rate=NUMBER' says otherwise.

It speaks plain HTTP: a proxy in front of it speaks TLS.`,
		Args: want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("poll-every") && o.noPoll {
				return usagef("--poll-every and --no-poll: give one of them")
			}
			return p.serve(cmd.Context(), &o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", serveAddress, "`ADDR` to be reached at, HOST:PORT; port 0 takes a free one")
	f.BoolVar(&o.behindProxy, "behind-proxy", false, "listen beyond this machine: what comes in goes through a proxy that speaks TLS")
	f.StringVar(&o.fulfil, "on-fulfil", "", "`COMMAND` that fulfils a purchase (default: a line in the log, and it is fulfilled)")
	f.StringVar(&o.unsubscribe, "on-unsubscribe", "", "`COMMAND` for when a fulfilled subscription has ended (default: a line in the log)")
	f.StringSliceVar(&o.endedBy, "ended-by", nil, "`STATUSES` of a subscription at Stripe that end it for the buyer: of unpaid, paused, past_due")
	f.DurationVar(&o.every, "poll-every", pollEvery, "`TIME` from one look for missing events to the next")
	f.BoolVar(&o.noPoll, "no-poll", false, "do not look for missing events: duesday poll does")
	return c
}

// check refuses what cannot be meant, before anything is opened.
func (o *serveFlags) check() error {
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return usagef("--listen %q: want HOST:PORT, such as %s", o.listen, serveAddress)
	}
	if ip := net.ParseIP(host); host != "localhost" && !ip.IsLoopback() && !o.behindProxy {
		return usagef("--listen %s is for other machines to reach, and this is plain HTTP: give --behind-proxy if all that comes in goes through a proxy that speaks TLS, or want %s", o.listen, serveAddress)
	}
	for i, status := range o.endedBy {
		if !slices.Contains([]string{"unpaid", "paused", "past_due"}, status) {
			return usagef("--ended-by %q: want some of unpaid, paused, past_due", status)
		}
		if slices.Contains(o.endedBy[:i], status) {
			return usagef("--ended-by: %s is there twice", status)
		}
	}
	if o.every < leastPollEvery || o.every > mostPollEvery {
		return usagef("--poll-every %s: want %s to %s", o.every, leastPollEvery, mostPollEvery)
	}
	return nil
}

func (p *program) serve(ctx context.Context, o *serveFlags) error {
	if err := o.check(); err != nil {
		return err
	}
	t, err := config.NewTracking(p.cfg, "", p.env)
	if err != nil {
		return &usageError{err}
	}
	if err := t.Stripe.CheckKey(); err != nil {
		return &usageError{err}
	}
	if err := readHookSecrets(&t); err != nil {
		return err
	}
	if err := readAPIKey(&t); err != nil {
		return err
	}
	if p.env("GOGC") == "" { // the heap is small beside the block cache, which the collector does not see
		defer debug.SetGCPercent(debug.SetGCPercent(serveGCPercent))
	}
	// Bound before the store is made: an address that is taken leaves nothing behind.
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.listen)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w; does another duesday serve run there", err)
		}
		return fmt.Errorf("--listen %s: %w", o.listen, err)
	}
	defer func() { _ = l.Close() }() // the server has closed it, unless it came to none
	return p.with(ctx, need{create: true, processor: p.cfg.UsesStripe()}, func(s *session) error {
		options := tracking.Options{EndedBy: o.endedBy, Automations: p.automations(o.fulfil, o.unsubscribe)}
		return p.track(ctx, s, &t, true, options, func(f followed) error {
			w := &waiter{p: p, s: s, t: &t, o: o, followed: f, listener: l}
			return w.run(ctx)
		})
	})
}

// readHookSecrets reads the files of the webhook endpoints' secrets, where there are some.
func readHookSecrets(t *config.Tracking) error {
	for name, of := range map[string]*config.Secrets{config.EnvWebhookSecretsFile: &t.Webhook, config.EnvConnectSecretsFile: &t.Connect} {
		if of.File == "" {
			continue
		}
		text, err := secretLines(of.File)
		if err != nil {
			return usagef("%s: %w", name, err)
		}
		if of.List, err = config.ParseSecrets(name, text); err != nil {
			return &usageError{err}
		}
		of.File = ""
	}
	return nil
}

// hooksOf are the webhook endpoints: those that there are secrets for. poll is that of the
// poller, which is good at both.
func hooksOf(t *config.Tracking, poll secret.Text) []hookOf {
	var hooks []hookOf
	for _, h := range []hookOf{{path: hookPath, secrets: t.Webhook.List}, {path: connectPath, connect: true, secrets: t.Connect.List}} {
		h.public = len(h.secrets) > 0
		if !poll.IsZero() {
			h.secrets = append(slices.Clone(h.secrets), poll)
		}
		if len(h.secrets) > 0 {
			hooks = append(hooks, h)
		}
	}
	return hooks
}

// A hookOf is a webhook endpoint.
type hookOf struct {
	path    string
	connect bool
	secrets []secret.Text
	public  bool // Stripe has a secret of it
}

// A serveView is what a program has to know to use the server: one line of JSON.
type serveView struct {
	Address       string   `json:"address"`
	Base          string   `json:"base"` // for --server
	Store         string   `json:"store"`
	StripeAccount string   `json:"stripe_account"` // of the key
	Mode          string   `json:"mode"`           // test or live
	Webhooks      []string `json:"webhooks"`       // addresses that Stripe may send events to
	API           bool     `json:"api"`            // /v1 and /internal are open to who has the key
	PollEvery     string   `json:"poll_every,omitempty"`
}

// announce prints the line that whoever started this waits for.
func (w *waiter) announce(hooks []hookOf, base string) error {
	p := w.p
	v := serveView{Address: w.listener.Addr().String(), Base: base, Store: secret.Redact(p.cfg.Store), StripeAccount: w.own, Mode: "test", Webhooks: []string{},
		API: !w.t.APIKey.IsZero()}
	if w.live {
		v.Mode = "live"
	}
	if !w.o.noPoll {
		v.PollEvery = w.o.every.String()
	}
	for _, h := range hooks {
		if h.public {
			v.Webhooks = append(v.Webhooks, base+h.path)
		}
	}
	if len(v.Webhooks) == 0 {
		p.warn("webhooks of Stripe's are refused: set %s or %s", config.EnvWebhookSecrets, config.EnvConnectSecrets)
	}
	if !v.API {
		p.warn("/v1 and /internal are closed: set %s", config.EnvAPIKey)
	}
	what := "nothing that Stripe sends"
	if len(v.Webhooks) > 0 {
		what = "webhooks at " + strings.Join(v.Webhooks, " and ")
	}
	if len(v.Webhooks) == 1 {
		what += w.closedHook(v.Webhooks[0])
	}
	p.say("%s at Stripe (%s mode) is followed in %s: %s", v.StripeAccount, v.Mode, v.Store, what)
	if w.o.fulfil == "" {
		p.warn("there is no --on-fulfil: a purchase is fulfilled by a line in the log, for good")
	}
	if w.o.unsubscribe == "" {
		p.say("there is no --on-unsubscribe: when a subscription ends, that is a line in the log")
	}
	return p.sayServed(v)
}

// closedHook names the endpoint that is not open, where the other one is.
func (w *waiter) closedHook(open string) string {
	if strings.HasSuffix(open, connectPath) {
		return "; " + hookPath + ", for events of " + w.own + " itself, is closed: set " + config.EnvWebhookSecrets
	}
	return "; " + connectPath + ", for events of connected accounts, is closed: set " + config.EnvConnectSecrets
}
