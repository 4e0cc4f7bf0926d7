package storing

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/adoption"
	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/storeurl"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) storeAdopt() *cobra.Command {
	var file string
	var dry bool
	c := session.Leaf("adopt", func(ctx context.Context, _ []string) error { return p.adoptStore(ctx, file, dry) })
	c.Flags().StringVar(&file, "methods", "", "`FILE` with accounts and their payment methods, as CSV or JSON lines")
	c.Flags().BoolVar(&dry, "dry-run", false, "report what the command would do, without writing anything")
	return c
}

func (p *program) adoptStore(ctx context.Context, file string, dry bool) error {
	o := adoption.Options{CatchUp: billing.DefaultCatchUp, Workers: 32}
	place, err := p.Place()
	if err != nil {
		return err
	}
	tables, err := session.TablesAt(place)
	if err != nil {
		return err
	}
	if file != "" {
		if o.Methods, err = readMethods(p.Path(file)); err != nil {
			return err
		}
	}
	if place.Shared() {
		if err := p.readyTables(ctx, place, tables, dry); err != nil {
			return err
		}
	}
	bar := p.Progress("items", 0, nil)
	defer bar.End()
	o.Progress = bar.Done.Store
	var r *adoption.Report
	if dry { // only inspect the table, without adopting it
		err = p.withSide(ctx, place, false, false, func(side move.Side) (err error) {
			r, err = adoption.Scan(ctx, billing.NewRecords(side.Store, side.Tables, p.Now, nil), o)
			return err
		})
		if errors.Is(err, store.ErrMissing) {
			err = p.Missing()
		}
	} else {
		err = p.With(ctx, session.Need{Adopt: true}, func(s *session.Session) (err error) {
			r, err = adoption.Adopt(ctx, s.Engine.Records, o)
			return err
		})
	}
	if err != nil {
		return err
	}
	if r.NeedsPerson() {
		p.Code = screen.ExitPerson
	}
	p.sayAdoption(tables.RecurringPayments.Name, r)
	return p.JSON(viewAdoption(tables.RecurringPayments.Name, r))
}

// readyTables compares the table to be adopted with the model, and then creates the other tables
// that are missing. In a dry run, it does not create any.
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
		return fmt.Errorf("there is no table %s to adopt; name the table in the URL, as in dynamodb:?recurring_table=NAME", name)
	}
	must := slices.DeleteFunc(slices.Clone(found[0].Differences),
		func(d dynamotable.Difference) bool { return d.Harmless || d.Mends })
	if len(must) > 0 {
		return fmt.Errorf("table %s cannot be adopted, so nothing was written: %w", name,
			&dynamotable.DifferentError{Differences: must})
	}
	// Adoption does not turn on TTL, because the owner of the table decides which items expire.
	// Nothing depends on TTL, because Duesday hides expired items.
	if slices.ContainsFunc(found[0].Differences, func(d dynamotable.Difference) bool { return d.Mends }) {
		p.Warn("TTL is off for table %s, so expired receipts are hidden but stay in it; to turn TTL on, run: %s", name,
			p.Hint("store create"))
	}
	if err := p.MayMake(ctx, place, tables, billing.MakeAdopted); dry || err != nil {
		return err
	}
	own := slices.DeleteFunc(tables.All(), func(t store.Table) bool { return t.Name == name })
	_, err = dynamotable.Create(ctx, client, own, dynamotable.Settings{}, p.tell)
	if dynamotable.Denied(err) {
		return fmt.Errorf("the tables of Duesday's own items are missing, and this process is not allowed to create them; the first %s needs the "+
			"administration policy in addition to the operator's (%s schema iam administration); "+
			"table %s is unchanged: %w", p.Hint("store adopt"), p.Name, name, err)
	}
	return err
}

// A foundKind holds all findings of one kind, with the name of that kind.
type foundKind struct {
	kind string
	adoption.Findings
}

