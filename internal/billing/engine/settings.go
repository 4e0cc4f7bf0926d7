package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/settings"
)

// An engine has the settings that its store had at Open. A run and an event begin with Fresh, and
// keep those settings to their end, so a change does not split a run. A command's engine is not older
// than the command. A server calls Fresh for everything else that depends on the settings. Fresh reads
// one item.

// Fresh returns the engine with the settings that the store has now. Another process may
// have changed them since Open.
func (e *Engine) Fresh(ctx context.Context) (*Engine, error) {
	fresh := *e
	if err := fresh.readSettings(ctx, false); err != nil {
		return nil, err
	}
	return &fresh, nil
}

// readSettings takes the policy from the store. A store without settings leaves it as it is in
// Options.Config. Wrong settings may be used only for reading: what is wrong has its default.
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

// SettingsNote is the note of a run about the settings that it kept to.
func (e *Engine) SettingsNote() string {
	parts := []string{fmt.Sprintf("version=%d", e.cfg.Version)}
	for _, name := range [...]string{"receipt-months", "retry-days", "catch-up", "action-days", "after-failure",
		"collect-days"} {
		parts = append(parts, name+"="+e.cfg.Text(name))
	}
	return strings.Join(parts, " ")
}
