package session

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/stripefake"
)

// TestSession_AskStripe: a look at the checks asks Stripe about a key that it has refused, or of
// which it has not said anything for minutes.
func TestSession_AskStripe(t *testing.T) {
	c := stripefake.Start(t)
	var later atomic.Int64
	client, err := api.New(api.Options{Key: secret.New(c.Key), Base: c.URL,
		Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	s := new(Session)
	s.Stripe.Store(client)
	refused := func() bool {
		refused, silent := s.AskStripe(t.Context())
		if !silent.IsZero() {
			t.Errorf("silent since %s", silent)
		}
		return refused
	}
	equal(t, "at first", refused(), false)
	if err := c.Revoke(c.Key); err != nil {
		t.Fatal(err)
	}
	equal(t, "before an answer", refused(), false)
	if _, _, err := client.Own(t.Context()); err == nil {
		t.Error("a revoked key is taken")
	}
	equal(t, "revoked", refused(), true)
	if err := c.Restore(c.Key); err != nil {
		t.Fatal(err)
	}
	equal(t, "restored", refused(), false)
	if err := c.Revoke(c.Key); err != nil {
		t.Fatal(err)
	}
	equal(t, "a moment after an answer", refused(), false)
	later.Store(int64(askEvery + time.Second))
	equal(t, "minutes after an answer", refused(), true)
}
