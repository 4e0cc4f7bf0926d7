// Package rehearsal contains the commands for trying Duesday before real use: the demo, and a
// server that runs the fake Stripe.
//
// It does not charge a card, and the demo does not use a store that is in use.
package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/audit"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/command/runs"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/demo"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/stripefake"
)

// A program is one invocation. Its methods are the commands of this family.
type program struct {
	*session.Program
	serve func(ctx context.Context, address string) error
}

// Commands returns this family's commands. serve serves the pages of the program's store at the address
// until ctx ends.
func Commands(of *session.Program, serve func(ctx context.Context, address string) error) []*cobra.Command {
	p := &program{of, serve}
	return []*cobra.Command{
		p.demoCommand(), p.stripeFakeCommand(),
	}
}

func (p *program) demoCommand() *cobra.Command {
	var o demo.Options
	months, serve := 0, ""
	c := session.Leaf("demo", func(ctx context.Context, _ []string) error {
		now := p.Now
		err := p.demo(ctx, o, months)
		if p.Now = now; err != nil || serve == "" {
			return err
		}
		return p.serve(ctx, serve)
	})
	c.Flags().IntVar(&o.Accounts, "accounts", 200, "`NUMBER` of accounts")
	c.Flags().IntVar(&months, "months", 3, "`NUMBER` of months up to today")
	c.Flags().StringVar(&serve, "serve", "", "then serve the pages for operators at `ADDR` (127.0.0.1:8082 if there is none), and print a link that signs in")
	c.Flags().Lookup("serve").NoOptDefVal = "127.0.0.1:8082"
	c.Flags().Uint64Var(&o.Seed, "seed", 1, "`NUMBER` that seeds the sample data")
	return c
}

func (p *program) demo(ctx context.Context, o demo.Options, months int) error {
	if o.Accounts < 1 || o.Accounts > 100_000 || months < 1 || months > 120 {
		return screen.Usagef("--accounts must be 1 to 100000, and --months 1 to 120 (got %d and %d)", o.Accounts, months)
	}
	fake, err := p.demoStripe(ctx)
	if err != nil {
		return err
	}
	tidy, err := p.demoPlaces(ctx)
	if err != nil {
		return err
	}
	defer tidy()
	begun := time.Now()
	var clock atomic.Pointer[time.Time] // many of the engine's goroutines read it
	o.Last = p.Now().UTC().Truncate(time.Millisecond)
	o.First = o.Last.AddDate(0, -months, 0)
	o.Set = func(ctx context.Context, now time.Time) error {
		clock.Store(&now)
		if fake == nil {
			return nil
		}
		_, err := fake.SetNow(ctx, now)
		return err
	}
	if err := o.Set(ctx, o.First); err != nil {
		return err
	}
	p.Now = func() time.Time { return *clock.Load() }
	return p.With(ctx, session.Need{Create: true, Processor: true}, func(s *session.Session) error {
		bar := p.Progress("days", int64(civil.Of(o.Last).DaysSince(civil.Of(o.First))+1), nil)
		o.Engine, o.Deliver, o.EachDay = s.Engine, func(ctx context.Context) (int, error) { return deliverDemo(ctx, s) }, func() { bar.Done.Add(1) }
		report, err := demo.Run(call.Without(ctx), o)
		bar.End()
		if err != nil {
			return err
		}
		audit, err := s.Engine.Verify(ctx)
		if err != nil {
			return err
		}
		if !audit.OK {
			p.Code = screen.ExitFailed
		}
		return p.showDemo(o, months, report, audit, time.Since(begun))
	})
}

// deliverDemo delivers one day's mail. A mail without its link is delivered on a later day.
func deliverDemo(ctx context.Context, s *session.Session) (delivered int, err error) {
	mail, err := s.Drain(ctx, new(screen.Progress))
	waiting := int(s.Linkless.Swap(0))
	if lost := mail.Failed + mail.Dead - waiting; err == nil && lost > 0 {
		err = fmt.Errorf("%d mails could not be written to %s", lost, s.Post)
	}
	return mail.Delivered, err
}

const (
	DemoFolder = "./duesday-demo"
	demoMarker = "THIS-IS-A-DUESDAY-DEMO"
)

