package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/store"
)

type demoFlags struct {
	accounts int
	months   int
	seed     uint64
}

func (p *program) demoCommand() *cobra.Command {
	f := new(demoFlags)
	c := &cobra.Command{
		Use:   "demo",
		Short: "Make up a book of subscriptions and run both jobs over the last months",
		Long: `Make up a realistic book of subscriptions in a fresh store, run both daily jobs day by day
over the months that end today, and audit the result. Everything lies in ./duesday-demo,
which the next demo replaces, unless --store says otherwise; with tables, the ledger and the
mail lie in ./duesday-demo-sandbox.jsonl and ./duesday-demo-mail. No money moves: the payment
processor is the built-in sandbox, or with --processor stripe a duesday stripe-fake, whose
clock the demo moves.`,
		Args: want(),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.demo(cmd.Context(), f) },
	}
	c.Flags().IntVar(&f.accounts, "accounts", 200, "`NUMBER` of accounts")
	c.Flags().IntVar(&f.months, "months", 3, "`NUMBER` of months up to today")
	c.Flags().Uint64Var(&f.seed, "seed", 1, "`NUMBER` that the book and its life follow from")
	return c
}

func (p *program) demo(ctx context.Context, f *demoFlags) error {
	if f.accounts < 1 || f.accounts > 100_000 || f.months < 1 || f.months > 120 {
		return usagef("want 1 to 100000 accounts and 1 to 120 months")
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
	clock := &demoClock{}
	real := p.now().UTC().Truncate(time.Millisecond)
	start := real.AddDate(0, -f.months, 0)
	clock.set(start)
	if err := fake.set(ctx, start); err != nil {
		return err
	}
	p.now = clock.now
	p.cfg.Policy = config.DefaultPolicy() // one seed, one book, wherever it runs
	return p.with(ctx, need{create: true, processor: true}, func(s *session) error {
		s.now = clock.now
		d := &demonstration{s: s, clock: clock, life: newLife(f.seed, f.accounts, civil.Of(start), civil.Of(real)), tally: map[string]*monthTally{}}
		days := civil.Of(real).DaysSince(civil.Of(start))
		bar := p.progress("days", int64(days+1), nil)
		for i := range days + 1 {
			clock.set(real.AddDate(0, 0, i-days))
			err := fake.set(ctx, clock.now())
			if err == nil {
				err = d.day(ctx)
			}
			if err != nil {
				bar.end()
				return fmt.Errorf("on %s: %w", civil.Of(clock.now()), err)
			}
			bar.add(1)
		}
		bar.end()
		audit, err := s.engine.Verify(ctx)
		if err != nil {
			return err
		}
		if !audit.OK {
			p.code = exitFailed
		}
		return p.showDemo(f, d, audit, time.Since(begun))
	})
}

// A demoClock stands still until it is set. It keeps the time of day of the real clock, so
// that the demo's last day is never ahead of it.
type demoClock struct {
	mu sync.Mutex
	t  time.Time // guarded by mu
}

func (c *demoClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *demoClock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = t
}

const (
	demoFolder = "./duesday-demo"
	demoMarker = "THIS-IS-A-DUESDAY-DEMO"
)

// demoPlaces decides where the demo's store, ledger and mail lie, and makes room. tidy
// removes what nobody can look at afterwards.
func (p *program) demoPlaces(ctx context.Context) (tidy func(), err error) {
	tidy = func() {}
	base := demoFolder
	switch dir := folderOf(p.cfg.Store); {
	case !p.cfg.StoreGiven:
		if err := p.replaceDemo(demoFolder); err != nil {
			return tidy, err
		}
		p.cfg.Store = "pebble:" + demoFolder + "/data"
		base = demoFolder + "/"
	case dir != "":
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return tidy, err
		}
		if len(entries) > 0 {
			return tidy, fmt.Errorf("%s is not empty: a demo wants a fresh store; name another folder, or none for %s", dir, demoFolder)
		}
		base = filepath.Clean(dir) + "-"
	case strings.HasPrefix(p.cfg.Store, "dynamodb:"):
		if err := p.demoUnused(ctx); err != nil {
			return tidy, err
		}
		base = demoFolder + "-"
	default: // in memory: so are its ledger and, as good as, its mail
		if !p.cfg.ProcessorGiven {
			p.cfg.Processor, p.cfg.ProcessorGiven = "sandbox:", true
		}
		if !p.cfg.MailGiven {
			if p.cfg.Mail, err = os.MkdirTemp("", "duesday-demo-mail-"); err != nil {
				return tidy, err
			}
			mail := p.cfg.Mail
			return func() { os.RemoveAll(mail) }, nil
		}
	}
	if !p.cfg.ProcessorGiven {
		p.cfg.Processor = "sandbox:" + base + "sandbox.jsonl"
	}
	if !p.cfg.MailGiven {
		p.cfg.Mail = base + "mail"
	}
	return tidy, nil
}

