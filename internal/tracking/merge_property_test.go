package tracking

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// paymentTold is an object that Stripe may report about one payment. Values that always belong to
// an object, such as a refund's amount, are a function of its ID.
func paymentTold() *rapid.Generator[Object] {
	return rapid.Custom(func(t *rapid.T) Object {
		kind := rapid.SampledFrom([]string{KindPayment, KindPayment, KindInvoice, KindCharge, KindRefund,
			KindDispute}).Draw(t, "kind")
		o := Object{Kind: kind, ID: "pi_1", Payment: "pi_1", Amount: 1500, Currency: "USD"}
		if rapid.Bool().Draw(t, "linked") {
			o.Invoice, o.Subscription = "in_1", "sub_1"
		}
		switch kind {
		case KindPayment:
			o.Status = rapid.SampledFrom([]string{"requires_payment_method", "requires_action", "processing", "succeeded",
				"canceled"}).Draw(t, "status")
			if o.Status == "requires_payment_method" {
				if o.Code = rapid.SampledFrom([]string{"", "lost_card", "generic_decline", "expired_card"}).Draw(t,
					"code"); o.Code != "" {
					o.Failed = true
				}
			}
		case KindCharge:
			o.ID, o.Refunded = "ch_1", int64(rapid.IntRange(0, 3).Draw(t, "refunded"))*100
			if rapid.Bool().Draw(t, "told with the refunds") {
				o.Refunds = []Refund{refundTold(t)}
			}
		case KindRefund:
			r := refundTold(t)
			o.ID, o.Refunds = r.ID, []Refund{r}
		case KindDispute:
			o.ID = rapid.SampledFrom([]string{"dp_1", "dp_2"}).Draw(t, "dispute")
			o.Status = rapid.SampledFrom([]string{"warning_needs_response", "warning_closed", "needs_response", "under_review",
				"won", "lost", "appeal_needs_response", "appeal_under_review"}).Draw(t, "status")
		}
		return o
	})
}

func refundTold(t *rapid.T) Refund {
	return Refund{ID: rapid.SampledFrom([]string{"re_1", "re_2"}).Draw(t, "refund"), Amount: 100,
		Status: rapid.SampledFrom([]string{"pending", "requires_action", "succeeded", "canceled", "failed"}).Draw(t,
			"status")}
}

// paymentOfAll merges the list. Like the inbox, it then fetches each dispute whose latest status
// the events do not show. Such a dispute was won.
func paymentOfAll(list []Object) Payment {
	p := Payment{ID: "pi_1", Status: PaymentNew}
	asked := map[string]bool{}
	for _, o := range list {
		_, ask := mergePayment(&p, o, false)
		asked[o.ID] = asked[o.ID] || ask
	}
	for id, d := range p.Disputes {
		if asked[id] {
			_, ask := mergePayment(&p, Object{Kind: KindDispute, ID: id, Payment: "pi_1", Amount: d.Amount, Status: "won"}, true)
			if ask {
				panic("a fresh answer asks again")
			}
		}
	}
	return p
}

// shuffled returns a permutation of the list in which some elements are repeated.
func shuffled[T any](t *rapid.T, list []T) []T {
	again := rapid.SliceOfN(rapid.SampledFrom(list), 0, len(list)).Draw(t, "again")
	return rapid.Permutation(append(slices.Clone(list), again...)).Draw(t, "permutation")
}

func TestMergePayment_OrderAndRepetitionDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		told := rapid.SliceOfN(paymentTold(), 1, 8).Draw(t, "told")
		one, other := paymentOfAll(told), paymentOfAll(shuffled(t, told))
		if !reflect.DeepEqual(one, other) {
			t.Fatalf("%+v\nand in another order\n%+v", one, other)
		}
		for _, o := range told {
			if changes, _ := mergePayment(&one, o, false); len(changes) > 0 || !reflect.DeepEqual(one, other) {
				t.Fatalf("told again, %+v changes %q", o, changes)
			}
		}
	})
}

func TestMergePayment_KeepsTheFirstCodesOfTheAlphabet(t *testing.T) {
	var told []Object
	for i := range maxCodes + 5 {
		told = append(told, Object{Kind: KindPayment, ID: "pi_1", Status: "requires_payment_method", Failed: true,
			Code: fmt.Sprintf("code_%02d", i)})
	}
	rapid.Check(t, func(t *rapid.T) {
		p := paymentOfAll(shuffled(t, told))
		if len(p.Codes) != maxCodes || p.Codes[0] != "code_00" ||
			p.Codes[maxCodes-1] != fmt.Sprintf("code_%02d", maxCodes-1) {
			t.Fatalf("codes %q", p.Codes)
		}
	})
}