// demoPlaces sets the demo's store, ledger and mail folder, unless the settings name them. It
// replaces the store of an earlier demo, and refuses any other store that is in use. For an
// in-memory store, it keeps the ledger in memory, too, and tidy removes the mail folder.
func (p *program) demoPlaces(ctx context.Context) (tidy func(), err error) {
	tidy = func() {}
	prefix := DemoFolder + "-"
	switch dir := session.FolderOf(p.Config.Store); {
	case !p.Config.StoreGiven:
		p.Config.Store, prefix = "pebble:"+DemoFolder+"/data", DemoFolder+"/"
		err = p.replaceDemo(ctx, DemoFolder)
	case dir != "":
		var entries []fs.DirEntry
		if entries, err = os.ReadDir(p.Path(dir)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if len(entries) > 0 {
			err = fmt.Errorf("%s is not empty, but a demo needs a new store; set another folder, or leave --store out to use %s", dir, DemoFolder)
		}
		prefix = filepath.Clean(dir) + "-"
	case strings.HasPrefix(p.Config.Store, "dynamodb:"):
		err = p.demoUnused(ctx)
	default:
		if dir, err = os.MkdirTemp("", "duesday-demo-"); err == nil {
			tidy = func() { os.RemoveAll(dir) }
		}
		if prefix = dir + "/"; !p.Config.ProcessorGiven {
			p.Config.Processor, p.Config.ProcessorGiven = "sandbox:", true
		}
	}
	if !p.Config.ProcessorGiven {
		p.Config.Processor = "sandbox:" + prefix + "sandbox.jsonl"
	}
	p.Config.SMTP = config.SMTP{} // the demo must not send real mail to its made-up customers
	if !p.Config.MailGiven {
		p.Config.Mail, p.Config.MailGiven = prefix+"mail", true
	}
	return tidy, err
}

func (p *program) demoUnused(ctx context.Context) error {
	s, err := p.Open(ctx, session.Need{Read: true})
	if errors.Is(err, store.ErrMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	used, err := billing.AnyItem(s.Engine.Accounts(ctx))
	if used {
		err = fmt.Errorf("%s already contains accounts, but a demo needs a new store; set another prefix", p.Config.Store)
	}
	return errors.Join(err, s.Close())
}

// replaceDemo deletes and recreates the folder. It only deletes a folder that contains a demo's
// marker, and only if no other process has the folder's store open.
func (p *program) replaceDemo(ctx context.Context, dir string) error {
	at := p.Path(dir)
	marker := at + "/" + demoMarker
	entries, err := os.ReadDir(at)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		if _, err := os.Stat(marker); err != nil {
			return fmt.Errorf("%s exists and was not created by a demo; move it away, or set another store with --store", dir)
		}
		s, err := p.Open(ctx, session.Need{Alone: true})
		if err == nil {
			err = s.Close()
		}
		if errors.Is(err, store.ErrLocked) { // after another error, the store is unusable
			return err
		}
		if err := os.RemoveAll(at); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(at, 0o700); err != nil {
		return err
	}
	return os.WriteFile(marker, []byte("Made by duesday demo. The next demo deletes this folder.\n"), 0o600)
}

func (p *program) showDemo(o demo.Options, months int, report *demo.Report, audit *audit.Report,
	elapsed time.Duration) error {
	p.Say("Created %d sample accounts with %d subscriptions, and ran both jobs on every day of %d months, in %s.\n",
		o.Accounts, report.Subscriptions, months, screen.Elapsed(elapsed))
	t := p.Table("MONTH", "REMINDED", "CHARGED", "DECLINED", "FAILED", "PENDING", "PARKED", "MANUAL", "AMOUNTS CHARGED")
	for _, m := range report.Months {
		n := m.Counts
		t.Row(m.Name, m.Reminders, n[engine.OutcomePaid], n[engine.OutcomeRetry], n[engine.OutcomeFailed],
			n[engine.OutcomePending], n[engine.OutcomeParked], m.Outside, runs.FormatTotals(&m.Amounts))
	}
	t.Flush()
	p.Say("\n%s", runs.Verdict(p.Screen, audit))
	p.Say("%s at the processor, %s, %s open, %s parked.", screen.Plural(audit.Charges, "charge"),
		screen.Plural(audit.Receipts, "receipt"), screen.Plural(audit.Open, "period"), screen.Plural(audit.Parked, "subscription"))
	for _, x := range audit.Problems[:min(len(audit.Problems), runs.ShownWaiting)] {
		p.Say("  %s: %s/%s period %d: %s", x.Kind, x.Account, x.Subscription, x.Period, x.Detail)
	}
	p.demoHints()
	return p.JSON(view.Object{"ok", audit.OK, "accounts", o.Accounts, "subscriptions", report.Subscriptions, "seed", o.Seed,
		"months", view.List(report.Months, func(m *demo.Month) view.Object {
			n := m.Counts
			return view.Object{"month", m.Name, "joined", m.Joined, "changes", m.Changes, "reminders", m.Reminders,
				"paid", n[engine.OutcomePaid], "paid_outside", m.Outside, "retry", n[engine.OutcomeRetry],
				"failed", n[engine.OutcomeFailed], "pending", n[engine.OutcomePending], "parked", n[engine.OutcomeParked],
				"mails", m.Mails, "amounts", view.Sums(m.Amounts.All())}
		}), "audit", view.Audit(audit), "store", p.Config.Store,
		"processor", p.Config.Processor, "mail", p.Config.Mail, "elapsed_ms", elapsed.Milliseconds()})
}

// demoHints prints commands that the user can try next.
func (p *program) demoHints() {
	if strings.HasPrefix(p.Config.Store, "mem:") {
		return // the store is gone when this process ends
	}
	p.Say("\nNext, try:")
	for _, command := range []string{"verify", "subscription list --status past_due", "account show 1001",
		"subscription show 1001/1", "receipt list 1001", "run payments --dry-run", "run payments"} {
		p.Say("  %s", p.Hint(command))
	}
	ledger, inFile := strings.CutPrefix(p.Config.Processor, "sandbox:")
	if !inFile {
		ledger = "at " + p.Config.Stripe.APIBase + "/_fake/ledger"
	}
	p.Say("The processor's ledger is %s, and the mail is in %s.", ledger, p.Config.Mail)
}

// demoStripe returns the control of the fake Stripe whose clock the demo advances, or nil for
// another processor. It refuses the real Stripe, whose clock cannot be moved. It also refuses a
// fake that has charges, because the fake's clock cannot go back to the demo's first day.
func (p *program) demoStripe(ctx context.Context) (*stripefake.Control, error) {
	if !p.Config.UsesStripe() {
		return nil, nil
	}
	const how = "start one with duesday stripe-fake, and set " + config.EnvStripeAPIBase + " to the URL that it prints"
	if p.Config.Stripe.APIBase == "" {
		return nil, screen.Usagef("a demo with --processor stripe needs a fake Stripe; %s", how)
	}
	fake := &stripefake.Control{Base: p.Config.Stripe.APIBase}
	if _, err := fake.Identity(ctx); err != nil {
		return nil, fmt.Errorf("no fake Stripe answers at %s: %w; %s", p.Config.Stripe.APIBase, err, how)
	}
	for _, err := range fake.Ledger(ctx) {
		if err == nil {
			err = errors.New("this fake Stripe already has charges, but a demo needs a new one; restart duesday stripe-fake")
		}
		return nil, err
	}
	p.demoSetting("return_url", p.Config.Stripe.APIBase+"/_fake/") // the fake shows this page to customers
	p.demoSetting("rate", "1000")                                  // the fake has no rate limit by default
	return fake, nil
}

// demoSetting adds a parameter to the processor's text, unless the command line sets that
// parameter.
func (p *program) demoSetting(name, value string) {
	scheme, query, _ := strings.Cut(p.Config.Processor, "?")
	if strings.Contains("&"+query, "&"+name+"=") {
		return
	}
	if query != "" {
		query += "&"
	}
	p.Config.Processor = strings.TrimSuffix(scheme, ":") + ":?" + query + name + "=" + url.QueryEscape(value)
}
