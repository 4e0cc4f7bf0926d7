package stripefake

import (
	"fmt"
	"strings"
)

// Authenticate is the customer, who does (ok) or does not pass the authentication that a
// payment intent or setup intent requires.
func (f *Fake) Authenticate(id string, ok bool) error {
	kindName := "payment_intent"
	if strings.HasPrefix(id, "seti_") {
		kindName = "setup_intent"
	}
	return f.act(kindName, id, func(c *call, o object) error { return c.authenticate(o, ok) })
}

// Finish ends the processing of a payment intent, with success or not.
func (f *Fake) Finish(id string, ok bool) error {
	return f.act("payment_intent", id, func(c *call, o object) error { return c.finish(o, ok) })
}

// Dispute has the customer of a succeeded payment intent dispute it, and returns the
// dispute's id. The reason is one of Stripe's, or "" for general.
func (f *Fake) Dispute(intent, reason string) (id string, err error) {
	if reason == "" {
		reason = "general"
	}
	err = f.act("payment_intent", intent, func(c *call, o object) error {
		d, err := c.dispute(o, reason)
		id = d.id()
		return err
	})
	return id, err
}

// CloseDispute decides a dispute: won or lost.
func (f *Fake) CloseDispute(id, status string) error {
	if status != "won" && status != "lost" {
		return invalid("", "status", "Invalid status: must be one of won, lost")
	}
	return f.act("dispute", id, func(c *call, o object) error { return c.closeDispute(o, status) })
}

// String says what the fake is.
func (f *Fake) String() string { return fmt.Sprintf("a fake of Stripe's API %s", NewestVersion) }

// FinishRefund is the bank's answer to a refund: one that is pending succeeds or fails, and
// one that has succeeded can still fail.
func (f *Fake) FinishRefund(id string, ok bool) error {
	return f.act("refund", id, func(c *call, o object) error { return c.finish(o, ok) })
}
