package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/stripefake"
)

// demoStripe returns the control of the fake Stripe whose clock the demo moves; nil with another
// processor. It refuses the real Stripe, which has no clock to move, and a fake with charges: its
// clock would have to go back to the demo's first day.
func (p *program) demoStripe(ctx context.Context) (*stripefake.Control, error) {
	if !p.cfg.UsesStripe() {
		return nil, nil
	}
	const how = "start one with duesday stripe-fake, and set " + config.EnvStripeAPIBase + " as it says"
	if p.cfg.Stripe.APIBase == "" {
		return nil, usagef("a demo with --processor stripe wants a fake of it: %s", how)
	}
	fake := &stripefake.Control{Base: p.cfg.Stripe.APIBase}
	if _, err := fake.Identity(ctx); err != nil {
		return nil, fmt.Errorf("%s is not a fake Stripe that answers: %w; %s", p.cfg.Stripe.APIBase, err, how)
	}
	for _, err := range fake.Ledger(ctx) {
		if err == nil {
			err = errors.New("this fake Stripe has charges already; a demo needs a fresh one: start duesday stripe-fake anew")
		}
		return nil, err
	}
	p.demoSetting("return_url", p.cfg.Stripe.APIBase+"/_fake/") // customers come back to the fake itself
	p.demoSetting("rate", "1000")                               // it has no limit unless it was started with one
	return fake, nil
}

// demoSetting gives the processor a parameter, unless the command line has.
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
