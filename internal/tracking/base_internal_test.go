package tracking

import "testing"

// TestTakerAt: billing takes subscriptions over in the own account only.
func TestTakerAt(t *testing.T) {
	b := base{o: Options{Own: "acct_own", Installation: "dd_1"}}
	if own, other := b.takerAt("acct_own"), b.takerAt("acct_shop"); own != "dd_1" || other != "" {
		t.Errorf("%q, %q", own, other)
	}
}
