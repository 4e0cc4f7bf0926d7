package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/storeurl"
	"github.com/duesday/duesday/internal/transfer"
)

func (p *program) storeBackupCommand() *cobra.Command {
	var to string
	var within time.Duration
	c := &cobra.Command{
		Use:   "backup",
		Short: "Copy a pebble: store to a folder while it is in use",
		Long: `Make a consistent copy of a pebble: store in a new folder. A command that has the store
open goes on working, and is asked to make the copy. It takes little time: files that never
change are shared with the store by hard links where the file system allows. So copy the
folder to another machine afterwards. duesday store restore puts it back.

DynamoDB makes its own backups: switch point-in-time recovery on.`,
		Args: want(),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.backupStore(cmd.Context(), to, within) },
	}
	c.Flags().StringVar(&to, "to", "", "`FOLDER` of the backup, new or empty")
	c.Flags().DurationVar(&within, "timeout", 10*time.Minute, "`TIME` to wait for a process that has the store open")
	if err := c.MarkFlagRequired("to"); err != nil {
		panic(err) // unreachable: the flag was made above
	}
	return c
}

type backupView struct {
	Backup       string `json:"backup"`
	Made         string `json:"made"`
	Installation string `json:"installation"`
	From         string `json:"from"`
}

func (p *program) backupStore(ctx context.Context, to string, within time.Duration) error {
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
		return &missingStore{p.cfg.Store}
	case err != nil:
		return err
	}
	if p.cfg.JSON {
		return p.object(backupView{to, m.Made.Format(time.RFC3339Nano), m.Installation, m.From})
	}
	p.say("%s is a backup of %s as it stood at %s.", to, m.From, m.Made.Format(time.RFC3339))
	p.say("Copy it to another machine. To put it back: %s --from %s", p.hint("store restore"), quoted(to))
	return nil
}

func (p *program) folders() transfer.Folders {
	return transfer.Folders{Tables: schema.New(schema.DefaultPrefix), Names: schema.Names(), Now: p.now, Holder: p.command}
}

// errPointInTime says how DynamoDB does it.
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
	place, err := storeurl.Parse(p.cfg.Store)
	switch {
	case err != nil:
		return "", &usageError{err}
	case place.Shared():
		return "", errPointInTime
	case place.Folder == "":
		return "", usagef("a store in memory is gone with its process: want pebble:DIR")
	}
	return place.Folder, nil
}
