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

func (p *program) reconcile(ctx context.Context, s *session.Session, old string) error {
	n, failed := s.Engine.Reconcile(ctx)
	meta, err := s.Engine.Meta(ctx)
	if err != nil {
		return errors.Join(failed, err)
	}
	given := old != ""
	if meta.Aside != "" {
		old = cmp.Or(old, "pebble:"+meta.Aside)
	}
	var changes []replaced.Change
	var sent, released int
	if old != "" {
		changes, sent, released, err = p.compareOld(ctx, s, old)
		if err != nil && given {
			return errors.Join(failed, fmt.Errorf("--old %s: %w", old, err))
		}
		if err != nil {
			p.Warn("the replaced store cannot be read, so mail stays held: %v; set --old STORE if it is elsewhere", err)
		}
	}
	if failed == nil {
		failed = s.Engine.Charging().Reconciled(ctx)
	}
	p.Deliver(ctx, s)
	held, err := heldMail(ctx, s)
	if err != nil {
		return errors.Join(failed, err)
	}
	p.Say("%s adopted", screen.Plural(n, "charge"))
	p.Fields("  mails sent before, which are not sent again", screen.Positive(sent), "  mails not sent before", screen.Positive(released))
	p.SayHeld(held)
	screen.Section(p.Screen, "Changes that users made since the backup; repeat those that still apply:", []string{"ITEM", "CHANGE", "COMMAND"}, changes,
		func(c replaced.Change) []any { return []any{c.Of(), c.What, c.Redo} })
	if len(changes) > 0 || held > 0 {
		p.Code = screen.ExitPerson
	}
	if failed != nil { // a missing change may be the cause
		return failed
	}
	if !meta.Charging {
		p.Say("charging is still off; to turn it on, run: %s", p.Hint("charging on"))
	}
	return p.JSON(view.Object{"adopted", n, "charging", meta.Charging, "held", held, "sent_before?", sent, "released?", released,
		"changed", view.List(changes, func(c replaced.Change) view.Object {
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
