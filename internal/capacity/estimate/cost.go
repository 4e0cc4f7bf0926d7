package estimate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/duesday/duesday/internal/capacity"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
)

// A part is a piece of a consumption. step returns the step of the protocol to which a line
// belongs to; "" leaves it out: it is the day's, and not of any one subscription.
type part struct {
	usage capacity.Usage
	step  func(capacity.Line) string
}

// cost divides the consumption of the parts by n.
func cost(name string, n float64, parts ...part) Cost {
	c := Cost{Name: name}
	for _, p := range parts {
		first := len(c.Lines)
		for l, count := range p.usage.Sorted() {
			step := p.step(l)
			if step == "" {
				continue
			}
			line := Line{Step: step, Op: l.Op, Item: l.Item, Index: l.Index, Transaction: l.Transaction,
				Times: float64(count.Times) / n, Units: count.Units.Times(1 / n)}
			switch {
			case l.Op == capacity.OpQuery && n > 1: // a page holds many rows: the line gives one row's share
				line.Times, line.Bytes = 1, float64(count.Bytes)/n
			case count.Times > 0:
				line.Bytes = float64(count.Bytes) / float64(count.Times)
			}
			line.Units, line.Bytes = rounded(line.Units), math.Round(line.Bytes)
			c.Lines = append(c.Lines, line)
			c.Units = rounded(c.Units.Plus(line.Units))
		}
		slices.SortStableFunc(c.Lines[first:], func(a, b Line) int { return order(a.Step) - order(b.Step) })
	}
	return c
}

// rounded drops fractions below a ten-thousandth of a unit: the noise of dividing.
func rounded(u capacity.Units) capacity.Units {
	return capacity.Units{Read: math.Round(u.Read*1e4) / 1e4, Write: math.Round(u.Write*1e4) / 1e4}
}

// The steps in the order in which they happen.
func order(step string) int {
	return slices.Index([]string{stepFind, stepRead, stepBind, stepSettle, stepDecline, stepRemind, stepMail}, step)
}

const (
	stepFind     = "FIND"
	stepRead     = "READ"
	stepBind     = "BIND"
	stepSettle   = "SETTLE"
	stepDecline  = "DECLINE"
	stepRemind   = "REMIND"
	stepMail     = "MAIL"
	stepLookBack = "LOOK BACK"
)

func always(step string) func(capacity.Line) string {
	return func(capacity.Line) string { return step }
}

// jobStep returns the steps of a job that finds its rows in the index. alone is the step of a write
// of the subscription alone, and end that of a transaction.
func jobStep(index, alone, end string) func(capacity.Line) string {
	return func(l capacity.Line) string {
		switch {
		case l.Op == capacity.OpQuery && l.Index == index:
			return stepFind
		case l.Op == capacity.OpGet && l.Item == itemSubscription:
			return stepRead
		case l.Op == capacity.OpQuery, l.Op == capacity.OpGet:
			return ""
		case l.Transaction:
			return end
		case l.Item == itemSubscription:
			return alone
		}
		return ""
	}
}

func findStep(l capacity.Line) string {
	if l.Op == capacity.OpQuery && l.Index == schema.PaymentIndex {
		return stepFind
	}
	return ""
}

func leaseStep(l capacity.Line) string {
	if l.Item == itemLease {
		return "LEASE"
	}
	return ""
}

// gateStep: before it charges, a run looks whether the store knows the processor's latest
// successes.
func gateStep(l capacity.Line) string {
	if l.Op == capacity.OpGet && (l.Item == itemSubscription || l.Item == "period") {
		return stepLookBack
	}
	return ""
}

// measureDeclined lets every subscription's first and second attempt be declined.
func (c *Costs) measureDeclined(ctx context.Context, padding int) error {
	w, err := openWorld(ctx)
	if err != nil {
		return err
	}
	due := civil.Of(w.now).AddDays(14)
	if err := w.load(ctx, c.Subscriptions, due, decliningMethod, padding); err != nil {
		return err
	}
	if err := w.pass(ctx, due.AddDays(-1)); err != nil {
		return err
	}
	quiet, err := w.day(ctx)
	if err != nil {
		return err
	}
	n := float64(c.Subscriptions)
	for _, d := range []struct {
		into *Cost
		name string
	}{{&c.Declined, "a first attempt, declined"}, {&c.DeclinedAgain, "a later attempt, declined"}} {
		day, err := w.day(ctx)
		if err != nil {
			return err
		}
		if day.declined != c.Subscriptions {
			return fmt.Errorf("of %d subscriptions %d were declined", c.Subscriptions, day.declined)
		}
		*d.into = cost(d.name, n, part{day.payments.Since(quiet.payments), jobStep(schema.PaymentIndex, stepBind, stepDecline)},
			part{day.mail.Since(quiet.mail), always(stepMail)})
	}
	return nil
}
