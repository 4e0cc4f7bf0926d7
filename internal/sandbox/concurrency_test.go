package sandbox

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/duesday/duesday/internal/processor"
)

func TestConcurrent_OneRef(t *testing.T) {
	everyWhere(t, func(t *testing.T, s *subject, _ *handClock) {
		ref := mustOpen(t, s, request(t, 1, 0, "pm_card_visa")).Ref
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				method := "pm_card_visa"
				if i%2 == 0 {
					method = "pm_card_visa_chargeDeclined"
				}
				r := processor.ConfirmRequest{Key: fmt.Sprint("key", i), Ref: ref, Method: method, Attempt: i}
				if _, err := s.Confirm(t.Context(), r); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := strings.Count(outcomes(s), "succeeded"); got != 1 {
			t.Errorf("%d succeeded lines, want 1", got)
		}
	})
}

func TestConcurrent_OneKey(t *testing.T) {
	everyWhere(t, func(t *testing.T, s *subject, _ *handClock) {
		r := request(t, 1, 0, "pm_card_visa")
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				in, err := s.Open(t.Context(), r)
				if err != nil {
					t.Error(err)
				}
				if _, err := s.Confirm(t.Context(), processor.ConfirmRequest{Key: "k", Ref: in.Ref,
					Method: "pm_card_visa_chargeDeclined"}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		wantOutcomes(t, s, "opened declined")
	})
}

// Everything at once, for the race detector; what was answered is listed at once.
func TestConcurrent_Everything(t *testing.T) {
	everyWhere(t, func(t *testing.T, s *subject, _ *handClock) {
		const rounds = 20
		var wg sync.WaitGroup
		for worker := range 16 {
			wg.Go(func() {
				for i := range rounds {
					in := pay(t, s, worker*100+i)
					found := false
					for listed, err := range s.List(t.Context(), processor.ListRequest{}) {
						if err != nil {
							t.Error(err)
						}
						found = found || listed.Ref == in.Ref
					}
					if !found {
						t.Errorf("%s was answered but not listed", in.Ref)
					}
					doomed := mustOpen(t, s, request(t, worker*100+i, 1, fmt.Sprint("pm_", worker, i))).Ref
					if _, err := s.Cancel(t.Context(), doomed); err != nil {
						t.Error(err)
					}
					outcomes(s)
				}
			})
		}
		wg.Wait()
		if got := strings.Count(outcomes(s), "succeeded"); got != 16*rounds {
			t.Errorf("%d succeeded lines, want %d", got, 16*rounds)
		}
	})
}
