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

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/test/apitest"
)

func openRequest(t *testing.T) processor.OpenRequest {
	return processor.OpenRequest{Key: "dd_key", Tag: testTag, Amount: apitest.USD(t, 1299), Method: "pm_1"}
}

func TestOpen_SendsTheFrozenParameters(t *testing.T) {
	s := apitest.NewScript(t, apitest.OKIntent())
	p := scripted(t, s, func(o *Options) { o.ReturnURL = "https://example.com" })
	got, err := p.Open(t.Context(), openRequest(t))
	if err != nil {
		t.Fatal(err)
	}
	want := processor.Intent{Ref: "pi_1", State: processor.Opened, Tag: testTag, Amount: apitest.USD(t, 1299),
		Changed: api.Instant(1000), Opened: api.Instant(1000)}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	r := s.Requests()[0]
	wantForm := url.Values{"amount": {"1299"}, "currency": {"usd"}, "confirm": {"false"},
		"description": {"gold, period 3"}, "automatic_payment_methods[enabled]": {"true"},
		"automatic_payment_methods[allow_redirects]": {"never"},
		"metadata[duesday_installation]":             {"inst"}, "metadata[duesday_account]": {"acme"},
		"metadata[duesday_subscription]": {"sub"},
		"metadata[duesday_sku]":          {"gold"}, "metadata[duesday_period]": {"3"}, "metadata[duesday_generation]": {"1"}}
	if r.Method != "POST" || r.Path != "/v1/payment_intents" || r.Form.Encode() != wantForm.Encode() {
		t.Errorf("got %s %s %v\nwant %v", r.Method, r.Path, r.Form, wantForm)
	}
	for name, want := range map[string]string{"Idempotency-Key": "dd_key", "Stripe-Account": "",
		"Authorization": "Bearer " + apitest.Key, "X-Stripe-Client-Telemetry": ""} {
		if got := strings.Join(r.Header.Values(name), "|"); got != want {
			t.Errorf("header %s: got %q, want %q", name, got, want)
		}
	}
}

func TestOpen_OnAConnectedAccount(t *testing.T) {
	s := apitest.NewScript(t, apitest.OKIntent())
	r := openRequest(t)
	r.Payer = processor.Payer{At: "acct_7", Customer: "cus_1", Fee: 250}
	got, err := scripted(t, s).Open(t.Context(), r)
	if err != nil || got.Ref != "acct_7/pi_1" {
		t.Fatalf("got %q, %v", got.Ref, err)
	}
	sent := s.Requests()[0]
	if sent.Header.Get("Stripe-Account") != "acct_7" || sent.Form.Get("customer") != "cus_1" ||
		sent.Form.Get("application_fee_amount") != "32" {
		t.Errorf("sent account %q, customer %q, fee %q", sent.Header.Get("Stripe-Account"), sent.Form.Get("customer"),
			sent.Form.Get("application_fee_amount"))
	}
}

func TestOpen_LeavesUsNoFeeOnOurOwnAccount(t *testing.T) {
	s := apitest.NewScript(t, apitest.OKIntent())
	r := openRequest(t)
	r.Payer.Fee = 250
	if _, err := scripted(t, s).Open(t.Context(), r); err != nil || s.Requests()[0].Form.Has("application_fee_amount") {
		t.Errorf("sent %v, %v", s.Requests()[0].Form, err)
	}
}

func TestOpen_SendsNothingThatCannotBe(t *testing.T) {
	p := scripted(t, apitest.NewScript(t))
	for name, change := range map[string]func(*processor.OpenRequest){
		"no key":             func(r *processor.OpenRequest) { r.Key = "" },
		"account":            func(r *processor.OpenRequest) { r.Payer.At = "acct_1/../x" },
		"below the minimum":  func(r *processor.OpenRequest) { r.Amount = apitest.USD(t, 49) },
		"above the maximum":  func(r *processor.OpenRequest) { r.Amount = apitest.USD(t, 100_000_000) },
		"zero":               func(r *processor.OpenRequest) { r.Amount = apitest.USD(t, 0) },
		"negative":           func(r *processor.OpenRequest) { r.Amount = apitest.USD(t, -1299) },
		"no such currency":   func(r *processor.OpenRequest) { r.Amount = apitest.Money(t, "KPW", 1299) },
		"three decimals":     func(r *processor.OpenRequest) { r.Amount = apitest.Money(t, "KWD", 1299) },
		"fee":                func(r *processor.OpenRequest) { r.Payer.Fee = 10001 },
		"too long a SKU":     func(r *processor.OpenRequest) { r.Tag.SKU = strings.Repeat("é", 501) },
		"an amount's nature": func(r *processor.OpenRequest) { r.Amount = processor.Intent{}.Amount },
	} {
		r := openRequest(t)
		change(&r)
		if _, err := p.Open(t.Context(), r); !errors.Is(err, processor.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
}

// A 5xx is repeated under its key for a day: another key makes another intent, which moves no
// money, and the period is charged today.
func TestOpen_GoesOnAfterACachedFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := apitest.NewScript(t, apitest.Reply{Status: 500, Body: "oops"},
			apitest.Fails(500, apitest.Fields{"type": "api_error"}), apitest.OKIntent())
		if _, err := scripted(t, s).Open(t.Context(), openRequest(t)); err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, r := range s.Requests() {
			keys = append(keys, r.Header.Get("Idempotency-Key"))
		}
		if got := strings.Join(keys, " "); got != "dd_key dd_key_2 dd_key_3" {
			t.Errorf("keys: got %s", got)
		}
	})
}

