package poller

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/tracking"
)

// An Importer provides the further methods of tracking.Service that an import uses.
type Importer interface {
	Ledger
	ConnectedAccount(ctx context.Context, stripeAccount string) (*tracking.ConnectedAccount, error)
	Import(ctx context.Context, at string, o tracking.Object, plan bool) (tracking.Import, error)
	FulfilImported(ctx context.Context, at, subscription string) (asked bool, err error)
	Replay(ctx context.Context, event string) (tracking.Verdict, error)
}

// ImportOptions configure an import. Only Plan and Fulfil are optional.
type ImportOptions struct {
	Ledger   Importer
	Lister   Lister
	Now      time.Time
	Payments time.Time       // older payments are not imported
	Plan     bool            // store nothing, and read no events
	Fulfil   bool            // request the fulfilment of imported purchases whose subscription is active
	Each     func(ImportRow) // is called for each subscription, and for each schedule that is left out
	Step     func()          // is called for each object and event
}

// ImportedPayments is how old a payment may be that an import brings in by default: the last one of a yearly
// subscription is younger.
const ImportedPayments = 400 * 24 * time.Hour

// Skip is the action for what is not followed. The others are import and known, for a subscription that has a row.
const Skip = "skip"

// An ImportRow is a subscription in Stripe's lists.
type ImportRow struct {
	ID, Customer, Status, Price string
	Action                      string
	Fulfils                     bool
	Reason                      string // why it is skipped
}

// An ImportReport counts what an import did, or would do if it is a plan.
type ImportReport struct {
	StripeAccount string
	Since         time.Time // by Stripe's clock: events from then on are applied
	Imported      int       // subscriptions that have got a row
	Known         int       // subscriptions that had one
	Skipped       int       // subscriptions and schedules that are not followed
	Fulfils       int       // purchases whose fulfilment is requested
	Payments      int       // payments that have got a row
	OtherPayments int       // payments of no followed subscription or purchase
	Changed       int       // objects that changed a row that existed
	Events        int       // events since then that are applied
}

// importOverlap is how long before the import the events begin, because Stripe's lists may show a change
// later than its event.
const importOverlap = 5 * time.Minute

// An importing holds the state of a running import.
type importing struct {
	ImportOptions
	at      string // "" for our own account
	again   bool   // this is the second look at the lists
	report  ImportReport
	planned map[string]bool // subscriptions that a plan would import
}

// Import brings what runs in the registered Stripe account into the ledger, in the order that
// docs/internals/tracking.md gives. It can be repeated at any time.
func Import(ctx context.Context, stripeAccount string, o ImportOptions) (ImportReport, error) {
	a, err := o.Ledger.ConnectedAccount(ctx, stripeAccount)
	if err != nil {
		return ImportReport{}, err
	}
	i := &importing{ImportOptions: o, at: atOf(a), planned: map[string]bool{}}
	begun, err := o.Lister.ListEvents(ctx, i.at, o.Now, func(RawEvent) error { return nil })
	if err != nil {
		return i.report, fmt.Errorf("ask Stripe for the time: %w", err)
	}
	since := begun.Add(-importOverlap)
	i.report.StripeAccount, i.report.Since = stripeAccount, since
	err = o.Lister.ListFollowed(ctx, i.at, time.Time{}, o.Payments, begun, i.take(ctx))
	if err != nil || o.Plan {
		return i.report, err
	}
	i.again = true // for what was created meanwhile
	if err = o.Lister.ListFollowed(ctx, i.at, since, since, begun, i.take(ctx)); err == nil {
		err = i.events(ctx, a, since)
	}
	if err != nil {
		return i.report, err
	}
	if a, err = o.Ledger.ConnectedAccount(ctx, stripeAccount); err == nil && a.Polled.Through.IsZero() {
		a.Polled.Through = since // the first round would else list thirty days
		err = o.Ledger.SavePoll(ctx, stripeAccount, a.Polled)
	}
	return i.report, err
}

// take imports the objects of a list.
func (i *importing) take(ctx context.Context) func(o tracking.Object, problem string) error {
	return func(o tracking.Object, problem string) error {
		i.Step()
		did, err := i.Ledger.Import(ctx, i.at, o, i.Plan || problem != "")
		if err == nil && problem != "" && !i.Plan && !did.New && did.Skipped == "" { // it is followed already
			did, err = i.Ledger.Import(ctx, i.at, o, false)
		}
		if err == nil && !did.New && did.Changed {
			i.report.Changed++
		}
		switch {
		case err != nil || i.again && (!did.New || problem != ""): // told before
		case o.Kind == tracking.KindSubscription:
			err = i.subscription(ctx, o, did, problem)
		case o.Kind == tracking.KindSchedule && did.Skipped != "" && o.Status == "not_started":
			i.told(ImportRow{o.ID, o.Customer, o.Status, "", Skip, false, "it has not begun"})
		case o.Kind == tracking.KindPayment && (did.New || i.planned[o.Subscription]):
			i.report.Payments++
		case o.Kind == tracking.KindPayment && did.Skipped != "":
			i.report.OtherPayments++
		}
		if err != nil {
			return fmt.Errorf("import %s: %w", o.ID, err)
		}
		return nil
	}
}

func (i *importing) subscription(ctx context.Context, o tracking.Object, did tracking.Import, problem string) (err error) {
	row := ImportRow{o.ID, o.Customer, o.Status, o.Terms.Price, "known", false, ""}
	switch {
	case did.Skipped != "" || did.New && problem != "":
		row.Action, row.Reason = Skip, cmp.Or(did.Skipped, problem)
	case did.New:
		row.Action = "import"
		if row.Fulfils = i.Plan && i.Fulfil && tracking.Serves(o.Status); i.Plan {
			i.planned[o.ID] = true
		}
	}
	if i.Fulfil && !i.Plan && row.Action != Skip {
		row.Fulfils, err = i.Ledger.FulfilImported(ctx, i.at, o.ID)
	}
	i.told(row)
	return err
}

func (i *importing) told(row ImportRow) {
	*map[string]*int{"import": &i.report.Imported, "known": &i.report.Known, Skip: &i.report.Skipped}[row.Action]++
	if row.Fulfils {
		i.report.Fulfils++
	}
	i.Each(row)
}

// events applies the events since then, oldest first. It decides the ignored ones again, because they may be about
// rows that the import has created since. It leaves out what cannot be decoded or decided: the lists are newer.
func (i *importing) events(ctx context.Context, a *tracking.ConnectedAccount, since time.Time) error {
	var all []RawEvent
	hold := func(e RawEvent) error {
		e.Body = bytes.Clone(e.Body)
		all = append(all, e)
		return nil
	}
	_, err := i.Lister.ListEvents(ctx, i.at, since, hold)
	if err == nil && a.Polled.Thin {
		err = i.Lister.ListThin(ctx, i.at, since, hold)
	}
	if err != nil && !errors.Is(err, ErrNoThin) {
		return fmt.Errorf("list the events: %w", err)
	}
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b RawEvent) int { return a.Created.Compare(b.Created) })
	for _, e := range all {
		i.Step()
		v, err := i.Ledger.Ingest(ctx, e.Body, tracking.Origin{Connect: !a.Own, Source: tracking.FromPoll})
		if err == nil && v.Status == tracking.Ignored {
			v, err = i.Ledger.Replay(ctx, e.ID)
		}
		if err != nil && !errors.Is(err, tracking.ErrBody) && !errors.Is(err, tracking.ErrNotApplied) {
			return fmt.Errorf("event %s: %w", e.ID, err)
		}
		if v.Status == tracking.Applied {
			i.report.Events++
		}
	}
	return nil
}
