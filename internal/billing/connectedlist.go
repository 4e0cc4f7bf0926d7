package billing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// allPlaces is places, with the connected accounts that the processor knows: one that was
// used first in the lost time is in no store that was restored.
func (e *Engine) allPlaces(ctx context.Context) ([]string, error) {
	places, err := e.Places(ctx)
	if err != nil {
		return nil, err
	}
	p, ok := e.proc.(Platform)
	if !ok {
		return places, nil
	}
	for at, err := range p.Connected(ctx) {
		if errors.Is(err, ErrRefused) && len(places) == 1 { // a key that need not see any
			e.Log.WarnContext(ctx, "the key may not list connected accounts, and none was ever used here", "error", err)
			break
		}
		if err != nil {
			return nil, fmt.Errorf("listing the connected accounts: %w", err)
		}
		if !slices.Contains(places, at) {
			places = append(places, at)
		}
	}
	return places, nil
}

// maxListings is how many accounts of the processor are listed at one time.
const maxListings = 16

// atEach calls do for every element of what is asked for, the first alone and then
// maxListings at a time, and returns when all are done. Where the first is answered that our
// credentials are refused, nobody else is asked.
func atEach[T any](asked []T, do func(i int, what T) error) {
	if len(asked) == 0 || errors.Is(do(0, asked[0]), ErrRefused) {
		return
	}
	var all sync.WaitGroup
	free := make(chan struct{}, maxListings)
	for i := 1; i < len(asked); i++ {
		free <- struct{}{}
		all.Go(func() {
			_ = do(i, asked[i]) // whoever asks keeps the answers
			<-free
		})
	}
	all.Wait()
}
