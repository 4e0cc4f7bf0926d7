package stripefake

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Now is the fake's clock.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.time()
}

// SetNow sets the fake's clock, which goes on from there, and carries out what is due by
// then. Idempotency keys, the horizon of events and everything that happens by itself follow
// it; test clocks do not.
func (f *Fake) SetNow(t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offset = t.Sub(f.o.Now())
	f.tick()
}

// Advance moves the fake's clock forward, or back.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offset += d
	f.tick()
}

// Faults returns the faults in effect.
func (f *Fake) Faults() Faults {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faults
}

// SetFaults replaces all faults. The dice begin anew if the seed is another one.
func (f *Fake) SetFaults(to Faults) error {
	if err := to.Check(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if to.Seed != f.faults.Seed {
		f.dice = newDice(to.Seed)
	}
	f.faults = to
	return nil
}

// act has something happen to the object, wherever it is.
func (f *Fake) act(kindName, id string, do func(*call, object) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tick()
	s := f.holder(kindName, id)
	if s == nil {
		return missing(kindName, id, "id")
	}
	return do(f.system(s), s.get(kindName, id))
}

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

// CheckAccount says whether an account can have the id.
func CheckAccount(id string) error {
	if tail, ok := strings.CutPrefix(id, "acct_"); !ok || tail == "" || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' }) {
		return errors.New("want acct_ and letters or digits")
	}
	return nil
}

// Connect connects the account to the platform, DefaultAccount if that is "": a new one, or
// one that was disconnected. The platform's Connect endpoints are told.
func (f *Fake) Connect(id, platform string) error {
	if err := CheckAccount(id); err != nil {
		return invalid("", "id", "Invalid id: "+err.Error())
	}
	if platform == "" {
		platform = DefaultAccount
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch a := f.accounts[id]; {
	case f.accounts[platform] == nil || f.accounts[platform].platform != "":
		return invalid("", "platform", "Invalid platform: '"+shown(platform)+"' is nobody who has keys")
	case a == nil:
		f.addAccount(id, platform, nil)
		f.system(f.in(id, false)).tellApplication(id, appAuthorized)
	case a.platform != platform:
		return invalid("", "id", "Invalid id: the account is there, and is not the platform's")
	case a.gone:
		a.gone = false
		f.system(f.in(id, false)).tellApplication(id, appAuthorized)
	}
	return nil
}

// Disconnect has the connected account leave its platform, whose Connect endpoints are told.
// What it has stays.
func (f *Fake) Disconnect(id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.accounts[id]
	if a == nil || a.platform == "" {
		return missing("account", id, "id")
	}
	f.system(f.in(id, false)).leave(id)
	return nil
}

// SetVersion makes it the account's default version of the API. A connected account has that
// of its platform.
func (f *Fake) SetVersion(account, version string) error {
	if err := checkVersion(version); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.accounts[account]
	if a == nil {
		return missing("account", account, "id")
	}
	a.version = version
	return nil
}

// Revoke has the key answered 401 from now on; Restore takes that back.
func (f *Fake) Revoke(key string) error { return f.revoke(key, true) }

// Restore takes Revoke back.
func (f *Fake) Restore(key string) error { return f.revoke(key, false) }

func (f *Fake) revoke(key string, revoked bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.ContainsFunc(f.o.Keys, func(k Key) bool { return k.Secret == key }) {
		return &apiError{status: http.StatusNotFound, kind: "invalid_request_error", code: "resource_missing", param: "key", message: "No such key: " + mask(key)}
	}
	f.revoked[key] = revoked
	return nil
}

// Roll gives a webhook endpoint a new secret, and returns it. The old one signs beside it for
// 24 hours of the fake's clock.
func (f *Fake) Roll(endpoint string) (secret string, err error) {
	err = f.act("webhook_endpoint", endpoint, func(c *call, o object) error {
		if o.yes("deleted") {
			return missing("webhook_endpoint", endpoint, "id")
		}
		secret = c.roll(o)
		return nil
	})
	return secret, err
}

// String says what the fake is.
func (f *Fake) String() string { return fmt.Sprintf("a fake of Stripe's API %s", NewestVersion) }
