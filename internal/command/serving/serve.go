// Package serving contains the commands for the running server: serve, status, outbox, mail, endpoint and
// delivery, and the switch that turns charging on and off.
//
// It does not know HTTP, and it does not decide when a job is due, because packages server and day
// do.
package serving

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/billingapi"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/command/runs"
	"github.com/duesday/duesday/internal/command/sales"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/customer"
	"github.com/duesday/duesday/internal/day"
	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/pages"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/server"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/status"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/stripe/sell"
	"github.com/duesday/duesday/internal/systemd"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

// A program is one invocation. Its methods are the commands of this family.
type program struct{ *session.Program }

// Commands returns this family's commands.
func Commands(of *session.Program) []*cobra.Command {
	p := &program{of}
	return []*cobra.Command{
		p.serveCommand(), p.statusCommand(), p.chargingCommand(), p.outboxCommand(), p.mailCommand(),
		p.endpointCommand(), session.Group("delivery", p.deliveryList(), p.deliveryReplay()), p.openCommand(),
	}
}

const (
	serveHooks     = "127.0.0.1:8080"
	serveAPI       = "127.0.0.1:8081"
	servePages     = "127.0.0.1:8082"
	serveCustomer  = "127.0.0.1:8083" // in hints
	serveGCPercent = 400              // a webhook takes a fifth less CPU time than at 150
)

// These are the intervals at which an idle serve looks at a store whose provider charges per
// request.
const (
	sharedDay    = 2 * time.Minute  // for the daily times and the records of the jobs
	sharedWatch  = 10 * time.Minute // a stored status is fresh for 25 minutes
	sharedQueues = time.Hour        // for queues and tables without an alarm; a drain logs its own errors
)

type serveFlags struct {
	clock, heartbeat    string
	beat                func(context.Context) error // sends the heartbeat; nil for none
	hooks, api          string                      // addresses; "" for none
	customer, pages     string
	pagesURL            string
	signIn              bool // print a link that signs in
	behindProxy         bool
	fulfil, unsubscribe string
	onAlarm             string
	every               time.Duration
	noPoll              bool
	create              bool
	allowPrivate        bool
	keyed               bool // an API key existed at the start
	limits              limitFlags
}

func (p *program) serveCommand() *cobra.Command {
	var o serveFlags
	c := session.Leaf("serve", func(ctx context.Context, _ []string) error {
		err := p.serve(ctx, &o)
		if ctx.Err() != nil && errors.Is(err, context.Canceled) { // stopped during startup
			return nil
		}
		return err
	})
	f := c.Flags()
	f.StringVar(&o.heartbeat, "heartbeat", "",
		"`URL` to request each day after the jobs have completed and the mail has been sent: https, or http on this machine (or $DUESDAY_HEARTBEAT or _FILE)")
	f.StringVar(&o.clock, "clock", "", "use a test clock: `START[,SPEED]`, such as 2026-01-01,1h/s, or processor for the Stripe fake's; not in live mode")
	f.StringVar(&o.hooks, "listen", serveHooks, "`ADDR` for webhooks, HOST:PORT; port 0 picks a free port, and an empty value turns it off")
	f.StringVar(&o.api, "api", serveAPI, "`ADDR` for /v1, /metrics and poll --to, HOST:PORT; an empty value turns it off")
	f.StringVar(&o.customer, "customer", "", "`ADDR` for customers with a link to their receipt or page, HOST:PORT (default: off; see the setting public-url)")
	f.StringVar(&o.pages, "pages", servePages, "`ADDR` for the operators' pages, HOST:PORT; an empty value turns them off")
	f.StringVar(&o.pagesURL, "pages-url", "", "`URL` at which a proxy serves the operators' pages, such as https://pay.example.com")
	f.BoolVar(&o.behindProxy, "behind-proxy", false, "listen on addresses that other machines can reach, behind a proxy that provides TLS")
	f.StringVar(&o.fulfil, "on-fulfil", "", "`COMMAND` that fulfills a purchase (default: log it, and count it as fulfilled)")
	f.StringVar(&o.unsubscribe, "on-unsubscribe", "", "`COMMAND` to run when a fulfilled subscription has ended (default: log it)")
	f.StringVar(&o.onAlarm, "on-alarm", "", "`COMMAND` to run when Duesday reports a problem, and when all checks pass again")
	f.DurationVar(&o.every, "poll-every", sales.PollEvery, "`TIME` between checks for missing events")
	f.BoolVar(&o.create, "create", false, "create the store if it does not exist")
	f.BoolVar(&o.allowPrivate, "allow-private", false, "send messages to endpoints on this host and in private networks, too")
	f.BoolVar(&o.noPoll, "no-poll", false, "do not look for missing events, because duesday poll does")
	o.limits.add(f)
	return session.Checked(c, func([]string) error { return cmp.Or(o.check(f), o.limits.check(f)) })
}

