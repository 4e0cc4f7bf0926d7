package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/stripefake"
)

// A demoFake is the fake Stripe whose clock a demo moves; nil where the processor is another.
type demoFake struct {
	control stripefake.Control
}

// demoStripe makes sure that a demo with Stripe meets a fake: months of charges within
// seconds are nothing for the real one.
func (p *program) demoStripe(ctx context.Context) (*demoFake, error) {
	if !p.cfg.UsesStripe() {
		return nil, nil
	}
	const how = "start one with duesday stripe-fake, and set " + config.EnvStripeAPIBase + " as it says"
	if p.cfg.Stripe.APIBase == "" {
		return nil, usagef("a demo with --processor stripe wants a fake of it: %s", how)
	}
	f := &demoFake{stripefake.Control{Base: p.cfg.Stripe.APIBase}}
	if _, err := f.control.Identity(ctx); err != nil {
		return nil, fmt.Errorf("%s is not a fake Stripe that answers: %w; %s", p.cfg.Stripe.APIBase, err, how)
	}
	if err := f.unused(ctx); err != nil {
		return nil, err
	}
	p.demoSetting("return_url", p.cfg.Stripe.APIBase+"/_fake/") // customers come back to the fake itself
	p.demoSetting("rate", "1000")                               // it has no limit unless it was started with one
	return f, nil
}

// demoSetting gives the processor a parameter that the command line has not given it.
func (p *program) demoSetting(name, value string) {
	scheme, query, _ := strings.Cut(p.cfg.Processor, "?")
	if strings.Contains("&"+query, "&"+name+"=") {
		return
	}
	if query != "" {
		query += "&"
	}
	p.cfg.Processor = strings.TrimSuffix(scheme, ":") + ":?" + query + name + "=" + url.QueryEscape(value)
}

// unused refuses a fake that has charges: the demo begins months ago, and there time would have
// to go back.
func (f *demoFake) unused(ctx context.Context) error {
	for _, err := range f.control.Ledger(ctx) {
		if err == nil {
			err = errors.New("this fake Stripe has charges already, and a demo wants a fresh one: start duesday stripe-fake anew")
		}
		return err
	}
	return nil
}

// set moves the fake's clock.
func (f *demoFake) set(ctx context.Context, now time.Time) error {
	if f == nil {
		return nil
	}
	_, err := f.control.SetNow(ctx, now)
	return err
}
