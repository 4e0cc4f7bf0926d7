package engine

import (
	"context"

	"github.com/duesday/duesday/internal/billing"
)

// keyed returns the request that was committed under the key before, or nil if there is none or no key
// was given. It returns ErrState if that was another request. The caller commits Write of the
// request in the commit that fixes its period: of two requests with one key, the second conflicts
// and finds the first.
func (e *Engine) keyed(ctx context.Context, asked *billing.KeyedRequest) (*billing.KeyedRequest, error) {
	if asked.Key == "" {
		return nil, nil
	}
	it, err := e.Store.Get(ctx, e.Table, asked.ItemKey())
	if err != nil {
		return nil, billing.IgnoreNotFound(err)
	}
	before, err := billing.DecodeKeyed(it)
	if err != nil {
		return nil, err
	}
	return before, before.Refuses(asked)
}