// check rejects invalid flags before serve opens anything.
func (o *serveFlags) check(f *pflag.FlagSet) error {
	if f.Changed("poll-every") && o.noPoll {
		return screen.Usagef("--poll-every and --no-poll cannot be combined")
	}
	if o.heartbeat != "" {
		var err error
		if o.beat, err = day.Heartbeat(o.heartbeat); err != nil {
			return screen.Usagef("--heartbeat: %w", err)
		}
	}
	for _, a := range o.addresses() {
		host, err := session.ListenHost(a.flag, a.address, a.usual)
		if err != nil {
			return err
		}
		if ip := net.ParseIP(host); host != "localhost" && !ip.IsLoopback() && !o.behindProxy {
			return screen.Usagef("%s %s can be reached from other machines over plain HTTP; add --behind-proxy if a proxy in "+
				"front of it provides TLS, or use %s", a.flag, a.address, a.usual)
		}
	}
	if u, err := url.Parse(o.pagesURL); o.pagesURL != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" ||
		strings.TrimSuffix(u.Path, "/") != "" || u.RawQuery+u.Fragment != "" || u.User != nil) {
		return screen.Usagef("--pages-url must be a URL without a path, such as https://pay.example.com (got %q)", o.pagesURL)
	}
	if words := strings.Fields(o.onAlarm); o.onAlarm != "" {
		if _, err := exec.LookPath(strings.Join(words[:min(1, len(words))], "")); err != nil {
			return screen.Usagef("--on-alarm must begin with a program (got %q): %w", o.onAlarm, err)
		}
	}
	return sales.CheckPollEvery(o.every)
}

// An address is a listen address, with its flag and its usual value.
type address struct{ flag, address, usual string }

// addresses returns the addresses that are not turned off.
func (o *serveFlags) addresses() []address {
	return slices.DeleteFunc([]address{{"--listen", o.hooks, serveHooks}, {"--api", o.api, serveAPI},
		{"--pages", o.pages, servePages}, {"--customer", o.customer, serveCustomer}},
		func(a address) bool { return a.address == "" })
}

func (p *program) serve(ctx context.Context, o *serveFlags) error {
	t, err := config.NewTracking(p.Config, p.Setting)
	if err != nil {
		return screen.Invalid(err)
	}
	if t.APIKey.Given() {
		return screen.Usagef("%s and %[1]s%s are only for poll --to; unset them for serve, and create its keys with %s", config.EnvAPIKey,
			config.InFile, p.Hint("key create NAME --scope charge"))
	}
	if o.beat == nil && t.Heartbeat.Given() {
		if err := t.Heartbeat.Read(); err != nil {
			return screen.Invalid(err)
		}
		if o.beat, err = day.Heartbeat(t.Heartbeat.Reveal()); err != nil {
			return screen.Usagef("%s: %w", config.EnvHeartbeat, err)
		}
	}
	p.AsJSON = p.AsJSON || p.LogJSON // every line of both streams is JSON
	follows := o.follows(&p.Config, &t)
	if follows {
		if err := cmp.Or(t.Stripe.CheckKey(), t.Read()); err != nil {
			return screen.Invalid(err)
		}
	}
	machine := p.Machine()
	if err := p.SetClock(ctx, "--clock", o.clock); err != nil {
		return err
	}
	p.Lasting = true
	if p.Env("GOGC") == "" { // the heap is small until the cache is full; then LimitMemory limits it
		defer debug.SetGCPercent(debug.SetGCPercent(serveGCPercent))
	}
	defer p.LimitMemory()()
	// Listen before creating the store, so that an address in use does not leave a store behind.
	bound := map[string]net.Listener{} // by flag
	for _, a := range o.addresses() {
		l, err := session.ListenAt(ctx, a.flag, a.address)
		if errors.Is(err, syscall.EADDRINUSE) && a == (address{"--pages", servePages, servePages}) && !o.signIn { // perhaps another store's serve
			p.Warn("the pages for operators are not served, because %s is in use; choose another address with --pages", a.address)
			continue
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w; if another duesday serve runs there, choose another address, or turn it off with %s=", err, a.flag)
		}
		if err != nil {
			return err
		}
		defer func() { _ = l.Close() }() // the server closes l, unless the server does not start
		bound[a.flag] = l
	}
	ctx = call.Without(ctx) // what serve does by itself is nobody's request
	n := session.Need{Create: o.create, Take: true, Processor: true, Follows: follows}
	return p.With(ctx, n, func(s *session.Session) error { return p.serveStore(ctx, s, o, &t, bound, machine) })
}

