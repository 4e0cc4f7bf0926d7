package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/transfer"
)

func (p *program) storeMigrate() *cobra.Command {
	return leaf("migrate", "Give a dynamodb: store of an older Duesday the present format",
		func(ctx context.Context, _ []string) error { return p.migrateStore(ctx) })
}

func (p *program) migrateStore(ctx context.Context) error {
	place, err := p.place()
	switch {
	case err != nil:
		return err
	case !place.Shared():
		return usagef("store migrate is for a dynamodb: store; the first command that opens a pebble: store raises it")
	}
	c := &transfer.Copy{Now: p.now, Shared: true, Progress: func(phase transfer.Phase, n int64) {
		p.tell("runs under way", plural(int(n), "lease"))
	}}
	var had int
	err = p.withSide(ctx, place, false, false, func(side billing.Side) (err error) {
		c.From = side
		had, err = c.Migrate(ctx, buildVersion().text())
		return err
	})
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrMissing) {
		return &missingStore{p.cfg.Store}
	}
	if err != nil {
		return err
	}
	if had == billing.FormatVersion {
		p.say("%s has format %d already", p.cfg.Store, had)
	} else {
		p.say("%s had format %d, and has format %d now: older versions of Duesday refuse it", p.cfg.Store, had,
			billing.FormatVersion)
	}
	return p.json(object{"store", p.cfg.Store, "had", had, "format", billing.FormatVersion})
}
