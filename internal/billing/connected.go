package billing

import (
	"context"
	"errors"
	"iter"
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
func (e *Records) Places(ctx context.Context) ([]string, error) {
	places := []string{""}
	for it, err := range e.Store.Query(ctx, store.Query{Table: e.Table, Partition: processorPK}) {
		if err != nil {
			return nil, err
		}
		places = append(places, it.Str(schema.SK))
	}
	return places, nil
}

// A Platform is a Processor with connected accounts.
type Platform interface {
	// CheckConnected returns ErrInvalid when there is no such connected account, or it is our
	// own, and ErrAccountRefused when it refuses us.
	CheckConnected(ctx context.Context, at string) error

	// Connected yields all connected accounts, those that nobody was charged at among them. An
	// error comes last.
	Connected(ctx context.Context) iter.Seq2[string, error]
}

// registerPlace returns what has to be in the commit that gives an account the payer: after
// it, places has the connected account. None for our own.
func (e *Records) RegisterPlace(p Payer) []store.Write {
	if p.At == "" {
		return nil
	}
	return []store.Write{store.Put(e.Table, store.NewItem(
		store.Attribute{Name: schema.PK, Value: store.S(processorPK)},
		store.Attribute{Name: schema.SK, Value: store.S(strings.Clone(p.At))}))}
}

// maxListings is how many accounts of the processor are listed at one time.
const maxListings = 16

// atEach calls do for every element of what is asked for, the first alone and then
// maxListings at a time, and returns when all are done. Where the first is answered that our
// credentials are refused, nobody else is asked.
func AskEach[T any](asked []T, do func(i int, what T) error) {
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
