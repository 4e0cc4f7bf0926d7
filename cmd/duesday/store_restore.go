package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/transfer"
)

func (p *program) storeRestoreCommand() *cobra.Command {
	var from string
	var replace bool
	c := &cobra.Command{
		Use:   "restore",
		Short: "Put a backup back as a pebble: store",
		Long: `Copy a backup to the folder that --store names, where there is nothing yet; with --replace
a store that is there is moved aside, and never deleted. The backup stays as it is.

What was charged after the backup was made is not in it, nor what people asked for since. So
charging is off in it: duesday reconcile adopts the processor's successful charges, and
duesday charging on lets the next run charge.`,
		Args: want(),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.restoreStore(cmd.Context(), from, replace) },
	}
	c.Flags().StringVar(&from, "from", "", "`FOLDER` that duesday store backup has made")
	c.Flags().BoolVar(&replace, "replace", false, "move a store that is there aside")
	if err := c.MarkFlagRequired("from"); err != nil {
		panic(err) // unreachable: the flag was made above
	}
	return c
}

type restoreView struct {
	Store        string `json:"store"`
	Backup       string `json:"backup"`
	Made         string `json:"made"` // when the backup was made
	Installation string `json:"installation"`
	Aside        string `json:"aside,omitempty"` // the store that was there before
	Charging     bool   `json:"charging"`
	Reason       string `json:"reason,omitempty"`
	Moved        string `json:"moved,omitempty"` // it had been moved elsewhere when the backup was made
}

func (p *program) restoreStore(ctx context.Context, from string, replace bool) error {
	dir, err := p.embedded()
	if err != nil {
		return err
	}
	r, err := transfer.Restore(ctx, p.folders(), from, dir, replace)
	if err != nil {
		return err
	}
	if p.cfg.JSON {
		return p.object(restoreView{p.cfg.Store, from, r.Made.Format(time.RFC3339Nano), r.Installation, r.Aside,
			r.Meta.Charging, r.Meta.Reason, r.Meta.Moved})
	}
	p.say("%s is the store as it stood at %s.", p.cfg.Store, r.Made.Format(time.RFC3339))
	if r.Aside != "" {
		p.say("The store that was there is now %s.", r.Aside)
	}
	if r.Meta.Moved != "" {
		p.say("It had been moved before the backup was made, and never charges: %s", r.Meta.Moved)
		return nil
	}
	p.say("Never run jobs on another copy of it from now on: not on the one that it was made from, nor on one that was " +
		"moved elsewhere.")
	p.say("Charging is off in it, because it does not know what was charged, cancelled and changed since. Next:\n  %s\n "+
		"%s\n  %s",
		p.hint("reconcile"), p.hint("verify"), p.hint("charging on"))
	return nil
}