// serveStore serves the open store on the listeners in bound. machine is the machine's clock.
func (p *program) serveStore(ctx context.Context, s *session.Session, o *serveFlags, t *config.Tracking,
	bound map[string]net.Listener, machine func() time.Time) error {
	if settings, err := settings.Read(ctx, s.Engine.Records); err != nil || s.Post.Check(settings) != nil {
		return cmp.Or(err, s.Post.Check(settings)) // do not charge customers whom mail cannot reach
	}
	clock := cmp.Or(p.Clock, clock.Machine(machine))
	watch := p.watch(s, clock)
	if o.onAlarm != "" {
		run := &server.Alarm{Words: strings.Fields(o.onAlarm), Env: p.commandEnv(), Dir: p.Dir}
		watch.In.Commands = true
		watch.Command = func(ctx context.Context, told status.Letter) error {
			return run.Run(ctx, told.Subject, told.Text, told.Checks)
		}
	}
	keys := s.Keys(machine)
	defer keys.Wait()
	var err error
	if o.keyed, err = keys.Any(ctx); err != nil {
		return err
	}
	jobs := &dailyJobs{p: p, s: s, in: watch.In, paid: make(chan struct{}, 1)}
	requested := billingapi.NewRuns(jobs.run, func(ctx context.Context) (int, error) { return runs.Reconcile(ctx, p.Program, s) })
	options := server.Options{Hooks: bound["--listen"], API: bound["--api"], Customer: bound["--customer"],
		Customers: customer.New(s.Engine.Records, s.Engine, s.Log), Pages: bound["--pages"], Operators: o.operators(keys, p.Config.AtStripe(), p.Now, s.Log), Connections: o.limits.connections,
		Opened: watch.In.Meters.Opened, Now: machine, Clock: clock, Log: s.Log, Mail: func(ctx context.Context) (outbox.Report, error) { return drainMail(ctx, s) },
		Day: p.day(s, o, clock, jobs), Watch: watch, Requested: requested, Deliveries: s.Messages.NewSender(machine, o.allowPrivate),
		HTTP: httpapi.Options{Options: p.answers(s, o, watch, keys, requested)}}
	wakers(s, &options)
	if !o.follows(&p.Config, t) {
		return p.runServer(ctx, s, o, sales.Followed{}, options)
	}
	following := tracking.Options{Automations: p.automations(o), Told: ofPurchase(s.Messages)}
	return sales.Track(ctx, p.Program, s, t, true, following, func(f sales.Followed) error {
		watch.In.Endpoints = &status.Endpoints{Since: s.Engine.Now(), Polled: !o.noPoll}
		options.HTTP.Signed = func(path string, good bool) { watch.In.Endpoints.Note(path, good, s.Engine.Now()) }
		options.HTTP.Taken = func(h httpapi.Hook, polled bool, v tracking.Verdict) {
			watch.In.Meters.Event(h.Path, polled, v.Created, s.Engine.Now())
			if polled && len(h.Secrets) > 0 && v.Status == tracking.Applied && v.Reason == "" {
				watch.In.Endpoints.Found(h.Path, v.Created, s.Engine.Now())
			}
		}
		client := f.Processor.API()
		s.Stripe.Store(client) // Stripe's clock is a witness
		watch.In.Stripe = func(ctx context.Context) (bool, time.Time) { return askStripe(ctx, client) }
		if !clock.Test() {
			watch.In.Offset = func() (time.Duration, bool) {
				ahead, at := client.ClockAhead()
				return ahead, !at.IsZero()
			}
		}
		stripe := sell.New(client)
		options.Service, options.Lister, options.Events, options.PollSecret = f.Service, stripe, stripe, t.Poll.Text
		options.StripeNow = func() time.Time {
			ahead, _ := client.ClockAhead() // 0 before the first answer
			return p.Now().Add(ahead)
		}
		options.WebhookSecrets, options.ConnectSecrets = t.Webhook.List, t.Connect.List
		if !o.noPoll {
			options.PollEvery = o.every
		}
		if err := f.Service.TakeEndedBy(ctx); err != nil {
			return err
		}
		return p.runServer(ctx, s, o, f, options)
	})
}

