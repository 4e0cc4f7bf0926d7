package stripefake

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/payment"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

// Now returns the time of the fake's clock.
func (f *Fake) Now() time.Time { return f.api.TimeNow() }

// A Clock is what the fake's clock shows, and how fast it goes.
type Clock struct {
	Now    time.Time `json:"now"`
	Speed  int       `json:"speed"`  // seconds per second of Options.Now
	Start  time.Time `json:"start"`  // what the clock showed at Anchor
	Anchor time.Time `json:"anchor"` // a time of Options.Now
}

// Clock returns the fake's clock. Another process on the machine computes its time from Start, Anchor and Speed.
func (f *Fake) Clock() Clock {
	c := f.api.Clock()
	return Clock{f.Now(), c.Speed, c.Start, c.Anchor}
}

// SetNow sets the fake's clock, which goes on from there, and carries out every change due by
// then. Idempotency keys and the 30 days of events follow this clock too; test clocks do not.
func (f *Fake) SetNow(t time.Time) { f.api.SetClock(&t, 0) }

// SetSpeed makes the fake's clock advance that many seconds per second from now on. The speed must be
// 1 to MaxSpeed. Changes that become due happen at the next request, SetNow or Advance.
func (f *Fake) SetSpeed(speed int) error {
	if speed < 1 || speed > MaxSpeed {
		return fmt.Errorf("speed: must be 1 to %d seconds per second (got %d)", MaxSpeed, speed)
	}
	f.api.SetClock(nil, speed)
	return nil
}

// MaxSpeed is the highest speed of the fake's clock: ten days per second.
const MaxSpeed = 10 * 24 * 60 * 60

// Advance moves the fake's clock forward, or back, as SetNow does.
func (f *Fake) Advance(d time.Duration) { f.api.Advance(d) }

func (f *Fake) act(kindName, id string, do func(payment.Call, shape.Object) error) error {
	return f.api.Act(kindName, id, func(c *api.Call, o shape.Object) error { return do(payment.Call{Call: c}, o) })
}

// Authenticate answers for the customer of a payment or setup intent that requires authentication.
func (f *Fake) Authenticate(id string, ok bool) error {
	return f.act(payment.IntentKind(id), id, func(c payment.Call, o shape.Object) error { return c.Authenticate(o, ok) })
}

// Finish answers for the bank of a processing payment intent.
func (f *Fake) Finish(id string, ok bool) error {
	return f.act("payment_intent", id, func(c payment.Call, o shape.Object) error { return c.Finish(o, ok) })
}

// FinishRefund answers for the bank. A pending refund succeeds or fails; a succeeded one can fail.
func (f *Fake) FinishRefund(id string, ok bool) error {
	return f.act("refund", id, func(c payment.Call, o shape.Object) error { return c.Finish(o, ok) })
}

// Dispute makes the customer of a succeeded payment intent dispute it, and returns the
// dispute's id. The reason is one of Stripe's, or "" for general.
func (f *Fake) Dispute(intent, reason string) (id string, err error) {
	err = f.act("payment_intent", intent, func(c payment.Call, o shape.Object) error {
		d, err := c.Dispute(o, cmp.Or(reason, "general"))
		id = d.ID()
		return err
	})
	return id, err
}

// CloseDispute ends a dispute. The status is won or lost.
func (f *Fake) CloseDispute(id, status string) error {
	if status != "won" && status != "lost" {
		return shape.Invalid("", "status", "Invalid status: must be one of won, lost")
	}
	return f.act("dispute", id, func(c payment.Call, o shape.Object) error { return c.CloseDispute(o, status) })
}

// AppealDispute appeals a lost dispute, whose status becomes appeal_needs_response, or submits the appeal's evidence:
// appeal_under_review. CloseDispute then ends the dispute once more.
func (f *Fake) AppealDispute(id string) error {
	return f.act("dispute", id, payment.Call.AppealDispute)
}

// Connect connects an account to the platform ("": DefaultAccount), whose endpoints get the event.
func (f *Fake) Connect(id, platform string) error { return f.api.Connect(id, platform) }

// Disconnect makes the account leave its platform, and emits the event. Its objects stay.
func (f *Fake) Disconnect(id string) error { return f.api.Disconnect(id) }

// SetVersion sets the account's default version of the API. A connected one has its platform's.
func (f *Fake) SetVersion(account, version string) error { return f.api.SetVersion(account, version) }

// Revoke makes the fake answer 401 to the key.
func (f *Fake) Revoke(key string) error { return f.api.Revoke(key, true) }

// Restore takes Revoke back.
func (f *Fake) Restore(key string) error { return f.api.Revoke(key, false) }

// Roll returns a new secret of a webhook endpoint. For 24 hours of the fake's clock both sign.
func (f *Fake) Roll(endpoint string) (secret string, err error) { return f.api.Roll(endpoint) }

// An Event is one of the fake's events.
type Event = api.Event

// Events returns all events of the account in the mode, of every form and however old, in the order
// in which they were made. The bodies have the version; "": the version of each event.
func (f *Fake) Events(account string, live bool, version string) []Event {
	return f.api.Events(account, live, version)
}

// SetEvents changes the form in which events are made from now on.
func (f *Fake) SetEvents(to EventForm) error { return f.api.SetEvents(to) }

// Related refers to the object of a thin event. The zero value refers to none.
type Related = api.Related

// EmitThin makes a thin event of any type, such as v2.core.account.updated, whatever the form of
// events is, and sends it to the endpoints that get thin ones. It returns the event's id.
func (f *Fake) EmitThin(account string, live bool, typ string, about Related) (id string, err error) {
	return f.api.EmitThin(account, live, typ, about)
}

// Resend sends an event again, without a fault, to every endpoint that gets its type now. It
// returns the number of these endpoints.
func (f *Fake) Resend(event string) (sent int, err error) { return f.api.Resend(event) }

// Flush tries every waiting webhook once, whatever its delay, and those that result from it. It
// returns the number of webhooks still waiting, or an error if ctx ends.
func (f *Fake) Flush(ctx context.Context) (left int, err error) { return f.api.Flush(ctx) }

// A Count is the number of answers of an endpoint with a status.
type Count = api.Count

// Requests returns the counts so far, by endpoint and status.
func (f *Fake) Requests() []Count { return f.api.Requests() }

// String names the fake.
func (f *Fake) String() string { return "a fake of Stripe's API " + NewestVersion }

// Faults are failures on request.
type Faults = api.Faults

// Faults returns the faults in effect.
func (f *Fake) Faults() Faults { return f.api.Faults() }

// SetFaults replaces all faults. The dice begin anew if the seed is another one.
func (f *Fake) SetFaults(to Faults) error { return f.api.SetFaults(to) }
