// Package status checks the health of an installation, with one check for each part that can fail and a
// next step for the operator. A Watch repeats the checks and reports changes.
//
// The checks read only the store. They scan no subscriptions, change nothing, and send nothing to the
// processor unless it has refused the key. The package does not deliver mail, and serves no HTTP.
package status

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/delivery"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schedule"
	"github.com/duesday/duesday/internal/secret"
)

// A State is the health of one part of an installation.
type State string

// The states of a part.
const (
	OK      State = "ok"
	Warning State = "warning" // somebody should look at it; it raises no alarm
	Unknown State = "unknown" // it could not be found out, and must not be taken for ok
	Wrong   State = "wrong"
)

// rank orders the states from the best to the worst.
func (s State) rank() int { return slices.Index([]State{OK, Warning, Unknown, Wrong}, s) }

// A Check is the state of one part of an installation.
type Check struct {
	Name   string // stable, for programs
	State  State
	Text   string // what was found
	Next   string // the next step of a person; "" if the state is OK
	Values []Value

	served *served // of the part "serve", by a process that does not serve
}

// A Value is a number that a check measures, with the name of its metric.
type Value struct {
	Metric string
	Labels []string // the values of the metric's labels
	Number float64
}

// An Installation is one store and its machine. All fields are required unless their comments say
// otherwise.
type Installation struct {
	Engine  *engine.Engine
	Version string                                             // of the program
	Hint    func(command string) string                        // a command line as a person has to type it
	Folder  string                                             // of the store; "": it is not on this machine
	Disk    func(folder string) (free, size uint64, err error) // bytes
	// Tables returns what the store's tables in a database lack, in sentences: what they need, what
	// protects their data, and what cannot be asked. nil: there are none.
	Tables func(context.Context) (wrong, weak, unknown []string, err error)

	Messages *delivery.Service // to endpoints; nil: there are none

	// Of a process that serves.
	Serving   bool
	Endpoints *Endpoints                   // nil: not known
	Offset    func() (time.Duration, bool) // of the processor's clock, ahead of ours; nil: not known
	// Stripe returns whether it refuses our key, and since when it has not answered; zero: it has.
	// nil: not known.
	Stripe func(context.Context) (refused bool, silent time.Time)
	Runs   *Runs // nil: not known
	Meters *Meters

	Commands bool   // a command is run for each letter to the operator
	Post     string // how mail leaves this process; "": not known
	Unsent   bool   // mail is written to a folder by default, and not sent

	Fresh time.Duration // for so long a look of another process is about now, if that is longer than usual: a test clock is fast
	Keep  time.Duration // for so long a queue or a table without an alarm is not looked at again: each takes many requests

	kept    sync.Map // Check by name, of queues and tables
	hanging sync.Map // the names of work that has not ended: of parts, and of a Watch
	left    overdue
}

// A view is an installation at one moment.
type view struct {
	*Installation
	now      time.Time
	meta     billing.Meta
	settings settings.Settings
	times    schedule.Times
	served   *served // nil: this process serves
}

// ClaimName is the name that a process claims while it serves.
const ClaimName = "serve"

// partLimit is how long a look waits for one part.
const partLimit = 10 * time.Second

// Look returns the checks of the installation, in a fixed order. A part that cannot be read, or that takes
// longer than 10 seconds, is Unknown.
func (in *Installation) Look(ctx context.Context) []Check {
	v := &view{Installation: in, now: in.Engine.Now()}
	looks := []struct {
		name   string
		served bool // a process that serves may know more
		do     func(context.Context, *Check) error
	}{
		{"store", false, v.store}, {"serve", false, v.serve}, {"days", false, v.days}, {"due", false, v.due},
		{"reminders", true, v.lastRun(billing.Reminders)}, {"payments", true, v.lastRun(billing.Payments)},
		{"waiting", false, v.waiting}, {"charging", false, v.charging},
		{"mail", true, v.keep(v.queue(outbox.Mail, "mail", "outbox list"))},
		{"jobs", false, v.keep(v.queue(outbox.Actions, "jobs", "job list"))},
		{"events", false, v.keep(v.queue(outbox.Inbox, "events", "event list --waiting"))},
		{"endpoints", false, v.endpoints}, {"deliveries", false, v.keep(v.deliveries)},
		{"accounts", false, v.accounts}, {"webhooks", true, v.webhooks}, {"stripe", true, v.stripe}, {"clock", true, v.clock},
		{"folder", false, v.folder}, {"disk", false, v.disk}, {"tables", false, v.keep(v.tables)},
	}
	var found []Check
	for _, look := range looks {
		c := v.part(ctx, look.name, look.do)
		if c.served != nil {
			v.served = c.served
		} else if look.served && v.served != nil {
			c = v.told(c)
		}
		if c.Text != "" {
			found = append(found, c)
		}
		if len(found) == 1 && c.State == Unknown { // the others need what the store says of itself
			break
		}
	}
	found[0].value("duesday_build_info", 1, in.Version)
	found[0].value(lookMetric, seconds(v.now))
	found[0].value("duesday_look_duration_seconds", in.Engine.Now().Sub(v.now).Seconds())
	return found
}

// lookMetric is the metric with the time of a look.
const lookMetric = "duesday_look_timestamp_seconds"

// LookedAt returns when the checks of a look began, or the zero time.
func LookedAt(checks []Check) time.Time {
	for _, c := range checks {
		for _, x := range c.Values {
			if x.Metric == lookMetric {
				return time.UnixMilli(int64(math.Round(x.Number * 1000)))
			}
		}
	}
	return time.Time{}
}

// part looks at one part.
func (v *view) part(ctx context.Context, name string, do func(context.Context, *Check) error) Check {
	c := &Check{Name: name, State: OK}
	err := v.within(ctx, name, func(ctx context.Context) error { return do(ctx, c) })
	if err == nil {
		return *c
	}
	unknown := Check{Name: name} // the look may still write to the other one
	unknown.mark(Unknown, "to inspect the store, run: "+v.Hint("store describe"), "%v", errHangs)
	if !errors.Is(err, errHangs) {
		unknown.Text = "cannot be read: " + secret.Clean(err.Error())
	}
	return unknown
}

var errHangs = fmt.Errorf("no answer within %s", span(partLimit)) // returned for work that takes longer than partLimit

// within does the work, for at most partLimit. Work that hangs is left behind, and work of the same
// name is not begun again before it ends.
func (in *Installation) within(ctx context.Context, name string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, partLimit)
	defer cancel()
	if _, hangs := in.hanging.LoadOrStore(name, true); hangs {
		return errHangs
	}
	done := make(chan error, 1)
	go func() {
		err := do(ctx)
		in.hanging.Delete(name)
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil && ctx.Err() != nil {
			return errHangs
		}
		return err
	case <-ctx.Done():
		return errHangs
	}
}

// Alarms returns the checks that the operator must be notified about, which are Wrong or Unknown.
func Alarms(all []Check) (list []Check) {
	for _, c := range all {
		if c.State == Wrong || c.State == Unknown {
			list = append(list, c)
		}
	}
	return list
}

func (c *Check) say(format string, args ...any) { c.Text = fmt.Sprintf(format, args...) }

// mark gives the check a state other than OK, and a person's next step.
func (c *Check) mark(state State, next, format string, args ...any) {
	c.State, c.Next = state, next
	c.say(format, args...)
}

func (c *Check) wrong(next, format string, args ...any) { c.mark(Wrong, next, format, args...) }

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
