package runs

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing/audit"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/person"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) verifyCommand() *cobra.Command {
	var repair bool
	c := session.Leaf("verify", func(ctx context.Context, _ []string) error {
		p.ReadOnce()
		defer p.SpareMemory()() // the audit keeps a summary of every subscription
		return p.With(ctx, session.Need{Processor: true, Read: !repair}, func(s *session.Session) error { return p.verify(ctx, s, repair) })
	})
	c.Flags().BoolVar(&repair, "repair-sums", false, "correct the report's sums, if nothing else is wrong")
	return c
}

// shownProblems is the maximum number of problems that text mode prints. JSON mode prints all of
// them.
const shownProblems = 100

func (p *program) verify(ctx context.Context, s *session.Session, repair bool) error {
	audited := func() (*audit.Report, error) {
		bar := p.Progress("items, rows and charges", 0, nil)
		defer bar.End()
		a, err := s.Engine.Audit(ctx, bar.Done.Store)
		if err == nil {
			err = person.Audit(ctx, s.Engine.Records, a)
		}
		return a, err
	}
	a, err := audited()
	if err != nil {
		return err
	}
	corrected := 0
	if repair && len(a.Corrections) > 0 {
		if corrected, err = report.Correct(ctx, s.Engine.Records, a.Corrections); err != nil {
			return err
		}
		if a, err = audited(); err != nil {
			return err
		}
	}
	if !a.OK {
		p.Code = screen.ExitFailed
	}
	if repair && corrected == 0 && !a.OK {
		p.Warn("no sum was corrected, because sums are corrected only if nothing else is wrong and an amount can hold them")
	}
	p.Say("%s", Verdict(p.Screen, a))
	p.Fields("  subscriptions", a.Subscriptions, "  receipts", a.Receipts, "  charges", a.Charges,
		"  imported receipts", screen.Positive(a.Imported), "  manual payments", screen.Positive(a.External),
		"  periods open", screen.Positive(a.Open), "  parked", screen.Positive(a.Parked), "  refunds", screen.Positive(a.Refunds),
		"  disputes", screen.Positive(a.Disputes), "  charges of other stores", screen.Positive(a.Others),
		"  sums corrected", screen.Positive(corrected))
	p.sayProblems("PROBLEM", a.Problems)
	p.sayProblems("NOTE", a.Notes)
	return p.JSON(append(view.Audit(a), "corrected?", corrected))
}

func (p *program) sayProblems(head string, all []audit.Problem) {
	screen.Section(p.Screen, "", []string{head, "SUBSCRIPTION", "PERIOD", "DETAIL"}, all[:min(len(all), shownProblems)],
		func(x audit.Problem) []any {
			if x.Subscription == "" {
				return []any{x.Kind, x.Account, "", x.Detail}
			}
			return []any{x.Kind, x.Account + "/" + x.Subscription, x.Period, x.Detail}
		})
	if more := len(all) - shownProblems; more > 0 {
		p.Say("and %d more: %s", more, p.Hint("verify --json"))
	}
}

// Verdict returns the audit's result as one sentence.
func Verdict(s *screen.Screen, a *audit.Report) string {
	if a.OK {
		return s.Painted(s.Raw, screen.GoodColour, "The audit is clean: no period was charged twice, none was skipped.")
	}
	return s.Painted(s.Raw, screen.ErrorColour, "THE AUDIT FOUND "+strings.ToUpper(screen.Plural(len(a.Problems), "problem"))+".")
}
