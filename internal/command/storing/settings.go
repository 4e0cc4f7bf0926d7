package storing

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) settingsShow() *cobra.Command {
	var history bool
	c := p.StoreLeaf("show", session.Need{Read: true},
		func(ctx context.Context, s *session.Session, _ []string) error {
			if history {
				_, err := screen.List(p.Screen, settings.History(ctx, s.Engine.Records), view.SettingChange, []string{"AT", "VERSION", "SETTING", "BEFORE", "AFTER", "ACTOR"},
					func(c settings.Changed) []any { return []any{c.At, c.Version, c.Name, c.Before, c.After, c.Actor} })
				return err
			}
			now, err := settings.Read(ctx, s.Engine.Records)
			if now.Version == 0 && err == nil {
				p.Warn("this store has no settings yet; the first run or serve stores the defaults")
			}
			t := p.Table("SETTING", "VALUE")
			for _, name := range now.Names() {
				t.Row(name, now.Text(name))
			}
			t.Flush()
			return errors.Join(err, p.JSON(view.Settings(&now)))
		})
	c.Flags().BoolVar(&history, "history", false, "list every change, oldest first")
	return c
}

func (p *program) settingsSet() *cobra.Command {
	c := p.StoreLeaf("set NAME=VALUE...",
		session.Need{Read: true}, func(ctx context.Context, s *session.Session, args []string) error {
			var old settings.Settings
			now, err := settings.Change(ctx, s.Engine.Records, func(now *settings.Settings) error {
				old = *now
				return setSettings(now, args)
			})
			if err != nil {
				return err
			}
			p.Say("the settings are at version %d", now.Version)
			var changed []view.Difference
			names := now.Names()
			for _, name := range old.Names() {
				if !slices.Contains(names, name) { // the product's name was removed
					names = append(names, name)
				}
			}
			for _, name := range names {
				if before, after := old.Text(name), now.Text(name); before != after {
					changed = append(changed, view.Difference{Name: name, Before: before, After: after})
				}
			}
			p.SayDifferences(changed)
			return p.JSON(view.Settings(&now))
		})
	return session.Checked(c, func(args []string) error { return setSettings(new(settings.Default()), args) })
}

// setSettings applies the arguments, which have the form NAME=VALUE.
func setSettings(s *settings.Settings, args []string) error {
	seen := map[string]bool{}
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		switch {
		case !ok:
			return screen.Usagef("settings must be NAME=VALUE, such as retry-days=1,3,5,7 (got %s)", arg)
		case seen[name]:
			return screen.Usagef("%s is set twice", name)
		}
		seen[name] = true
		if err := s.Set(name, text); err != nil {
			return err
		}
	}
	return nil
}
