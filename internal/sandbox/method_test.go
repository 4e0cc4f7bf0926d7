package sandbox

import (
	"errors"
	"fmt"
	"testing"

	"github.com/duesday/duesday/internal/billing"
)

func TestMethods(t *testing.T) { everyWhere(t, testMethods) }

func testMethods(t *testing.T, s *subject, _ *clock) {
	for i, test := range []struct {
		method string
		state  billing.State
		code   string
		hard   bool
	}{
		{"pm_card_visa", billing.Succeeded, "", false},
		{"pm_card_visa_chargeDeclined", billing.Declined, "generic_decline", false},
		{"pm_card_visa_chargeDeclinedInsufficientFunds", billing.Declined, "insufficient_funds", false},
		{"pm_card_visa_chargeDeclinedLostCard", billing.Declined, "lost_card", true},
		{"pm_card_visa_chargeDeclinedStolenCard", billing.Declined, "stolen_card", true},
		{"pm_card_chargeDeclinedExpiredCard", billing.Declined, "expired_card", true},
		{"pm_card_authenticationRequired", billing.RequiresAction, "", false},
		{"pm_sandbox_processing", billing.Processing, "", false},
		{"pm_whatever", billing.Declined, "resource_missing", true},
		{"tok_visa", billing.Declined, "resource_missing", true},
	} {
		ref := mustOpen(t, s, request(t, i, 0, test.method)).Ref
		in := mustConfirm(t, s, ref, fmt.Sprint(i), test.method)
		if in.State != test.state || in.Code != test.code || in.Hard != test.hard || in.Latest == "" {
			t.Errorf("%s: %+v, want %+v", test.method, in, test)
		}
		// What is not final or processing can be confirmed again.
		again := mustConfirm(t, s, ref, fmt.Sprint("again", i), "pm_card_visa")
		moved := test.state == billing.Declined || test.state == billing.RequiresAction
		if moved && (again.State != billing.Succeeded || again.Latest == in.Latest || again.Code != "" || again.Hard) ||
			!moved && again != in {
			t.Errorf("%s, then pm_card_visa: %+v", test.method, again)
		}
	}
}

func TestFlaky(t *testing.T) {
	everyWhere(t, func(t *testing.T, s *subject, _ *clock) {
		ref := mustOpen(t, s, request(t, 1, 0, methodFlaky)).Ref
		if in := mustConfirm(t, s, ref, "k1", methodFlaky); in.State != billing.Declined || in.Hard {
			t.Errorf("first attempt: %+v", in)
		}
		if in := mustConfirm(t, s, ref, "k2", methodFlaky); in.State != billing.Succeeded {
			t.Errorf("second attempt: %+v", in)
		}

		ref = mustOpen(t, s, request(t, 2, 0, methodFlaky)).Ref
		if in := mustConfirm(t, s, ref, "k3", methodFlaky); in.State != billing.Declined {
			t.Errorf("first attempt of another period: %+v", in)
		}
		if _, err := s.Cancel(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		ref = mustOpen(t, s, request(t, 2, 1, methodFlaky)).Ref
		if in := mustConfirm(t, s, ref, "k4", methodFlaky); in.State != billing.Succeeded {
			t.Errorf("second attempt of the period, another generation: %+v", in)
		}
	})
}

func TestTimeout(t *testing.T) { everyWhere(t, testTimeout) }

func testTimeout(t *testing.T, s *subject, _ *clock) {
	ref := mustOpen(t, s, request(t, 1, 0, methodTimeout)).Ref
	r := billing.ConfirmRequest{Key: "k", Ref: ref, Method: methodTimeout}
	if in, err := s.Confirm(t.Context(), r); !errors.Is(err, billing.ErrUnknown) || in != (billing.Intent{}) {
		t.Errorf("%+v, %v, want ErrUnknown", in, err)
	}
	if in := mustLookup(t, s, ref); in.State != billing.Succeeded {
		t.Errorf("looked up: %+v", in)
	}
	if in, err := s.Confirm(t.Context(), r); err != nil || in.State != billing.Succeeded {
		t.Errorf("replay: %+v, %v, want the answer that was lost", in, err)
	}
	wantOutcomes(t, s, "opened succeeded")
}

func TestAuthenticateAndFinish(t *testing.T) {
	everyWhere(t, func(t *testing.T, s *subject, _ *clock) {
		begin := func(period int, method string) (billing.Intent, string) {
			ref := mustOpen(t, s, request(t, period, 0, method)).Ref
			return mustConfirm(t, s, ref, fmt.Sprint("k", period), method), ref
		}
		action, ref := begin(1, "pm_card_authenticationRequired")
		if err := s.box.Finish(ref, true); !errors.Is(err, billing.ErrInvalid) {
			t.Errorf("finish what waits for the customer: %v", err)
		}
		if err := s.box.Authenticate(ref); err != nil {
			t.Fatal(err)
		}
		if in := mustLookup(t, s, ref); in.State != billing.Succeeded || in.Latest != action.Latest {
			t.Errorf("authenticated: %+v", in)
		}
		if err := s.box.Authenticate(ref); !errors.Is(err, billing.ErrInvalid) {
			t.Errorf("authenticate twice: %v", err)
		}
		_, ref = begin(2, "pm_sandbox_processing")
		if err := s.box.Finish(ref, true); err != nil || mustLookup(t, s, ref).State != billing.Succeeded {
			t.Errorf("finish: %v, %+v", err, mustLookup(t, s, ref))
		}
		_, ref = begin(3, "pm_sandbox_processing")
		if err := s.box.Finish(ref, false); err != nil || mustLookup(t, s, ref).State != billing.Declined {
			t.Errorf("finish without: %v, %+v", err, mustLookup(t, s, ref))
		}
		if err := s.box.Authenticate("pi_none"); !errors.Is(err, billing.ErrNoIntent) {
			t.Errorf("unknown ref: %v", err)
		}
		wantOutcomes(t, s, "opened requires_action succeeded opened processing succeeded opened processing declined")
	})
}
