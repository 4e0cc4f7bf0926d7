package billing_test

import (
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/processor"
)

// TestReconcile goes through every state of a record and every state that the processor shows.
func TestReconcile(t *testing.T) {
	const asked = "rf_0123456789abcdef0123456789abcdef"
	now := time.Date(2024, 1, 31, 9, 0, 0, 0, time.UTC)
	name := billing.Name{Account: "a1", ID: "s1", SKU: "gold"}
	states := [...]processor.ReversalState{processor.ReversalInquiry, processor.ReversalPending, processor.ReversalSucceeded,
		processor.ReversalFailed, processor.ReversalCanceled}
	type record = billing.ReversalRecord
	for _, row := range []struct {
		of      string
		record  *record
		becomes [len(states)]processor.ReversalState // "": nothing is new
		id      string                               // of a new record
	}{
		{"no record", nil, states, asked},
		{"requested", &record{ReversalID: asked, State: processor.ReversalRequested}, states, ""},
		{"refused", &record{ReversalID: asked, State: processor.ReversalFailed, Refusal: "no", Ended: now}, states, ""},
		{"inquiry", &record{Ref: "re_1", State: processor.ReversalInquiry},
			[...]processor.ReversalState{"", "pending", "succeeded", "failed", "canceled"}, ""},
		{"pending", &record{Ref: "re_1", State: processor.ReversalPending},
			[...]processor.ReversalState{"", "", "succeeded", "failed", "canceled"}, ""},
		{"succeeded", &record{Ref: "re_1", State: processor.ReversalSucceeded},
			[...]processor.ReversalState{"", "", "", "failed", ""}, ""},
		{"failed", &record{Ref: "re_1", State: processor.ReversalFailed}, [len(states)]processor.ReversalState{}, ""},
		{"canceled", &record{Ref: "re_1", State: processor.ReversalCanceled}, [len(states)]processor.ReversalState{}, ""},
		{"another of the request", &record{ReversalID: asked, Ref: "re_2", State: processor.ReversalSucceeded}, states, "re_1"},
		{"another request's", &record{ReversalID: "rf_ffffffffffffffffffffffffffffffff", State: processor.ReversalRequested},
			states, asked},
		{"another kind", &record{ReversalID: "re_1", Ref: "re_1", Kind: processor.Disputed, State: processor.ReversalPending},
			states, asked},
	} {
		for i, state := range states {
			shown := processor.Reversal{Kind: processor.Refunded, ID: "re_1", Request: asked, Ref: "pi_1", State: state,
				Reason: "theirs", Created: now.Add(-time.Hour)}
			var list []*record
			if row.record != nil {
				r := *row.record
				if r.Name = name; r.Kind == "" {
					r.Kind = processor.Refunded
				}
				list = append(list, &r)
			}
			was, becomes := billing.Reconcile(list, name, shown, now)
			if isNew := row.id != ""; isNew != (was == nil) || !isNew && was != list[0] {
				t.Errorf("%s, %s: was %+v", row.of, state, was)
				continue
			}
			if was != nil && becomes != nil && becomes.Version() <= was.Version() {
				t.Errorf("%s, %s: version %d after %d", row.of, state, becomes.Version(), was.Version())
			}
			if row.becomes[i] == "" {
				if becomes != nil {
					t.Errorf("%s, %s: becomes %+v", row.of, state, becomes)
				}
				continue
			}
			final := state != processor.ReversalInquiry && state != processor.ReversalPending
			switch {
			case becomes == nil:
				t.Errorf("%s, %s: nothing is new", row.of, state)
			case becomes.State != row.becomes[i] || becomes.Ref != "re_1" || becomes.Reason != "theirs" ||
				becomes.Refusal != "" || becomes.Ended.IsZero() == final || becomes.Name != name:
				t.Errorf("%s, %s: becomes %+v", row.of, state, becomes)
			case was == nil && becomes.ReversalID != row.id:
				t.Errorf("%s, %s: id %s, want %s", row.of, state, becomes.ReversalID, row.id)
			case was != nil && was.State != row.record.State:
				t.Errorf("%s, %s: Reconcile has changed the record that it was given", row.of, state)
			case len(list) > 0 && was != nil && becomes.ReversalID != was.ReversalID:
				t.Errorf("%s, %s: another id", row.of, state)
			}
		}
	}
}

// TestRefuse: only a refund without an answer is refused.
func TestRefuse(t *testing.T) {
	for _, state := range []processor.ReversalState{"requested", "inquiry", "pending", "succeeded", "failed", "canceled"} {
		r := billing.ReversalRecord{State: state}
		refused := r.Refuse("why", time.Now())
		want := state == processor.ReversalRequested
		written := r.State == processor.ReversalFailed && r.Refusal == "why" && !r.Ended.IsZero()
		if refused != want || want && !written || !want && r.State != state {
			t.Errorf("%s: %t, %+v", state, refused, r)
		}
	}
}
