package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

func TestRetry(t *testing.T) {
	conflict := &store.ConflictError{Table: "t", Key: store.Key{PK: "a"}, Condition: "item exists"}
	unknown := fmt.Errorf("commit: %w", store.ErrUnknown)
	for name, c := range map[string]struct {
		tries []error // of each try in turn; the last one is repeated
		calls int
		want  error
		text  string
	}{
		"the first try succeeds":         {tries: []error{nil}, calls: 1},
		"conflicts, then success":        {tries: []error{conflict, conflict, nil}, calls: 3},
		"unknown outcomes, then success": {tries: []error{unknown, conflict, unknown, nil}, calls: 4},
		"another error ends it": {tries: []error{conflict, store.ErrThrottled}, calls: 2,
			want: store.ErrThrottled, text: "throttled"},
		"the last try succeeds": {tries: append(repeat(conflict, store.MaxTries-1), nil), calls: store.MaxTries},
		"always a conflict": {tries: []error{conflict}, calls: store.MaxTries, want: store.ErrConflict,
			text: "account a: overtaken by other writers 32 times: conflict: write 0 on t a/: item exists does not hold"},
		"always unknown": {tries: []error{unknown}, calls: store.MaxTries, want: store.ErrUnknown,
			text: "account a: overtaken by other writers 32 times: commit: outcome unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			err := store.Retry(t.Context(), "account a", func() error {
				calls++
				return c.tries[min(calls, len(c.tries))-1]
			})
			if calls != c.calls || !errors.Is(err, c.want) {
				t.Errorf("%d tries, %v; want %d, %v", calls, err, c.calls, c.want)
			}
			if c.want != nil && err.Error() != c.text {
				t.Errorf("the error is %q, want %q", err, c.text)
			}
			gaveUp := strings.Contains(c.text, "overtaken")
			if errors.Is(err, store.ErrOvertaken) != gaveUp || store.Retryable(err) {
				t.Errorf("of %v: ErrOvertaken is %v, Retryable is %v", err, errors.Is(err, store.ErrOvertaken),
					store.Retryable(err))
			}
		})
	}
}

func repeat(err error, n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// TestRetry_Nested: a Retry that gave up inside another one ends that one too.
func TestRetry_Nested(t *testing.T) {
	inner, outer := 0, 0
	err := store.Retry(t.Context(), "outer", func() error {
		outer++
		return store.Retry(t.Context(), "inner", func() error { inner++; return store.ErrConflict })
	})
	if inner != store.MaxTries || outer != 1 || !strings.HasPrefix(err.Error(), "inner: ") {
		t.Errorf("%d tries inside, %d outside: %v", inner, outer, err)
	}
}

func TestRetry_ContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := store.Retry(ctx, "a step", func() error {
		if calls++; calls == 2 {
			cancel()
		}
		return store.ErrUnknown
	})
	if calls != 2 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d tries, %v; want 2, Canceled", calls, err)
	}

	// The first try is made in any case: a context that has ended is its own affair.
	calls = 0
	if err := store.Retry(ctx, "a step", func() error { calls++; return nil }); err != nil || calls != 1 {
		t.Errorf("%d tries, %v; want one that succeeds", calls, err)
	}
}

func TestRetryable(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false, store.ErrConflict: true, &store.ConflictError{}: true, store.ErrUnknown: true,
		store.ErrNotFound: false, store.ErrTooLarge: false, store.ErrInvalid: false, store.ErrThrottled: false,
		store.ErrClosed: false, store.ErrLocked: false, store.ErrMissing: false, store.ErrFormat: false,
		store.ErrOvertaken: false, context.Canceled: false,
		fmt.Errorf("a: %w: %w", store.ErrUnknown, context.Canceled): true,
	} {
		if got := store.Retryable(err); got != want {
			t.Errorf("Retryable(%v) = %v", err, got)
		}
	}
}
