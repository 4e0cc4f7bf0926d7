package sandbox

import (
	"errors"
	"fmt"
	"testing"

	"github.com/duesday/duesday/internal/processor"
)

func TestMethods(t *testing.T) { everyWhere(t, testMethods) }

func testMethods(t *testing.T, s *subject, _ *handClock) {
	for i, test := range []struct {
		method string
		state  processor.State
		code   string
		hard   bool
	}{
		{"pm_card_visa", processor.Succeeded, "", false},
		{"pm_card_visa_chargeDeclined", processor.Declined, "generic_decline", false},
		{"pm_card_visa_chargeDeclinedInsufficientFunds", processor.Declined, "insufficient_funds", false},
		{"pm_card_visa_chargeDeclinedLostCard", processor.Declined, "lost_card", true},
		{"pm_card_visa_chargeDeclinedStolenCard", processor.Declined, "stolen_card", true},
		{"pm_card_chargeDeclinedExpiredCard", processor.Declined, "expired_card", true},
		{"pm_card_authenticationRequired", processor.RequiresAction, "", false},
		{"pm_sandbox_processing", processor.Processing, "", false},
		{"pm_whatever", processor.Declined, "resource_missing", true},
		{"tok_visa", processor.Declined, "resource_missing", true},
	} {
		ref := mustOpen(t, s, request(t, i, 0, test.method)).Ref
		in := mustConfirm(t, s, ref, fmt.Sprint(i), test.method)
		if in.State != test.state || in.Code != test.code || in.Hard != test.hard || in.Latest == "" {
			t.Errorf("%s: %+v, want %+v", test.method, in, test)
		}
		// What is not final or processing can be confirmed again.
		again := mustConfirm(t, s, ref, fmt.Sprint("again", i), "pm_card_visa")
		moved := test.state == processor.Declined || test.state == processor.RequiresAction
		if moved && (again.State != processor.Succeeded || again.Latest == in.Latest || again.Code != "" || again.Hard) ||
			!moved && again != in {
			t.Errorf("%s, then pm_card_visa: %+v", test.method, again)
		}
	}
}

func TestFlaky(t *testing.T) {
	everyWhere(t, func(t *testing.T, s *subject, _ *handClock) {
		ref := mustOpen(t, s, request(t, 1, 0, methodFlaky)).Ref
		if in := mustConfirm(t, s, ref, "k1", methodFlaky); in.State != processor.Declined || in.Hard {
			t.Errorf("first attempt: %+v", in)
		}
		if in := mustConfirm(t, s, ref, "k2", methodFlaky); in.State != processor.Succeeded {
			t.Errorf("second attempt: %+v", in)
		}

		ref = mustOpen(t, s, request(t, 2, 0, methodFlaky)).Ref
		if in := mustConfirm(t, s, ref, "k3", methodFlaky); in.State != processor.Declined {
			t.Errorf("first attempt of another period: %+v", in)
		}
		if _, err := s.Cancel(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		ref = mustOpen(t, s, request(t, 2, 1, methodFlaky)).Ref
		if in := mustConfirm(t, s, ref, "k4", methodFlaky); in.State != processor.Succeeded {
			t.Errorf("second attempt of the period, another generation: %+v", in)
		}
	})
}

func TestTimeout(t *testing.T) { everyWhere(t, testTimeout) }

func testTimeout(t *testing.T, s *subject, _ *handClock) {
	ref := mustOpen(t, s, request(t, 1, 0, methodTimeout)).Ref
	r := processor.ConfirmRequest{Key: "k", Ref: ref, Method: methodTimeout}
	if in, err := s.Confirm(t.Context(), r); !errors.Is(err, processor.ErrUnknown) || in != (processor.Intent{}) {
		t.Errorf("%+v, %v, want ErrUnknown", in, err)
	}
	if in := mustLookup(t, s, ref); in.State != processor.Succeeded {
		t.Errorf("looked up: %+v", in)
	}
	if in, err := s.Confirm(t.Context(), r); err != nil || in.State != processor.Succeeded {
		t.Errorf("replay: %+v, %v, want the answer that was lost", in, err)
	}
	wantOutcomes(t, s, "opened succeeded")
}

func TestAuthenticateAndFinish(t *testing.T) {
	everyWhere(t, func(t *testing.T, s *subject, _ *handClock) {
		begin := func(period int, method string) (processor.Intent, string) {
			ref := mustOpen(t, s, request(t, period, 0, method)).Ref
			return mustConfirm(t, s, ref, fmt.Sprint("k", period), method), ref
		}
		action, ref := begin(1, "pm_card_authenticationRequired")
		if err := s.box.Finish(ref, true); !errors.Is(err, processor.ErrInvalid) {
			t.Errorf("finish what waits for the customer: %v", err)
		}
		if err := s.box.Authenticate(ref); err != nil {
			t.Fatal(err)
		}
		if in := mustLookup(t, s, ref); in.State != processor.Succeeded || in.Latest != action.Latest {
			t.Errorf("authenticated: %+v", in)
		}
		if err := s.box.Authenticate(ref); !errors.Is(err, processor.ErrInvalid) {
			t.Errorf("authenticate twice: %v", err)
		}
		_, ref = begin(2, "pm_sandbox_processing")
		if err := s.box.Finish(ref, true); err != nil || mustLookup(t, s, ref).State != processor.Succeeded {
			t.Errorf("finish: %v, %+v", err, mustLookup(t, s, ref))
		}
		_, ref = begin(3, "pm_sandbox_processing")
		if err := s.box.Finish(ref, false); err != nil || mustLookup(t, s, ref).State != processor.Declined {
			t.Errorf("finish without: %v, %+v", err, mustLookup(t, s, ref))
		}
		if err := s.box.Authenticate("pi_none"); !errors.Is(err, processor.ErrNoIntent) {
			t.Errorf("unknown ref: %v", err)
		}
		wantOutcomes(t, s, "opened requires_action succeeded opened processing succeeded opened processing declined")
	})
}
