package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/tracking"
)

// eventFlags are those of event list.
type eventFlags struct {
	account, subscription string
	from, to              instantFlag
	limit                 int
	waiting               bool
}

func (p *program) eventList() *cobra.Command {
	f := new(eventFlags)
	c := p.backendLeaf("list", "List events, the oldest first: all, or those of an account or a subscription",
		backendNeed{}, func(ctx context.Context, b *backend, _ []string) error {
			if f.waiting {
				return listAll(p, "event", b.ledger.Waiting(ctx), viewEvent,
					[]string{"EVENT", "TYPE", "STRIPE ACCOUNT", "STATUS", "RECEIVED", "WHY"}, func(e *tracking.Event) []any {
						return []any{e.ID, e.Type, e.StripeAccount, e.Status, e.Received, e.Reason}
					})
			}
			return p.listEvents(ctx, b, f)
		})
	fs := c.Flags()
	fs.StringVar(&f.account, "account", "",
		"only those of the `ACCOUNT`: acct_… at Stripe, or a merchant's UUID")
	fs.StringVar(&f.subscription, "subscription", "", "only those about the `SUBSCRIPTION` at Stripe")
	fs.Var(&f.from, "from", "only those from then on, by Stripe's clock")
	fs.Var(&f.to, "to", "only those before")
	fs.IntVar(&f.limit, "limit", 0, "at most so many; 0 for all")
	fs.BoolVar(&f.waiting, "waiting", false, "those that are not applied: to be done, put aside, or given up")
	return checked(c, func([]string) error { return f.check() })
}

func (f *eventFlags) check() error {
	if err := checkAccountFlag(f.account, true); err != nil {
		return err
	}
	switch {
	case f.limit < 0:
		return usagef("--limit %d: want 0 or more", f.limit)
	case f.account != "" && f.subscription != "":
		return usagef("--account and --subscription: give one of them")
	case f.waiting && (f.account != "" || f.subscription != "" || f.limit != 0 || !f.from.IsZero() || !f.to.IsZero()):
		return usagef("--waiting lists all that wait: give it alone")
	case !f.to.IsZero() && !f.to.After(f.from.Time):
		return usagef("--to %s is not after --from %s", f.to.String(), f.from.String())
	}
	return nil
}

func (p *program) listEvents(ctx context.Context, b *backend, f *eventFlags) error {
	q := tracking.EventQuery{Subscription: f.subscription, From: f.from.Time, To: f.to.Time, Whole: true}
	if f.limit > 0 {
		q.Limit = f.limit + 1 // one more, to see whether there are more
	}
	events := b.ledger.Events(ctx, q)
	if f.account != "" {
		places, err := b.places(ctx, f.account)
		if err != nil {
			return err
		}
		var each []iter.Seq2[tracking.EventRow, error]
		for _, at := range places {
			q.StripeAccount = at
			each = append(each, b.ledger.Events(ctx, q))
		}
		events = merged(each, func(a, b tracking.EventRow) int { return a.At.Compare(b.At) })
	}
	more := false
	n, err := list(p, firstOf(f.limit, events, &more), as[tracking.EventRow],
		[]string{"EVENT", "TYPE", "STRIPE ACCOUNT", "SUBSCRIPTION", "AT"},
		func(e tracking.EventRow) []any { return []any{e.ID, e.Type, e.StripeAccount, e.Subscription, e.At} })
	switch {
	case err != nil:
		return err
	case more:
		p.say("\n%s, and there are more: a larger --limit, or a later --from, shows them", plural(n, "event"))
	default:
		p.say("\n%s", plural(n, "event"))
	}
	return nil
}

// places returns the Stripe accounts registered for the merchant, or for any with "", or
// the Stripe account itself where the text names one.
func (b *backend) places(ctx context.Context, account string) ([]string, error) {
	if strings.HasPrefix(account, "acct_") {
		return []string{account}, nil
	}
	var places []string
	for a, err := range b.registry.ConnectedAccounts(ctx) {
		if err != nil {
			return nil, err
		}
		if account == "" || strings.EqualFold(a.Merchant, account) {
			places = append(places, a.StripeAccount)
		}
	}
	if len(places) == 0 && account != "" {
		return nil, fmt.Errorf("merchant %s has no Stripe account here: %w", account, tracking.ErrUnregistered)
	}
	return places, nil
}

// merged merges ordered sequences into one.
func merged[T any](each []iter.Seq2[T, error], compare func(a, b T) int) iter.Seq2[T, error] {
	if len(each) == 1 {
		return each[0]
	}
	return func(yield func(T, error) bool) {
		type head struct {
			value T
			err   error
			next  func() (T, error, bool)
		}
		var heads []*head
		for _, seq := range each {
			next, stop := iter.Pull2(seq)
			defer stop()
			if v, err, ok := next(); ok {
				heads = append(heads, &head{v, err, next})
			}
		}
		for len(heads) > 0 {
			first := slices.MinFunc(heads, func(a, b *head) int { return compare(a.value, b.value) })
			for _, h := range heads {
				if h.err != nil {
					first = h
				}
			}
			if !yield(first.value, first.err) || first.err != nil {
				return
			}
			var ok bool
			if first.value, first.err, ok = first.next(); !ok {
				heads = slices.DeleteFunc(heads, func(h *head) bool { return h == first })
			}
		}
	}
}

// firstOf yields at most n; 0 is all. It notes whether there are more.
func firstOf[T any](n int, all iter.Seq2[T, error], more *bool) iter.Seq2[T, error] {
	if n == 0 {
		return all
	}
	return func(yield func(T, error) bool) {
		left := n
		for v, err := range all {
			if left == 0 && err == nil {
				*more = true
				return
			}
			left--
			if !yield(v, err) {
				return
			}
		}
	}
}