func TestOpen_OfALostAnswerIsUnknown(t *testing.T) {
	s := apitest.NewScript(t, apitest.Reply{})
	_, err := scripted(t, s).Open(t.Context(), openRequest(t))
	apitest.WantError(t, "no answer", err, processor.ErrUnknown)
}

func TestOpen_RefusesAnIntentOverAnotherAmount(t *testing.T) {
	s := apitest.NewScript(t, apitest.OKIntent(apitest.Fields{"amount": 1300}))
	_, err := scripted(t, s).Open(t.Context(), openRequest(t))
	apitest.WantError(t, "another amount", err, processor.ErrInvalid)
}

var confirmRequest = processor.ConfirmRequest{Key: "dd_confirm", Ref: "pi_1", Method: "pm_1", Attempt: 1}

func cardError(code, decline, advice, charge string, in apitest.Fields) apitest.Fields {
	e := apitest.Fields{"type": "card_error", "code": code,
		"message": "Your card 4242424242424242 was declined. " + apitest.Key}
	for k, v := range map[string]string{"decline_code": decline, "advice_code": advice, "charge": charge} {
		if v != "" {
			e[k] = v
		}
	}
	if in != nil {
		last := maps.Clone(e)
		all := apitest.IntentFields()
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
	missing := func(param string) apitest.Fields {
		return apitest.Fields{"type": "invalid_request_error", "code": "resource_missing", "param": param,
			"message": "No such thing"}
	}
	request := func(code string) apitest.Fields {
		return apitest.Fields{"type": "invalid_request_error", "code": code, "message": "m"}
	}
	tests := []struct {
		name    string
		replies []apitest.Reply
		want    processor.Intent // State, Latest, Code, Hard
		err     error
	}{
		{"succeeded", []apitest.Reply{apitest.OKIntent(apitest.Fields{"status": "succeeded",
			"latest_charge": apitest.ChargeFields("ch_1")})},
			processor.Intent{State: processor.Succeeded, Latest: "ch_1"}, nil},
		{"processing", []apitest.Reply{apitest.OKIntent(apitest.Fields{"status": "processing", "latest_charge": "ch_1"})},
			processor.Intent{State: processor.Processing, Latest: "ch_1"}, nil},
		{"requires_capture", []apitest.Reply{apitest.OKIntent(apitest.Fields{"status": "requires_capture"})},
			processor.Intent{State: processor.Processing}, nil},
		{"requires_action", []apitest.Reply{apitest.OKIntent(apitest.Fields{"status": "requires_action"})},
			processor.Intent{State: processor.RequiresAction, Latest: "pi_1/action", Code: "authentication_required"}, nil},
		{"soft decline", []apitest.Reply{apitest.Fails(402,
			cardError("card_declined", "insufficient_funds", "", "ch_2", apitest.Fields{}))},
			processor.Intent{State: processor.Declined, Latest: "ch_2", Code: "insufficient_funds"}, nil},
		{"hard decline", []apitest.Reply{apitest.Fails(402,
			cardError("card_declined", "stolen_card", "", "ch_2", apitest.Fields{}))},
			processor.Intent{State: processor.Declined, Latest: "ch_2", Code: "stolen_card", Hard: true}, nil},
		{"advised against", []apitest.Reply{apitest.Fails(402,
			cardError("card_declined", "generic_decline", "do_not_try_again", "ch_2", apitest.Fields{}))},
			processor.Intent{State: processor.Declined, Latest: "ch_2", Code: "generic_decline", Hard: true, Stop: true},
			nil},
		{"advised to wait", []apitest.Reply{apitest.Fails(402,
			cardError("card_declined", "stolen_card", "try_again_later", "ch_2", apitest.Fields{}))},
			processor.Intent{State: processor.Declined, Latest: "ch_2", Code: "stolen_card"}, nil},
		{"decline without the intent", []apitest.Reply{apitest.Fails(402, cardError("expired_card", "", "", "ch_2", nil)),
			apitest.OKIntent(apitest.Fields{"status": "requires_payment_method", "latest_charge": apitest.ChargeFields("ch_2"),
				"last_payment_error": cardError("expired_card", "", "", "ch_2", nil)})},
			processor.Intent{State: processor.Declined, Latest: "ch_2", Code: "expired_card", Hard: true}, nil},
		{"decline by which the intent ended",
			[]apitest.Reply{apitest.Fails(402,
				cardError("card_declined", "", "", "ch_2", apitest.Fields{"status": "canceled"}))},
			processor.Intent{State: processor.Canceled, Latest: "ch_2", Code: "card_declined"}, nil},
		{"moved, and has succeeded", []apitest.Reply{apitest.Fails(400, request("payment_intent_unexpected_state")),
			apitest.OKIntent(apitest.Fields{"status": "succeeded", "latest_charge": apitest.ChargeFields("ch_1")})},
			processor.Intent{State: processor.Succeeded, Latest: "ch_1"}, nil},
		{"moved, and is canceled", []apitest.Reply{apitest.Fails(400, request("payment_intent_unexpected_state")),
			apitest.OKIntent(apitest.Fields{"status": "canceled"})},
			processor.Intent{State: processor.Canceled}, nil},
		{"no intent", []apitest.Reply{apitest.Fails(404, missing("intent")), apitest.Fails(404, missing("intent"))},
			processor.Intent{}, processor.ErrNoIntent},
		{"no mandate, of one that has succeeded",
			[]apitest.Reply{apitest.Fails(404, missing("mandate")),
				apitest.OKIntent(apitest.Fields{"status": "succeeded", "latest_charge": apitest.ChargeFields("ch_1")})},
			processor.Intent{State: processor.Succeeded, Latest: "ch_1"}, nil},
		{"nobody knows what is missing", []apitest.Reply{apitest.Fails(404, missing("")), apitest.Fails(403, request(""))},
			processor.Intent{}, processor.ErrRefused},
		{"key of other parameters", []apitest.Reply{apitest.Fails(400,
			apitest.Fields{"type": "idempotency_error", "message": "m"})}, processor.Intent{}, processor.ErrInvalid},
		{"wrong request", []apitest.Reply{apitest.Fails(400, request("parameter_unknown"))}, processor.Intent{},
			processor.ErrInvalid},
		{"unauthorized", []apitest.Reply{apitest.Fails(401,
			apitest.Fields{"type": "invalid_request_error", "message": "Invalid API Key provided: " + apitest.Key})},
			processor.Intent{}, processor.ErrRefused},
		{"forbidden", []apitest.Reply{apitest.Fails(403, request(""))}, processor.Intent{}, processor.ErrRefused},
		{"server error", []apitest.Reply{apitest.Fails(500,
			apitest.Fields{"type": "api_error", "message": apitest.ClientSecret})}, processor.Intent{}, processor.ErrUnknown},
		{"a proxy's page", []apitest.Reply{{Status: 502, Body: "<html>" + apitest.ClientSecret}}, processor.Intent{},
			processor.ErrUnknown},
		{"a proxy that forbids", []apitest.Reply{{Status: 403, Body: "<html>no"}}, processor.Intent{}, processor.ErrUnknown},
		{"a proxy that knows nobody", []apitest.Reply{{Status: 401, Body: "{}"}}, processor.Intent{}, processor.ErrUnknown},
		{"another server's 404", []apitest.Reply{{Status: 404, Body: "not found"}}, processor.Intent{}, processor.ErrUnknown},
		{"a redirect", []apitest.Reply{{Status: 302, Body: "{}",
			Header: map[string]string{"Location": "https://example.com"}}}, processor.Intent{}, processor.ErrUnknown},
		{"no JSON", []apitest.Reply{apitest.OK(`{"id":"pi_1","name":"Ada","client_secret":"` + apitest.ClientSecret +
			`","object":`)}, processor.Intent{}, processor.ErrUnknown},
		{"an empty object", []apitest.Reply{apitest.OK(`{}`)}, processor.Intent{}, processor.ErrUnknown},
		{"another object", []apitest.Reply{apitest.OKIntent(apitest.Fields{"object": "charge"})}, processor.Intent{},
			processor.ErrUnknown},
		{"another intent", []apitest.Reply{apitest.OKIntent(apitest.Fields{"id": "pi_2", "status": "succeeded"})},
			processor.Intent{}, processor.ErrUnknown},
		{"a status of the future", []apitest.Reply{apitest.OKIntent(apitest.Fields{"status": "requires_prayer"})},
			processor.Intent{}, processor.ErrUnknown},
		{"live mode", []apitest.Reply{apitest.OKIntent(apitest.Fields{"livemode": true, "status": "succeeded"})},
			processor.Intent{}, processor.ErrRefused},
		{"nothing", []apitest.Reply{{}}, processor.Intent{}, processor.ErrUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := apitest.NewScript(t, tt.replies...)
			got, err := scripted(t, s).Confirm(t.Context(), confirmRequest)
			if !errors.Is(err, tt.err) {
				t.Fatalf("got error %v, want %v", err, tt.err)
			}
			if err != nil {
				if apitest.Hush(t, err.Error()); strings.Contains(err.Error(), "Ada") {
					t.Errorf("the error shows a customer: %v", err)
				}
				return
			}
			if got.State != tt.want.State || got.Latest != tt.want.Latest || got.Code != tt.want.Code ||
				got.Hard != tt.want.Hard || got.Ref != "pi_1" || got.Tag != testTag || got.Amount != apitest.USD(t, 1299) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if r := s.Requests()[0]; r.Form.Get("off_session") != "true" || r.Form.Get("payment_method") != "pm_1" ||
				r.Header.Get("Idempotency-Key") != "dd_confirm" || r.Path != "/v1/payment_intents/pi_1/confirm" {
				t.Errorf("sent %s %v under %q", r.Path, r.Form, r.Header.Get("Idempotency-Key"))
			}
		})
	}
}

