package stripe

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/billing"
)

func openRequest(t *testing.T) billing.OpenRequest {
	return billing.OpenRequest{Key: "dd_key", Tag: testTag, Amount: usd(t, 1299), Method: "pm_1"}
}

func TestOpen_SendsTheFrozenParameters(t *testing.T) {
	s := newScript(t, okIntent())
	p := processor(t, s, func(o *Options) { o.ReturnURL = "https://example.com" })
	got, err := p.Open(t.Context(), openRequest(t))
	if err != nil {
		t.Fatal(err)
	}
	want := billing.Intent{Ref: "pi_1", State: billing.Opened, Tag: testTag, Amount: usd(t, 1299), Changed: instant(1000), Opened: instant(1000)}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	r := s.requests()[0]
	wantForm := url.Values{"amount": {"1299"}, "currency": {"usd"}, "confirm": {"false"},
		"description": {"gold, period 3"}, "automatic_payment_methods[enabled]": {"true"}, "automatic_payment_methods[allow_redirects]": {"never"},
		"metadata[duesday_installation]": {"inst"}, "metadata[duesday_account]": {"acme"}, "metadata[duesday_subscription]": {"sub"},
		"metadata[duesday_sku]": {"gold"}, "metadata[duesday_period]": {"3"}, "metadata[duesday_generation]": {"1"}}
	if r.method != "POST" || r.path != "/v1/payment_intents" || r.form.Encode() != wantForm.Encode() {
		t.Errorf("got %s %s %v\nwant %v", r.method, r.path, r.form, wantForm)
	}
	for name, want := range map[string]string{"Idempotency-Key": "dd_key", "Stripe-Account": "", "Authorization": "Bearer " + testKey, "X-Stripe-Client-Telemetry": ""} {
		if got := strings.Join(r.header.Values(name), "|"); got != want {
			t.Errorf("header %s: got %q, want %q", name, got, want)
		}
	}
}

func TestOpen_OnAConnectedAccount(t *testing.T) {
	s := newScript(t, okIntent())
	r := openRequest(t)
	r.Payer = billing.Payer{At: "acct_7", Customer: "cus_1", Fee: 250}
	got, err := processor(t, s).Open(t.Context(), r)
	if err != nil || got.Ref != "acct_7/pi_1" {
		t.Fatalf("got %q, %v", got.Ref, err)
	}
	sent := s.requests()[0]
	if sent.header.Get("Stripe-Account") != "acct_7" || sent.form.Get("customer") != "cus_1" || sent.form.Get("application_fee_amount") != "32" {
		t.Errorf("sent account %q, customer %q, fee %q", sent.header.Get("Stripe-Account"), sent.form.Get("customer"), sent.form.Get("application_fee_amount"))
	}
}

func TestOpen_LeavesUsNoFeeOnOurOwnAccount(t *testing.T) {
	s := newScript(t, okIntent())
	r := openRequest(t)
	r.Payer.Fee = 250
	if _, err := processor(t, s).Open(t.Context(), r); err != nil || s.requests()[0].form.Has("application_fee_amount") {
		t.Errorf("sent %v, %v", s.requests()[0].form, err)
	}
}

