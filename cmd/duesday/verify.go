package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing/audit"
)

func (p *program) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Audit the whole store against the processor's ledger",
		Long: `Audit the whole store against the processor's ledger: no period charged twice, none
skipped, every receipt has its charge and every charge its receipt, and every run
balances. It changes nothing. Exits 1 when something is wrong.`,
		Args: want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.with(cmd.Context(), need{processor: true, read: true},
				func(s *session) error { return p.verify(cmd.Context(), s) })
		},
	}
}

type auditView struct {
	OK            bool          `json:"ok"`
	Subscriptions int           `json:"subscriptions"`
	Receipts      int           `json:"receipts"`
	Charges       int           `json:"charges"`
	Imported      int           `json:"imported"`
	External      int           `json:"external"`
	Open          int           `json:"open"`
	Parked        int           `json:"parked"`
	Refunds       int           `json:"refunds,omitempty"`
	Disputes      int           `json:"disputes,omitempty"`
	Foreign       int           `json:"foreign,omitempty"`
	Problems      []problemView `json:"problems"`
}

type problemView struct {
	Kind         string `json:"kind"`
	Account      string `json:"account"`
	Subscription string `json:"subscription"`
	Period       int    `json:"period"`
	Detail       string `json:"detail"`
}

func viewAudit(a *audit.Report) auditView {
	v := auditView{OK: a.OK, Subscriptions: a.Subscriptions, Receipts: a.Receipts, Charges: a.Charges,
		Imported: a.Imported,
		External: a.External, Open: a.Open, Parked: a.Parked, Refunds: a.Refunds, Disputes: a.Disputes, Foreign: a.Foreign,
		Problems: make([]problemView, len(a.Problems))}
	for i, x := range a.Problems {
		v.Problems[i] = problemView{x.Kind, x.Account, x.Subscription, x.Period, x.Detail}
	}
	return v
}

// shownProblems is how many problems people get; --json has all.
const shownProblems = 100

func (p *program) verify(ctx context.Context, s *session) error {
	audit, err := s.engine.Verify(ctx)
	if err != nil {
		return err
	}
	if !audit.OK {
		p.code = exitFailed
	}
	if p.cfg.JSON {
		return p.object(viewAudit(audit))
	}
	p.say("%s", p.verdict(audit))
	fields(p.stdout, "  subscriptions", strconv.Itoa(audit.Subscriptions), "  receipts", strconv.Itoa(audit.Receipts),
		"  charges", strconv.Itoa(audit.Charges), "  imported receipts", positive(audit.Imported),
		"  paid outside", positive(audit.External), "  periods open", positive(audit.Open), "  parked",
		positive(audit.Parked),
		"  refunds", positive(audit.Refunds), "  disputes", positive(audit.Disputes),
		"  charges of other stores", positive(audit.Foreign))
	if len(audit.Problems) == 0 {
		return nil
	}
	p.say("")
	t := newTable(p.stdout, "PROBLEM", "SUBSCRIPTION", "PERIOD", "DETAIL")
	for _, x := range audit.Problems[:min(len(audit.Problems), shownProblems)] {
		name, period := "", ""
		if x.Subscription != "" {
			name, period = x.Account+"/"+x.Subscription, strconv.Itoa(x.Period)
		} else if x.Account != "" {
			name = x.Account
		}
		t.row(x.Kind, name, period, x.Detail)
	}
	t.flush()
	if more := len(audit.Problems) - shownProblems; more > 0 {
		p.say("and %d more: %s", more, p.hint("verify --json"))
	}
	return nil
}

func (p *program) verdict(a *audit.Report) string {
	if a.OK {
		return p.painted(p.screen, goodColour, "The audit is clean: no period was charged twice, none was skipped.")
	}
	return p.painted(p.screen, errorColour, "THE AUDIT FOUND "+strings.ToUpper(plural(len(a.Problems), "problem"))+".")
}

// positive returns the number, or "" for 0.
func positive(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