// What Stripe repeats under a key is of an earlier day: what has come of it since counts.
func TestConfirm_OfARepeatedAnswer(t *testing.T) {
	replay := map[string]string{"Idempotent-Replayed": "true"}
	for name, first := range map[string]apitest.Reply{
		"waits":    apitest.OKIntent(apitest.Fields{"status": "requires_action"}),
		"declined": apitest.Fails(402, cardError("card_declined", "do_not_honor", "", "ch_1", apitest.Fields{})),
		"action":   apitest.Fails(402, cardError("authentication_required", "", "", "ch_1", apitest.Fields{})),
	} {
		first.Header = replay
		s := apitest.NewScript(t, first,
			apitest.OKIntent(apitest.Fields{"status": "succeeded", "latest_charge": apitest.ChargeFields("ch_2")}))
		if got, err := scripted(t, s, withPage).Confirm(t.Context(), confirmRequest); err != nil ||
			got.State != processor.Succeeded {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	final := apitest.OKIntent(apitest.Fields{"status": "succeeded", "latest_charge": apitest.ChargeFields("ch_1")})
	final.Header = replay
	if got, err := scripted(t, apitest.NewScript(t, final)).Confirm(t.Context(), confirmRequest); err != nil ||
		got.State != processor.Succeeded {
		t.Errorf("succeeded: got %+v, %v", got, err)
	}
}

// The next look-up has to tell the same attempt as the confirm told: else it would be made
// again, or counted twice.
func TestConfirm_ADeclineLooksTheSameLater(t *testing.T) {
	e := cardError("card_declined", "stolen_card", "try_again_later", "ch_2", apitest.Fields{})
	later := e["payment_intent"].(apitest.Fields)
	s := apitest.NewScript(t, apitest.Fails(402, e),
		apitest.OK(apitest.Object(later,
			apitest.Fields{"latest_charge": apitest.ChargeFields("ch_2",
				apitest.Fields{"outcome": apitest.Fields{"advice_code": "try_again_later"}})})))
	p := scripted(t, s)
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
	if !first.Changed.Equal(apitest.Now) || !second.Changed.Equal(api.Instant(5000)) {
		t.Errorf("changed: got %v and %v", first.Changed, second.Changed)
	}
	if first.Changed = second.Changed; first != second {
		t.Errorf("the confirm told %+v\nand the look-up %+v", first, second)
	}
}

func TestLookup(t *testing.T) {
	s := apitest.NewScript(t, apitest.OKIntent(apitest.Fields{"status": "succeeded",
		"latest_charge": apitest.ChargeFields("ch_1")}),
		apitest.Fails(404, apitest.Fields{"type": "invalid_request_error", "code": "resource_missing", "param": "intent"}),
		apitest.OKIntent(apitest.Fields{"status": "canceled", "canceled_at": 7000,
			"latest_charge": apitest.ChargeFields("ch_1")}),
		apitest.OKIntent(apitest.Fields{"status": "requires_payment_method"}),
		apitest.OKIntent(apitest.Fields{"status": "requires_action",
			"next_action": apitest.Fields{"type": "redirect_to_url",
				"redirect_to_url": apitest.Fields{"url": "https://hooks.example/x"}}}))
	p := scripted(t, s)
	got, err := p.Lookup(t.Context(), "acct_9/pi_1")
	if err != nil || got.State != processor.Succeeded || got.Ref != "acct_9/pi_1" || !got.Changed.Equal(api.Instant(5000)) ||
		!got.Opened.Equal(api.Instant(1000)) {
		t.Errorf("succeeded: got %+v, %v", got, err)
	}
	if r := s.Requests()[0]; r.Form.Get("expand[0]") != "latest_charge" || r.Header.Get("Stripe-Account") != "acct_9" ||
		r.Header.Get("Idempotency-Key") != "" {
		t.Errorf("sent %v, %v", r.Form, r.Header)
	}
	_, err = p.Lookup(t.Context(), "pi_1")
	apitest.WantError(t, "no intent", err, processor.ErrNoIntent)
	if got, err = p.Lookup(t.Context(), "pi_1"); err != nil || got.State != processor.Canceled ||
		!got.Changed.Equal(api.Instant(7000)) {
		t.Errorf("canceled: got %+v, %v", got, err)
	}
	if got, err = p.Lookup(t.Context(), "pi_1"); err != nil || got.State != processor.Opened || got.Latest != "" {
		t.Errorf("never attempted: got %+v, %v", got, err)
	}
	if got, err = p.Lookup(t.Context(), "pi_1"); err != nil || got.State != processor.RequiresAction ||
		got.Link != "https://hooks.example/x" {
		t.Errorf("requires action: got %+v, %v", got, err)
	}
	for _, text := range []string{"", "in_1", "sb_1", "pi_", "pi_1/x", "acct_1/", "/pi_1", "acct_1/pi_1/x", "pi_1?x=1",
		"pi_..", strings.Repeat("pi_1", 99)} {
		_, err := p.Lookup(t.Context(), text)
		apitest.WantError(t, text, err, processor.ErrNoIntent)
	}
}

func TestCancel(t *testing.T) {
	unexpected := apitest.Fails(400,
		apitest.Fields{"type": "invalid_request_error", "code": "payment_intent_unexpected_state"})
	s := apitest.NewScript(t, apitest.OKIntent(apitest.Fields{"status": "canceled", "canceled_at": 9}),
		unexpected, apitest.OKIntent(apitest.Fields{"status": "succeeded", "latest_charge": apitest.ChargeFields("ch_1")}),
		apitest.Reply{Status: 500, Body: "x"})
	p := scripted(t, s)
	if got, err := p.Cancel(t.Context(), "pi_1"); err != nil || got.State != processor.Canceled {
		t.Errorf("got %+v, %v", got, err)
	}
	if r := s.Requests()[0]; r.Form.Get("cancellation_reason") != "abandoned" ||
		len(r.Header.Values("Idempotency-Key")) != 0 {
		t.Errorf("sent %v, under %v", r.Form, r.Header.Values("Idempotency-Key"))
	}
	if got, err := p.Cancel(t.Context(), "pi_1"); err != nil || got.State != processor.Succeeded {
		t.Errorf("after a success: got %+v, %v", got, err)
	}
	_, err := p.Cancel(t.Context(), "pi_1")
	apitest.WantError(t, "no answer", err, processor.ErrUnknown)
}

func TestList(t *testing.T) {
	foreign := apitest.Object(apitest.IntentFields(),
		apitest.Fields{"id": "pi_9", "metadata": apitest.Fields{}, "currency": "usdc", "amount": 5, "status": "of_tomorrow"})
	s := apitest.NewScript(t, apitest.List(true, apitest.Object(apitest.IntentFields()), foreign),
		apitest.List(false, apitest.Object(apitest.IntentFields(),
			apitest.Fields{"id": "pi_3", "status": "succeeded", "latest_charge": apitest.ChargeFields("ch_1")})))
	p := scripted(t, s)
	var got []processor.Intent
	for in, err := range p.List(t.Context(),
		processor.ListRequest{At: "acct_1", Customer: "cus_1", Since: time.Unix(99, 999_999_999)}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, in)
	}
	if len(got) != 3 || got[0].Tag != testTag || got[1].Tag != (processor.Tag{}) || got[1].Ref != "acct_1/pi_9" ||
		got[2].State != processor.Succeeded {
		t.Errorf("got %+v", got)
	}
	first, second := s.Requests()[0], s.Requests()[1]
	want := url.Values{"created[gte]": {"99"}, "customer": {"cus_1"}, "limit": {"100"}, "expand[]": {"data.latest_charge"}}
	if first.Form.Encode() != want.Encode() || first.Header.Get("Stripe-Account") != "acct_1" {
		t.Errorf("got %v, want %v", first.Form, want)
	}
	if want.Set("starting_after", "pi_9"); second.Form.Encode() != want.Encode() ||
		second.Header.Get("Stripe-Account") != "acct_1" {
		t.Errorf("got %v, want %v", second.Form, want)
	}
}

// What is not a list to the end must not be taken for one: what is missing in it was not
// charged, as far as the store can tell.
func TestList_EndsWithAnErrorWhereItIsNotWhole(t *testing.T) {
	for name, tt := range map[string]struct {
		replies []apitest.Reply
		yields  int
		want    error
	}{
		"no list":           {[]apitest.Reply{apitest.OK(`{}`)}, 0, processor.ErrUnknown},
		"an intent":         {[]apitest.Reply{apitest.OKIntent()}, 0, processor.ErrUnknown},
		"more, but nothing": {[]apitest.Reply{apitest.List(true)}, 0, processor.ErrUnknown},
		"the same page again": {[]apitest.Reply{apitest.List(true, apitest.Object(apitest.IntentFields())),
			apitest.List(true, apitest.Object(apitest.IntentFields()))}, 2, processor.ErrUnknown},
		"of the other mode": {[]apitest.Reply{apitest.List(false,
			apitest.Object(apitest.IntentFields(), apitest.Fields{"livemode": true}))}, 0, processor.ErrRefused},
		"our key": {[]apitest.Reply{apitest.Fails(401, apitest.Fields{"type": "invalid_request_error"})}, 0,
			processor.ErrRefused},
		"the second page lost": {[]apitest.Reply{apitest.List(true, apitest.Object(apitest.IntentFields())),
			apitest.Fails(400, apitest.Fields{"type": "invalid_request_error"})}, 1, processor.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			var last error
			n := 0
			for _, err := range scripted(t, apitest.NewScript(t, tt.replies...)).List(t.Context(), processor.ListRequest{}) {
				if last != nil {
					t.Error("something came after the error")
				}
				if last = err; err == nil {
					n++
				}
			}
			apitest.WantError(t, name, last, tt.want)
			if n != tt.yields {
				t.Errorf("got %d intents, want %d", n, tt.yields)
			}
		})
	}
}

