package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/stripefake"
)

// A meddler is Stripe, where something else happens before or after the next call of a kind.
type meddler struct {
	*stripeBank
	deaf bool // no answer is heard of confirms and look-ups
	lost bool // refunds do not arrive

	mu sync.Mutex
	do map[string]func() // by "before confirm", …; each once; guarded by mu
}

func (m *meddler) at(point string) {
	m.mu.Lock()
	do := m.do[point]
	delete(m.do, point)
	m.mu.Unlock()
	if do != nil {
		do()
	}
}

func (m *meddler) Open(ctx context.Context, r processor.OpenRequest) (processor.Intent, error) {
	m.at("before open")
	defer m.at("after open")
	return m.stripeBank.Open(ctx, r)
}

func (m *meddler) Confirm(ctx context.Context, r processor.ConfirmRequest) (processor.Intent, error) {
	m.at("before confirm")
	in, err := m.stripeBank.Confirm(ctx, r)
	m.at("after confirm")
	if m.deaf {
		return processor.Intent{}, processor.ErrUnknown
	}
	return in, err
}

func (m *meddler) Lookup(ctx context.Context, ref string) (processor.Intent, error) {
	if m.deaf {
		return processor.Intent{}, processor.ErrUnknown
	}
	return m.stripeBank.Lookup(ctx, ref)
}

func (m *meddler) Refund(ctx context.Context, r processor.RefundRequest) (processor.Reversal, error) {
	if m.lost {
		return processor.Reversal{}, processor.ErrUnknown
	}
	return m.stripeBank.Refund(ctx, r)
}

// do carries out a request and reads its answer.
func (b *stripeBank) do(r *http.Request, into any) error {
	resp, err := b.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %.200s", r.URL.Path, resp.Status, text)
	}
	return json.Unmarshal(text, into)
}

// badCards are what an attempt may come to that does not pay.
var badCards = map[string]string{
	"soft":            "pm_sandbox_decline_generic_decline",
	"hard":            "pm_sandbox_decline_lost_card",
	"requires_action": "pm_card_authenticationRequired",
}

// TestStripe_ANewMethodInTheMiddle: a person gives another method while the old one is being
// tried. What becomes of the old one is not booked on the new one, which pays in the same run:
// before the intent is bound, when nobody sees that there is something to be tried; before the
// old card's answer is there; and after it.
func TestStripe_ANewMethodInTheMiddle(t *testing.T) {
	for kind, card := range badCards {
		for _, point := range []string{"before open", "after open", "before confirm", "after confirm"} {
			t.Run(kind+" "+point, func(t *testing.T) {
				w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
				n := w.create(one("2024-01-31", bare))
				person, customer := b.mustEngine(w), b.customer("")
				attachTo(t, person, "a1", "", customer, card)
				m := &meddler{stripeBank: b, do: map[string]func(){point: func() {
					attachTo(t, person, "a1", "", customer,
						"pm_card_visa")
				}}}
				r := run(t, engineOf(t, w, m))
				if len(m.do) > 0 {
					t.Fatal("nobody meddled")
				}
				if s := w.sub(n); r.Counts[engine.OutcomePaid] != 1 || r.Due() != 1 || s.Period != 1 ||
					s.Status != billing.Active || b.charges()["a1/s1/0"] != 1 {
					t.Errorf("counts %v, charges %v, %s", r.Counts, b.charges(), w.describe(n))
				}
				for _, told := range []string{outbox.KindDeclined, outbox.KindFailed, outbox.KindActionRequired} {
					if got := w.effects(t, told); len(got) > 0 {
						t.Errorf("told of %v", got)
					}
				}
				w.report(t)
			})
		}
	}
}