// shownFindings is the maximum number of findings of each kind that text mode prints. JSON mode
// prints all of them.
const shownFindings = 20

// found returns the kinds that have findings, in the order of their keys.
func found(r *adoption.Report) []foundKind {
	all := slices.DeleteFunc([]foundKind{{"unreadable", r.Unreadable}, {"without a payment method", r.WithoutMethod},
		{"in no index", r.NotIndexed}, {"two of one id", r.Duplicates}, {"different addresses", r.Addresses},
		{"account not in the table", r.Unknown}}, func(f foundKind) bool { return len(f.Findings) == 0 })
	for _, f := range all {
		slices.SortStableFunc(f.Findings, func(a, b adoption.Finding) int { return strings.Compare(a.Item, b.Item) })
	}
	return all
}

func viewAdoption(table string, r *adoption.Report) view.Object {
	findings := view.List(found(r), func(f foundKind) view.Object {
		return view.Object{"kind", f.kind, "count", len(f.Findings), "first", view.List(f.Findings,
			func(x adoption.Finding) view.Object { return view.Object{"item", x.Item, "reason", x.Reason} })}
	})
	return view.Object{"table", table, "dry_run", r.DryRun, "items", r.Items, "accounts", r.Accounts,
		"subscriptions", r.Subscriptions, "receipts", r.Receipts, "own_items", r.Own, "other_items", r.Others,
		"upgraded_subscriptions", r.Upgraded, "paused_subscriptions", r.OffAgenda, "due_subscriptions", r.Due,
		"in_arrears", r.Arrears, "card_numbers", r.Cards, "card_numbers_left", r.CardsLeft,
		"oldest_payment_date?", r.OldestPayment, "oldest_reminder_date?", r.OldestReminder,
		"accounts_made", r.AccountsMade, "accounts_changed", r.AccountsSet, "findings", findings}
}

func (p *program) sayAdoption(table string, r *adoption.Report) {
	if r.DryRun {
		p.Say("table %s was checked, and nothing was written", table)
	} else {
		p.Say("table %s is adopted", table)
	}
	p.Fields("  items", r.Items, "  accounts", r.Accounts, "  accounts without an item", screen.Positive(r.AccountsMade),
		"  accounts changed", screen.Positive(r.AccountsSet), "  subscriptions", r.Subscriptions,
		"  upgraded before", screen.Positive(r.Upgraded), "  without a next date: paused", screen.Positive(r.OffAgenda),
		"  due now", r.Due, "  in arrears: will be parked", screen.Positive(r.Arrears), "  receipts", r.Receipts,
		"  items of Duesday's own", screen.Positive(r.Own), "  other items", screen.Positive(r.Others),
		"  card numbers, removed when charged", screen.Positive(r.Cards), "  card numbers elsewhere, which stay",
		screen.Positive(r.CardsLeft), "  oldest payment date", r.OldestPayment, "  oldest reminder date", r.OldestReminder)
	if all := found(r); len(all) > 0 {
		p.Say("")
		t := p.Table("FOUND", "ITEM", "REASON")
		for _, f := range all {
			for _, x := range f.Findings[:min(len(f.Findings), shownFindings)] {
				t.Row(f.kind, x.Item, x.Reason)
			}
			if more := len(f.Findings) - shownFindings; more > 0 {
				t.Row(f.kind, fmt.Sprintf("and %d more; --json prints all", more), "")
			}
		}
		t.Flush()
	}
	if r.DryRun {
		p.Say("\nTo adopt it, run the same command without --dry-run")
	} else {
		p.Say("\nNext: %s, then %s", p.Hint("verify"), p.Hint("run payments --dry-run"))
	}
}

// A methodFile collects the payment methods of accounts while it reads a file. The file is CSV with
// the header account,payment_method, or JSON lines with these names.
type methodFile struct {
	methods map[string]string
	lines   map[string]int // the first line of each account
	errs    []string
}

