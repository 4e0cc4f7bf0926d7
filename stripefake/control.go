package stripefake

import (
	"cmp"
	"fmt"
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/payment"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

// Now returns the current time by the fake's clock.
func (f *Fake) Now() time.Time { return f.api.TimeNow() }

// A Clock is the state of the fake's clock at one moment.
type Clock struct {
	Now    time.Time `json:"now"`
	Speed  int       `json:"speed"`  // in seconds of the fake per second of Options.Now
	Start  time.Time `json:"start"`  // the fake's time at Anchor
	Anchor time.Time `json:"anchor"` // when the clock was last set, by Options.Now
}

// Clock returns the time and speed of the fake's clock. Another process on the same machine can compute the
// fake's time from Start, Anchor and Speed.
func (f *Fake) Clock() Clock {
	c := f.api.Clock()
	return Clock{f.Now(), c.Speed, c.Start, c.Anchor}
}

// SetNow sets the fake's clock to t and makes every change that is due by then, such as a renewal. The
// clock keeps running from t. Idempotency keys and events expire by this clock. SetNow does not move test
// clocks.
func (f *Fake) SetNow(t time.Time) { f.api.SetClock(&t, 0) }

// SetSpeed sets the speed of the fake's clock: the number of seconds by which it advances in one second of
// Options.Now. It returns an error unless speed is 1 to MaxSpeed. Due changes take effect at the next
// request, SetNow or Advance.
func (f *Fake) SetSpeed(speed int) error {
	if speed < 1 || speed > MaxSpeed {
		return fmt.Errorf("speed: must be 1 to %d seconds per second (got %d)", MaxSpeed, speed)
	}
	f.api.SetClock(nil, speed)
	return nil
}

// MaxSpeed is the maximum speed of the fake's clock: ten days per second.
const MaxSpeed = 10 * 24 * 60 * 60

// Advance moves the fake's clock forward by d, or back if d is negative. Like SetNow, it makes every change
// that is due by then.
func (f *Fake) Advance(d time.Duration) { f.api.Advance(d) }

func (f *Fake) act(kindName, id string, do func(payment.Call, shape.Object) error) error {
	return f.api.Act(kindName, id, func(c *api.Call, o shape.Object) error { return do(payment.Call{Call: c}, o) })
}

// Authenticate ends the customer's authentication of a payment or setup intent. The authentication succeeds
// if ok is true. It returns an error unless the intent's status is requires_action.
func (f *Fake) Authenticate(id string, ok bool) error {
	return f.act(payment.IntentKind(id), id, func(c payment.Call, o shape.Object) error { return c.Authenticate(o, ok) })
}

// Finish makes a processing payment intent succeed if ok is true, and fail otherwise. It returns an error
// if the intent's status is not processing.
func (f *Fake) Finish(id string, ok bool) error {
	return f.act("payment_intent", id, func(c payment.Call, o shape.Object) error { return c.Finish(o, ok) })
}

// FinishRefund makes a pending refund succeed if ok is true, and fail otherwise. A succeeded refund can
// still fail, as it does when the customer's bank returns the money.
func (f *Fake) FinishRefund(id string, ok bool) error {
	return f.act("refund", id, func(c payment.Call, o shape.Object) error { return c.Finish(o, ok) })
}

// Dispute creates a dispute for the unrefunded amount of a succeeded payment intent, and returns the
// dispute's ID. The reason is one of Stripe's dispute reasons. An empty reason means general. Dispute
// returns an error if the charge is already disputed or fully refunded.
func (f *Fake) Dispute(intent, reason string) (id string, err error) {
	err = f.act("payment_intent", intent, func(c payment.Call, o shape.Object) error {
		d, err := c.Dispute(o, cmp.Or(reason, "general"))
		id = d.ID()
		return err
	})
	return id, err
}

// CloseDispute closes a dispute or its appeal. The status must be won or lost. An inquiry becomes
// warning_closed with either.
func (f *Fake) CloseDispute(id, status string) error {
	if status != "won" && status != "lost" {
		return shape.Invalid("", "status", "Invalid status: must be one of won, lost")
	}
	return f.act("dispute", id, func(c payment.Call, o shape.Object) error { return c.CloseDispute(o, status) })
}

// AppealDispute opens an appeal of a lost dispute and sets the status to appeal_needs_response. A second
// call submits the appeal's evidence and sets the status to appeal_under_review. CloseDispute closes the
// appeal.
func (f *Fake) AppealDispute(id string) error {
	return f.act("dispute", id, payment.Call.AppealDispute)
}

// Connect connects the account id to platform, and creates the account if it does not exist. The platform's
// endpoints receive the event. An empty platform means DefaultAccount. Connect returns an error if the
// account is connected to another platform.
func (f *Fake) Connect(id, platform string) error { return f.api.Connect(id, platform) }

// Disconnect disconnects the account id from its platform, and emits the event. The account keeps its
// objects. Disconnect returns an error if id is not a connected account.
func (f *Fake) Disconnect(id string) error { return f.api.Disconnect(id) }

// SetVersion sets the default API version of an account. Connected accounts use their platform's version
// instead. SetVersion returns an error if the fake does not support the version.
func (f *Fake) SetVersion(account, version string) error { return f.api.SetVersion(account, version) }

// Revoke revokes an API key, so that the fake answers its requests with 401. It returns an error if the
// fake does not have the key.
func (f *Fake) Revoke(key string) error { return f.api.Revoke(key, true) }

// Restore makes a revoked key valid again.
func (f *Fake) Restore(key string) error { return f.api.Revoke(key, false) }

// Roll creates a new signing secret for a webhook endpoint and returns it. For the next 24 hours of the
// fake's clock, the fake signs webhooks with the old secret too.
func (f *Fake) Roll(endpoint string) (secret string, err error) { return f.api.Roll(endpoint) }

// String returns a short description of the fake.
func (f *Fake) String() string { return "a fake of Stripe's API " + NewestVersion }
