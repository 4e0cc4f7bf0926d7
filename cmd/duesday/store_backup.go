package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/transfer"
)

func (p *program) storeBackup() *cobra.Command {
	var to string
	var within time.Duration
	c := leaf("backup", func(ctx context.Context, _ []string) error {
		dir, err := p.embedded()
		if err != nil {
			return err
		}
		if within <= 0 {
			return usagef("--timeout %s: want more than nothing, such as 10m", within)
		}
		limited, stop := context.WithTimeoutCause(ctx, within,
			errors.New("it was not done within "+within.String()+": see --timeout"))
		defer stop()
		m, err := transfer.Backup(limited, p.folders(), dir, to)
		switch {
		case errors.Is(err, store.ErrMissing):
			return p.missing()
		case err != nil:
			return err
		}
		p.say("%s is a backup of %s as it stood at %s.", to, m.From, m.Made.Format(time.RFC3339))
		p.say("Copy it to another machine. To put it back: %s --from %s", p.hint("store restore"), quoted(to))
		return p.json(object{"backup", to, "made", m.Made.Format(time.RFC3339Nano), "installation", m.Installation,
			"from", m.From})
	})
	c.Flags().StringVar(&to, "to", "", "`FOLDER` of the backup, new or empty")
	c.Flags().DurationVar(&within, "timeout", 10*time.Minute, "`TIME` to wait for a process that has the store open")
	return required(c, "to")
}

func (p *program) folders() transfer.Folders {
	return transfer.Folders{Tables: schema.New(schema.DefaultPrefix), Names: schema.Names(), Now: p.now, Holder: p.command,
		Version: buildVersion().text()}
}

var errPointInTime = errors.New(`this is for pebble: stores; DynamoDB makes its own backups:
  - switch point-in-time recovery on once: duesday store create --point-in-time-recovery
  - to go back, stop every job, and restore every table to the same second, under other names (aws dynamodb
    restore-table-to-point-in-time): with another prefix, such as restored-recurring-payments and restored-outbox
  - open the restored tables: --store 'dynamodb:?prefix=restored-'; TTL is not restored (duesday store create
    switches it on), nor is autoscaling
  - duesday run payments asks the processor first, and switches charging off if the restored tables lack a charge
    of the processor; then duesday reconcile adopts them, and duesday charging on lets the next run charge
  - never let jobs run on the old tables again`)

// embedded returns the folder of the store, or how it is done elsewhere.
func (p *program) embedded() (string, error) {
	place, err := p.place()
	switch {
	case err != nil:
		return "", err
	case place.Shared():
		return "", errPointInTime
	case place.Folder == "":
		return "", usagef("a store in memory is gone with its process: want pebble:DIR")
	}
	return place.Folder, nil
}

func (p *program) storeRestore() *cobra.Command {
	var from string
	var replace bool
	c := leaf("restore", func(ctx context.Context, _ []string) error {
		dir, err := p.embedded()
		if err != nil {
			return err
		}
		r, err := transfer.Restore(ctx, p.folders(), from, dir, replace)
		if err != nil {
			return err
		}
		p.say("%s is the store as it stood at %s.", p.cfg.Store, r.Made.Format(time.RFC3339))
		if r.Aside != "" {
			p.say("The store that was there is now %s.", r.Aside)
		}
		if r.Meta.Moved != "" {
			p.say("It had been moved before the backup was made, and never charges: %s", r.Meta.Moved)
		} else {
			p.say("Never run jobs on another copy of it from now on: not on the one that it was made from, nor on one that " +
				"was moved elsewhere.")
			p.say("API keys that were revoked since are valid again: %s", p.hint("key list"))
			if r.Held > 0 {
				p.say("%s that waited in the backup held: reconcile tells, by the replaced store, whether they were sent.", plural(r.Held, "mail"))
			}
			p.say("Charging is off in it, because it does not know what was charged, cancelled and changed since. Next:\n"+
				"  %s\n  %s\n  %s", p.hint("reconcile"), p.hint("verify"), p.hint("charging on"))
		}
		return p.json(object{"store", p.cfg.Store, "backup", from, "made", r.Made.Format(time.RFC3339Nano), // the backup
			"installation", r.Installation, "aside?", r.Aside, "held?", r.Held, // the store that was there before
			"charging", r.Meta.Charging, "reason?", r.Meta.Reason,
			"moved?", r.Meta.Moved}) // it had been moved elsewhere when the backup was made
	})
	c.Flags().StringVar(&from, "from", "", "`FOLDER` that duesday store backup has made")
	c.Flags().BoolVar(&replace, "replace", false, "move a store that is there aside")
	return required(c, "from")
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
		p.code = exitDamage
		p.say("%s is damaged. Put a backup back, which keeps the folder aside: %s", p.cfg.Store,
			p.hint("store restore --replace --from FOLDER"))
	} else {
		p.say("%s is whole: every block of its files was read.", p.cfg.Store)
	}
	section(p, "", []string{"FILE", "DAMAGE"}, found, func(d transfer.Damage) []any { return []any{d.File, d.Detail} })
	return p.json(object{"store", p.cfg.Store, "ok", len(found) == 0, "files", files,
		"damages", views(found, func(d transfer.Damage) object { return object{"file?", d.File, "detail", d.Detail} })})
}