const methodHeader = "account,payment_method"

// readMethods reads and validates the whole file. If a line is bad, it returns an error and no
// methods.
func readMethods(name string) (map[string]string, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--methods: %w", err)
	}
	methods, errs := parseMethods(content)
	if len(errs) > 0 {
		return nil, fmt.Errorf("%s has errors, so nothing was written:\n  %s", name, strings.Join(errs, "\n  "))
	}
	return methods, nil
}

// parseMethods returns at least one account's payment method, or the errors in the file.
func parseMethods(content []byte) (methods map[string]string, errs []string) {
	content = bytes.TrimPrefix(content, []byte("\xEF\xBB\xBF"))
	f := &methodFile{methods: map[string]string{}, lines: map[string]int{}}
	if text := bytes.TrimLeft(content, " \t\r\n"); len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		f.readJSONLines(content)
	} else {
		f.readCSV(content)
	}
	if len(f.errs) == 0 && len(f.methods) == 0 {
		f.fault(1, "no account in the file; it must have the header %s and one account per line", methodHeader)
	}
	if len(f.errs) == 0 {
		return f.methods, nil
	}
	const shown = 20
	if more := len(f.errs) - shown; more > 0 {
		f.errs = append(f.errs[:shown], fmt.Sprintf("and %d more", more))
	}
	return nil, f.errs
}

func (f *methodFile) fault(line int, format string, args ...any) {
	f.errs = append(f.errs, fmt.Sprintf("line %d: ", line)+secret.MaskCards(fmt.Sprintf(format, args...)))
}

func (f *methodFile) readCSV(content []byte) {
	r := csv.NewReader(bytes.NewReader(content))
	r.FieldsPerRecord = -1  // readCSV counts the fields itself, for a better message
	header, err := r.Read() // header is nil after an error
	for i := range header {
		header[i] = strings.TrimSpace(header[i])
	}
	account, method := slices.Index(header, "account"), slices.Index(header, "payment_method")
	if err != nil || len(header) != 2 || account < 0 || method < 0 {
		f.fault(1, "the header must be %s (got %q)", methodHeader, strings.Join(header, ","))
		return
	}
	for fields, err := r.Read(); !errors.Is(err, io.EOF); fields, err = r.Read() {
		if bad, ok := errors.AsType[*csv.ParseError](err); ok {
			f.fault(bad.StartLine, "%v", bad.Err)
			return
		}
		if line, _ := r.FieldPos(0); len(fields) == 2 {
			f.add(line, fields[account], fields[method])
		} else {
			f.fault(line, "must have 2 fields, %s (got %d)", methodHeader, len(fields))
		}
	}
}

func (f *methodFile) readJSONLines(content []byte) {
	line := 0
	for text := range bytes.Lines(content) {
		line++
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		var l struct {
			Account *string `json:"account"`
			Method  *string `json:"payment_method"`
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		err := d.Decode(&l)
		switch {
		case err != nil:
			f.fault(line, `must be like {"account": "123", "payment_method": "pm_card_visa"}: %v`, err)
		case d.InputOffset() != int64(len(text)):
			f.fault(line, "must be one JSON object per line")
		case l.Account == nil || l.Method == nil:
			f.fault(line, `must have both "account" and "payment_method"`)
		default:
			f.add(line, *l.Account, *l.Method)
		}
	}
}

// add validates one line. An account may occur again only with the same token.
func (f *methodFile) add(line int, account, token string) {
	account, token = strings.TrimSpace(account), strings.TrimSpace(token)
	if err := cmp.Or(billing.CheckID("account", account), billing.CheckMethod(token)); err != nil {
		f.fault(line, "%v", err)
		return
	}
	if was, twice := f.methods[account]; twice && was != token {
		f.fault(line, "account %s has a different payment_method on line %d", account, f.lines[account])
		return
	} else if !twice {
		f.methods[account], f.lines[account] = token, line
	}
}
