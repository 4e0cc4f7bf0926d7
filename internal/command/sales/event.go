package sales

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/view"
)

// viewEvent returns the event with what its body tells.
func viewEvent(e *tracking.Event) view.Object {
	v := append(view.Event(e), "object?", e.Object.ID, "api_version?", e.APIVersion)
	if len(e.Body) > 0 {
		v = append(v, "live", e.Live)
	}
	return v
}

func (p *program) eventShow() *cobra.Command {
	body := false
	c := p.trackingLeaf("show EVENT", trackingNeed{},
		func(ctx context.Context, t *tracking.Service, args []string) error {
			e, err := t.Event(ctx, args[0])
			if err != nil {
				return session.NotFound(err, "event "+args[0])
			}
			if told, err := event.Decode(e.Body); err == nil { // the body has more fields than the row
				e.Live, e.APIVersion, e.Object = told.Live, told.APIVersion, told.Object
			}
			if body && e.Erased != "" {
				return fmt.Errorf("event %s has no body, because the person's data was erased; its SHA-256 was %s", e.ID, e.Erased)
			}
			if body {
				text := string(e.Body)
				if p.TTY(p.Raw) {
					text = secret.Visible(text)
				}
				p.Out.WriteString(strings.TrimSuffix(text, "\n") + "\n")
				return nil
			}
			mode := "test"
			if e.Live {
				mode = "live"
			}
			p.Fields("event", e.ID, "type", e.Type, "reported as", e.ToldType, "twin", e.Twin, "object", e.Object.ID, "Stripe account", e.StripeAccount,
				"account", e.Merchant, "subscription", e.Subscription, "status", string(e.Status)+screen.Prefixed(": ", e.Reason),
				"source", e.Source, "mode", mode, "API version", e.APIVersion, "created", e.Created,
				"received", e.Received, "applied", e.Applied)
			return p.JSON(viewEvent(e))
		})
	c.Flags().BoolVar(&body, "body", false, "print only the event's body, as Stripe sent it")
	return c
}

// replayEvents applies every event that exists. If some do not exist, it returns an error at the
// end.
func (p *program) replayEvents(ctx context.Context, t *tracking.Service, ids []string) error {
	var missing []error
	verdicts := sequence.Map(sequence.Of(ids), func(id string) (tracking.Verdict, error) {
		v, err := t.Replay(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			missing = append(missing, session.NotFound(err, "event "+id))
			return v, sequence.ErrSkip
		}
		if err == nil && !v.Status.Final() {
			p.Code = screen.ExitPerson
		}
		return v, err
	})
	_, err := screen.List(p.Screen, verdicts, screen.Itself[tracking.Verdict], []string{"EVENT", "STATUS", "REASON"},
		func(v tracking.Verdict) []any { return []any{v.Event, v.Status, v.Reason} })
	return cmp.Or(err, errors.Join(missing...))
}

func (p *program) rebuildCommand() *cobra.Command {
	var account string
	c := p.trackingLeaf("rebuild", trackingNeed{}, func(ctx context.Context, t *tracking.Service, _ []string) error {
		all, err := p.rebuild(ctx, t, account)
		if err != nil {
			return err
		}
		var differences []tracking.Difference
		for _, r := range all {
			differences = append(differences, r.Differences...)
		}
		columns := []string{"STRIPE ACCOUNT", "EVENTS", "THIN", "UNREAD", "ERASED", "COMPARED", "NOT COMPARED", "AHEAD",
			"DIFFERENT", "WAITING"}
		_, err = screen.List(p.Screen, sequence.Of(all), screen.Itself[*tracking.Rebuilt], columns, func(r *tracking.Rebuilt) []any {
			return []any{r.StripeAccount, r.Events, r.Thin, r.Unread, r.Erased, r.Compared, r.Partial, r.Ahead,
				len(r.Differences), strings.Join(r.Waiting, " ")}
		})
		for _, r := range all {
			if err == nil && r.Thin > 0 && r.Compared+r.Partial == 0 {
				p.Code = screen.ExitPerson
				p.Say("%s: nothing could be compared, because its %d thin events were stored before Duesday kept the fetched objects.\n",
					r.StripeAccount, r.Thin)
			}
		}
		if err != nil || len(differences) == 0 {
			return err
		}
		p.Code = screen.ExitPerson
		screen.Section(p.Screen, "\nDifferences:", []string{"  OBJECT", "STORED", "FROM EVENTS"}, differences,
			func(x tracking.Difference) []any { return []any{"  " + x.ID, x.Stored, x.Folded} })
		return nil
	})
	c.Flags().StringVar(&account, "account", "",
		"only events of this `ACCOUNT`: a Stripe account (acct_…) or a merchant's UUID (default: every registered "+
			"Stripe account)")
	return session.Checked(c, func([]string) error {
		p.ReadOnce()
		return checkAccountFlag(account, true)
	})
}

