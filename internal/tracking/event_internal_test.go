package tracking

import (
	"errors"
	"testing"
)

// TestEvent_NoStatus checks that an event without a status cannot be stored.
func TestEvent_NoStatus(t *testing.T) {
	e := Event{ID: "evt_1", Type: "payment_intent.succeeded"}
	if it, err := e.item(); !errors.Is(err, errPoison) {
		t.Errorf("got %v, %v", it, err)
	}
	undecided := turn{intake: &intake{registry: &registry{}}, e: &e}
	if _, err := undecided.file(t.Context()); !errors.Is(err, errPoison) {
		t.Errorf("filed: %v", err)
	}
}
