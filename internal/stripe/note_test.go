package stripe

import (
	"testing"

	"github.com/duesday/duesday/internal/billing"
)

// memory is a Stripe with one intent that remembers what is written on it.
func memory(t *testing.T, now fields, confirm ...reply) *script {
	s := newScript(t)
	s.always = func(r seen) reply {
		switch r.path {
		case "/v1/payment_intents/pi_1/confirm":
			if len(confirm) == 0 {
				t.Error("it was confirmed once too often")
				return reply{}
			}
			next := confirm[0]
			confirm = confirm[1:]
			return next
		case "/v1/payment_intents/pi_1":
			if n := r.form.Get("metadata[" + metaAttempt + "]"); n != "" {
				now["metadata"].(fields)[metaAttempt] = n
			}
			return ok(object(now))
		}
		t.Errorf("nobody expected %s %s", r.method, r.path)
		return reply{}
	}
	return s
}

func noMethod() reply {
	return fails(404, fields{"type": "invalid_request_error", "code": "resource_missing", "param": "payment_method", "message": "No such PaymentMethod"})
}

func tooOften() reply {
	return fails(402, fields{"type": "card_error", "code": "card_decline_rate_limit_exceeded", "message": "m"})
}

// An attempt that leaves no charge behind is told from the one before, and seen again as the
// same: the engine neither makes it again for ever nor counts it twice.
func TestConfirm_NotesAnAttemptWithoutACharge(t *testing.T) {
	for name, tt := range map[string]struct {
		answer reply
		code   string
		hard   bool
	}{"no payment method": {noMethod(), "resource_missing", true}, "too many declines": {tooOften(), "card_decline_rate_limit_exceeded", false}} {
		for status, now := range map[string]fields{
			"fresh": intentFields(),
			"declined": func() fields {
				f := intentFields()
				f["status"], f["latest_charge"] = "requires_payment_method", "ch_1"
				return f
			}(),
		} {
			t.Run(name+" "+status, func(t *testing.T) {
				p := processor(t, memory(t, now, tt.answer, tt.answer))
				before, err := p.Lookup(t.Context(), "pi_1")
				if err != nil {
					t.Fatal(err)
				}
				first, err := p.Confirm(t.Context(), confirmRequest)
				if err != nil {
					t.Fatal(err)
				}
				if first.State != billing.Declined || first.Code != tt.code || first.Hard != tt.hard || first.Latest == before.Latest || first.Latest == "" || !first.Changed.Equal(testNow) {
					t.Errorf("got %+v", first)
				}
				again, err := p.Lookup(t.Context(), "pi_1")
				if first.Changed = again.Changed; err != nil || again != first {
					t.Errorf("looked up: got %+v, %v\nwant %+v", again, err, first)
				}
				next := confirmRequest
				next.Key = "dd_next"
				second, err := p.Confirm(t.Context(), next)
				if err != nil || second.Latest == first.Latest {
					t.Errorf("the next attempt: got %+v, %v; want another id than %s", second, err, first.Latest)
				}
				now["latest_charge"], now["status"] = "ch_7", "requires_payment_method"
				now["last_payment_error"] = fields{"type": "card_error", "code": "card_declined", "decline_code": "do_not_honor"}
				if later, err := p.Lookup(t.Context(), "pi_1"); err != nil || later.Latest != "ch_7" || later.Code != "do_not_honor" {
					t.Errorf("after a charge: got %+v, %v", later, err)
				}
			})
		}
	}
}

// While the note is in doubt, so is the attempt: the engine looks, sees nothing, and makes it
// again, which changes nothing.
func TestConfirm_WithoutTheNoteSaysNothing(t *testing.T) {
	s := newScript(t, noMethod(), okIntent(), reply{})
	_, err := processor(t, s).Confirm(t.Context(), confirmRequest)
	wantError(t, "no note", err, billing.ErrUnknown)
	s = newScript(t, noMethod(), okIntent(), fails(400, fields{"type": "invalid_request_error", "message": "m"}))
	got, err := processor(t, s).Confirm(t.Context(), confirmRequest)
	if err != nil || got.State != billing.Declined || !got.Hard || got.Latest == "" {
		t.Errorf("an intent that takes no notes: got %+v, %v", got, err)
	}
}

func TestConfirm_OfAnIntentThatHasSucceededMeanwhile(t *testing.T) {
	s := newScript(t, noMethod(), okIntent(fields{"status": "succeeded", "latest_charge": chargeFields("ch_1")}))
	if got, err := processor(t, s).Confirm(t.Context(), confirmRequest); err != nil || got.State != billing.Succeeded {
		t.Errorf("got %+v, %v", got, err)
	}
}
