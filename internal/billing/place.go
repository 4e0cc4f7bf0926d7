package billing

import (
	"context"
	"strings"
	"sync"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// processorPK is the partition that lists the connected accounts that any account has been
// charged at: whatever is listed at the processor is listed at each of them.
const processorPK = "PROCESSOR"

// places returns where at the processor this store has charged: "" for our own account
// there, then the connected ones in order.
func (e *Engine) places(ctx context.Context) ([]string, error) {
	places := []string{""}
	for it, err := range e.store.Query(ctx, store.Query{Table: e.table, Partition: processorPK}) {
		if err != nil {
			return nil, err
		}
		places = append(places, it.Str(schema.SK))
	}
	return places, nil
}

// registerPlace returns what has to be in the commit that gives an account the payer: after
// it, places has the connected account. None for our own.
func (e *Engine) registerPlace(p Payer) []store.Write {
	if p.At == "" {
		return nil
	}
	return []store.Write{store.Put(e.table, store.NewItem(
		store.Attribute{Name: schema.PK, Value: store.S(processorPK)},
		store.Attribute{Name: schema.SK, Value: store.S(strings.Clone(p.At))}))}
}

// maxListings is how many accounts of the processor are listed at one time.
const maxListings = 16

// atEach calls do for every element of what is asked for, maxListings at a time, and returns
// when all are done.
func atEach[T any](asked []T, do func(i int, what T)) {
	var all sync.WaitGroup
	free := make(chan struct{}, maxListings)
	for i, what := range asked {
		free <- struct{}{}
		all.Go(func() {
			do(i, what)
			<-free
		})
	}
	all.Wait()
}
