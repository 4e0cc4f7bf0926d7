package serving

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/stripefake"
)

// TestAskStripe checks that a status check asks Stripe again if Stripe has refused the key, or if
// its last answer is some minutes old.
func TestAskStripe(t *testing.T) {
	c := stripefake.Start(t)
	var later atomic.Int64
	client, err := api.New(api.Options{Key: secret.New(c.Key), Base: c.URL,
		Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string, want bool) {
		t.Helper()
		refused, silent := askStripe(t.Context(), client)
		if !silent.IsZero() {
			t.Errorf("silent since %s", silent)
		}
		if refused != want {
			t.Errorf("%s: refused is %v", when, refused)
		}
	}
	check("at first", false)
	if err := c.Revoke(c.Key); err != nil {
		t.Fatal(err)
	}
	check("before an answer", false)
	if _, _, err := client.Own(t.Context()); err == nil {
		t.Error("a revoked key is taken")
	}
	check("revoked", true)
	if err := c.Restore(c.Key); err != nil {
		t.Fatal(err)
	}
	check("restored", false)
	if err := c.Revoke(c.Key); err != nil {
		t.Fatal(err)
	}
	check("a moment after an answer", false)
	later.Store(int64(askEvery + time.Second))
	check("minutes after an answer", true)
}
