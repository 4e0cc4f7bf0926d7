package billing

import "context"

// SetEmail changes only the address.
func (e *Engine) SetEmail(ctx context.Context, id, email string) (*Account, error) {
	return e.UpdateAccount(ctx, id, AccountChange{Email: &email})
}
