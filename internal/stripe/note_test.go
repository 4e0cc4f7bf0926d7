package stripe

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/test/apitest"
)

// memory is a Stripe with one intent that remembers what is written on it.
func memory(t *testing.T, now apitest.Fields, confirm ...apitest.Reply) *apitest.Script {
	s := apitest.NewScript(t)
	s.Always = func(r apitest.Seen) apitest.Reply {
		switch r.Path {
		case "/v1/payment_intents/pi_1/confirm":
			if len(confirm) == 0 {
				t.Error("it was confirmed once too often")
				return apitest.Reply{}
			}
			next := confirm[0]
			confirm = confirm[1:]
			return next
		case "/v1/payment_intents/pi_1":
			if n := r.Form.Get("metadata[" + metaAttempt + "]"); n != "" {
				now["metadata"].(apitest.Fields)[metaAttempt] = n
			}
			return apitest.OK(apitest.Object(now))
		}
		t.Errorf("nobody expected %s %s", r.Method, r.Path)
		return apitest.Reply{}
	}
	return s
}

func noMethod() apitest.Reply { return missing(404, "payment_method") }

func missing(status int, param string) apitest.Reply {
	return apitest.Fails(status, apitest.Fields{"type": "invalid_request_error", "code": "resource_missing",
		"param": param, "message": "No such thing"})
}

func repeated(r apitest.Reply) apitest.Reply {
	r.Header = map[string]string{"Idempotent-Replayed": "true"}
	return r
}

func tooOften() apitest.Reply {
	return apitest.Fails(402, apitest.Fields{"type": "card_error", "code": "card_decline_rate_limit_exceeded",
		"message": "m"})
}

