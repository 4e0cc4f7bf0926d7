package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/adoption"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/storeurl"
)

func (p *program) storeAdoptCommand() *cobra.Command {
	var file string
	var dry bool
	c := &cobra.Command{
		Use:   "adopt",
		Short: "Take over a table of the published model that other tools filled",
		Long: `Take over a table of the published model Recurring payments schema design in DynamoDB that
other tools have filled: --store 'dynamodb:?recurring_table=NAME'. Stop those tools first.

The table is compared with the model and scanned once: what cannot be read, and what would
never be charged, is reported. Then the jobs are told how far back to look, and every
account gets its item. No subscription is changed: each is completed by its first reminder
or payment, and loses its card number then. Adopting twice changes nothing more.

--methods names a CSV with the header account,payment_method (or JSON lines with the same
names): the processor's token for each account, since a card number is of no use here.
A subscription without a method is parked when it falls due.

Exits 3 when something needs a person.`,
		Args: want(),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.adoptStore(cmd.Context(), file, dry) },
	}
	c.Flags().StringVar(&file, "methods", "", "`FILE` of accounts and their payment methods, CSV or JSON lines")
	c.Flags().BoolVar(&dry, "dry-run", false, "look and report, and write nothing")
	return c
}

// adoptWorkers is how many accounts are written at a time.
const adoptWorkers = 32

func (p *program) adoptStore(ctx context.Context, file string, dry bool) error {
	o := adoption.Options{CatchUp: p.cfg.Policy.CatchUp, Workers: adoptWorkers, DryRun: dry}
	place, err := storeurl.Parse(p.cfg.Store)
	if err != nil {
		return &usageError{err}
	}
	tables, err := tablesAt(place)
	if err != nil {
		return err
	}
	if file != "" {
		if o.Methods, err = readMethods(file); err != nil {
			return err
		}
	}
	if place.Shared() {
		if err := p.readyTables(ctx, place, tables, dry); err != nil {
			return err
		}
	}
	bar := p.progress("items", 0, nil)
	defer bar.end()
	o.Progress = bar.set
	var r *adoption.Report
	if dry {
		r, err = p.surveyStore(ctx, place, tables, o)
	} else {
		err = p.with(ctx, need{adopt: true}, func(s *session) (err error) {
			r, err = adoption.Adopt(ctx, s.engine.Records, o)
			return err
		})
	}
	if err != nil {
		return err
	}
	if r.NeedsPerson() {
		p.code = exitPerson
	}
	if p.cfg.JSON {
		return p.object(viewAdoption(tables, r))
	}
	p.showAdoption(tables, r)
	return nil
}

