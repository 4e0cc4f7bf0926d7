package processor

import (
	"context"
	"errors"
	"iter"
	"sync"
)

// MaxSends is the maximum number of times that one step sends a request. After that, the next run
// continues.
const MaxSends = 3

// Definite reports whether the processor did nothing and would give the same answer to a repeated
// request.
func Definite(err error) bool {
	return errors.Is(err, ErrRefused) || errors.Is(err, ErrAccountRefused) || errors.Is(err, ErrInvalid) ||
		errors.Is(err, ErrNoIntent)
}

type gateKey struct{}

// WithGate returns a context whose requests to a processor, other than look-ups, are sent only while
// the gate returns nil. A processor calls the gate right before each send, because a request may
// have waited for a long time.
func WithGate(ctx context.Context, gate func(context.Context) error) context.Context {
	return context.WithValue(ctx, gateKey{}, gate)
}

// PassGate returns the error of the context's gate, or nil if the context has no gate.
func PassGate(ctx context.Context) error {
	if gate, ok := ctx.Value(gateKey{}).(func(context.Context) error); ok {
		return gate(ctx)
	}
	return nil
}

// Ask calls do up to MaxSends times, until it returns no error or a Definite error, or until ctx
// ends. Use it for repeatable requests and for lists. After an interruption, Ask reads the list
// from its start.
func Ask[T any](ctx context.Context, do func() (T, error)) (answer T, err error) {
	for range MaxSends {
		if answer, err = do(); err == nil || Definite(err) || ctx.Err() != nil {
			break
		}
	}
	return answer, err
}

// AskAll calls Ask for a list. If the list ends with an error, AskAll also returns the elements
// before the error.
func AskAll[T any](ctx context.Context, list func(context.Context, ListRequest) iter.Seq2[T, error],
	r ListRequest) ([]T, error) {
	return Ask(ctx, func() ([]T, error) { return Gather(list(ctx, r)) })
}

// Refuses reports whether the error means that a connected account refuses Duesday's requests. The
// error is ErrInvalid if there is no such account.
func Refuses(at string, err error) bool {
	return at != "" && (errors.Is(err, ErrAccountRefused) || errors.Is(err, ErrInvalid))
}

// Gather returns the elements of a list. If the list ends with an error, it also returns the
// elements before the error.
func Gather[T any](list iter.Seq2[T, error]) (all []T, err error) {
	for v, err := range list {
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

// maxListings is the maximum number of the processor's accounts that are listed at the same time.
const maxListings = 16

// An Answer is the result of do for one question of AskEach.
type Answer[T any] struct {
	Value T
	Err   error
}

// AskEach calls do for every question and returns all answers. It asks the first question alone,
// and then up to maxListings questions at the same time. If the first answer is ErrRefused, the
// processor refuses the credentials, and AskEach stops.
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
