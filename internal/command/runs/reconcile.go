package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/replaced"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) reconcileCommand() *cobra.Command {
	var old string
	c := p.StoreLeaf("reconcile", session.Need{Processor: true}, func(ctx context.Context, s *session.Session, _ []string) error {
		return p.reconcile(ctx, s, old)
	})
	c.Flags().StringVar(&old, "old", "", "`STORE` that a restore replaced, such as pebble:DIR (default: the one that "+
		"store restore kept)")
	return c
}

// An adoption is what reconcile did.
type adoption struct {
	charges, sent, released int
	erased, unerased        int // accounts that were erased again, and what was left
	changes                 []replaced.Change
	meta                    billing.Meta
	failed                  error // of charges that were not adopted
}

// Reconcile does what the command does, without printing it, and returns the number of adopted charges.
func Reconcile(ctx context.Context, of *session.Program, s *session.Session) (int, error) {
	a, err := (&program{of}).adopt(ctx, s, "")
	return a.charges, errors.Join(a.failed, err)
}

func (p *program) adopt(ctx context.Context, s *session.Session, old string) (a adoption, err error) {
	a.charges, a.failed = s.Engine.Reconcile(ctx)
	if a.meta, err = s.Engine.Meta(ctx); err != nil {
		return a, err
	}
	given := old != ""
	if a.meta.Aside != "" {
		old = cmp.Or(old, "pebble:"+a.meta.Aside)
	}
	if a.erased, a.unerased, err = p.EraseAgain(ctx, s, old); err != nil {
		return a, err
	}
	if old != "" {
		a.changes, a.sent, a.released, err = p.compareOld(ctx, s, old)
		if err != nil && given {
			return a, fmt.Errorf("--old %s: %w", old, err)
		}
		if err != nil {
			p.Warn("the replaced store cannot be read, so mail stays held: %v; set --old STORE if it is elsewhere", err)
		}
	}
	if a.failed == nil {
		a.failed = s.Engine.Charging().Reconciled(ctx)
	}
	return a, nil
}

func (p *program) reconcile(ctx context.Context, s *session.Session, old string) error {
	a, err := p.adopt(ctx, s, old)
	if err != nil {
		return errors.Join(a.failed, err)
	}
	p.Deliver(ctx, s)
	held, err := heldMail(ctx, s)
	if err != nil {
		return errors.Join(a.failed, err)
	}
	p.SayErased(a.erased, a.unerased)
	p.Say("%s adopted", screen.Plural(a.charges, "charge"))
	p.Fields("  mails sent before, which are not sent again", screen.Positive(a.sent), "  mails not sent before", screen.Positive(a.released))
	p.SayHeld(held)
	screen.Section(p.Screen, "Changes that users made since the backup; repeat those that still apply:", []string{"ITEM", "CHANGE", "COMMAND"}, a.changes,
		func(c replaced.Change) []any { return []any{c.Of(), c.What, c.Redo} })
	if len(a.changes) > 0 || held > 0 {
		p.Code = screen.ExitPerson
	}
	if a.failed != nil { // a missing change may be the cause
		return a.failed
	}
	if !a.meta.Charging {
		p.Say("charging is still off; to turn it on, run: %s", p.Hint("charging on"))
	}
	return p.JSON(view.Object{"adopted", a.charges, "charging", a.meta.Charging, "held", held, "sent_before?", a.sent, "released?", a.released, "erased_again?", a.erased,
		"changed", view.List(a.changes, func(c replaced.Change) view.Object {
			return view.Object{"of", c.Of(), "change", c.What, "command", c.Redo}
		})})
}

// compareOld compares this store with the one that a restore replaced, and releases or drops the held
// mail accordingly. It returns the changes that users made, the number of mails that were already
// sent, and the number of mails that it released.
func (p *program) compareOld(ctx context.Context, s *session.Session, url string) (all []replaced.Change, sent, released int,
	err error) {
	place, err := p.PlaceOf(url)
	if err != nil {
		return nil, 0, 0, err
	}
	tables, err := session.TablesAt(place)
	if err != nil {
		return nil, 0, 0, err
	}
	kept, err := p.OpenStore(ctx, place, tables, session.Need{Read: true})
	if err != nil {
		return nil, 0, 0, err
	}
	defer func() { err = errors.Join(err, kept.Close()) }()
	c, err := replaced.Open(ctx, s.Engine.Records, billing.NewRecords(kept, tables, p.Now, nil), s.Engine.Mailed)
	if err != nil {
		return nil, 0, 0, err
	}
	err = c.Changes(ctx, func(x replaced.Change) {
		switch {
		case x.Redo != "":
			x.Redo = p.Hint(x.Redo)
		case x.Name.ID != "":
			x.Redo = p.Name + " subscription show " + x.Of() + " --store " + session.Quoted(url)
		case x.Name.Account != "":
			x.Redo = p.Name + " account show " + x.Of() + " --store " + session.Quoted(url)
		}
		all = append(all, x)
	})
	if err != nil {
		return all, 0, 0, err
	}
	count, err := s.Outbox(nil).On(outbox.Held).Decide(ctx, // based on what Changes recorded
		func(f outbox.Effect) (outbox.Fate, error) { return c.Fate(ctx, f) })
	return all, count[outbox.Drop], count[outbox.Release], err
}

// heldMail returns the number of mails that wait for a decision.
func heldMail(ctx context.Context, s *session.Session) (int, error) {
	b, err := s.Outbox(nil).On(outbox.Held).Backlog(ctx, 0)
	return b.Due + b.Later, err
}
