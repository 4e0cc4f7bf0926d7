package stripe

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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

func noMethod() reply { return missing(404, "payment_method") }

func missing(status int, param string) reply {
	return fails(status, fields{"type": "invalid_request_error", "code": "resource_missing", "param": param, "message": "No such thing"})
}

func repeated(r reply) reply {
	r.header = map[string]string{"Idempotent-Replayed": "true"}
	return r
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
	}{
		"no payment method": {noMethod(), "resource_missing", true}, "too many declines": {tooOften(), "card_decline_rate_limit_exceeded", false},
		// It is not the intent that is gone: this payer's attempt has failed, and everybody else's goes on.
		"no mandate": {missing(404, "mandate"), "resource_missing", true}, "nobody knows what": {missing(400, ""), "resource_missing", true},
	} {
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
	for name, answer := range map[string]reply{
		"takes no notes":    fails(400, fields{"type": "invalid_request_error", "message": "m"}),
		"is somewhere else": fails(400, fields{"type": "invalid_request_error", "code": "payment_intent_unexpected_state"}),
		"declines a note":   fails(402, fields{"type": "card_error", "code": "card_declined"}),
		"forgets it":        okIntent(),
		"is another":        okIntent(fields{"id": "pi_2"}),
	} {
		s = newScript(t, noMethod(), okIntent(), answer)
		_, err := processor(t, s).Confirm(t.Context(), confirmRequest)
		wantError(t, "an intent that "+name, err, billing.ErrUnknown)
		if errors.Is(err, billing.ErrInvalid) {
			t.Errorf("an intent that %s: got %v, which is definite", name, err)
		}
	}
}

// Stripe repeats an answer for a day. Of an attempt that another has followed it must leave no
// trace: it would hide the other one, which would be made once more or not be counted.
func TestConfirm_ARepeatedAnswerHidesNoLaterAttempt(t *testing.T) {
	declined := func(id string) fields {
		return fields{"status": "requires_payment_method", "latest_charge": id, "last_payment_error": fields{"type": "card_error", "code": "card_declined", "decline_code": "do_not_honor"}}
	}
	old := func(decline string) reply {
		return fails(402, cardError("card_declined", decline, "", "ch_1", fields{}))
	}
	noCharge := func() reply {
		return fails(402, cardError("card_declined", "stolen_card", "", "", fields{"latest_charge": "ch_0"}))
	}
	for name, tt := range map[string]struct {
		before []reply // attempts under dd_confirm and then dd_1, dd_2, …
		now    fields  // what the intent is after them
		repeat reply
	}{
		"a charge":                         {nil, declined("ch_2"), old("stolen_card")},
		"a charge, to authenticate":        {nil, declined("ch_2"), fails(402, cardError("authentication_required", "", "", "ch_1", fields{}))},
		"no charge, and one of before":     {nil, declined("ch_2"), noCharge()},
		"a charge, and then none":          {[]reply{old("stolen_card"), tooOften()}, declined("ch_1"), old("stolen_card")},
		"noted, and a charge":              {[]reply{noMethod()}, declined("ch_2"), noMethod()},
		"noted, and another that is noted": {[]reply{noMethod(), tooOften()}, nil, noMethod()},
	} {
		t.Run(name, func(t *testing.T) {
			now := intentFields()
			s := memory(t, now, append(slices.Clone(tt.before), repeated(tt.repeat))...)
			p := processor(t, s, withPage)
			for i := range tt.before {
				r := confirmRequest
				if i > 0 {
					r.Key = fmt.Sprintf("dd_%d", i)
				}
				if strings.Contains(tt.before[i].body, "ch_1") {
					maps.Copy(now, tt.now)
				}
				if _, err := p.Confirm(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			maps.Copy(now, tt.now)
			want, err := p.Lookup(t.Context(), "pi_1")
			if err != nil || want.State != billing.Declined {
				t.Fatalf("before it: %+v, %v", want, err)
			}
			note := now["metadata"].(fields)[metaAttempt]
			if got, err := p.Confirm(t.Context(), confirmRequest); err != nil || got != want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, want)
			}
			if left := now["metadata"].(fields)[metaAttempt]; left != note {
				t.Errorf("it left the note %v in the place of %v", left, note)
			}
		})
	}
}

// An attempt that was cut off before its note was written is noted when its answer is repeated.
func TestConfirm_ARepeatedAnswerIsNoted(t *testing.T) {
	now := intentFields()
	p := processor(t, memory(t, now, tooOften(), repeated(noMethod()), repeated(noMethod())))
	first, err := p.Confirm(t.Context(), confirmRequest)
	if err != nil {
		t.Fatal(err)
	}
	next := confirmRequest
	next.Key = "dd_next"
	for range 2 {
		if got, err := p.Confirm(t.Context(), next); err != nil || got.Code != "resource_missing" || got.Latest == first.Latest {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}

func TestConfirm_OfAnIntentThatHasSucceededMeanwhile(t *testing.T) {
	s := newScript(t, noMethod(), okIntent(fields{"status": "succeeded", "latest_charge": chargeFields("ch_1")}))
	if got, err := processor(t, s).Confirm(t.Context(), confirmRequest); err != nil || got.State != billing.Succeeded {
		t.Errorf("got %+v, %v", got, err)
	}
}