// demoUnused refuses tables that hold somebody's book.
func (p *program) demoUnused(ctx context.Context) error {
	s, err := p.open(ctx, need{read: true})
	if errors.Is(err, store.ErrMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, err = range s.engine.Accounts(ctx) {
		if err == nil {
			err = fmt.Errorf("%s has accounts in it: a demo wants a fresh store; name another prefix", p.cfg.Store)
		}
		break
	}
	return errors.Join(err, s.close())
}

// replaceDemo makes the folder anew. It deletes only what carries a demo's marker, and
// nothing while another process has its store open.
func (p *program) replaceDemo(dir string) error {
	marker := filepath.Join(dir, demoMarker)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		if _, err := os.Stat(marker); err != nil {
			return fmt.Errorf("%s is there and was not made by a demo: move it away, or name another store with --store", dir)
		}
		if err := p.demoInUse(dir); err != nil {
			return err
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(marker, []byte("Made by duesday demo. The next demo deletes this folder.\n"), 0o600)
}

func (p *program) demoInUse(dir string) error {
	old := p.cfg.Store
	p.cfg.Store = "pebble:" + dir + "/data"
	defer func() { p.cfg.Store = old }()
	s, err := p.open(context.Background(), need{})
	switch {
	case err == nil:
		return s.close()
	case errors.Is(err, store.ErrLocked):
		return err
	}
	return nil // broken or half made: it is to be deleted anyway
}

// A demonstration runs the days.
type demonstration struct {
	s     *session
	clock *demoClock
	life  *life
	tally map[string]*monthTally
	names []string // of the months, in order
}

func (d *demonstration) month() *monthTally {
	name := date(civil.Of(d.clock.now()))[:7]
	t := d.tally[name]
	if t == nil {
		t = &monthTally{Month: name, seen: map[string]bool{}}
		d.tally[name] = t
		d.names = append(d.names, name)
	}
	return t
}

// day is one day of the demo: life happens, then both jobs run and the mail goes.
func (d *demonstration) day(ctx context.Context) error {
	month, engine := d.month(), d.s.engine
	if err := d.life.day(ctx, engine, civil.Of(d.clock.now()), month); err != nil {
		return err
	}
	reminded, err := engine.RunReminders(ctx, billing.RunOptions{Workers: 16})
	if err != nil {
		return err
	}
	month.Reminders += reminded.Sent
	var mu sync.Mutex
	var failed error
	_, err = engine.RunPayments(ctx, billing.RunOptions{Workers: 16, Each: func(r billing.Result) {
		mu.Lock()
		defer mu.Unlock()
		d.life.notice(r)
		failed = errors.Join(failed, month.add(r))
	}})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	mail, err := d.s.drain(ctx, nil)
	month.Mails += mail.Delivered
	waiting := int(d.s.linkless.Swap(0)) // for a link: they go on a later day
	if lost := mail.Failed + mail.Dead - waiting; err == nil && lost > 0 {
		err = fmt.Errorf("%d mails could not be written to %s", lost, d.s.mail)
	}
	return err
}
