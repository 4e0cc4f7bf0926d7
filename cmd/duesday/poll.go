package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/sell"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
)

type pollFlags struct {
	once, all, sweep bool
	every            time.Duration
}

func (p *program) pollCommand() *cobra.Command {
	f := new(pollFlags)
	c := leaf("poll", "Find events whose webhook was missed and ingest them",
		func(ctx context.Context, _ []string) error {
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
