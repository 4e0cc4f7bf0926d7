package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/sell"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
)

func (p *program) connectAdd() *cobra.Command {
	var account string
	c := p.trackingLeaf("add --account UUID ACCT",
		trackingNeed{create: true, stripe: true}, func(ctx context.Context, t *tracking.Service, args []string) error {
			a, err := t.Register(ctx, account, args[0])
			if errors.Is(err, tracking.ErrOther) {
				return fmt.Errorf("%s, and is that one's for good: its purchases and payments are", withoutOther(err))
			}
			if e, ok := errors.AsType[*tracking.FieldError](err); ok && e.Field == "stripe_account" {
				return usagef("ACCT %q: %s", args[0], e.Problem)
			}
			if err != nil {
				return byFlag(err)
			}
			p.say("Stripe account %s registered", a.StripeAccount)
			return p.showConnected(a)
		})
	c.Flags().StringVar(&account, "account", "", "`UUID` of the merchant that it belongs to")
	return required(c, "account")
}

func (p *program) connectList() *cobra.Command {
	return p.trackingLeaf("list", trackingNeed{}, func(ctx context.Context, t *tracking.Service, _ []string) error {
		return listAll(p, "Stripe account", t.ConnectedAccounts(ctx), as[*tracking.ConnectedAccount],
			[]string{"STRIPE ACCOUNT", "ACCOUNT", "STATUS", "VERIFIED THROUGH", "CHECKED", "ERROR"},
			func(a *tracking.ConnectedAccount) []any {
				return []any{a.StripeAccount, a.Merchant, a.Status, a.Polled.Through, a.Polled.Checked, a.Polled.Error}
			})
	})
}

// as shows a value as it is: a noun of package tracking.
func as[T any](v T) T { return v }

func (p *program) connectShow() *cobra.Command {
	return p.trackingLeaf("show ACCT",
		trackingNeed{}, func(ctx context.Context, t *tracking.Service, args []string) error {
			for a, err := range t.ConnectedAccounts(ctx) {
				if err != nil {
					return err
				}
				if a.StripeAccount == args[0] {
					return p.showConnected(a)
				}
			}
			return fmt.Errorf("%s: %w", args[0], tracking.ErrUnregistered)
		})
}

func (p *program) showConnected(a *tracking.ConnectedAccount) error {
	own, polled := "", a.Polled
	if a.Own {
		own = "the account of our key"
	}
	p.fields("Stripe account", a.StripeAccount, "account", a.Merchant, "own", own, "status", a.Status,
		"verified through", polled.Through, "checked", polled.Checked, "next check", polled.Next,
		"compared", polled.Swept, "error", polled.Error, "registered", a.Created, "changed", a.Updated)
	return p.json(a)
}

func (p *program) jobCommand() *cobra.Command {
	list := p.trackingLeaf("list", trackingNeed{}, p.listJobs)
	replay := p.trackingLeaf("replay JOB",
		trackingNeed{write: true}, func(ctx context.Context, t *tracking.Service, args []string) error {
			if err := t.ReplayJob(ctx, args[0]); err != nil {
				return notFound(err, "job "+args[0]+" that was given up")
			}
			p.say("job %s is due: a running duesday serve does it", args[0])
			return p.json(object{"replayed", args[0]})
		})
	return group("job", list, replay)
}

func (p *program) listJobs(ctx context.Context, t *tracking.Service, _ []string) error {
	dead := 0
	n, err := list(p, t.Jobs(ctx), func(j tracking.WaitingJob) tracking.WaitingJob {
		j.Error = secret.Clean(j.Error)
		return j
	}, []string{"JOB", "STATE", "NEXT TRY", "TRIES", "WHY"}, func(j tracking.WaitingJob) []any {
		state := "waits"
		if j.Dead {
			state = "given up"
			dead++
		}
		return []any{j.ID, state, j.Due, j.Tries, secret.Clean(j.Error)}
	})
	if err != nil {
		return err
	}
	p.say("\n%s, %d given up", plural(n, "job"), dead)
	if dead > 0 {
		p.say("Have one tried again: %s", p.hint("job replay JOB"))
	}
	return nil
}

type pollFlags struct {
	once, all, sweep bool
	every            time.Duration
}

func (p *program) pollCommand() *cobra.Command {
	f := new(pollFlags)
	c := leaf("poll", func(ctx context.Context, _ []string) error {
		if !f.once && (f.all || f.sweep) {
			return usagef("--all and --sweep are for one round: give --once, too")
		}
		if err := checkPollEvery(f.every); err != nil {
			return err
		}
		return p.poll(ctx, f)
	})
	c.Flags().BoolVar(&f.once, "once", false, "do one round, and say what it found")
	c.Flags().BoolVar(&f.all, "all", false, "with --once: ask for every account, also those whose time has not come")
	c.Flags().BoolVar(&f.sweep, "sweep", false,
		"with --once: compare the objects themselves, too: Stripe may never have sent an event")
	c.Flags().DurationVar(&f.every, "poll-every", pollEvery, "`TIME` from one round to the next")
	return c
}

// A pollView is the JSON of one round, with the sweep if there was one.
type pollView struct {
	poller.Report
	Sweep        *poller.SweepReport `json:"sweep,omitempty"`        // nil: there was none
	Disconnected []string            `json:"disconnected,omitempty"` // Stripe accounts that are not asked for
}

func (p *program) poll(ctx context.Context, f *pollFlags) error {
	return p.withTracking(ctx, trackingNeed{stripe: true}, func(t followed) error {
		finder := poller.New(poller.Options{Ledger: t.service,
			Lister: sell.New(t.processor.API()), Now: p.now, Log: p.logger(), Interval: f.every})
		if !f.once {
			p.say("The events that %s has not got are looked for every %s; --log-level info tells what was found",
				secret.Redact(p.cfg.Store), f.every)
			if err := p.stdout.Flush(); err != nil {
				return err
			}
			return finder.Run(ctx)
		}
		v, err := pollOnce(ctx, t.service, finder, f)
		if err != nil {
			return err
		}
		p.sayPoll(v)
		return p.json(v)
	})
}

func pollOnce(ctx context.Context, t *tracking.Service, finder *poller.Poller,
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
		p.code = exitPerson
	}
	if p.cfg.JSON { // the report has what is warned of below
		return
	}
	p.say("%s asked for, %d left alone: %s, %d missing, %d of them sent", plural(v.Accounts, "Stripe account"), v.Skipped,
		plural(v.Listed, "event"), v.Missing, v.Sent)
	if !v.Through.IsZero() {
		p.say("every event before %s is here", stamp(v.Through))
	}
	if len(v.Disconnected) > 0 {
		p.say("not asked for, as not connected any more: %s", strings.Join(v.Disconnected, ", "))
	}
	failures := v.Failures
	if s := v.Sweep; s != nil {
		p.say("%s compared at %s: %d had changed without an event", plural(s.Objects, "object"),
			plural(s.Accounts, "Stripe account"), s.Changed)
		failures = append(failures, s.Failures...)
	}
	for _, l := range v.Lost {
		p.warn("events of %s from %s to %s are lost: Stripe does not list them any more; %s", l.StripeAccount, stamp(l.From),
			stamp(l.To), p.hint("poll --once --all --sweep"))
	}
	section(p, "\nNot got through to:", []string{"  STRIPE ACCOUNT", "WHY"}, failures,
		func(x poller.Failure) []any { return []any{"  " + x.StripeAccount, secret.Clean(x.Error)} })
}
