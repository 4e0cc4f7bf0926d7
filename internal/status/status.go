// Package status tells how an installation is: one check for each part that can go wrong, each with
// the next step for a person. A Watch looks at them again and again, and tells of changes.
//
// A look reads the store alone: no subscription is scanned, nothing is changed, and nothing is sent to
// the processor, unless that has refused our key. It does not deliver mail, and serves no HTTP.
package status

import (
	"context"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schedule"
	"github.com/duesday/duesday/internal/secret"
)

// A Check is the state of one part of an installation.
type Check struct {
	Name   string // stable, for programs
	Wrong  bool
	Text   string // what was found
	Next   string // the next step of a person; "" unless Wrong
	Values []Value
}

// A Value is a number of a check, under the name of its metric.
type Value struct {
	Metric string
	Labels []string // the values of the metric's labels
	Number float64
}

// An Installation is one store, and its machine. All fields are needed unless they say otherwise.
type Installation struct {
	Engine  *engine.Engine
	Version string                                             // of the program
	Hint    func(command string) string                        // a command line as a person has to type it
	Folder  string                                             // of the store; "": it is not on this machine
	Disk    func(folder string) (free, size uint64, err error) // bytes

	// Of a process that serves.
	Serving   bool
	Endpoints *Endpoints                   // nil: not known
	Offset    func() (time.Duration, bool) // of the processor's clock, ahead of ours; nil: not known
	Refused   func(context.Context) bool   // whether Stripe refuses our key; nil: not known
}

// A view is an installation at one moment.
type view struct {
	*Installation
	now      time.Time
	meta     billing.Meta
	settings billing.Settings
	times    schedule.Times
}

// ClaimName is the name that a process claims while it serves.
const ClaimName = "serve"

// Look returns the checks of the installation, in a fixed order. A part that cannot be read is wrong.
func (in *Installation) Look(ctx context.Context) []Check {
	v := &view{Installation: in, now: in.Engine.Now()}
	looks := []struct {
		name string
		do   func(context.Context, *Check) error
	}{
		{"store", v.store}, {"serve", v.serve}, {"days", v.days},
		{"reminders", v.lastRun(billing.Reminders)}, {"payments", v.lastRun(billing.Payments)},
		{"waiting", v.waiting}, {"charging", v.charging},
		{"mail", v.queue(outbox.Mail, "mail", "outbox list")},
		{"jobs", v.queue(outbox.Actions, "jobs", "job list")},
		{"events", v.queue(outbox.Inbox, "events", "event list --waiting")},
		{"accounts", v.accounts}, {"webhooks", v.webhooks}, {"stripe", v.stripe}, {"clock", v.clock}, {"disk", v.disk},
	}
	var found []Check
	for _, look := range looks {
		c := Check{Name: look.name}
		if err := look.do(ctx, &c); err != nil {
			c = Check{Name: look.name}
			c.wrong("look at the store: "+in.Hint("store describe"), "this cannot be read: %s", secret.Clean(err.Error()))
			if len(found) == 0 { // the others need what the store says of itself
				return []Check{c}
			}
		}
		if c.Text != "" {
			found = append(found, c)
		}
	}
	return found
}

// Wrong returns those of the checks that are wrong.
func Wrong(all []Check) (wrong []Check) {
	for _, c := range all {
		if c.Wrong {
			wrong = append(wrong, c)
		}
	}
	return wrong
}

func (c *Check) say(format string, args ...any) { c.Text = fmt.Sprintf(format, args...) }

func (c *Check) wrong(next, format string, args ...any) {
	c.Wrong, c.Next = true, next
	c.say(format, args...)
}

func (c *Check) value(metric string, number float64, labels ...string) {
	c.Values = append(c.Values, Value{metric, labels, number})
}

// ago is how long ago something was, for people.
func (v *view) ago(at time.Time) string { return span(v.now.Sub(at)) }

// span is a duration for people.
func span(d time.Duration) string {
	switch d = d.Abs(); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

const minute = "2006-01-02 15:04"

func at(t time.Time) string { return t.UTC().Format(minute) + " UTC" }
