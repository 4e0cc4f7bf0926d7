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
	list, err := v.Messages.Endpoints(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	var paused, lost, failing []string
	for _, e := range list {
		switch {
		case !e.Paused.IsZero() && e.Reason != delivery.ReasonRequested:
			paused = append(paused, e.ID+" ("+e.Reason+")")
		case v.now.Sub(e.GaveUp) < gaveUp:
			lost = append(lost, e.ID)
		case !e.Failing.IsZero() && v.now.Sub(e.Failing) >= failingLong:
			failing = append(failing, e.ID)
		}
	}
	switch c.say("%d receive their messages", len(list)); {
	case len(paused) > 0:
		c.wrong("correct the receiver, then run: "+v.Hint("endpoint update ENDPOINT --resume")+", and "+v.Hint("delivery replay"),
			"paused: %s", strings.Join(paused, ", "))
	case len(lost) > 0:
		c.wrong("to see why, run: "+v.Hint("delivery list --state failed"), "messages were given up: %s", strings.Join(lost, ", "))
	case len(failing) > 0:
		c.mark(Warning, "to see why, run: "+v.Hint("endpoint list")+", and "+v.Hint("delivery list --state waiting"), "all deliveries fail: %s",
			strings.Join(failing, ", "))
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