// TestStripe_ANewMethodAndACrash: as above, and the worker that tried the old card hears no
// answer, and dies.
func TestStripe_ANewMethodAndACrash(t *testing.T) {
	for kind, card := range badCards {
		for _, point := range []string{"before confirm", "after confirm"} {
			t.Run(kind+" "+point, func(t *testing.T) {
				w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
				n := w.create(one("2024-01-31", bare))
				person, customer := b.mustEngine(w), b.customer("")
				attachTo(t, person, "a1", "", customer, card)
				m := &meddler{stripeBank: b}
				m.do = map[string]func(){point: func() {
					attachTo(t, person, "a1", "", customer, "pm_card_visa")
					m.deaf = true
				}}
				if r := run(t, engineOf(t, w, m)); r.Counts[engine.OutcomePending] != 1 {
					t.Fatalf("counts %v", r.Counts)
				}
				w.pass(time.Hour)
				r := run(t, person)
				if s := w.sub(n); r.Counts[engine.OutcomePaid] != 1 || s.Period != 1 || b.charges()["a1/s1/0"] != 1 {
					t.Errorf("counts %v, charges %v, %s", r.Counts, b.charges(), w.describe(n))
				}
				w.report(t)
			})
		}
	}
}

// TestStripe_AnIntentThatIsEditedThere: in Stripe's dashboard, or by another program, the
// payment that waits for the customer gets another method, or none. It goes on.
func TestStripe_AnIntentThatIsEditedThere(t *testing.T) {
	for name, edited := range map[string]string{"another": "pm_card_visa",
		"the same kind": "pm_card_authenticationRequired", "none": ""} {
		for _, wait := range []time.Duration{time.Hour, 24 * time.Hour} {
			t.Run(name+" "+wait.String(), func(t *testing.T) {
				w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
				n := w.create(one("2024-01-31", method("pm_card_authenticationRequired")))
				e := b.mustEngine(w)
				run(t, e)
				ref := w.sub(n).Open.Ref
				b.post("", "/v1/payment_intents/"+ref, url.Values{"payment_method": {edited}})
				if in, err := b.Lookup(t.Context(), ref); err != nil || in.State == processor.RequiresAction {
					t.Fatalf("%+v, %v", in, err)
				}
				w.pass(wait)
				run(t, e)
				if in, err := b.Lookup(t.Context(), ref); err != nil || wait >= 24*time.Hour &&
					in.State == processor.Opened { // else Stripe still repeats its answer
					t.Errorf("not tried again: %+v, %v", in, err)
				}
				for last := w.today().AddDays(20); w.sub(n).Open != nil && w.today().Before(last); w.tomorrow() {
					run(t, e)
				}
				if s := w.sub(n); s.Open != nil || s.Period != 1 || len(b.charges()) > 1 {
					t.Errorf("pending for ever: %s; charges %v", w.describe(n), b.charges())
				}
				w.report(t)
			})
		}
	}
}

// TestStripe_APageForEveryDay: what the customer fails is asked of them again by the next run,
// on the same day and on the next, however little later that is.
func TestStripe_APageForEveryDay(t *testing.T) {
	w, b := stripeWorld(t, "2024-01-31T10:00", stripefake.Faults{})
	n := w.create(one("2024-01-31", method("pm_card_authenticationRequired")))
	e := b.mustEngine(w)
	run(t, e)
	for _, at := range []string{"2024-02-01T11:00", "2024-02-02T10:00", "2024-02-03T09:00", "2024-02-03T15:00"} {
		ref := w.sub(n).Open.Ref
		mustNot(t, b.fake.Authenticate(ref, false))
		if in, err := b.Lookup(t.Context(), ref); err != nil || in.Link != "" {
			t.Fatalf("before %s: %+v, %v", at, in, err)
		}
		w.set(at)
		r := run(t, e)
		if in, err := b.Lookup(t.Context(), ref); err != nil || in.State != processor.RequiresAction || in.Link == "" ||
			r.Counts[engine.OutcomePending] != 1 {
			t.Errorf("%s: counts %v, %+v, %v", at, r.Counts, in, err)
		}
	}
	mustNot(t, b.fake.Authenticate(w.sub(n).Open.Ref, true))
	if run(t, e); w.sub(n).Period != 1 || b.charges()["a1/s1/0"] != 1 {
		t.Errorf("%s; charges %v", w.describe(n), b.charges())
	}
	w.report(t)
}