func TestOpen_SendsNothingThatCannotBe(t *testing.T) {
	p := processor(t, newScript(t))
	for name, change := range map[string]func(*billing.OpenRequest){
		"no key":             func(r *billing.OpenRequest) { r.Key = "" },
		"account":            func(r *billing.OpenRequest) { r.Payer.At = "acct_1/../x" },
		"below the minimum":  func(r *billing.OpenRequest) { r.Amount = usd(t, 49) },
		"above the maximum":  func(r *billing.OpenRequest) { r.Amount = usd(t, 100_000_000) },
		"zero":               func(r *billing.OpenRequest) { r.Amount = usd(t, 0) },
		"negative":           func(r *billing.OpenRequest) { r.Amount = usd(t, -1299) },
		"no such currency":   func(r *billing.OpenRequest) { r.Amount = amount(t, "KPW", 1299) },
		"three decimals":     func(r *billing.OpenRequest) { r.Amount = amount(t, "KWD", 1299) },
		"fee":                func(r *billing.OpenRequest) { r.Payer.Fee = 10001 },
		"too long a SKU":     func(r *billing.OpenRequest) { r.Tag.SKU = strings.Repeat("é", 501) },
		"an amount's nature": func(r *billing.OpenRequest) { r.Amount = billing.Intent{}.Amount },
	} {
		r := openRequest(t)
		change(&r)
		if _, err := p.Open(t.Context(), r); !errors.Is(err, billing.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
}

// A 5xx is repeated under its key for a day: another key makes another intent, which moves no
// money, and the period is charged today.
func TestOpen_GoesOnAfterACachedFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, reply{status: 500, body: "oops"}, fails(500, fields{"type": "api_error"}), okIntent())
		if _, err := processor(t, s).Open(t.Context(), openRequest(t)); err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, r := range s.requests() {
			keys = append(keys, r.header.Get("Idempotency-Key"))
		}
		if got := strings.Join(keys, " "); got != "dd_key dd_key_2 dd_key_3" {
			t.Errorf("keys: got %s", got)
		}
	})
}

func TestOpen_OfALostAnswerIsUnknown(t *testing.T) {
	s := newScript(t, reply{})
	_, err := processor(t, s).Open(t.Context(), openRequest(t))
	wantError(t, "no answer", err, billing.ErrUnknown)
}

func TestOpen_RefusesAnIntentOverAnotherAmount(t *testing.T) {
	s := newScript(t, okIntent(fields{"amount": 1300}))
	_, err := processor(t, s).Open(t.Context(), openRequest(t))
	wantError(t, "another amount", err, billing.ErrInvalid)
}

var confirmRequest = billing.ConfirmRequest{Key: "dd_confirm", Ref: "pi_1", Method: "pm_1", Attempt: 1}

func cardError(code, decline, advice, charge string, in fields) fields {
	e := fields{"type": "card_error", "code": code, "message": "Your card 4242424242424242 was declined. " + testKey}
	for k, v := range map[string]string{"decline_code": decline, "advice_code": advice, "charge": charge} {
		if v != "" {
			e[k] = v
		}
	}
	if in != nil {
		last := maps.Clone(e)
		all := intentFields()
		all["status"], all["last_payment_error"] = "requires_payment_method", last
		if charge != "" {
			all["latest_charge"] = charge
		}
		maps.Copy(all, in)
		e["payment_intent"] = all
	}
	return e
}

