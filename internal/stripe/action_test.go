package stripe

import (
	"testing"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/test/apitest"
)

func withPage(o *Options) { o.ReturnURL = "https://example.com/back" }

const actionPage = "https://hooks.example/auth"

func needsAction() apitest.Reply {
	return apitest.Fails(402, cardError("authentication_required", "authentication_required", "", "ch_1",
		apitest.Fields{}))
}

func page200() apitest.Reply {
	return apitest.OKIntent(apitest.Fields{"status": "requires_action", "latest_charge": "ch_1",
		"next_action": apitest.Fields{"type": "redirect_to_url", "redirect_to_url": apitest.Fields{"url": actionPage}}})
}

func TestConfirm_AuthenticationWithoutAPage(t *testing.T) {
	e := cardError("authentication_required", "authentication_required", "", "ch_1", apitest.Fields{})
	s := apitest.NewScript(t, apitest.Fails(402, e), apitest.OK(apitest.Object(e["payment_intent"].(apitest.Fields))))
	p := scripted(t, s)
	first, err := p.Confirm(t.Context(), confirmRequest)
	if err != nil || first.State != processor.RequiresAction || first.Latest != "ch_1/action" || first.Link != "" ||
		first.Code != "authentication_required" {
		t.Errorf("got %+v, %v", first, err)
	}
	second, err := p.Lookup(t.Context(), "pi_1")
	if first.Changed = second.Changed; err != nil || second != first {
		t.Errorf("looked up: got %+v, %v\nwant %+v", second, err, first)
	}
}

// The page is made by a second confirm of the same intent, under a key of its own.
func TestConfirm_MakesThePage(t *testing.T) {
	s := apitest.NewScript(t, needsAction(), page200())
	got, err := scripted(t, s, withPage).Confirm(t.Context(), confirmRequest)
	if err != nil || got.State != processor.RequiresAction || got.Link != actionPage || got.Latest != "ch_1/action" {
		t.Errorf("got %+v, %v", got, err)
	}
	first, second := s.Requests()[0], s.Requests()[1]
	if second.Path != first.Path || second.Form.Has("off_session") ||
		second.Form.Get("return_url") != "https://example.com/back" || second.Form.Get("payment_method") != "pm_1" {
		t.Errorf("sent %s %v", second.Path, second.Form)
	}
	if k := second.Header.Get("Idempotency-Key"); k == "" || k == first.Header.Get("Idempotency-Key") {
		t.Errorf("the second confirm went under %q", k)
	}
	other := apitest.NewScript(t, needsAction(), page200())
	next := confirmRequest
	next.Key = "dd_next"
	if _, err := scripted(t, other, withPage).Confirm(t.Context(), next); err != nil ||
		other.Requests()[1].Header.Get("Idempotency-Key") == second.Header.Get("Idempotency-Key") {
		t.Errorf("two attempts ask for their pages under one key: %v", err)
	}
}

func TestConfirm_WhatThePageCameTo(t *testing.T) {
	for name, tt := range map[string]struct {
		replies []apitest.Reply
		state   processor.State
		latest  string
		err     error
	}{
		"paid at once": {[]apitest.Reply{apitest.OKIntent(apitest.Fields{"status": "succeeded", "latest_charge": "ch_2"})},
			processor.Succeeded, "ch_2", nil},
		"still needed": {[]apitest.Reply{needsAction()}, processor.RequiresAction, "ch_1/action", nil},
		"not possible": {[]apitest.Reply{apitest.Fails(400,
			apitest.Fields{"type": "invalid_request_error", "code": "parameter_unknown", "param": "return_url"})},
			processor.RequiresAction, "ch_1/action", nil},
		"declined": {[]apitest.Reply{apitest.Fails(402,
			cardError("card_declined", "insufficient_funds", "", "ch_2", apitest.Fields{}))}, processor.Declined, "ch_2", nil},
		"paid meanwhile": {[]apitest.Reply{apitest.Fails(400,
			apitest.Fields{"type": "invalid_request_error", "code": "payment_intent_unexpected_state"}),
			apitest.OKIntent(apitest.Fields{"status": "succeeded", "latest_charge": "ch_2"})}, processor.Succeeded, "ch_2", nil},
		// The money may have been taken: the customer must not be asked for it.
		"answer lost": {[]apitest.Reply{{}}, "", "", processor.ErrUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			s := apitest.NewScript(t, append([]apitest.Reply{needsAction()}, tt.replies...)...)
			got, err := scripted(t, s, withPage).Confirm(t.Context(), confirmRequest)
			if got.State != tt.state || got.Latest != tt.latest || (err == nil) != (tt.err == nil) {
				t.Errorf("got %+v, %v", got, err)
			}
			if tt.err != nil {
				apitest.WantError(t, name, err, tt.err)
			}
		})
	}
}

// A note of an earlier attempt must not hide that the customer is waited for.
func TestConfirm_AuthenticationAfterANote(t *testing.T) {
	now := apitest.IntentFields()
	needed := apitest.Fails(402, apitest.Fields{"type": "card_error", "code": "authentication_required"})
	p := scripted(t, memory(t, now, tooOften(), needed))
	first, err := p.Confirm(t.Context(), confirmRequest)
	if err != nil || first.State != processor.Declined {
		t.Fatalf("got %+v, %v", first, err)
	}
	next := confirmRequest
	next.Key = "dd_next"
	second, err := p.Confirm(t.Context(), next)
	if err != nil || second.State != processor.RequiresAction || second.Latest == first.Latest {
		t.Errorf("got %+v, %v", second, err)
	}
	later, err := p.Lookup(t.Context(), "pi_1")
	if second.Changed = later.Changed; err != nil || later != second {
		t.Errorf("looked up: got %+v, %v\nwant %+v", later, err, second)
	}
}
