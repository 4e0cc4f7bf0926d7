package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/transfer"
)

func (p *program) storeCheck() *cobra.Command {
	return leaf("check", "Read every block of a pebble: store, and name what is damaged",
		func(ctx context.Context, _ []string) error { return p.checkStore(ctx) })
}

func (p *program) checkStore(ctx context.Context) error {
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