func TestConfirm_AnswersOfStripe(t *testing.T) {
	missing := func(param string) fields {
		return fields{"type": "invalid_request_error", "code": "resource_missing", "param": param, "message": "No such thing"}
	}
	request := func(code string) fields { return fields{"type": "invalid_request_error", "code": code, "message": "m"} }
	tests := []struct {
		name    string
		replies []reply
		want    billing.Intent // State, Latest, Code, Hard
		err     error
	}{
		{"succeeded", []reply{okIntent(fields{"status": "succeeded", "latest_charge": chargeFields("ch_1")})},
			billing.Intent{State: billing.Succeeded, Latest: "ch_1"}, nil},
		{"processing", []reply{okIntent(fields{"status": "processing", "latest_charge": "ch_1"})}, billing.Intent{State: billing.Processing, Latest: "ch_1"}, nil},
		{"requires_capture", []reply{okIntent(fields{"status": "requires_capture"})}, billing.Intent{State: billing.Processing}, nil},
		{"requires_action", []reply{okIntent(fields{"status": "requires_action"})},
			billing.Intent{State: billing.RequiresAction, Latest: "pi_1/action", Code: "authentication_required"}, nil},
		{"soft decline", []reply{fails(402, cardError("card_declined", "insufficient_funds", "", "ch_2", fields{}))},
			billing.Intent{State: billing.Declined, Latest: "ch_2", Code: "insufficient_funds"}, nil},
		{"hard decline", []reply{fails(402, cardError("card_declined", "stolen_card", "", "ch_2", fields{}))},
			billing.Intent{State: billing.Declined, Latest: "ch_2", Code: "stolen_card", Hard: true}, nil},
		{"advised against", []reply{fails(402, cardError("card_declined", "generic_decline", "do_not_try_again", "ch_2", fields{}))},
			billing.Intent{State: billing.Declined, Latest: "ch_2", Code: "generic_decline", Hard: true}, nil},
		{"advised to wait", []reply{fails(402, cardError("card_declined", "stolen_card", "try_again_later", "ch_2", fields{}))},
			billing.Intent{State: billing.Declined, Latest: "ch_2", Code: "stolen_card"}, nil},
		{"decline without the intent", []reply{fails(402, cardError("expired_card", "", "", "ch_2", nil)),
			okIntent(fields{"status": "requires_payment_method", "latest_charge": chargeFields("ch_2"), "last_payment_error": cardError("expired_card", "", "", "ch_2", nil)})},
			billing.Intent{State: billing.Declined, Latest: "ch_2", Code: "expired_card", Hard: true}, nil},
		{"decline by which the intent ended", []reply{fails(402, cardError("card_declined", "", "", "ch_2", fields{"status": "canceled"}))},
			billing.Intent{State: billing.Canceled, Latest: "ch_2"}, nil},
		{"moved, and has succeeded", []reply{fails(400, request("payment_intent_unexpected_state")), okIntent(fields{"status": "succeeded", "latest_charge": chargeFields("ch_1")})},
			billing.Intent{State: billing.Succeeded, Latest: "ch_1"}, nil},
		{"moved, and is canceled", []reply{fails(400, request("payment_intent_unexpected_state")), okIntent(fields{"status": "canceled"})},
			billing.Intent{State: billing.Canceled}, nil},
		{"no intent", []reply{fails(404, missing("intent")), fails(404, missing("intent"))}, billing.Intent{}, billing.ErrNoIntent},
		{"no mandate, of one that has succeeded", []reply{fails(404, missing("mandate")), okIntent(fields{"status": "succeeded", "latest_charge": chargeFields("ch_1")})},
			billing.Intent{State: billing.Succeeded, Latest: "ch_1"}, nil},
		{"nobody knows what is missing", []reply{fails(404, missing("")), fails(403, request(""))}, billing.Intent{}, billing.ErrRefused},
		{"key of other parameters", []reply{fails(400, fields{"type": "idempotency_error", "message": "m"})}, billing.Intent{}, billing.ErrInvalid},
		{"wrong request", []reply{fails(400, request("parameter_unknown"))}, billing.Intent{}, billing.ErrInvalid},
		{"unauthorized", []reply{fails(401, fields{"type": "invalid_request_error", "message": "Invalid API Key provided: " + testKey})}, billing.Intent{}, billing.ErrRefused},
		{"forbidden", []reply{fails(403, request(""))}, billing.Intent{}, billing.ErrRefused},
		{"server error", []reply{fails(500, fields{"type": "api_error", "message": clientSecret})}, billing.Intent{}, billing.ErrUnknown},
		{"a proxy's page", []reply{{status: 502, body: "<html>" + clientSecret}}, billing.Intent{}, billing.ErrUnknown},
		{"a proxy that forbids", []reply{{status: 403, body: "<html>no"}}, billing.Intent{}, billing.ErrUnknown},
		{"a proxy that knows nobody", []reply{{status: 401, body: "{}"}}, billing.Intent{}, billing.ErrUnknown},
		{"another server's 404", []reply{{status: 404, body: "not found"}}, billing.Intent{}, billing.ErrUnknown},
		{"a redirect", []reply{{status: 302, body: "{}", header: map[string]string{"Location": "https://example.com"}}}, billing.Intent{}, billing.ErrUnknown},
		{"no JSON", []reply{ok(`{"id":"pi_1","name":"Ada","client_secret":"` + clientSecret + `","object":`)}, billing.Intent{}, billing.ErrUnknown},
		{"an empty object", []reply{ok(`{}`)}, billing.Intent{}, billing.ErrUnknown},
		{"another object", []reply{okIntent(fields{"object": "charge"})}, billing.Intent{}, billing.ErrUnknown},
		{"another intent", []reply{okIntent(fields{"id": "pi_2", "status": "succeeded"})}, billing.Intent{}, billing.ErrUnknown},
		{"a status of the future", []reply{okIntent(fields{"status": "requires_prayer"})}, billing.Intent{}, billing.ErrUnknown},
		{"live mode", []reply{okIntent(fields{"livemode": true, "status": "succeeded"})}, billing.Intent{}, billing.ErrRefused},
		{"nothing", []reply{{}}, billing.Intent{}, billing.ErrUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript(t, tt.replies...)
			got, err := processor(t, s).Confirm(t.Context(), confirmRequest)
			if !errors.Is(err, tt.err) {
				t.Fatalf("got error %v, want %v", err, tt.err)
			}
			if err != nil {
				if hush(t, err.Error()); strings.Contains(err.Error(), "Ada") {
					t.Errorf("the error shows a customer: %v", err)
				}
				return
			}
			if got.State != tt.want.State || got.Latest != tt.want.Latest || got.Code != tt.want.Code || got.Hard != tt.want.Hard || got.Ref != "pi_1" || got.Tag != testTag || got.Amount != usd(t, 1299) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if r := s.requests()[0]; r.form.Get("off_session") != "true" || r.form.Get("payment_method") != "pm_1" || r.header.Get("Idempotency-Key") != "dd_confirm" || r.path != "/v1/payment_intents/pi_1/confirm" {
				t.Errorf("sent %s %v under %q", r.path, r.form, r.header.Get("Idempotency-Key"))
			}
		})
	}
}

