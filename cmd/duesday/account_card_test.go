package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/mail/smtp"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/screen"
)

func TestAccountAttach(t *testing.T) {
	c := newCLI(t)
	c.must("account", "create", "1", "--email", "a@example.com")
	r := c.run("subscription", "create", "1/1", "--sku", "gym", "--amount", "12.99", "--currency", "USD", "--payment-day",
		"15")
	if r.code != exitDone {
		t.Fatal(r)
	}
	contains(t, r.errors, "account 1 has no payment method", "duesday account attach 1", "duesday account card-link 1")
	contains(t, c.must("subscription", "show", "1/1"), "its account's")
	if r = c.run("run", "payments"); r.code != exitPerson {
		t.Error(r)
	}
	contains(t, r.out, "no payment method")
	equal(t, "attach", members(c.object(exitDone, "account", "attach", "1", "--payment-method", "pm_card_visa"),
		"payment_method", "payment_method_given_at"),
		[]any{"pm_card_visa", "2026-03-15T10:30:00.000Z"})
	contains(t, c.must("run", "payments"), "paid")
	contains(t, c.must("account", "show", "1"), "pm_card_visa", "method set", "gym")
	c.create("1/2", "pm_card_mastercard")
	equal(t, "keeps its own", c.object(exitDone, "account", "attach", "1", "--payment-method", "pm_card_visa")["keep_own_method"], []any{"1/2"})

	for _, bad := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"attach", "1"}, exitUsage, "nothing to attach"},
		{[]string{"attach", "1", "--payment-method", ""}, exitUsage, "--payment-method must not be empty"},
		{[]string{"attach", "1", "--payment-method", "4242424242424242"}, exitUsage,
			"payment_method: looks like a card number (************4242)"},
		{[]string{"attach", "1", "--connected", "acct_1", "--fee", "2.555%"}, exitUsage, "--fee"},
		{[]string{"attach", "1", "--fee", "2.5%"}, exitUsage, "fee: only a connected account"},
		{[]string{"attach", "1", "--customer", "cus_1"}, exitFailed, "stores no customers"},
		{[]string{"attach", "9", "--payment-method", "pm_1"}, exitFailed, "there is no account 9"},
		{[]string{"card-link", "1"}, exitFailed, "account attach ACCOUNT --payment-method"},
		{[]string{"card-link", "1/2/3"}, exitUsage, "must be ACCOUNT/SUBSCRIPTION"},
		{[]string{"show", "1", "--card"}, exitFailed, "stores no customers"},
	} {
		r := c.run(append([]string{"account"}, bad.args...)...)
		if r.code != bad.code || strings.Contains(r.errors, "4242424242424242") {
			t.Errorf("%q: exit %d\n%s", bad.args, r.code, r.errors)
		}
		contains(t, r.errors, bad.want)
	}
}

func TestPercent(t *testing.T) {
	for text, want := range map[string]int{"2.5%": 250, "2.5": 250, "0": 0, "0.01%": 1, "100": 10000, " 7 %": 700,
		"1.20%": 120, "00.5": 50} {
		if got, err := parsePercent(text); got != want || err != nil {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "100.01", "-1", "+1", "1.", ".5", "1.234", "1e1", "101%", "2,5", "2.5%%",
		"99999999999999999999"} {
		if got, err := parsePercent(text); err == nil {
			t.Errorf("%q is taken as %d", text, got)
		}
	}
	if got := percent(250) + percent(5); got != "2.50%0.05%" {
		t.Error(got)
	}
}

// TestImport_WithoutMethod: the column may be left out.
func TestImport_WithoutMethod(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv",
		"account,email,subscription,sku,amount,currency,payment_day\n1,a@example.com,1,gym,12.99,USD,15\n"))
	c.must("account", "attach", "1", "--payment-method", "pm_card_visa")
	contains(t, c.must("run", "payments"), "$12.99")
}

// A postbox keeps what was delivered.
type postbox struct{ got []outbox.Effect }

func (n *postbox) Deliver(_ context.Context, e outbox.Effect) error {
	n.got = append(n.got, e)
	return nil
}

type refusing struct{}

func (refusing) Deliver(context.Context, outbox.Effect) error { return &smtp.Bounce{Code: "550 5.1.1"} }

// A clerk knows one locale and one link, and notes one bounce.
type clerk struct {
	locale  string
	link    processor.CardLink
	fails   error
	bounced string
}

func (c *clerk) Holder(context.Context, outbox.Effect) (locale, name string, err error) {
	return c.locale, "", nil
}
func (c *clerk) Arrears(context.Context, outbox.Effect) (map[string]string, error) { return nil, nil }

func (c *clerk) Link(context.Context, outbox.Effect) (processor.CardLink, error) {
	return c.link, c.fails
}

