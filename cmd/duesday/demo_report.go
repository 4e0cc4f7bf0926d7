package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing/audit"

	"github.com/duesday/duesday/internal/demo"
)

type monthView struct {
	Month     string            `json:"month"`
	Joined    int               `json:"joined"`
	Changes   int               `json:"changes"`
	Reminders int               `json:"reminders"`
	Paid      int               `json:"paid"`
	Outside   int               `json:"paid_outside"`
	Retry     int               `json:"retry"`
	Failed    int               `json:"failed"`
	Pending   int               `json:"pending"`
	Parked    int               `json:"parked"`
	Mails     int               `json:"mails"`
	Amounts   map[string]string `json:"amounts"`
}

type demoView struct {
	OK            bool        `json:"ok"`
	Accounts      int         `json:"accounts"`
	Subscriptions int         `json:"subscriptions"`
	Seed          uint64      `json:"seed"`
	Months        []monthView `json:"months"`
	Audit         auditView   `json:"audit"`
	Store         string      `json:"store"`
	Processor     string      `json:"processor"`
	Mail          string      `json:"mail"`
	ElapsedMS     int64       `json:"elapsed_ms"`
}

func (p *program) showDemo(f *demoFlags, report *demo.Report, audit *audit.Report, elapsed time.Duration) error {
	if p.cfg.JSON {
		v := demoView{OK: audit.OK, Accounts: f.accounts, Subscriptions: report.Subscriptions, Seed: f.seed,
			Audit: viewAudit(audit),
			Store: p.cfg.Store, Processor: p.cfg.Processor, Mail: p.cfg.Mail, ElapsedMS: elapsed.Milliseconds()}
		for _, t := range report.Months {
			v.Months = append(v.Months, monthView{t.Name, t.Joined, t.Changes, t.Reminders, t.Paid, t.Outside, t.Retry, t.Failed,
				t.Pending, t.Parked, t.Mails, t.Amounts.Strings()})
		}
		return p.object(v)
	}
	p.say("A made-up book of %d accounts with %d subscriptions; both jobs ran on every day of %d months, in %s.\n",
		f.accounts, report.Subscriptions, f.months, short(elapsed))
	n := strconv.Itoa
	t := newTable(p.stdout, "MONTH", "REMINDED", "CHARGED", "DECLINED", "FAILED", "PENDING", "PARKED", "OUTSIDE",
		"AMOUNTS CHARGED")
	for _, m := range report.Months {
		t.row(m.Name, n(m.Reminders), n(m.Paid), n(m.Retry), n(m.Failed), n(m.Pending), n(m.Parked), n(m.Outside),
			formatTotals(&m.Amounts))
	}
	t.flush()
	p.say("\n%s", p.verdict(audit))
	p.say("%d charges at the processor, %d receipts, %d periods open, %d subscriptions parked.", audit.Charges,
		audit.Receipts, audit.Open, audit.Parked)
	for _, x := range audit.Problems[:min(len(audit.Problems), shownWaiting)] {
		p.say("  %s: %s/%s period %d: %s", x.Kind, x.Account, x.Subscription, x.Period, x.Detail)
	}
	p.demoHints()
	return nil
}

// demoHints names the commands to look further, as they have to be typed.
func (p *program) demoHints() {
	if strings.HasPrefix(p.cfg.Store, "mem:") {
		return // it is gone with this process
	}
	p.say("\nLook further:")
	for _, command := range []string{"verify", "subscription list --status past_due", "account show 1001",
		"subscription show 1001/1",
		"receipt list 1001", "run payments --dry-run", "run payments"} {
		p.say("  %s", p.hint(command))
	}
	ledger, inFile := strings.CutPrefix(p.cfg.Processor, "sandbox:")
	if !inFile {
		ledger = "at " + p.cfg.Stripe.APIBase + "/_fake/ledger"
	}
	p.say("The processor's ledger is %s, and the mail lies in %s.", ledger, p.cfg.Mail)
}