// surveyStore looks at the table without making it Duesday's.
func (p *program) surveyStore(ctx context.Context, place storeurl.Place, tables schema.Tables,
	o adoption.Options) (r *adoption.Report, err error) {
	s, err := place.Open(ctx, storeurl.Options{Tables: tables.All(), Names: schema.Names(), Now: p.now, Holder: p.command})
	if errors.Is(err, store.ErrMissing) {
		return nil, &missingStore{p.cfg.Store}
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	return adoption.Scan(ctx, billing.NewRecords(s, tables, p.now, nil), o)
}

// readyTables compares the table to be adopted with the model, then makes the missing
// others. When none is, it only looks.
func (p *program) readyTables(ctx context.Context, place storeurl.Place, tables schema.Tables, dry bool) error {
	client, err := dynamostore.Dial(ctx, place.Region, place.Endpoint)
	if err != nil {
		return err
	}
	adopted := []store.Table{tables.RecurringPayments}
	found, err := dynamotable.Look(ctx, client, adopted)
	if err != nil {
		return err
	}
	name := adopted[0].Name
	if found[0].Missing {
		return fmt.Errorf("there is no table %s to adopt: name it in the URL, dynamodb:?recurring_table=NAME", name)
	}
	must := slices.DeleteFunc(slices.Clone(found[0].Differences),
		func(d dynamotable.Difference) bool { return d.Harmless || d.Mends })
	if len(must) > 0 {
		return fmt.Errorf("table %s cannot be adopted, and nothing was written: %w", name,
			&dynamotable.DifferentError{Differences: must})
	}
	// TTL that is off stays off here: the owner of the table decides which items expire. Nothing
	// depends on it, since expired items are hidden.
	if slices.ContainsFunc(found[0].Differences, func(d dynamotable.Difference) bool { return d.Mends }) {
		p.warn("TTL is off for table %s: expired receipts are hidden, and stay in it until %s has switched TTL on", name,
			p.hint("store create"))
	}
	if dry {
		return nil
	}
	own := slices.DeleteFunc(tables.All(), func(t store.Table) bool { return t.Name == name })
	_, err = dynamotable.Create(ctx, client, own, dynamotable.Settings{}, p.tell)
	if dynamotable.Denied(err) {
		return fmt.Errorf("tables of Duesday's own are missing, and may not be made here: first %s, by somebody with the "+
			"administration policy (%s schema iam administration); "+
			"the table %s is as it was: %w", p.hint("store create"), p.name, name, err)
	}
	return err
}

// An adoptionView is the JSON of store adopt.
type adoptionView struct {
	Table          string        `json:"table"`
	DryRun         bool          `json:"dry_run"`
	Items          int64         `json:"items"`
	Accounts       int           `json:"accounts"`
	Subscriptions  int           `json:"subscriptions"`
	Receipts       int           `json:"receipts"`
	Own            int           `json:"own_items"`
	Others         int           `json:"other_items"`
	Upgraded       int           `json:"upgraded_subscriptions"`
	OffAgenda      int           `json:"paused_subscriptions"`
	Due            int           `json:"due_subscriptions"`
	Arrears        int           `json:"in_arrears"`
	Cards          int           `json:"card_numbers"`
	CardsLeft      int           `json:"card_numbers_left"`
	OldestPayment  string        `json:"oldest_payment_date,omitempty"`
	OldestReminder string        `json:"oldest_reminder_date,omitempty"`
	AccountsMade   int           `json:"accounts_made"`
	AccountsSet    int           `json:"accounts_changed"`
	Findings       []findingView `json:"findings"`
}

type findingView struct {
	Kind  string     `json:"kind"`
	Count int        `json:"count"`
	First []itemView `json:"first"`
}

type itemView struct {
	Item   string `json:"item"`
	Reason string `json:"reason"`
}

func viewAdoption(tables schema.Tables, r *adoption.Report) adoptionView {
	v := adoptionView{Table: tables.RecurringPayments.Name, DryRun: r.DryRun, Items: r.Items, Accounts: r.Accounts,
		Subscriptions: r.Subscriptions, Receipts: r.Receipts, Own: r.Own, Others: r.Others, Upgraded: r.Upgraded,
		OffAgenda: r.OffAgenda, Due: r.Due, Arrears: r.Arrears, Cards: r.Cards, CardsLeft: r.CardsLeft,
		OldestPayment: date(r.OldestPayment), OldestReminder: date(r.OldestReminder),
		AccountsMade: r.AccountsMade, AccountsSet: r.AccountsSet, Findings: []findingView{}}
	for _, f := range [...]struct {
		kind string
		adoption.Findings
	}{{"unreadable", r.Unreadable}, {"without a payment method", r.WithoutMethod}, {"in no index", r.NotIndexed},
		{"two of one id", r.Duplicates}, {"different addresses", r.Addresses}, {"account not in the table", r.Unknown}} {
		if f.Count == 0 {
			continue
		}
		x := findingView{Kind: f.kind, Count: f.Count}
		for _, item := range f.First {
			x.First = append(x.First, itemView{item.Item, item.Reason})
		}
		v.Findings = append(v.Findings, x)
	}
	return v
}

func (p *program) showAdoption(tables schema.Tables, r *adoption.Report) {
	v := viewAdoption(tables, r)
	if r.DryRun {
		p.say("table %s was looked at, and nothing was written", v.Table)
	} else {
		p.say("table %s is adopted", v.Table)
	}
	fields(p.stdout, "  items", strconv.FormatInt(v.Items, 10), "  accounts", strconv.Itoa(v.Accounts),
		"  accounts without an item", positive(v.AccountsMade),
		"  accounts changed", positive(v.AccountsSet), "  subscriptions", strconv.Itoa(v.Subscriptions), "  upgraded before",
		positive(v.Upgraded),
		"  without a next date: paused", positive(v.OffAgenda), "  due now", strconv.Itoa(v.Due),
		"  in arrears: will be parked", positive(v.Arrears),
		"  receipts", strconv.Itoa(v.Receipts), "  items of Duesday's own", positive(v.Own), "  other items",
		positive(v.Others),
		"  card numbers, gone when charged", positive(v.Cards), "  card numbers elsewhere, which stay", positive(v.CardsLeft),
		"  oldest payment date", v.OldestPayment, "  oldest reminder date", v.OldestReminder)
	if len(v.Findings) > 0 {
		p.say("")
		t := newTable(p.stdout, "FOUND", "ITEM", "REASON")
		for _, f := range v.Findings {
			for _, x := range f.First {
				t.row(f.Kind, x.Item, x.Reason)
			}
			if more := f.Count - len(f.First); more > 0 {
				t.row(f.Kind, fmt.Sprintf("and %d more", more), "")
			}
		}
		t.flush()
	}
	if r.DryRun {
		p.say("\nAdopt it: the same command without --dry-run")
	} else {
		p.say("\nNext: %s, then %s", p.hint("verify"), p.hint("run payments --dry-run"))
	}
}