// A merge must report every change, because only a reported change is written.
func TestMergePayment_SaysWhatItChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := paymentOfAll(rapid.SliceOfN(paymentTold(), 0, 6).Draw(t, "before"))
		before := paymentText(p)
		changes, _ := mergePayment(&p, paymentTold().Draw(t, "told"), false)
		if after := paymentText(p); (after != before) != (len(changes) > 0) {
			t.Fatalf("%s\nbecomes\n%s\nand the changes are %q", before, after, changes)
		}
	})
}

// paymentText returns the stored state on which people and effects depend.
func paymentText(p Payment) string {
	return fmt.Sprint(p.Status, p.Codes, p.Amount, p.Currency, p.Invoice, p.Subscription, p.Refunded, p.Refunds,
		p.Disputes)
}

// A course of a subscription: what Stripe may have told of it, and what it is in truth.
type courseTold struct {
	told  []Object
	truth Object
	rule  rule
}

// subscriptionTold returns events of one subscription, the last of which shows the truth. In Stripe
// an ended subscription stays ended, and every schedule reports how it ended.
func subscriptionTold(t *rapid.T) courseTold {
	scheduled := rapid.Bool().Draw(t, "scheduled")
	at := func(status string) Object {
		o := Object{Kind: KindSubscription, ID: "sub_1", Subscription: "sub_1", Status: status}
		if scheduled {
			o.Schedule = "sub_sched_1"
		}
		return o
	}
	var c courseTold
	lived := rapid.SliceOfN(rapid.SampledFrom([]string{"incomplete", "trialing", "active", "past_due", "unpaid",
		"paused"}), 1, 5).Draw(t, "lived")
	for i, status := range lived {
		if i > 0 && status == "incomplete" {
			status = "active"
		}
		c.told = append(c.told, at(status))
	}
	last := c.told[len(c.told)-1].Status
	ends := rapid.Bool().Draw(t, "ends")
	if ends {
		last = "canceled"
		if len(lived) == 1 && lived[0] == "incomplete" {
			last = "incomplete_expired"
		}
		c.told = append(c.told, at(last))
	}
	if scheduled {
		how := []string{"active", "released"}
		if ends {
			how = []string{"released", "completed", "canceled"}
		}
		for _, status := range []string{"active", rapid.SampledFrom(how).Draw(t, "schedule")} {
			c.told = append(c.told, Object{Kind: KindSchedule, ID: "sub_sched_1", Subscription: "sub_1", Schedule: "sub_sched_1",
				Status: status})
		}
	}
	c.truth = at(last)
	c.truth.Fetched = true
	c.rule.endedBy = rapid.SampledFrom([][]string{nil, {"unpaid"}, {"unpaid", "paused"}}).Draw(t, "ended by")
	return c
}

// merged merges all objects in that order. It retries the undecided ones and makes the required
// fetches at the end.
func (c courseTold) merged(told []Object) Subscription {
	s := Subscription{ID: "sub_1", Status: SubscriptionNew}
	asked := false
	for waiting := told; len(waiting) > 0; {
		var left []Object
		for _, o := range waiting {
			_, undecided, ask := mergeSubscription(&s, o, c.rule)
			if asked = asked || ask; undecided {
				left = append(left, o)
			}
		}
		if len(left) == len(waiting) {
			break
		}
		waiting = left
	}
	if asked {
		c.answer(&s)
	}
	return s
}

// answer returns Stripe's answer to a fetch.
func (c courseTold) answer(s *Subscription) {
	c.rule.fresh = true
	mergeSubscription(s, c.truth, c.rule)
}

func TestMergeSubscription_OrderAndRepetitionDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := subscriptionTold(t)
		one, other := c.merged(c.told), c.merged(shuffled(t, c.told))
		// An order in which nobody had to ask has told the truth.
		if one.Detail != c.truth.Status || other.Detail != c.truth.Status {
			t.Fatalf("at Stripe it is %s; %s, and in another order %s", c.truth.Status, one.Detail, other.Detail)
		}
		if !reflect.DeepEqual(one, other) {
			t.Fatalf("%+v\nand in another order\n%+v", one, other)
		}
		for _, o := range c.told {
			_, undecided, ask := mergeSubscription(&one, o, c.rule)
			if undecided {
				t.Fatalf("told again, %+v is undecided", o)
			}
			if ask {
				c.answer(&one)
			}
		}
		if !reflect.DeepEqual(one, other) {
			t.Fatalf("told again, %+v\nbecomes\n%+v", other, one)
		}
	})
}

