package status

import (
	"context"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/delivery"
	"github.com/duesday/duesday/internal/outbox"
)

const (
	failingLong = time.Hour      // an endpoint whose deliveries all fail
	gaveUp      = 24 * time.Hour // a message that was given up: long enough for an alarm
)

func (in *Installation) anyEndpoint(ctx context.Context) (bool, error) {
	if in.Messages == nil {
		return false, nil
	}
	return in.Messages.Any(ctx)
}

// endpoints is left out where nothing is sent to any.
func (v *view) endpoints(ctx context.Context, c *Check) error {
	if v.Messages == nil {
		return nil
	}
	n, gone, failing := 0, []string{}, []string{}
	for e, err := range v.Messages.All(ctx) {
		if err != nil {
			return err
		}
		if e.Paused.IsZero() {
			n++
		}
		switch {
		case !e.Paused.IsZero() && e.Reason != delivery.ReasonRequested:
			gone = append(gone, e.ID+" is paused ("+e.Reason+")")
		case v.now.Sub(e.GaveUp) < gaveUp:
			gone = append(gone, "messages to "+e.ID+" were given up")
		case !e.Failing.IsZero() && v.now.Sub(e.Failing) >= failingLong:
			failing = append(failing, "all deliveries to "+e.ID+" fail")
		}
	}
	switch next := "to see why, run: " + v.Hint("delivery list") + "; then correct the receiver, resume the endpoint, and replay"; {
	case len(gone) > 0:
		c.wrong(next, "%s", strings.Join(gone, "; "))
	case len(failing) > 0:
		c.mark(Warning, next, "%s", strings.Join(failing, "; "))
	case n > 0:
		c.say("%d, none of which has been failing for an hour", n)
	}
	return nil
}

// deliveries is the check of the queue, which is not looked at without an endpoint.
func (v *view) deliveries(ctx context.Context, c *Check) error {
	if there, err := v.anyEndpoint(ctx); err != nil || !there {
		return err
	}
	return v.queue(outbox.Deliveries, "deliveries", "delivery list --state waiting")(ctx, c)
}