// An attempt that leaves no charge behind is told from the one before, and seen again as the
// same: the engine neither makes it again for ever nor counts it twice.
func TestConfirm_NotesAnAttemptWithoutACharge(t *testing.T) {
	for name, tt := range map[string]struct {
		answer apitest.Reply
		code   string
		hard   bool
	}{
		"no payment method": {noMethod(), "resource_missing", true},
		"too many declines": {tooOften(), "card_decline_rate_limit_exceeded", false},
		// It is not the intent that is gone: this payer's attempt has failed, and everybody else's goes on.
		"advised against": {apitest.Fails(402, apitest.Fields{"type": "card_error", "code": "card_declined",
			"decline_code": "generic_decline", "advice_code": "do_not_try_again", "message": "m"}), "generic_decline", true},
		"no mandate":        {missing(404, "mandate"), "resource_missing", true},
		"nobody knows what": {missing(400, ""), "resource_missing", true},
	} {
		for status, now := range map[string]apitest.Fields{
			"fresh": apitest.IntentFields(),
			"declined": func() apitest.Fields {
				f := apitest.IntentFields()
				f["status"], f["latest_charge"] = "requires_payment_method", "ch_1"
				return f
			}(),
		} {
			t.Run(name+" "+status, func(t *testing.T) {
				p := scripted(t, memory(t, now, tt.answer, tt.answer))
				before, err := p.Lookup(t.Context(), "pi_1")
				if err != nil {
					t.Fatal(err)
				}
				first, err := p.Confirm(t.Context(), confirmRequest)
				if err != nil {
					t.Fatal(err)
				}
				if first.State != processor.Declined || first.Code != tt.code || first.Hard != tt.hard || first.Stop != (name == "advised against") ||
					first.Latest == before.Latest || first.Latest == "" || !first.Changed.Equal(apitest.Now) {
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
				now["last_payment_error"] = apitest.Fields{"type": "card_error", "code": "card_declined",
					"decline_code": "do_not_honor"}
				if later, err := p.Lookup(t.Context(), "pi_1"); err != nil || later.Latest != "ch_7" ||
					later.Code != "do_not_honor" {
					t.Errorf("after a charge: got %+v, %v", later, err)
				}
			})
		}
	}
}

// While the note is in doubt, so is the attempt: the engine looks, sees nothing, and makes it
// again, which changes nothing.
func TestConfirm_WithoutTheNoteSaysNothing(t *testing.T) {
	s := apitest.NewScript(t, noMethod(), apitest.OKIntent(), apitest.Reply{})
	_, err := scripted(t, s).Confirm(t.Context(), confirmRequest)
	apitest.WantError(t, "no note", err, processor.ErrUnknown)
	for name, answer := range map[string]apitest.Reply{
		"takes no notes": apitest.Fails(400, apitest.Fields{"type": "invalid_request_error", "message": "m"}),
		"is somewhere else": apitest.Fails(400,
			apitest.Fields{"type": "invalid_request_error", "code": "payment_intent_unexpected_state"}),
		"declines a note": apitest.Fails(402, apitest.Fields{"type": "card_error", "code": "card_declined"}),
		"forgets it":      apitest.OKIntent(),
		"is another":      apitest.OKIntent(apitest.Fields{"id": "pi_2"}),
	} {
		s = apitest.NewScript(t, noMethod(), apitest.OKIntent(), answer)
		_, err := scripted(t, s).Confirm(t.Context(), confirmRequest)
		apitest.WantError(t, "an intent that "+name, err, processor.ErrUnknown)
		if errors.Is(err, processor.ErrInvalid) {
			t.Errorf("an intent that %s: got %v, which is definite", name, err)
		}
	}
}

// Stripe repeats an answer for a day. Of an attempt that another has followed it must leave no
// trace: it would hide the other one, which would be made once more or not be counted.
func TestConfirm_ARepeatedAnswerHidesNoLaterAttempt(t *testing.T) {
	declined := func(id string) apitest.Fields {
		return apitest.Fields{"status": "requires_payment_method", "latest_charge": id,
			"last_payment_error": apitest.Fields{"type": "card_error", "code": "card_declined", "decline_code": "do_not_honor"}}
	}
	old := func(decline string) apitest.Reply {
		return apitest.Fails(402, cardError("card_declined", decline, "", "ch_1", apitest.Fields{}))
	}
	noCharge := func() apitest.Reply {
		return apitest.Fails(402, cardError("card_declined", "stolen_card", "", "", apitest.Fields{"latest_charge": "ch_0"}))
	}
	for name, tt := range map[string]struct {
		before []apitest.Reply // attempts under dd_confirm and then dd_1, dd_2, …
		now    apitest.Fields  // what the intent is after them
		repeat apitest.Reply
	}{
		"a charge": {nil, declined("ch_2"), old("stolen_card")},
		"a charge, to authenticate": {nil, declined("ch_2"),
			apitest.Fails(402, cardError("authentication_required", "", "", "ch_1", apitest.Fields{}))},
		"no charge, and one of before": {nil, declined("ch_2"), noCharge()},
		"a charge, and then none": {[]apitest.Reply{old("stolen_card"), tooOften()}, declined("ch_1"),
			old("stolen_card")},
		"noted, and a charge":              {[]apitest.Reply{noMethod()}, declined("ch_2"), noMethod()},
		"noted, and another that is noted": {[]apitest.Reply{noMethod(), tooOften()}, nil, noMethod()},
	} {
		t.Run(name, func(t *testing.T) {
			now := apitest.IntentFields()
			s := memory(t, now, append(slices.Clone(tt.before), repeated(tt.repeat))...)
			p := scripted(t, s, withPage)
			for i := range tt.before {
				r := confirmRequest
				if i > 0 {
					r.Key = fmt.Sprintf("dd_%d", i)
				}
				if strings.Contains(tt.before[i].Body, "ch_1") {
					maps.Copy(now, tt.now)
				}
				if _, err := p.Confirm(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			maps.Copy(now, tt.now)
			want, err := p.Lookup(t.Context(), "pi_1")
			if err != nil || want.State != processor.Declined {
				t.Fatalf("before it: %+v, %v", want, err)
			}
			note := now["metadata"].(apitest.Fields)[metaAttempt]
			if got, err := p.Confirm(t.Context(), confirmRequest); err != nil || got != want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, want)
			}
			if left := now["metadata"].(apitest.Fields)[metaAttempt]; left != note {
				t.Errorf("it left the note %v in the place of %v", left, note)
			}
		})
	}
}

// An attempt that was cut off before its note was written is noted when its answer is repeated.
func TestConfirm_ARepeatedAnswerIsNoted(t *testing.T) {
	now := apitest.IntentFields()
	p := scripted(t, memory(t, now, tooOften(), repeated(noMethod()), repeated(noMethod())))
	first, err := p.Confirm(t.Context(), confirmRequest)
	if err != nil {
		t.Fatal(err)
	}
	next := confirmRequest
	next.Key = "dd_next"
	for range 2 {
		if got, err := p.Confirm(t.Context(), next); err != nil || got.Code != "resource_missing" ||
			got.Latest == first.Latest {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}

func TestConfirm_OfAnIntentThatHasSucceededMeanwhile(t *testing.T) {
	s := apitest.NewScript(t, noMethod(),
		apitest.OKIntent(apitest.Fields{"status": "succeeded", "latest_charge": apitest.ChargeFields("ch_1")}))
	if got, err := scripted(t, s).Confirm(t.Context(), confirmRequest); err != nil || got.State != processor.Succeeded {
		t.Errorf("got %+v, %v", got, err)
	}
}