// rebuild rebuilds the Stripe accounts that account names, or every registered Stripe account if
// account is "".
func (p *program) rebuild(ctx context.Context, t *tracking.Service, account string) ([]*tracking.Rebuilt, error) {
	places, err := places(ctx, t, account)
	if len(places) == 0 || err != nil {
		return nil, err
	}
	var of tracking.EventQuery
	if len(places) == 1 {
		of.StripeAccount = places[0]
	}
	bar := p.Progress("events read", 0, func(stop <-chan struct{}) int64 { return screen.CountUntil(t.Events(ctx, of), stop) })
	defer func() { bar.End() }()
	return t.Rebuild(ctx, places, tracking.RebuildSteps{
		Read: func() { bar.Done.Add(1) },
		Folded: func(done, all int) {
			if done == 1 {
				bar.End()
				bar = p.Progress("events combined and compared", int64(all), nil)
			}
			bar.Done.Store(int64(done))
		}})
}

type eventFlags struct {
	account, subscription string
	from, to              screen.Flag[time.Time]
	limit                 int
	waiting               bool
}

func (p *program) eventList() *cobra.Command {
	f := &eventFlags{from: screen.InstantFlag(), to: screen.InstantFlag()}
	c := p.trackingLeaf("list", trackingNeed{}, func(ctx context.Context, t *tracking.Service, _ []string) error {
		if f.waiting {
			return screen.ListAll(p.Screen, screen.ListOrder{}, "event", t.Waiting(ctx), viewEvent,
				[]string{"EVENT", "TYPE", "STRIPE ACCOUNT", "STATUS", "RECEIVED", "REASON"}, func(e *tracking.Event) []any {
					return []any{e.ID, e.Type, e.StripeAccount, e.Status, e.Received, e.Reason}
				})
		}
		return p.listEvents(ctx, t, f)
	})
	fs := c.Flags()
	fs.StringVar(&f.account, "account", "", "only events of this `ACCOUNT`: a Stripe account, acct_…, or a merchant's UUID")
	fs.StringVar(&f.subscription, "subscription", "", "only events about this Stripe `SUBSCRIPTION`")
	fs.Var(&f.from, "from", "only events from this time on, by Stripe's clock")
	fs.Var(&f.to, "to", "only events before this time")
	fs.IntVar(&f.limit, "limit", 0, "maximum number of events; 0 for all")
	fs.BoolVar(&f.waiting, "waiting", false, "only events that are not applied yet: waiting, kept aside or given up")
	return session.Checked(c, func([]string) error { return f.check() })
}

func (f *eventFlags) check() error {
	if err := checkAccountFlag(f.account, true); err != nil {
		return err
	}
	switch {
	case f.limit < 0:
		return screen.Usagef("--limit must be 0 or more (got %d)", f.limit)
	case f.account != "" && f.subscription != "":
		return screen.Usagef("--account and --subscription cannot be combined")
	case f.waiting && (f.account != "" || f.subscription != "" || f.limit != 0 || f.from.Text != "" || f.to.Text != ""):
		return screen.Usagef("--waiting lists all waiting events, so it cannot be combined with other flags")
	case f.to.Text != "" && !f.to.Value.After(f.from.Value):
		return screen.Usagef("--to %s must be after --from %s", view.Stamp(f.to.Value), view.Stamp(f.from.Value))
	}
	return nil
}

func (p *program) listEvents(ctx context.Context, t *tracking.Service, f *eventFlags) error {
	q := tracking.EventQuery{Subscription: f.subscription, From: f.from.Value, To: f.to.Value, Whole: true}
	if f.limit > 0 {
		q.Limit = f.limit + 1 // one more row shows whether there are more
	}
	events := t.Events(ctx, q)
	if f.account != "" {
		places, err := places(ctx, t, f.account)
		if err != nil {
			return err
		}
		var each []iter.Seq2[tracking.EventRow, error]
		for _, at := range places {
			q.StripeAccount = at
			each = append(each, t.Events(ctx, q))
		}
		events = sequence.Merge(each, func(a, b tracking.EventRow) int { return a.At.Compare(b.At) })
	}
	more := false
	n, err := screen.List(p.Screen, screen.FirstOf(f.limit, events, &more), view.EventRow,
		[]string{"EVENT", "TYPE", "STRIPE ACCOUNT", "SUBSCRIPTION", "AT"},
		func(e tracking.EventRow) []any { return []any{e.ID, e.Type, e.StripeAccount, e.Subscription, e.At} })
	switch {
	case err != nil:
		return err
	case more:
		p.Say("\n%s, and there are more; use a larger --limit or a later --from to show them", screen.Plural(n, "event"))
	default:
		p.Say("\n%s", screen.Plural(n, "event"))
	}
	return nil
}

// places returns the Stripe account that account names, or all Stripe accounts of the merchant. If
// account is "", it returns the Stripe accounts of every merchant.
func places(ctx context.Context, t *tracking.Service, account string) ([]string, error) {
	if strings.HasPrefix(account, "acct_") {
		return []string{account}, nil
	}
	var places []string
	for a, err := range t.ConnectedAccounts(ctx) {
		if err != nil {
			return nil, err
		}
		if account == "" || strings.EqualFold(a.Merchant, account) {
			places = append(places, a.StripeAccount)
		}
	}
	if len(places) == 0 && account != "" {
		return nil, fmt.Errorf("merchant %s has no Stripe account in this store: %w", account, tracking.ErrUnregistered)
	}
	return places, nil
}
