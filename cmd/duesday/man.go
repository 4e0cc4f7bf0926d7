package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/manual"
	"github.com/duesday/duesday/internal/session"
)

// manCommand writes the man pages, for packages.
func (p *program) manCommand() (c *cobra.Command) {
	c = session.Leaf("man FOLDER", func(_ context.Context, args []string) error {
		folder := p.Path(args[0])
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		pages := manual.Pages(c.Root(), session.BuildVersion().Number)
		for name, page := range pages {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(page), 0o644); err != nil {
				return err
			}
		}
		p.Say("%d man pages were written to %s", len(pages), args[0])
		return nil
	})
	c.Args, c.Hidden = cobra.ExactArgs(1), true
	return c
}
