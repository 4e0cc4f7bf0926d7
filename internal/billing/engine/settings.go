package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/settings"
)

// An engine uses the settings that its store had at Open. A run and the handling of an event start
// with Fresh and keep those settings until the end, so a change does not split a run. A command
// opens its own engine, so the engine's settings are never older than the command. A server calls
// Fresh for all other work that depends on the settings. Fresh reads one item.

// Fresh returns an engine with the store's current settings, which another process may have changed
// since Open.
func (e *Engine) Fresh(ctx context.Context) (*Engine, error) {
	fresh := *e
	if err := fresh.readSettings(ctx, false); err != nil {
		return nil, err
	}
	return &fresh, nil
}

// readSettings reads the policy from the store. If the store has no settings, the policy in
// Options.Config stays in effect. An engine may only use invalid settings for reading, and each
// invalid setting has its default value.
func (e *Engine) readSettings(ctx context.Context, readOnly bool) error {
	now, err := settings.Read(ctx, e.Records)
	if wrong, ok := errors.AsType[*billing.IllegibleError](err); ok && !readOnly {
		return fmt.Errorf("%w; to correct them, run duesday settings set", wrong)
	} else if err != nil && !ok {
		return err
	}
	if now.Version == 0 {
		return nil
	}
	e.cfg.Settings = now
	return nil
}

// SettingsNote returns settings.Settings.Note of the engine's settings.
func (e *Engine) SettingsNote() string { return e.cfg.Note() }