// operators returns what makes the operators' pages of the API. stripe is as in pages.Options.
func (o *serveFlags) operators(keys *key.Ring, stripe string, now func() time.Time, log *slog.Logger) func(http.Handler) http.Handler {
	at, _ := url.Parse(o.pagesURL) // check has parsed it
	hosts := slices.DeleteFunc([]string{at.Hostname()}, func(name string) bool { return name == "" })
	return func(api http.Handler) http.Handler {
		return pages.New(pages.Options{API: api, Keys: keys, Hosts: hosts, Stripe: stripe, Secure: at.Scheme == "https", Now: now, Log: log})
	}
}

// wakers sets how the server learns that rows are due.
func wakers(s *session.Session, options *server.Options) {
	if tells, ok := s.Store.(store.Noticer); ok {
		options.Puts = tells.Puts(s.Tables.Outbox.Name)
	}
	if s.Shared {
		options.Due = func(ctx context.Context, q outbox.Queue) (bool, error) {
			if q == outbox.Deliveries {
				return s.Messages.Due(ctx)
			}
			return s.Outbox(nil).On(q).AnyDue(ctx)
		}
	}
}

// answers returns what the server answers besides what is about Stripe.
func (p *program) answers(s *session.Session, o *serveFlags, watch *status.Watch, keys *key.Ring, requested *billingapi.Runs) web.Options {
	look := func(ctx context.Context) []status.Check {
		if last := watch.Last(); last != nil { // two looks of one Installation at the same time get in each other's way
			return last
		}
		return p.installation(s).Look(ctx)
	}
	return web.Options{Ready: func(ctx context.Context) error { return ready(ctx, s) }, Keys: keys, Proxies: o.limits.trusted,
		Routes: billingapi.Routes(billingapi.Options{Engine: s.Engine, Keys: keys, Messages: s.Messages, Mails: s.Mails(), Runs: requested,
			Render: s.Render, Look: look}),
		Store: s.Store, Table: s.Tables.RecurringPayments.Name,
		CursorKey: sha256.Sum256([]byte("cursors\x00" + cmp.Or(s.Engine.Opened.Salt, rand.Text()))),
		Metrics:   status.Handler(status.NewRegistry(watch.Last, watch.In.Meters)), Answered: watch.In.Meters.Request}
}

// ready returns an error that describes why the session cannot work, or nil if it can.
func ready(ctx context.Context, s *session.Session) error {
	if _, err := s.Engine.Meta(ctx); err != nil {
		return fmt.Errorf("%w: %w", web.Lack("the store does not answer"), err)
	}
	if client := s.Stripe.Load(); client != nil && client.KeyRefused() {
		return web.Lack("Stripe refuses the key")
	}
	return nil
}

// follows reports whether serve follows Stripe, because at least one flag or setting for it is
// given.
func (o *serveFlags) follows(c *config.Config, t *config.Tracking) bool {
	return c.UsesStripe() || t.Stripe.Key.Given() || t.Webhook.Given() || t.Connect.Given() ||
		t.Poll.Given() || o.fulfil != "" || o.unsubscribe != ""
}