// TestCollectCards_NobodyAuthenticated: a subscription that is past_due because nobody
// authenticated the card given last stays so, whenever that card is seen again, and whatever
// was tried before it; a newer card makes it active.
func TestCollectCards_NobodyAuthenticated(t *testing.T) {
	for name, first := range map[string]string{"at once": "", "after a decline": "pm_card_visa_chargeDeclined"} {
		for _, target := range []string{"", "s1"} {
			t.Run(name+" "+target, func(t *testing.T) {
				w, p := newPurse("2024-01-31T09:00")
				n := w.create(one("2024-01-31", bare))
				w.link(t, target)
				if first != "" {
					p.use("pm_0", first)
					w.start().run(civil.Date{})
					w.pass(time.Minute)
				}
				p.use("pm_1", "pm_card_authenticationRequired")
				for last := w.today().AddDays(20); w.sub(n).Status == billing.Active && w.today() != last; w.tomorrow() {
					w.start().run(civil.Date{})
				}
				for range 3 {
					if s := w.sub(n); s.Status != billing.PastDue {
						t.Fatalf("%s", w.describe(n))
					}
					_, err := w.start().CollectCards(t.Context(), time.Time{})
					mustNot(t, err)
				}
				p.use("pm_2", "pm_card_visa")
				taken, err := w.start().CollectCards(t.Context(), time.Time{})
				if s := w.sub(n); len(taken) != 1 || err != nil || s.Status != billing.Active || s.Period != 1 {
					t.Errorf("a newer card: %v, %v, %s", taken, err, w.describe(n))
				}
				w.report(t)
			})
		}
	}
}

// TestActionDays_FromWhenItWasAsked: the days that the customer has begin when they are asked,
// also after a decline and after a wait for the bank.
func TestActionDays_FromWhenItWasAsked(t *testing.T) {
	w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
	n := w.create(one("2024-01-31", bare))
	e, customer := b.mustEngine(w), b.customer("")
	attachTo(t, e, "a1", "", customer, "pm_sandbox_decline_generic_decline")
	for asked := date("2024-02-06"); w.today().Before(asked); w.tomorrow() {
		run(t, e)
	}
	attachTo(t, e, "a1", "", customer, "pm_card_authenticationRequired")
	for end := date("2024-02-06").AddDays(w.cfg.ActionDays); w.today().Before(end); w.tomorrow() {
		run(t, e)
		if s := w.sub(n); s.Open == nil || s.Open.State != processor.RequiresAction || s.Open.Asked != date("2024-02-06") {
			t.Fatalf("%s: %s", w.today(), w.describe(n))
		}
	}
	if r := run(t, e); r.Counts[engine.OutcomeFailed] != 1 || w.sub(n).Status != billing.PastDue {
		t.Errorf("counts %v, %s", r.Counts, w.describe(n))
	}
	w.report(t)
}

// TestStripe_TheNextIntentIsNotOvertaken: a method is given, then the intent is cancelled at
// Stripe: nothing can be under way on the one that replaces it, so that what it comes to counts.
func TestStripe_TheNextIntentIsNotOvertaken(t *testing.T) {
	replaced := false
	for point := 1; point <= 12; point++ {
		w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
		n := w.create(one("2024-01-31", method("pm_card_visa_chargeDeclined")))
		w.start().run(civil.Date{})
		_, err := w.start().UpdateSubscription(t.Context(), n,
			billing.Change{Method: new("pm_card_visa_chargeDeclinedInsufficientFunds")})
		mustNot(t, err)
		if !w.sub(n).Open.Overtaken {
			t.Fatalf("the attempt before is known to have run: %s", w.describe(n))
		}
		_, err = b.Processor.Cancel(t.Context(), w.sub(n).Open.Ref)
		mustNot(t, err)
		w.start(fault{point, true}).run(civil.Date{})
		if o := w.sub(n).Open; o != nil && o.Generation == 1 && len(o.Attempts) == 1 {
			replaced = true
			if o.Overtaken {
				t.Errorf("point %d: %+v", point, *o)
			}
		}
	}
	if !replaced {
		t.Error("no crash left the next intent bound")
	}
}
