package storing

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/transfer"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) storeBackup() *cobra.Command {
	var to string
	var keep int
	var within time.Duration
	c := session.Leaf("backup", func(ctx context.Context, _ []string) error {
		dir, err := p.embedded()
		if err != nil {
			return err
		}
		if within <= 0 {
			return screen.Usagef("--timeout must be more than zero, such as 10m (got %s)", within)
		}
		limited, stop := context.WithTimeoutCause(ctx, within,
			errors.New("it did not finish within "+within.String()+"; set a longer --timeout"))
		defer stop()
		made, removed := to, []string(nil)
		var m *transfer.Manifest
		if keep == 0 {
			m, err = transfer.Backup(limited, p.folders(), dir, p.Path(to))
		} else {
			var at string
			m, at, removed, err = transfer.BackupInto(limited, p.folders(), dir, p.Path(to), keep)
			made = filepath.Join(to, filepath.Base(at))
		}
		switch {
		case errors.Is(err, store.ErrMissing):
			return p.Missing()
		case err != nil:
			return err
		}
		p.Say("%s is a backup of %s as it was at %s.", made, m.From, m.Made.Format(time.RFC3339))
		p.Say("Copy it to another machine. To restore it, run: %s --from %s", p.Hint("store restore"), session.Quoted(made))
		if len(removed) > 0 {
			p.Say("Removed %s: %s", screen.Plural(len(removed), "older backup"), strings.Join(removed, ", "))
		}
		return p.JSON(view.Object{"backup", made, "made", m.Made, "installation", m.Installation,
			"from", m.From, "removed?", removed})
	})
	c.Flags().StringVar(&to, "to", "", "`FOLDER` for the backup, new or empty")
	c.Flags().IntVar(&keep, "keep", 0, "make the backup in a folder within --to, named by its time, and keep the `NUMBER` newest there")
	c.Flags().DurationVar(&within, "timeout", 10*time.Minute, "`TIME` to wait for a process that has the store open")
	session.Required(c, "to")
	return session.Checked(c, func([]string) error {
		if keep == 0 && !c.Flags().Changed("keep") {
			return nil
		}
		return screen.Between("keep", keep, 1, 10_000)
	})
}

func (p *program) folders() transfer.Folders {
	return transfer.Folders{Tables: schema.New(schema.DefaultPrefix), Names: schema.Names(), Now: p.Now, Holder: p.Command,
		Version: session.BuildVersion().Text()}
}

var errPointInTime = errors.New(`this is for pebble: stores; DynamoDB makes its own backups:
  - turn point-in-time recovery on once: duesday store create --point-in-time-recovery
  - to go back, stop every job, and restore every table to the same second, under other names (aws dynamodb
    restore-table-to-point-in-time): with another prefix, such as restored-recurring-payments and restored-outbox
  - open the restored tables: --store 'dynamodb:?prefix=restored-'; TTL is not restored (duesday store create
    turns it on), nor is autoscaling
  - duesday run payments asks the processor first, and turns charging off if the restored tables lack one of the
    processor's charges; then duesday reconcile adopts them, and duesday charging on lets the next run charge
  - never let jobs run on the old tables again`)

// embedded returns the store's folder. If the store has no folder, the error describes the
// alternative.
func (p *program) embedded() (string, error) {
	place, err := p.Place()
	switch {
	case err != nil:
		return "", err
	case place.Shared():
		return "", errPointInTime
	case place.Folder == "":
		return "", screen.Usagef("a mem: store ends with its process; use pebble:DIR")
	}
	return place.Folder, nil
}

func (p *program) storeRestore() *cobra.Command {
	var from string
	var replace bool
	c := session.Leaf("restore", func(ctx context.Context, _ []string) error {
		dir, err := p.embedded()
		if err != nil {
			return err
		}
		r, err := transfer.Restore(ctx, p.folders(), p.Path(from), dir, replace)
		if err != nil {
			return err
		}
		p.Say("%s is now the store as it was at %s.", p.Config.Store, r.Made.Format(time.RFC3339))
		erased := 0
		if r.Meta.Moved == "" {
			left := 0
			err = p.With(ctx, session.Need{}, func(s *session.Session) (err error) {
				erased, left, err = p.EraseAgain(ctx, s, screen.Prefixed("pebble:", r.Aside))
				return err
			})
			p.SayErased(erased, left)
			if err != nil {
				return fmt.Errorf("the store was restored, but accounts that were erased since the backup are not erased again: %w; run: %s",
					err, p.Hint("reconcile"))
			}
		}
		if r.Aside != "" {
			p.Say("The previous store is now %s.", r.Aside)
		}
		if r.Meta.Moved != "" {
			p.Say("It was moved before the backup was made, so it never charges: %s", r.Meta.Moved)
		} else {
			p.Say("From now on, never run jobs on another copy of this store, such as the one that was backed up or one that " +
				"was moved elsewhere.")
			if r.Known != "" {
				p.Say("Receipt numbers begin in a new series, because the replaced store may have given more than these: %s", r.Known)
			}
			p.Say("API keys that were revoked after the backup are valid again; check them with %s", p.Hint("key list"))
			if r.Held > 0 {
				p.Say("%s waiting in the backup held; reconcile finds out from the replaced store whether they were sent.", screen.Plural(r.Held, "mail"))
			}
			p.Say("Charging is off in it, because it does not know what was charged, canceled and changed since. Next, run:\n"+
				"  %s\n  %s\n  %s", p.Hint("reconcile"), p.Hint("verify"), p.Hint("charging on"))
		}
		return p.JSON(view.Object{"store", p.Config.Store, "backup", from, "made", r.Made, // the backup's time
			"installation", r.Installation, "aside?", r.Aside, "held?", r.Held, "erased_again?", erased, "last_numbers?", r.Known, // the store that was replaced
			"charging", r.Meta.Charging, "reason?", r.Meta.Reason,
			"moved?", r.Meta.Moved}) // the store was moved elsewhere before the backup
	})
	c.Flags().StringVar(&from, "from", "", "`FOLDER` that duesday store backup created")
	c.Flags().BoolVar(&replace, "replace", false, "move an existing store aside")
	return session.Required(c, "from")
}

func (p *program) checkStore(ctx context.Context, _ []string) error {
	dir, err := p.embedded()
	if err != nil {
		return err
	}
	found, files, err := p.folders().Check(ctx, dir)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		p.Code = screen.ExitDamage
		p.Say("%s is damaged. Restore a backup, which keeps the folder aside: %s", p.Config.Store,
			p.Hint("store restore --replace --from FOLDER"))
	} else {
		p.Say("%s is undamaged: every block of its files was read.", p.Config.Store)
	}
	screen.Section(p.Screen, "", []string{"FILE", "DAMAGE"}, found, func(d transfer.Damage) []any { return []any{d.File, d.Detail} })
	return p.JSON(view.Object{"store", p.Config.Store, "ok", len(found) == 0, "files", files,
		"damages", view.List(found, func(d transfer.Damage) view.Object { return view.Object{"file?", d.File, "detail", d.Detail} })})
}