func (c *clerk) NoteBounce(_ context.Context, e outbox.Effect, code string) error {
	c.bounced = e.Data[outbox.DataEmail] + " " + code
	return c.fails
}

func TestLinkedDelivery(t *testing.T) {
	e := outbox.Effect{ID: "1", Kind: outbox.KindDeclined, Data: map[string]string{outbox.DataEmail: "a@example.com"}}
	to, knows := new(postbox), new(clerk)
	d := &delivery{Deliverer: to, accounts: knows, linkless: new(atomic.Int64), bar: new(screen.Progress)}
	send := func() error { return d.Deliver(t.Context(), e) }
	if err := send(); err != nil || len(to.got) != 1 || to.got[0].Data[outbox.DataLink] != "" {
		t.Errorf("without a link: %v, %+v", err, to.got)
	}
	knows.link, knows.locale = processor.CardLink{URL: "https://pay.example/secret", Expires: time.Date(2026, 3, 16, 10, 30, 0, 0, time.UTC)}, "pt-BR"
	if err := send(); err != nil || len(to.got) != 2 || to.got[1].Data[outbox.DataLink] != knows.link.URL ||
		to.got[1].Data[outbox.DataLinkExpires] != "2026-03-16T10:30:00.000Z" || to.got[1].Data[outbox.DataLocale] != "pt-BR" {
		t.Errorf("with one: %v, %+v", err, to.got)
	}
	if len(e.Data) != 1 {
		t.Errorf("the effect itself has it now: %v", e.Data)
	}
	d.Deliverer = refusing{}
	if err := send(); !errors.Is(err, outbox.ErrPermanent) || knows.bounced != "a@example.com 550 5.1.1" {
		t.Errorf("refused: %v, noted %q", err, knows.bounced)
	}
	d.Deliverer, knows.fails = to, processor.ErrUnknown
	if err := send(); !errors.Is(err, processor.ErrUnknown) || len(to.got) != 2 {
		t.Errorf("not for the moment: %v, %d delivered", err, len(to.got))
	}
}

func TestSubscriptionShow_RequiresAction(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_authenticationRequired", "--next-payment-date", today, "--payment-day", "15")
	if r := c.run("run", "payments"); r.code != exitPerson {
		t.Fatal(r)
	}
	contains(t, c.must("subscription", "show", "1/1"), "active, requires_action", "attempt 1, requires_action",
		"no link for the customer: the sandbox has no page for it")
	open := c.object(exitDone, "subscription", "show", "1/1")["open"].(map[string]any)
	equal(t, "open", members(open, "state", "link", "no_link"),
		[]any{"requires_action", nil, "the sandbox has no page for it"})
	mails, err := filepath.Glob(c.path("duesday-mail/*/action-required-*.eml"))
	if err != nil || len(mails) != 1 {
		t.Fatalf("mails: %q, %v", mails, err)
	}
	c.env["DUESDAY_PROCESSOR"] = "stripe" // and no key: the rest is shown, and why there is no link
	if _, err := os.Stat(c.path("duesday-data")); err != nil {
		t.Fatal(err)
	}
	r := c.run("subscription", "show", "1/1")
	if r.code != exitDone {
		t.Errorf("exit %d\n%s", r.code, r.errors)
	}
	contains(t, r.out, "requires_action", "no link for the customer: ")
}

// TestLookForLink is what is shown of what the processor answers.
func TestLookForLink(t *testing.T) {
	sub := &billing.Subscription{Open: &billing.OpenPeriod{Ref: "pi_1", State: processor.RequiresAction}}
	p := newProgram(func(string) string { return "" }, nil, nil, nil, time.Now)
	for _, tt := range []struct {
		in           processor.Intent
		err          error
		link, noLink string
	}{
		{in: processor.Intent{State: processor.RequiresAction, Link: "https://pay.example/1"}, link: "https://pay.example/1"},
		{in: processor.Intent{State: processor.RequiresAction}, noLink: "no page"},
		{in: processor.Intent{State: processor.Succeeded}, noLink: "succeeded at the processor"},
		{err: processor.ErrUnknown, noLink: "answer was lost"},
	} {
		link, noLink := p.lookForLink(t.Context(), &session{processor: answering{in: tt.in, err: tt.err}}, sub)
		if link != tt.link || !strings.Contains(noLink, tt.noLink) || (tt.noLink == "" && noLink != "") {
			t.Errorf("%+v: %q, %q", tt, link, noLink)
		}
	}
}

// answering is a processor that only looks up.
type answering struct {
	processor.Charger
	in  processor.Intent
	err error
}

func (a answering) Lookup(context.Context, string) (processor.Intent, error) { return a.in, a.err }