// What Stripe repeats under a key is of an earlier day: what has come of it since counts.
func TestConfirm_OfARepeatedAnswer(t *testing.T) {
	replay := map[string]string{"Idempotent-Replayed": "true"}
	for name, first := range map[string]reply{
		"waits":    okIntent(fields{"status": "requires_action"}),
		"declined": fails(402, cardError("card_declined", "do_not_honor", "", "ch_1", fields{})),
		"action":   fails(402, cardError("authentication_required", "", "", "ch_1", fields{})),
	} {
		first.header = replay
		s := newScript(t, first, okIntent(fields{"status": "succeeded", "latest_charge": chargeFields("ch_2")}))
		if got, err := processor(t, s, withPage).Confirm(t.Context(), confirmRequest); err != nil || got.State != billing.Succeeded {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	final := okIntent(fields{"status": "succeeded", "latest_charge": chargeFields("ch_1")})
	final.header = replay
	if got, err := processor(t, newScript(t, final)).Confirm(t.Context(), confirmRequest); err != nil || got.State != billing.Succeeded {
		t.Errorf("succeeded: got %+v, %v", got, err)
	}
}

// The next look-up has to tell the same attempt as the confirm told: else it would be made
// again, or counted twice.
func TestConfirm_ADeclineLooksTheSameLater(t *testing.T) {
	e := cardError("card_declined", "stolen_card", "try_again_later", "ch_2", fields{})
	later := e["payment_intent"].(fields)
	s := newScript(t, fails(402, e), ok(object(later, fields{"latest_charge": chargeFields("ch_2", fields{"outcome": fields{"advice_code": "try_again_later"}})})))
	p := processor(t, s)
	first, err := p.Confirm(t.Context(), confirmRequest)
	if err != nil {
		t.Fatal(err)
	}
	second, err := p.Lookup(t.Context(), "pi_1")
	if err != nil {
		t.Fatal(err)
	}
	if first.Hard {
		t.Error("the issuer's advice to try again did not count")
	}
	if !first.Changed.Equal(testNow) || !second.Changed.Equal(instant(5000)) {
		t.Errorf("changed: got %v and %v", first.Changed, second.Changed)
	}
	if first.Changed = second.Changed; first != second {
		t.Errorf("the confirm told %+v\nand the look-up %+v", first, second)
	}
}

func TestLookup(t *testing.T) {
	s := newScript(t, okIntent(fields{"status": "succeeded", "latest_charge": chargeFields("ch_1")}),
		fails(404, fields{"type": "invalid_request_error", "code": "resource_missing", "param": "intent"}),
		okIntent(fields{"status": "canceled", "canceled_at": 7000, "latest_charge": chargeFields("ch_1")}),
		okIntent(fields{"status": "requires_payment_method"}),
		okIntent(fields{"status": "requires_action", "next_action": fields{"type": "redirect_to_url", "redirect_to_url": fields{"url": "https://hooks.example/x"}}}))
	p := processor(t, s)
	got, err := p.Lookup(t.Context(), "acct_9/pi_1")
	if err != nil || got.State != billing.Succeeded || got.Ref != "acct_9/pi_1" || !got.Changed.Equal(instant(5000)) || !got.Opened.Equal(instant(1000)) {
		t.Errorf("succeeded: got %+v, %v", got, err)
	}
	if r := s.requests()[0]; r.form.Get("expand[0]") != "latest_charge" || r.header.Get("Stripe-Account") != "acct_9" || r.header.Get("Idempotency-Key") != "" {
		t.Errorf("sent %v, %v", r.form, r.header)
	}
	_, err = p.Lookup(t.Context(), "pi_1")
	wantError(t, "no intent", err, billing.ErrNoIntent)
	if got, err = p.Lookup(t.Context(), "pi_1"); err != nil || got.State != billing.Canceled || !got.Changed.Equal(instant(7000)) {
		t.Errorf("canceled: got %+v, %v", got, err)
	}
	if got, err = p.Lookup(t.Context(), "pi_1"); err != nil || got.State != billing.Opened || got.Latest != "" {
		t.Errorf("never attempted: got %+v, %v", got, err)
	}
	if got, err = p.Lookup(t.Context(), "pi_1"); err != nil || got.State != billing.RequiresAction || got.Link != "https://hooks.example/x" {
		t.Errorf("requires action: got %+v, %v", got, err)
	}
	for _, text := range []string{"", "in_1", "sb_1", "pi_", "pi_1/x", "acct_1/", "/pi_1", "acct_1/pi_1/x", "pi_1?x=1", "pi_..", strings.Repeat("pi_1", 99)} {
		_, err := p.Lookup(t.Context(), text)
		wantError(t, text, err, billing.ErrNoIntent)
	}
}

func TestCancel(t *testing.T) {
	unexpected := fails(400, fields{"type": "invalid_request_error", "code": "payment_intent_unexpected_state"})
	s := newScript(t, okIntent(fields{"status": "canceled", "canceled_at": 9}),
		unexpected, okIntent(fields{"status": "succeeded", "latest_charge": chargeFields("ch_1")}),
		reply{status: 500, body: "x"})
	p := processor(t, s)
	if got, err := p.Cancel(t.Context(), "pi_1"); err != nil || got.State != billing.Canceled {
		t.Errorf("got %+v, %v", got, err)
	}
	if r := s.requests()[0]; r.form.Get("cancellation_reason") != "abandoned" || len(r.header.Values("Idempotency-Key")) != 0 {
		t.Errorf("sent %v, under %v", r.form, r.header.Values("Idempotency-Key"))
	}
	if got, err := p.Cancel(t.Context(), "pi_1"); err != nil || got.State != billing.Succeeded {
		t.Errorf("after a success: got %+v, %v", got, err)
	}
	_, err := p.Cancel(t.Context(), "pi_1")
	wantError(t, "no answer", err, billing.ErrUnknown)
}

func TestList(t *testing.T) {
	foreign := object(intentFields(), fields{"id": "pi_9", "metadata": fields{}, "currency": "usdc", "amount": 5, "status": "of_tomorrow"})
	s := newScript(t, list(true, object(intentFields()), foreign), list(false, object(intentFields(), fields{"id": "pi_3", "status": "succeeded", "latest_charge": chargeFields("ch_1")})))
	p := processor(t, s)
	var got []billing.Intent
	for in, err := range p.List(t.Context(), billing.ListRequest{At: "acct_1", Customer: "cus_1", Since: time.Unix(99, 999_999_999)}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, in)
	}
	if len(got) != 3 || got[0].Tag != testTag || got[1].Tag != (billing.Tag{}) || got[1].Ref != "acct_1/pi_9" || got[2].State != billing.Succeeded {
		t.Errorf("got %+v", got)
	}
	first, second := s.requests()[0], s.requests()[1]
	want := url.Values{"created[gte]": {"99"}, "customer": {"cus_1"}, "limit": {"100"}, "expand[0]": {"data.latest_charge"}}
	if first.form.Encode() != want.Encode() || first.header.Get("Stripe-Account") != "acct_1" {
		t.Errorf("got %v, want %v", first.form, want)
	}
	if want.Set("starting_after", "pi_9"); second.form.Encode() != want.Encode() || second.header.Get("Stripe-Account") != "acct_1" {
		t.Errorf("got %v, want %v", second.form, want)
	}
}

// What is not a list to the end must not be taken for one: what is missing in it was not
// charged, as far as the store can tell.
func TestList_EndsWithAnErrorWhereItIsNotWhole(t *testing.T) {
	for name, tt := range map[string]struct {
		replies []reply
		yields  int
		want    error
	}{
		"no list":              {[]reply{ok(`{}`)}, 0, billing.ErrUnknown},
		"an intent":            {[]reply{okIntent()}, 0, billing.ErrUnknown},
		"more, but nothing":    {[]reply{list(true)}, 0, billing.ErrUnknown},
		"the same page again":  {[]reply{list(true, object(intentFields())), list(true, object(intentFields()))}, 2, billing.ErrUnknown},
		"of the other mode":    {[]reply{list(false, object(intentFields(), fields{"livemode": true}))}, 0, billing.ErrRefused},
		"our key":              {[]reply{fails(401, fields{"type": "invalid_request_error"})}, 0, billing.ErrRefused},
		"the second page lost": {[]reply{list(true, object(intentFields())), fails(400, fields{"type": "invalid_request_error"})}, 1, billing.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			var last error
			n := 0
			for _, err := range processor(t, newScript(t, tt.replies...)).List(t.Context(), billing.ListRequest{}) {
				if last != nil {
					t.Error("something came after the error")
				}
				if last = err; err == nil {
					n++
				}
			}
			wantError(t, name, last, tt.want)
			if n != tt.yields {
				t.Errorf("got %d intents, want %d", n, tt.yields)
			}
		})
	}
}

func TestCancelledContextIsUnknown(t *testing.T) {
	reason := errors.New("the night is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := newScript(t, reply{check: func(seen) { cancel(reason) }})
	p := processor(t, s)
	_, err := p.Confirm(ctx, confirmRequest)
	if !errors.Is(err, billing.ErrUnknown) || !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
		t.Errorf("under way: got %v", err)
	}
	_, err = p.Confirm(ctx, confirmRequest)
	if !errors.Is(err, billing.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("before it was sent: got %v", err)
	}
}

// TestTelemetry: the library tells of a request's duration with the one after it.
func TestTelemetry(t *testing.T) {
	s := newScript(t)
	s.always = func(seen) reply {
		r := okIntent()
		r.header = map[string]string{"Request-Id": "req_1"} // it tells of none without
		return r
	}
	p := processor(t, s)
	for range 4 {
		if _, err := p.Lookup(t.Context(), "pi_1"); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.requests()) != 4 {
		t.Fatalf("%d requests", len(s.requests()))
	}
	for i, r := range s.requests() {
		if got := r.header.Get("X-Stripe-Client-Telemetry"); got != "" {
			t.Errorf("request %d tells %s", i, got)
		}
	}
}