func (p *program) runServer(ctx context.Context, s *session.Session, o *serveFlags, f sales.Followed, options server.Options) error {
	running, err := server.New(options)
	if err != nil {
		return err
	}
	daily, err := p.announceDay(ctx, s, options.Clock)
	if err != nil {
		return err
	}
	if !o.keyed && o.api != "" {
		p.Warn("/v1 has no key yet; create one with %s", p.Hint("key create NAME --scope charge"))
	}
	if rules, err := settings.Read(ctx, s.Engine.Records); err == nil && o.customer != "" && !rules.Links() {
		p.Warn("mail has no links to receipts; set public-url, seller and seller-address with %s", p.Hint("settings set"))
	}
	view := view.Object{"store", secret.Redact(p.Config.Store)}
	for i, l := range []net.Listener{options.Hooks, options.API, options.Customer, options.Pages} {
		if l != nil {
			base, err := server.LocalBase(l.Addr())
			if err != nil {
				return err
			}
			name := []string{"", "api_", "customer_", "pages_"}[i]
			view = append(view, name+"address", l.Addr().String(), name+"base", base)
		}
	}
	view = append(view, daily...)
	if f.Service != nil {
		view = append(view, p.announceTracking(running, f, o)...)
	}
	if o.signIn && options.Pages != nil {
		link, err := p.signInLink(ctx, s, &url.URL{Scheme: "http", Host: options.Pages.Addr().String()})
		if err != nil {
			return err
		}
		view = append(view, link...)
	}
	if err := p.Served(view); err != nil {
		return err
	}
	manager := systemd.Manager{Socket: p.Env("NOTIFY_SOCKET"), Watchdog: p.Env("WATCHDOG_USEC")}
	return manager.Run(ctx, "serving "+secret.Redact(p.Config.Store), running.Progress,
		func(err error) { s.Log.Warn("systemd could not be told that the server is ready", "error", err) }, running.Run)
}

// commandEnv returns the environment variables that Duesday passes on to the user's commands.
func (p *program) commandEnv() (env []string) {
	for _, name := range []string{"PATH", "HOME"} {
		if value := p.Env(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// automations returns the commands in the flags. The tracking service only logs an action that has
// no command.
func (p *program) automations(o *serveFlags) (list []tracking.Automation) {
	env := p.commandEnv()
	for action, line := range map[tracking.Action]string{tracking.ActionFulfil: o.fulfil,
		tracking.ActionUnsubscribe: o.unsubscribe} {
		if line != "" {
			list = append(list, &server.Command{Action: action, Line: p.Umask + line, Env: env, Dir: p.Dir})
		}
	}
	return list
}

// announceTracking prints which Stripe account serve follows, and returns the same as JSON members.
func (p *program) announceTracking(running *server.Server, f sales.Followed, o *serveFlags) view.Object {
	webhooks := running.Webhooks() // accept requests from Stripe
	if len(webhooks) == 0 && o.hooks != "" {
		p.Warn("Stripe's webhooks are refused; to accept them, set %s or %s", config.EnvWebhookSecrets, config.EnvConnectSecrets)
	}
	mode, every := "test", ""
	if f.Live {
		mode = "live"
	}
	if !o.noPoll {
		every = o.every.String()
	}
	what := "no webhooks"
	if len(webhooks) > 0 {
		what = "webhooks at " + strings.Join(webhooks, " and ")
	}
	if len(webhooks) == 1 {
		what += closedHook(f.Own, webhooks[0])
	}
	p.Say("following %s at Stripe (%s mode) in %s: %s", f.Own, mode, secret.Redact(p.Config.Store), what)
	if o.fulfil == "" {
		p.Warn("--on-fulfil is not set, so a purchase is only logged, and counts as fulfilled permanently")
	}
	if o.unsubscribe == "" {
		p.Say("--on-unsubscribe is not set, so the end of a subscription is only logged")
	}
	return view.Object{"stripe_account", f.Own, "mode", mode, "webhooks", webhooks, "api", o.keyed, "poll_every?", every}
}

// closedHook names the webhook endpoint that takes nothing, given the path of the one that does.
func closedHook(own, open string) string {
	if strings.HasSuffix(open, server.ConnectPath) {
		return "; " + server.HookPath + ", for events of " + own + " itself, is closed until you set " + config.EnvWebhookSecrets
	}
	return "; " + server.ConnectPath + ", for events of connected accounts, is closed until you set " + config.EnvConnectSecrets
}
