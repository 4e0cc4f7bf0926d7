package delivery

import (
	"fmt"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/test/storetest"
)

// TestIdle: an idle look asks the store 16 times with ten endpoints, and once without any. A drain without
// an endpoint asks once.
func TestIdle(t *testing.T) {
	for _, endpoints := range []int{0, 1, 10} {
		w := newWorld(t)
		for i := range endpoints {
			w.create(fmt.Sprint("https://example.com/", i))
		}
		asked := 0
		faulty := storetest.NewFaulty(w.store)
		faulty.Hook = func(op storetest.Operation, phase storetest.Phase) error {
			if phase == storetest.Before {
				asked++
			}
			return nil
		}
		s := w.service(faulty)
		if endpoints > 0 { // the process has seen them
			if _, err := s.Any(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			w.pass(time.Minute)
			asked = 0
			due, err := s.Due(t.Context())
			if want := map[bool]int{true: 16, false: 1}[endpoints > 0]; due || err != nil || asked != want {
				t.Errorf("%d endpoints: %v, %v, %d requests, want %d", endpoints, due, err, asked, want)
			}
		}
		x := s.NewSender(w.clock, true)
		w.pass(time.Minute)
		asked = 0
		if _, err := x.Drain(t.Context()); err != nil || endpoints == 0 && asked != 1 {
			t.Error(asked, err)
		}
		x.Close(t.Context())
	}
}
