package stripe

import (
	"errors"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/stripe/apitest"
)

func refundFields(changes ...apitest.Fields) string {
	in := apitest.IntentFields()
	return apitest.Object(apitest.Fields{"id": "re_1", "object": "refund", "amount": 500, "currency": "usd",
		"created": 6000, "status": "succeeded", "reason": "duplicate",
		"metadata": apitest.Fields{"duesday_refund": "r1"}, "payment_intent": in}, changes...)
}

func disputeFields(changes ...apitest.Fields) string {
	in := apitest.IntentFields()
	return apitest.Object(apitest.Fields{"id": "dp_1", "object": "dispute", "amount": 1299, "currency": "usd",
		"created": 6500, "status": "needs_response", "reason": "fraudulent",
		"livemode": false, "payment_intent": in}, changes...)
}

func wantRefund(t *testing.T) billing.Reversal {
	return billing.Reversal{Kind: billing.Refunded, ID: "re_1", Request: "r1", Ref: "acct_1/pi_1", Tag: testTag,
		Amount: apitest.USD(t, 500),
		State:  billing.ReversalSucceeded, Reason: "duplicate", Created: api.Instant(6000)}
}

func TestRefund(t *testing.T) {
	r := billing.RefundRequest{Key: "dd_r", ID: "r1", Ref: "acct_1/pi_1", Amount: apitest.USD(t, 500),
		Reason: billing.Duplicate, Tag: testTag}
	s := apitest.NewScript(t, apitest.OK(refundFields()))
	got, err := processor(t, s).Refund(t.Context(), r)
	if err != nil || got != wantRefund(t) {
		t.Errorf("got %+v, %v", got, err)
	}
	want := url.Values{"payment_intent": {"pi_1"}, "amount": {"500"}, "reason": {"duplicate"},
		"expand[0]": {"payment_intent"}, "metadata[duesday_refund]": {"r1"},
		"metadata[duesday_installation]": {"inst"}, "metadata[duesday_account]": {"acme"},
		"metadata[duesday_subscription]": {"sub"},
		"metadata[duesday_sku]":          {"gold"}, "metadata[duesday_period]": {"3"}, "metadata[duesday_generation]": {"1"}}
	if sent := s.Requests()[0]; sent.Path != "/v1/refunds" || sent.Form.Encode() != want.Encode() ||
		sent.Header.Get("Idempotency-Key") != "dd_r" || sent.Header.Get("Stripe-Account") != "acct_1" {
		t.Errorf("sent %s %v %v", sent.Path, sent.Form, sent.Header)
	}
}

