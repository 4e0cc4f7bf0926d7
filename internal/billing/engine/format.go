package engine

import (
	"context"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
)

// pastFormat is the first format whose builds know an open past period and a requested manual payment.
// An older build, at work beside this one, would take the charge of a past period for the next one's.
const pastFormat = 3

// mayOpenPast returns ErrState on a shared store that older builds may still work on.
func (e *Engine) mayOpenPast(ctx context.Context) error {
	if !e.Shared {
		return nil // it was raised when it was opened
	}
	meta, err := e.Meta(ctx)
	if err == nil && meta.Format < pastFormat {
		err = fmt.Errorf("this store has format %d, on which an older Duesday may be at work: say duesday store migrate "+
			"first: %w", meta.Format, billing.ErrState)
	}
	return err
}
