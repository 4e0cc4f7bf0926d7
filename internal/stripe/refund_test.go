package stripe

import (
	"errors"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/test/apitest"
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

func wantRefund(t *testing.T) processor.Reversal {
	return processor.Reversal{Kind: processor.Refunded, ID: "re_1", Request: "r1", Ref: "acct_1/pi_1", Tag: testTag,
		Amount: apitest.USD(t, 500),
		State:  processor.ReversalSucceeded, Reason: "duplicate", Created: api.Instant(6000)}
}

func TestRefund(t *testing.T) {
	r := processor.RefundRequest{Key: "dd_r", ID: "r1", Ref: "acct_1/pi_1", Amount: apitest.USD(t, 500),
		Reason: processor.Duplicate, Tag: testTag}
	s := apitest.NewScript(t, apitest.OK(refundFields()))
	got, err := scripted(t, s).Refund(t.Context(), r)
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
		"nothing left": {request("charge_already_refunded"), processor.ErrInvalid},
		"too much":     {request(""), processor.ErrInvalid},
		"disputed":     {request("charge_disputed"), processor.ErrInvalid},
		"no such intent": {apitest.Fails(404,
			apitest.Fields{"type": "invalid_request_error", "code": "resource_missing", "param": "payment_intent"}),
			processor.ErrNoIntent},
		"lost":              {apitest.Reply{}, processor.ErrUnknown},
		"a 500":             {apitest.Reply{Status: 500, Body: "x"}, processor.ErrUnknown},
		"an empty object":   {apitest.OK(`{}`), processor.ErrUnknown},
		"an unknown status": {apitest.OK(refundFields(apitest.Fields{"status": "considered"})), processor.ErrUnknown},
		"another amount":    {apitest.OK(refundFields(apitest.Fields{"amount": 501})), processor.ErrUnknown},
		"another request": {apitest.OK(refundFields(apitest.Fields{"metadata": apitest.Fields{"duesday_refund": "r2"}})),
			processor.ErrUnknown},
		"of another intent": {apitest.OK(refundFields(apitest.Fields{"payment_intent": "pi_2"})), processor.ErrUnknown},
		"of no intent":      {apitest.OK(refundFields(apitest.Fields{"payment_intent": nil})), processor.ErrUnknown},
	} {
		r := processor.RefundRequest{Key: "dd_r", ID: "r1", Ref: "pi_1", Amount: apitest.USD(t, 500)}
		_, err := scripted(t, apitest.NewScript(t, tt.reply)).Refund(t.Context(), r)
		apitest.WantError(t, name, err, tt.want)
	}
	p := scripted(t, apitest.NewScript(t))
	for name, r := range map[string]processor.RefundRequest{
		"nothing":   {Key: "k", ID: "r", Ref: "pi_1", Amount: apitest.USD(t, 0)},
		"less":      {Key: "k", ID: "r", Ref: "pi_1", Amount: apitest.USD(t, -1)},
		"no key":    {ID: "r", Ref: "pi_1", Amount: apitest.USD(t, 1)},
		"no id":     {Key: "k", Ref: "pi_1", Amount: apitest.USD(t, 1)},
		"no intent": {Key: "k", ID: "r", Ref: "x", Amount: apitest.USD(t, 1)},
	} {
		if _, err := p.Refund(t.Context(), r); !errors.Is(err, processor.ErrInvalid) && !errors.Is(err, processor.ErrNoIntent) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestReturnStates(t *testing.T) {
	for status, want := range map[string]processor.ReversalState{"pending": processor.ReversalPending,
		"requires_action": processor.ReversalPending,
		"succeeded":       processor.ReversalSucceeded, "failed": processor.ReversalFailed,
		"canceled": processor.ReversalCanceled} {
		s := apitest.NewScript(t, apitest.OK(refundFields(apitest.Fields{"status": status})))
		got, err := scripted(t, s).Refund(t.Context(),
			processor.RefundRequest{Key: "k", ID: "r1", Ref: "pi_1", Amount: apitest.USD(t, 500)})
		if err != nil || got.State != want {
			t.Errorf("refund %s: got %s, %v; want %s", status, got.State, err, want)
		}
	}
	for status, want := range map[string]processor.ReversalState{"warning_needs_response": processor.ReversalInquiry,
		"warning_under_review": processor.ReversalInquiry,
		"warning_closed":       processor.ReversalCanceled, "needs_response": processor.ReversalPending,
		"under_review": processor.ReversalPending, "won": processor.ReversalFailed,
		"appeal_needs_response": processor.ReversalSucceeded, "appeal_under_review": processor.ReversalSucceeded,
		"lost": processor.ReversalSucceeded, "prevented": processor.ReversalCanceled, "of tomorrow": processor.ReversalPending} {
		p := scripted(t, apitest.NewScript(t, apitest.List(false),
			apitest.List(false, disputeFields(apitest.Fields{"status": status, "evidence_details": apitest.Fields{"due_by": 7000}}))))
		got, err := p.ReversalsOf(t.Context(), "pi_1")
		if err != nil || len(got) != 1 || got[0].State != want || got[0].EvidenceDue != api.Instant(7000) {
			t.Errorf("dispute %s: got %+v, %v; want %s", status, got, err, want)
		}
	}
}

func TestReturns(t *testing.T) {
	foreign := refundFields(apitest.Fields{"id": "pyr_2", "metadata": nil, "payment_intent": nil, "currency": "usdc"})
	s := apitest.NewScript(t, apitest.List(true, refundFields()),
		apitest.List(false, foreign, refundFields(apitest.Fields{"id": "re_3", "status": nil, "metadata": nil,
			"payment_intent": nil})), apitest.List(false, disputeFields()))
	var got []processor.Reversal
	for r, err := range scripted(t, s).Reversals(t.Context(),
		processor.ListRequest{At: "acct_1", Since: time.Unix(40_000_077, 0), Until: time.Unix(40_000_088, 0)}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	want := []processor.Reversal{wantRefund(t),
		{Kind: processor.Refunded, ID: "pyr_2", State: processor.ReversalSucceeded, Reason: "duplicate",
			Created: api.Instant(6000)},
		{Kind: processor.Refunded, ID: "re_3", Amount: apitest.USD(t, 500), State: processor.ReversalPending, Reason: "duplicate",
			Created: api.Instant(6000)},
		{Kind: processor.Disputed, ID: "dp_1", Ref: "acct_1/pi_1", Tag: testTag, Amount: apitest.USD(t, 1299),
			State: processor.ReversalPending, Reason: "fraudulent", Created: api.Instant(6500)}}
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
	p := scripted(t, s)
	got, err := p.ReversalsOf(t.Context(), "acct_1/pi_1")
	if err != nil || len(got) != 2 || got[0] != wantRefund(t) || got[1].Kind != processor.Disputed {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, r := range s.Requests() {
		if r.Form.Get("payment_intent") != "pi_1" || r.Form.Has("created[gte]") {
			t.Errorf("sent %s %v", r.Path, r.Form)
		}
	}
	_, err = scripted(t, apitest.NewScript(t,
		apitest.List(false, refundFields(apitest.Fields{"payment_intent": "pi_2"})))).ReversalsOf(t.Context(), "pi_1")
	apitest.WantError(t, "what was not asked for", err, processor.ErrUnknown)
	got, err = p.ReversalsOf(t.Context(), "pi_1")
	if apitest.WantError(t, "half of it", err, processor.ErrRefused); got != nil {
		t.Errorf("half an answer was given: %+v", got)
	}
}
