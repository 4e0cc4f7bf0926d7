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

// processorPK is the partition of the connected accounts at which an account has been charged:
// every list at the processor is asked for at each of them.
const processorPK = "PROCESSOR"

// Places returns the accounts at the processor at which this store has charged: "" for our own
// one, then the connected ones in order.
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
	// CheckConnected returns ErrInvalid if there is no such connected account or it is our own,
	// and ErrAccountRefused if it refuses us.
	CheckConnected(ctx context.Context, at string) error

	// Connected yields all connected accounts, also those without any charge. An error comes
	// last.
	Connected(ctx context.Context) iter.Seq2[string, error]
}

// RegisterPlace returns the writes to add the payer's connected account to Places; none for our own
// account. They must be in the commit which gives an account the payer.
func (e *Records) RegisterPlace(p Payer) []store.Write {
	if p.At == "" {
		return nil
	}
	return []store.Write{store.Put(e.Table, itemAt(store.Key{PK: processorPK, SK: strings.Clone(p.At)}))}
}

// maxListings is the number of the processor's accounts listed at a time.
const maxListings = 16

// An Answer is that of one question of AskEach.
type Answer[T any] struct {
	Value T
	Err   error
}

// AskEach calls do for every question, the first alone and then maxListings at a time, and
// returns the answers when all are there. If the first is ErrRefused, our credentials are refused
// and AskEach stops.
func AskEach[Q, T any](questions []Q, do func(Q) (T, error)) []Answer[T] {
	answers := make([]Answer[T], len(questions))
	ask := func(i int) { answers[i].Value, answers[i].Err = do(questions[i]) }
	if len(questions) == 0 {
		return nil
	}
	if ask(0); errors.Is(answers[0].Err, ErrRefused) {
		return answers
	}
	var all sync.WaitGroup
	free := make(chan struct{}, maxListings)
	for i := 1; i < len(questions); i++ {
		free <- struct{}{}
		all.Go(func() {
			ask(i)
			<-free
		})
	}
	all.Wait()
	return answers
}
