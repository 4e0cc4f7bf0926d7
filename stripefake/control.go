package stripefake

import (
	"cmp"
	"fmt"
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/payment"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

// Now returns the time by the fake's clock.
func (f *Fake) Now() time.Time { return f.api.TimeNow() }

// A Clock is a reading of the fake's clock and its speed.
type Clock struct {
	Now    time.Time `json:"now"`
	Speed  int       `json:"speed"`  // seconds per second of Options.Now
	Start  time.Time `json:"start"`  // what the clock showed at Anchor
	Anchor time.Time `json:"anchor"` // a time of Options.Now
}

// Clock returns the fake's time and speed. Another process on the machine can compute the fake's time
// from Start, Anchor and Speed.
func (f *Fake) Clock() Clock {
	c := f.api.Clock()
	return Clock{f.Now(), c.Speed, c.Start, c.Anchor}
}

// SetNow sets the fake's clock, which continues from there, and carries out every change due by
// then. Idempotency keys expire by this clock, and so do events, after 30 days. Test clocks do not
// follow it.
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

// Advance moves the fake's clock forward, or back if d is negative, as SetNow does.
func (f *Fake) Advance(d time.Duration) { f.api.Advance(d) }

func (f *Fake) act(kindName, id string, do func(payment.Call, shape.Object) error) error {
	return f.api.Act(kindName, id, func(c *api.Call, o shape.Object) error { return do(payment.Call{Call: c}, o) })
}

// Authenticate acts as the customer of a payment or setup intent that requires authentication. The
// customer passes if ok is true.
func (f *Fake) Authenticate(id string, ok bool) error {
	return f.act(payment.IntentKind(id), id, func(c payment.Call, o shape.Object) error { return c.Authenticate(o, ok) })
}

// Finish acts as the bank of a processing payment intent. The bank pays if ok is true.
func (f *Fake) Finish(id string, ok bool) error {
	return f.act("payment_intent", id, func(c payment.Call, o shape.Object) error { return c.Finish(o, ok) })
}

// FinishRefund acts as the bank of a refund. A pending refund succeeds or fails. A succeeded refund
// can still fail, when the customer's bank returns it.
func (f *Fake) FinishRefund(id string, ok bool) error {
	return f.act("refund", id, func(c payment.Call, o shape.Object) error { return c.Finish(o, ok) })
}

// Dispute makes the customer of a succeeded payment intent dispute what was not refunded, and returns
// the dispute's id. The reason is one of Stripe's dispute reasons. An empty reason means general.
func (f *Fake) Dispute(intent, reason string) (id string, err error) {
	err = f.act("payment_intent", intent, func(c payment.Call, o shape.Object) error {
		d, err := c.Dispute(o, cmp.Or(reason, "general"))
		id = d.ID()
		return err
	})
	return id, err
}

// CloseDispute ends a dispute, or its appeal. The status is won or lost.
func (f *Fake) CloseDispute(id, status string) error {
	if status != "won" && status != "lost" {
		return shape.Invalid("", "status", "Invalid status: must be one of won, lost")
	}
	return f.act("dispute", id, func(c payment.Call, o shape.Object) error { return c.CloseDispute(o, status) })
}

// AppealDispute appeals a lost dispute, whose status becomes appeal_needs_response. The next call
// submits the appeal's evidence, and the status becomes appeal_under_review. CloseDispute ends it.
func (f *Fake) AppealDispute(id string) error {
	return f.act("dispute", id, payment.Call.AppealDispute)
}

// Connect connects an account to the platform, whose endpoints receive the event. An empty platform
// is DefaultAccount.
func (f *Fake) Connect(id, platform string) error { return f.api.Connect(id, platform) }

// Disconnect disconnects the account from its platform, and emits the event. The account's objects
// stay.
func (f *Fake) Disconnect(id string) error { return f.api.Disconnect(id) }

// SetVersion sets the account's default API version. A connected account has its platform's version.
func (f *Fake) SetVersion(account, version string) error { return f.api.SetVersion(account, version) }

// Revoke makes the fake answer 401 to requests with the key.
func (f *Fake) Revoke(key string) error { return f.api.Revoke(key, true) }

// Restore makes a revoked key valid again.
func (f *Fake) Restore(key string) error { return f.api.Revoke(key, false) }

// Roll gives a webhook endpoint a new signing secret and returns it. The old secret signs beside it
// for 24 hours by the fake's clock.
func (f *Fake) Roll(endpoint string) (secret string, err error) { return f.api.Roll(endpoint) }

// String returns a short description of the fake.
func (f *Fake) String() string { return "a fake of Stripe's API " + NewestVersion }
