package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/status"
)

func (p *program) statusCommand() *cobra.Command {
	return p.storeLeaf("status", "Tell whether everything is all right, and what to do if not",
		need{read: true, settings: true}, p.showStatus)
}

// installation is what is known of the session's store.
func (p *program) installation(s *session) *status.Installation {
	in := &status.Installation{Engine: s.engine, Version: buildVersion().number, Hint: p.hint, Disk: status.Disk}
	if place, err := p.place(); err == nil { // it was opened
		in.Folder = place.Folder
	}
	return in
}

// leastWait is the shortest time of the machine's clock from one look to the next: a test clock may be
// fast.
const leastWait = time.Second

// watch looks at the session's store while this process serves.
func (p *program) watch(s *session, c *clock.Clock) *status.Watch {
	in := p.installation(s)
	in.Serving = true
	return &status.Watch{In: in, By: engine.ThisProcess(), Log: s.log, Tell: in.Mail,
		After: func() <-chan time.Time { return time.After(max(leastWait, c.Real(time.Minute))) }}
}

func (p *program) showStatus(ctx context.Context, s *session, _ []string) error {
	checks := p.installation(s).Look(ctx)
	wrong := status.Wrong(checks)
	if len(wrong) > 0 {
		p.code = exitPerson
	}
	p.say("%s", summary(wrong))
	t := p.table("CHECK", "STATE", "FOUND")
	for _, c := range checks {
		state := "ok"
		if c.Wrong {
			state = "WRONG"
		}
		t.row(c.Name, state, c.Text)
	}
	err := t.flush()
	if len(wrong) > 0 {
		p.say("\nWhat to do:")
	}
	for _, c := range wrong {
		p.say("  %s: %s", c.Name, c.Next)
	}
	return errors.Join(err, p.json(object{"ok", len(wrong) == 0, "checks", views(checks, viewCheck)}))
}

func summary(wrong []status.Check) string {
	if len(wrong) == 0 {
		return "All is well."
	}
	return plural(len(wrong), "check") + " wrong:"
}

func viewCheck(c status.Check) object {
	return object{"check", c.Name, "ok", !c.Wrong, "found", c.Text, "next?", c.Next,
		"values?", views(c.Values, func(v status.Value) object {
			return object{"metric", v.Metric, "labels?", v.Labels, "value", v.Number}
		})}
}
