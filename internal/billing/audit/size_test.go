package audit

import (
	"reflect"
	"testing"
)

// TestSizes holds the summaries to what a million subscriptions may take.
func TestSizes(t *testing.T) {
	for kind, most := range map[reflect.Type]uintptr{
		reflect.TypeFor[audited](): 96, reflect.TypeFor[mark](): 40, reflect.TypeFor[account](): 8} {
		if got := kind.Size(); got > most {
			t.Errorf("%s takes %d bytes, want at most %d", kind, got, most)
		}
	}
}