func TestRefund_Refusals(t *testing.T) {
	request := func(code string) apitest.Reply {
		return apitest.Fails(400, apitest.Fields{"type": "invalid_request_error", "code": code, "message": "m"})
	}
	for name, tt := range map[string]struct {
		reply apitest.Reply
		want  error
	}{
		"nothing left": {request("charge_already_refunded"), billing.ErrInvalid},
		"too much":     {request(""), billing.ErrInvalid},
		"disputed":     {request("charge_disputed"), billing.ErrInvalid},
		"no such intent": {apitest.Fails(404,
			apitest.Fields{"type": "invalid_request_error", "code": "resource_missing", "param": "payment_intent"}),
			billing.ErrNoIntent},
		"lost":              {apitest.Reply{}, billing.ErrUnknown},
		"a 500":             {apitest.Reply{Status: 500, Body: "x"}, billing.ErrUnknown},
		"an empty object":   {apitest.OK(`{}`), billing.ErrUnknown},
		"an unknown status": {apitest.OK(refundFields(apitest.Fields{"status": "considered"})), billing.ErrUnknown},
		"another amount":    {apitest.OK(refundFields(apitest.Fields{"amount": 501})), billing.ErrUnknown},
		"another request": {apitest.OK(refundFields(apitest.Fields{"metadata": apitest.Fields{"duesday_refund": "r2"}})),
			billing.ErrUnknown},
		"of another intent": {apitest.OK(refundFields(apitest.Fields{"payment_intent": "pi_2"})), billing.ErrUnknown},
		"of no intent":      {apitest.OK(refundFields(apitest.Fields{"payment_intent": nil})), billing.ErrUnknown},
	} {
		r := billing.RefundRequest{Key: "dd_r", ID: "r1", Ref: "pi_1", Amount: apitest.USD(t, 500)}
		_, err := processor(t, apitest.NewScript(t, tt.reply)).Refund(t.Context(), r)
		apitest.WantError(t, name, err, tt.want)
	}
	p := processor(t, apitest.NewScript(t))
	for name, r := range map[string]billing.RefundRequest{
		"nothing":   {Key: "k", ID: "r", Ref: "pi_1", Amount: apitest.USD(t, 0)},
		"less":      {Key: "k", ID: "r", Ref: "pi_1", Amount: apitest.USD(t, -1)},
		"no key":    {ID: "r", Ref: "pi_1", Amount: apitest.USD(t, 1)},
		"no id":     {Key: "k", Ref: "pi_1", Amount: apitest.USD(t, 1)},
		"no intent": {Key: "k", ID: "r", Ref: "x", Amount: apitest.USD(t, 1)},
	} {
		if _, err := p.Refund(t.Context(), r); !errors.Is(err, billing.ErrInvalid) && !errors.Is(err, billing.ErrNoIntent) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestReturnStates(t *testing.T) {
	for status, want := range map[string]billing.ReversalState{"pending": billing.ReversalPending,
		"requires_action": billing.ReversalPending,
		"succeeded":       billing.ReversalSucceeded, "failed": billing.ReversalFailed,
		"canceled": billing.ReversalCanceled} {
		s := apitest.NewScript(t, apitest.OK(refundFields(apitest.Fields{"status": status})))
		got, err := processor(t, s).Refund(t.Context(),
			billing.RefundRequest{Key: "k", ID: "r1", Ref: "pi_1", Amount: apitest.USD(t, 500)})
		if err != nil || got.State != want {
			t.Errorf("refund %s: got %s, %v; want %s", status, got.State, err, want)
		}
	}
	for status, want := range map[string]billing.ReversalState{"warning_needs_response": billing.ReversalInquiry,
		"warning_under_review": billing.ReversalInquiry,
		"warning_closed":       billing.ReversalCanceled, "needs_response": billing.ReversalPending,
		"under_review": billing.ReversalPending, "won": billing.ReversalFailed,
		"appeal_needs_response": billing.ReversalSucceeded, "appeal_under_review": billing.ReversalSucceeded,
		"lost": billing.ReversalSucceeded, "prevented": billing.ReversalCanceled, "of tomorrow": billing.ReversalPending} {
		p := processor(t, apitest.NewScript(t, apitest.List(false),
			apitest.List(false, disputeFields(apitest.Fields{"status": status}))))
		got, err := p.ReversalsOf(t.Context(), "pi_1")
		if err != nil || len(got) != 1 || got[0].State != want {
			t.Errorf("dispute %s: got %+v, %v; want %s", status, got, err, want)
		}
	}
}

func TestReturns(t *testing.T) {
	foreign := refundFields(apitest.Fields{"id": "pyr_2", "metadata": nil, "payment_intent": nil, "currency": "usdc"})
	s := apitest.NewScript(t, apitest.List(true, refundFields()),
		apitest.List(false, foreign, refundFields(apitest.Fields{"id": "re_3", "status": nil, "metadata": nil,
			"payment_intent": nil})), apitest.List(false, disputeFields()))
	var got []billing.Reversal
	for r, err := range processor(t, s).Reversals(t.Context(),
		billing.ListRequest{At: "acct_1", Since: time.Unix(40_000_077, 0), Until: time.Unix(40_000_088, 0)}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	want := []billing.Reversal{wantRefund(t),
		{Kind: billing.Refunded, ID: "pyr_2", State: billing.ReversalSucceeded, Reason: "duplicate",
			Created: api.Instant(6000)},
		{Kind: billing.Refunded, ID: "re_3", Amount: apitest.USD(t, 500), State: billing.ReversalPending, Reason: "duplicate",
			Created: api.Instant(6000)},
		{Kind: billing.Disputed, ID: "dp_1", Ref: "acct_1/pi_1", Tag: testTag, Amount: apitest.USD(t, 1299),
			State: billing.ReversalPending, Reason: "fraudulent", Created: api.Instant(6500)}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	for i, path := range []string{"/v1/refunds", "/v1/refunds", "/v1/disputes"} {
		since := "40000077"
		if path == "/v1/disputes" {
			since = "8464077" // a year before
		}
		if r := s.Requests()[i]; r.Path != path || r.Form.Get("created[gte]") != since ||
			r.Form.Get("created[lt]") != "40000088" ||
			r.Form.Get("expand[]") != "data.payment_intent" || r.Header.Get("Stripe-Account") != "acct_1" {
			t.Errorf("sent %s %v", r.Path, r.Form)
		}
	}
}

func TestReversalsOf(t *testing.T) {
	s := apitest.NewScript(t, apitest.List(false, refundFields()), apitest.List(false, disputeFields()),
		apitest.List(false), apitest.Fails(401, apitest.Fields{"type": "invalid_request_error"}))
	p := processor(t, s)
	got, err := p.ReversalsOf(t.Context(), "acct_1/pi_1")
	if err != nil || len(got) != 2 || got[0] != wantRefund(t) || got[1].Kind != billing.Disputed {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, r := range s.Requests() {
		if r.Form.Get("payment_intent") != "pi_1" || r.Form.Has("created[gte]") {
			t.Errorf("sent %s %v", r.Path, r.Form)
		}
	}
	_, err = processor(t, apitest.NewScript(t,
		apitest.List(false, refundFields(apitest.Fields{"payment_intent": "pi_2"})))).ReversalsOf(t.Context(), "pi_1")
	apitest.WantError(t, "what was not asked for", err, billing.ErrUnknown)
	got, err = p.ReversalsOf(t.Context(), "pi_1")
	if apitest.WantError(t, "half of it", err, billing.ErrRefused); got != nil {
		t.Errorf("half an answer was given: %+v", got)
	}
}
