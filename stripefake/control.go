package stripefake

import (
	"cmp"
	"fmt"
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/payment"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

// Now returns the current time of the fake's clock.
func (f *Fake) Now() time.Time { return f.api.TimeNow() }

// A Clock is the state of the fake's clock at one moment.
type Clock struct {
	Now    time.Time `json:"now"`
	Speed  int       `json:"speed"`  // seconds that the fake's clock advances per second of Options.Now
	Start  time.Time `json:"start"`  // the fake's time when the clock was last set
	Anchor time.Time `json:"anchor"` // the time of Options.Now when the clock was last set
}

// Clock returns the time and speed of the fake's clock. Another process on the same machine can compute the
// fake's time from Start, Anchor and Speed.
func (f *Fake) Clock() Clock {
	c := f.api.Clock()
	return Clock{f.Now(), c.Speed, c.Start, c.Anchor}
}

// SetNow sets the fake's clock to t and processes everything that is due by then, such as renewals. The
// clock keeps running from t. Idempotency keys and events also expire by this clock. SetNow does not
// move test clocks.
func (f *Fake) SetNow(t time.Time) { f.api.SetClock(&t, 0) }

// SetSpeed sets how many seconds the fake's clock advances in one second of Options.Now. It returns an
// error unless speed is 1 to MaxSpeed. The fake processes what has become due at the next request or
// call of SetNow or Advance.
func (f *Fake) SetSpeed(speed int) error {
	if speed < 1 || speed > MaxSpeed {
		return fmt.Errorf("speed: must be 1 to %d seconds per second (got %d)", MaxSpeed, speed)
	}
	f.api.SetClock(nil, speed)
	return nil
}

// MaxSpeed is the maximum speed of the fake's clock: ten days per second.
const MaxSpeed = 10 * 24 * 60 * 60

// Advance moves the fake's clock forward by d, or back if d is negative. Like SetNow, it processes
// everything that is due by then.
func (f *Fake) Advance(d time.Duration) { f.api.Advance(d) }

func (f *Fake) act(kindName, id string, do func(payment.Call, shape.Object) error) error {
	return f.api.Act(kindName, id, func(c *api.Call, o shape.Object) error { return do(payment.Call{Call: c}, o) })
}

// Authenticate completes the authentication of a payment or setup intent, as the customer would. The
// authentication succeeds if ok is true, and fails otherwise. Authenticate returns an error unless the
// intent's status is requires_action.
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

// CloseDispute closes a dispute or its appeal. The status must be won or lost. For an inquiry, both
// result in the status warning_closed.
func (f *Fake) CloseDispute(id, status string) error {
	if status != "won" && status != "lost" {
		return shape.Invalid("", "status", "Invalid status: must be one of won, lost")
	}
	return f.act("dispute", id, func(c payment.Call, o shape.Object) error { return c.CloseDispute(o, status) })
}

// AppealDispute appeals a lost dispute, which sets its status to appeal_needs_response. A second call
// submits the appeal's evidence, which sets the status to appeal_under_review. CloseDispute closes the
// appeal.
func (f *Fake) AppealDispute(id string) error {
	return f.act("dispute", id, payment.Call.AppealDispute)
}

// A Payout selects what PayOut pays out.
type Payout struct {
	Account string `json:"account"` // acct_…; "": DefaultAccount
	Live    bool   `json:"livemode"`
	Manual  bool   `json:"manual"` // a manual payout, whose balance transactions Stripe does not list
	// Currency and Rates convert charges, refunds and disputes that have no balance transaction yet. Rates
	// has, by their currency, how many minor units of Currency one minor unit is worth. Other currencies
	// are paid out as they are.
	Currency string             `json:"currency"`
	Rates    map[string]float64 `json:"rates"`
}

// PayOut creates the balance transactions of the account's charges, refunds and disputes, with Stripe's
// fees, and pays out each currency that has a positive balance. It returns the IDs of the payouts. They
// are in transit, and arrive at the last midnight in UTC within two days of the fake's clock.
func (f *Fake) PayOut(p Payout) []string {
	f.api.Mu.Lock()
	defer f.api.Mu.Unlock()
	f.api.Tick()
	c := payment.Call{Call: f.api.System(f.api.In(cmp.Or(p.Account, DefaultAccount), p.Live))}
	return c.PayOut(payment.Settlement{Manual: p.Manual, Currency: p.Currency, Rates: p.Rates})
}

// FailPayout makes a payout fail that is in transit or paid, as it does when the bank returns the money.
// The next payout contains the money.
func (f *Fake) FailPayout(id string) error { return f.act("payout", id, payment.Call.FailPayout) }

// Connect connects the account id to platform, and creates the account if it does not exist. The
// platform's webhook endpoints receive an account.application.authorized event. An empty platform means
// DefaultAccount. Connect returns an error if the account is connected to another platform.
func (f *Fake) Connect(id, platform string) error { return f.api.Connect(id, platform) }

// Disconnect disconnects the account id from its platform, and emits an
// account.application.deauthorized event. The account keeps its objects. Disconnect returns an error
// if id is not a connected account.
func (f *Fake) Disconnect(id string) error { return f.api.Disconnect(id) }

// SetVersion sets the default API version of an account. Connected accounts use their platform's version
// instead. SetVersion returns an error if the fake does not support the version.
func (f *Fake) SetVersion(account, version string) error { return f.api.SetVersion(account, version) }

// Revoke revokes an API key. The fake then answers every request that uses this key with a 401.
// Revoke returns an error if the key is unknown.
func (f *Fake) Revoke(key string) error { return f.api.Revoke(key, true) }

// Restore makes a revoked key valid again.
func (f *Fake) Restore(key string) error { return f.api.Revoke(key, false) }

// Roll creates a new signing secret for a webhook endpoint and returns it. For the next 24 hours of the
// fake's clock, the fake also signs webhooks with the old secret.
func (f *Fake) Roll(endpoint string) (secret string, err error) { return f.api.Roll(endpoint) }

// String returns a short description of the fake.
func (f *Fake) String() string { return "a fake of Stripe's API " + NewestVersion }