// Terminated absorbs, and what decided it is never taken back but by how a schedule ended.
func TestMergeSubscription_TerminatedAbsorbs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := subscriptionTold(t)
		s := Subscription{ID: "sub_1", Status: SubscriptionNew}
		for _, o := range rapid.Permutation(append(c.told, c.truth)).Draw(t, "told") {
			before, r := s, c.rule
			r.fresh = o.Fetched
			mergeSubscription(&s, o, r)
			switch {
			case before.Status == SubscriptionTerminated && s.Status != SubscriptionTerminated:
				t.Fatalf("%+v was terminated, and is %s by %+v", before, s.Status, o)
			case before.Status == SubscriptionActive && s.Status == SubscriptionNew:
				t.Fatalf("%+v was active, and is new by %+v", before, o)
			case (s.Status == SubscriptionTerminated) != (s.Ending != ""):
				t.Fatalf("%s with the ending %q", s.Status, s.Ending)
			}
		}
	})
}

// A walk of a purchase: its subscriptions come so far, in any order, and jobs are done at any
// time.
func TestCross_EachOnceAndInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &Purchase{ID: "p", Kind: Subscribe}
		subs := map[string]*Subscription{}
		var done []Action
		asked := map[Action]int{}
		now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			if p.Fulfilment.State == Asked && rapid.Bool().Draw(t, "fulfilled") {
				p.Fulfilment.State = DoneWith
				done = append(done, ActionFulfil)
				if p.Unsubscribe.State == Waits {
					p.Unsubscribe.State = Asked
					asked[ActionUnsubscribe]++
				}
			}
			if p.Unsubscribe.State == Asked && rapid.Bool().Draw(t, "unsubscribed") {
				p.Unsubscribe.State = DoneWith
				done = append(done, ActionUnsubscribe)
			}
			id := rapid.SampledFrom([]string{"sub_1", "sub_2"}).Draw(t, "subscription")
			if subs[id] == nil {
				subs[id] = &Subscription{ID: id, Status: SubscriptionNew}
			}
			status := rapid.SampledFrom([]string{"incomplete", "active", "past_due", "canceled"}).Draw(t, "status")
			mergeSubscription(subs[id], Object{Kind: KindSubscription, ID: id, Status: status}, rule{fresh: true})
			mergeSubscriptionState(p, subs[id])
			if changed := mergeSubscriptionState(p, subs[id]); changed {
				t.Fatalf("the course of %s changes twice", id)
			}
			for _, a := range askEffects(p, false, "", now) {
				asked[a]++
			}
			if again := askEffects(p, false, "", now); len(again) > 0 {
				t.Fatalf("asked again: %v", again)
			}
		}
		want := []Action{ActionFulfil, ActionUnsubscribe}
		if len(done) > 2 || !slices.Equal(done, want[:len(done)]) || asked[ActionFulfil] > 1 {
			t.Fatalf("done %v, asked for %v", done, asked)
		}
		ends, active := true, false
		for _, s := range subs {
			ends = ends && s.Status == SubscriptionTerminated
			active = active || s.Status == SubscriptionActive
		}
		if active && p.Fulfilment.State == NotAsked {
			t.Fatal("active, and not fulfilled")
		}
		if open := p.Unsubscribe.State == Waits || p.Unsubscribe.State == Asked; open && !ends || ends &&
			p.Fulfilment.State != NotAsked && p.Unsubscribe.State == NotAsked {
			t.Fatalf("the end is %v, and the unsubscribe %q", ends, p.Unsubscribe.State)
		}
	})
}

// A subscription whose schedule had not begun went by the schedule's id: whatever is heard first,
// one course is left.
func TestMergeCourse_ScheduleThenSubscription(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		heard := shuffled(t, []Subscription{
			{ID: "sub_sched_1", Schedule: "sub_sched_1", Status: SubscriptionNew},
			{ID: "sub_1", Schedule: "sub_sched_1", Status: SubscriptionActive},
			{ID: "sub_2", Status: SubscriptionTerminated, Ending: EndCanceled},
		})
		p := &Purchase{}
		for i := range heard {
			mergeSubscriptionState(p, &heard[i])
		}
		want := map[string]SubscriptionState{"sub_1": {Status: SubscriptionActive, Schedule: "sub_sched_1"},
			"sub_2": {Status: SubscriptionTerminated, Ending: EndCanceled}}
		if !reflect.DeepEqual(p.Subscriptions, want) {
			t.Fatalf("got %+v, want %+v", p.Subscriptions, want)
		}
	})
}