func TestCancelledContextIsUnknown(t *testing.T) {
	reason := errors.New("the night is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := apitest.NewScript(t, apitest.Reply{Check: func(apitest.Seen) { cancel(reason) }})
	p := scripted(t, s)
	_, err := p.Confirm(ctx, confirmRequest)
	if !errors.Is(err, processor.ErrUnknown) || !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
		t.Errorf("under way: got %v", err)
	}
	_, err = p.Confirm(ctx, confirmRequest)
	if !errors.Is(err, processor.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("before it was sent: got %v", err)
	}
}

// TestTelemetry: the library tells of a request's duration with the one after it.
func TestTelemetry(t *testing.T) {
	s := apitest.NewScript(t)
	s.Always = func(apitest.Seen) apitest.Reply {
		r := apitest.OKIntent()
		r.Header = map[string]string{"Request-Id": "req_1"} // it tells of none without
		return r
	}
	p := scripted(t, s)
	for range 4 {
		if _, err := p.Lookup(t.Context(), "pi_1"); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.Requests()) != 4 {
		t.Fatalf("%d requests", len(s.Requests()))
	}
	for i, r := range s.Requests() {
		if got := r.Header.Get("X-Stripe-Client-Telemetry"); got != "" {
			t.Errorf("request %d tells %s", i, got)
		}
	}
}
