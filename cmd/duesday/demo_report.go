package main

import (
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing/audit"
	"github.com/duesday/duesday/internal/demo"
)

func viewMonth(m *demo.Month) object {
	return object{"month", m.Name, "joined", m.Joined, "changes", m.Changes, "reminders", m.Reminders, "paid", m.Paid,
		"paid_outside", m.Outside, "retry", m.Retry, "failed", m.Failed, "pending", m.Pending, "parked", m.Parked,
		"mails", m.Mails, "amounts", m.Amounts.Strings()}
}

func (p *program) showDemo(f *demoFlags, report *demo.Report, audit *audit.Report, elapsed time.Duration) error {
	p.say("A made-up book of %d accounts with %d subscriptions; both jobs ran on every day of %d months, in %s.\n",
		f.accounts, report.Subscriptions, f.months, short(elapsed))
	t := p.table("MONTH", "REMINDED", "CHARGED", "DECLINED", "FAILED", "PENDING", "PARKED", "OUTSIDE", "AMOUNTS CHARGED")
	for _, m := range report.Months {
		t.row(m.Name, m.Reminders, m.Paid, m.Retry, m.Failed, m.Pending, m.Parked, m.Outside, formatTotals(&m.Amounts))
	}
	t.flush()
	p.say("\n%s", p.verdict(audit))
	p.say("%d charges at the processor, %d receipts, %d periods open, %d subscriptions parked.", audit.Charges,
		audit.Receipts, audit.Open, audit.Parked)
	for _, x := range audit.Problems[:min(len(audit.Problems), shownWaiting)] {
		p.say("  %s: %s/%s period %d: %s", x.Kind, x.Account, x.Subscription, x.Period, x.Detail)
	}
	p.demoHints()
	return p.json(object{"ok", audit.OK, "accounts", f.accounts, "subscriptions", report.Subscriptions, "seed", f.seed,
		"months", views(report.Months, viewMonth), "audit", viewAudit(audit), "store", p.cfg.Store,
		"processor", p.cfg.Processor, "mail", p.cfg.Mail, "elapsed_ms", elapsed.Milliseconds()})
}

// demoHints names the commands to look further, as they have to be typed.
func (p *program) demoHints() {
	if strings.HasPrefix(p.cfg.Store, "mem:") {
		return // it is gone with this process
	}
	p.say("\nLook further:")
	for _, command := range []string{"verify", "subscription list --status past_due", "account show 1001",
		"subscription show 1001/1", "receipt list 1001", "run payments --dry-run", "run payments"} {
		p.say("  %s", p.hint(command))
	}
	ledger, inFile := strings.CutPrefix(p.cfg.Processor, "sandbox:")
	if !inFile {
		ledger = "at " + p.cfg.Stripe.APIBase + "/_fake/ledger"
	}
	p.say("The processor's ledger is %s, and the mail lies in %s.", ledger, p.cfg.Mail)
}
