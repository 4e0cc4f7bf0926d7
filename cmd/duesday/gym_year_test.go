package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/stripefake"
)

// A gymYear is a gym with members in four currencies and three countries, at its own Stripe account and at a partner's.
type gymYear struct {
	*stripeCLI
	*rand.Rand
	members  int
	disputes []string
	upgrades int // that were paid
}

const partner = "acct_partner"

// taxes are a member's last cells: the rate of the country, one on top of the amount, and none for a company.
var taxes = []string{"DE,,,", "FR,,,", "CH,8.1,exclusive,", "DE,,,", "FR,,,", "CH,8.1,exclusive,", "FR,0,exclusive,reverse charge"}

func needsPython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("NOT TESTED: examples/gym/recompute.py needs python3")
	}
}

func newGymYear(t *testing.T, members int) *gymYear {
	t.Helper()
	needsPython(t)
	y := &gymYear{stripeCLI: newStripeCLI(t, stripefake.Options{}), Rand: rand.New(rand.NewPCG(29, uint64(members))), members: members}
	y.clock.Set(time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC))
	if err := y.fake.Connect(partner, ""); err != nil {
		t.Fatal(err)
	}
	var book strings.Builder
	book.WriteString(strings.TrimSuffix(header, "\n") + ",country,tax_rate,tax,tax_note\n")
	for i := range members {
		currency, amount := []string{"EUR", "GBP", "JPY", "KWD"}[i%4], []string{"39.90", "29.00", "4800", "12.350"}[i%4]
		card := "pm_card_visa"
		switch {
		case i%11 == 3:
			card = "pm_card_visa_chargeDeclined"
		case i%13 == 4:
			card = "pm_card_pendingRefund"
		case i%5 == 0:
			card = "" // given below, at the partner's
		}
		fmt.Fprintf(&book, "m%d,m%d@example.com,1,%s,%s,%s,%d,%s,%s\n", i, i, []string{"gym", "pool", "both"}[i%3], amount, currency, 1+y.IntN(28), card, taxes[i%len(taxes)])
	}
	y.must("store", "create")
	y.must("settings", "set", "tax=on", "receipt-months=0", "tax-rates=DE:19,FR:20,CH:8.1")
	y.must("import", y.file("book.csv", book.String()))
	for i := 0; i < members; i += 5 {
		y.must("account", "attach", fmt.Sprint("m", i), "--connected", partner, "--fee", "2.5%", "--payment-method", "pm_card_visa")
	}
	return y
}

// day runs the payments of one day, with all else that happens on it.
func (y *gymYear) day(n int) {
	y.t.Helper()
	if r := y.run("run", "payments"); r.code != exitDone && r.code != exitPerson {
		y.t.Fatalf("day %d: exit %d\n%s%s", n, r.code, r.errors, r.out)
	}
	member := fmt.Sprint("m", y.IntN(y.members))
	switch receipts := y.list("receipt", "list", member); {
	case len(receipts) == 0:
		y.must("account", "attach", member, "--payment-method", "pm_card_visa") // a card was declined, or is not due yet
	case n%3 == 0:
		paid := receipts[y.IntN(len(receipts))].(map[string]any)
		y.refund(member, paid)
	case n%5 == 2:
		y.upgrade(member, receipts[0].(map[string]any)["currency"].(string))
	case n%10 == 1:
		_, intent, found := strings.Cut(receipts[0].(map[string]any)["charge"].(string), "/")
		if !found {
			intent = receipts[0].(map[string]any)["charge"].(string)
		}
		if id, err := y.fake.Dispute(intent, ""); err == nil {
			y.disputes = append(y.disputes, id)
		}
	}
	if len(y.disputes) > 0 && n%10 == 6 {
		if err := y.fake.CloseDispute(y.disputes[0], []string{"won", "lost"}[n/10%2]); err != nil {
			y.t.Fatal(err)
		}
		y.disputes = y.disputes[1:]
	}
	if n%10 == 8 {
		y.finishRefund(n/10%2 == 0)
	}
	if n%7 == 0 {
		for _, at := range []string{"", partner} {
			if ids := y.fake.PayOut(stripefake.Payout{Account: at}); n%28 == 14 && len(ids) > 0 {
				if err := y.fake.FailPayout(ids[0]); err != nil {
					y.t.Fatal(err)
				}
			}
		}
	}
	y.clock.Set(y.clock.Now().AddDate(0, 0, 1))
}

// refund refunds a payment, or a third of it. One that has nothing left is refused.
func (y *gymYear) refund(member string, paid map[string]any) {
	args := []string{"receipt", "refund", member + "/1", "--period", fmt.Sprint(paid["period"])}
	if y.IntN(2) == 0 {
		args = append(args, "--amount", map[string]string{"EUR": "13.30", "GBP": "9.67", "JPY": "1600", "KWD": "4.120"}[paid["currency"].(string)])
	}
	y.run(args...)
}

// finishRefund is a bank's answer to the oldest refund that is pending.
func (y *gymYear) finishRefund(ok bool) {
	for x := range y.fake.Ledger() {
		if x.Type == "refund" && x.Status == "pending" {
			if err := y.fake.FinishRefund(x.ID, ok); err != nil {
				y.t.Fatal(err)
			}
			return
		}
	}
}

// upgrade charges a dearer plan today. A member who has it already, or whose payment is open, is refused.
func (y *gymYear) upgrade(member, currency string) {
	amount := map[string]string{"EUR": "45.00", "GBP": "35.50", "JPY": "5550", "KWD": "14.850"}[currency]
	if r := y.run("subscription", "update", member+"/1", "--now", "--sku", "club", "--amount", amount, "--yes"); r.code == exitDone {
		y.upgrades++
	}
}

// closes writes what an accountant asks for: the product's files, and the processor's.
func (y *gymYear) closes(dir string, months int) {
	y.t.Helper()
	last := time.Date(2026, time.Month(months), 1, 0, 0, 0, 0, time.UTC).Format("2006-01")
	for name, args := range map[string][]string{
		"journal.csv":  {"report", "--from", "2026-01", "--to", last, "--csv"},
		"taxes.csv":    {"report", "--tax", "--from", "2026-01", "--to", last, "--csv"},
		"payouts.csv":  {"report", "--payouts", "2026-01-01", "--csv"},
		"receipts.csv": {"export", "receipts"},
		"refunds.csv":  {"export", "refunds"},
	} {
		y.write(dir, name, y.must(args...))
	}
	var ledger, bank strings.Builder
	for x := range y.fake.Ledger() {
		line, err := json.Marshal(x)
		if err != nil {
			y.t.Fatal(err)
		}
		ledger.Write(append(line, '\n'))
	}
	y.write(dir, "ledger.jsonl", ledger.String())
	for _, at := range []string{"", partner} {
		for more, after := true, ""; more; {
			list := y.ask("GET", "/v1/payouts?limit=100"+after, "", at)
			for _, p := range list["data"].([]any) {
				line, err := json.Marshal(p)
				if err != nil {
					y.t.Fatal(err)
				}
				bank.Write(append(line, '\n'))
				after = "&starting_after=" + p.(map[string]any)["id"].(string)
			}
			more = list["has_more"].(bool)
		}
	}
	y.write(dir, "bank.jsonl", bank.String())
}

func (y *gymYear) write(dir, name, text string) { writeBook(y.t, dir, name, text) }

func writeBook(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// recompute runs the example's script, which shares no code with the product.
func recompute(t *testing.T, dir string) (string, error) {
	t.Helper()
	file, err := filepath.Abs("../../examples/gym/recompute.py")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("python3", "-W", "error", file, dir).CombinedOutput()
	return string(out), err
}

// TestGymYear: an accountant closes the year of a gym. Journal, taxes and payouts are what a script of 100 lines
// recomputes from the exports and the processor's ledger. The script finds one wrong digit in each file.
func TestGymYear(t *testing.T) {
	soaktest.Long(t)
	members, months := 20, 3
	if soaktest.On() {
		members, months = 300, 12
	}
	y := newGymYear(t, members)
	end := time.Date(2026, time.Month(1+months), 1, 0, 0, 0, 0, time.UTC)
	for n := 1; y.clock.Now().Before(end); n++ {
		y.day(n)
	}
	for _, id := range y.disputes {
		if err := y.fake.CloseDispute(id, "lost"); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 { // the next payments fill each balance, because a negative one is not paid out
		y.run("run", "payments")
		y.clock.Set(y.clock.Now().AddDate(0, 0, 7))
	}
	y.fake.PayOut(stripefake.Payout{})
	y.fake.PayOut(stripefake.Payout{Account: partner})
	dir := t.TempDir()
	y.closes(dir, months+2)
	text, err := recompute(t, dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Logf("%d members, %d months, %d upgrades:\n%s", members, months, y.upgrades, text)
	if y.upgrades == 0 {
		t.Error("no member upgraded")
	}
	for name, c := range map[string]struct{ number, says string }{ // the first one that is found
		"journal.csv":  {`[1-9]\d*\.\d\d,0\.00,`, "journal: collected 2026-"},
		"taxes.csv":    {`\d+\.\d\d,`, "taxes by month: net 2026-01, "},
		"receipts.csv": {`\d\d\.\d\d,EUR`, "receipts and the processor's charges pi_"},
		"refunds.csv":  {`\d\.\d\d,(EUR|GBP)`, "refunds and the processor's refunds "},
		"payouts.csv":  {`\d\d\.\d\d,EUR,pi_`, "receipts in payouts 2026"},
		"ledger.jsonl": {`"amount":\d\d`, "receipts and the processor's charges pi_"},
		"bank.jsonl":   {`"amount":\d\d`, "payouts at the bank po_"},
	} {
		good, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		at := regexp.MustCompile(c.number).FindIndex(good)
		if at == nil {
			t.Fatalf("%s has no %s", name, c.number)
		}
		digit := at[0] + bytes.IndexAny(good[at[0]:at[1]], "0123456789")
		bad := slices.Clone(good)
		bad[digit] = '1' + (bad[digit]-'0')%9
		y.write(dir, name, string(bad))
		if text, err := recompute(t, dir); err == nil || !strings.Contains(text, c.says) {
			t.Errorf("%s with another digit: %v\n%s", name, err, text)
		}
		y.write(dir, name, string(good))
	}
}

// taxedBooks are the books of a receipt with 19 % on top, which was refunded in two parts, and of one with 7 %
// included.
var taxedBooks = map[string]string{
	"receipts.csv": "id,number,kind,processed_at,amount,currency,charge,net,tax,tax_rate,tax_mode,tax_country,tax_note\n" +
		"a,R-2026-000001,charge,2026-03-15,15.46,EUR,pi_1,12.99,2.47,19,exclusive,DE,\n" +
		"b,R-2026-000002,charge,2026-03-15,10.70,EUR,pi_2,10.00,0.70,7,inclusive,DE,\n",
	"refunds.csv": "id,number,kind,state,processed_at,amount,currency,charge,refund\n" +
		"1,R-2026-000003,refund,succeeded,2026-03-31,5.00,EUR,pi_1,re_1\n2,R-2026-000004,refund,succeeded,2026-04-01,10.46,EUR,pi_1,re_2\n",
	"journal.csv": "month,currency,collected,outside,refunded\n2026-03,EUR,26.16,0.00,5.00\n2026-04,EUR,0.00,0.00,10.46\n",
	"taxes.csv": "month,country,rate,note,currency,net,tax,gross,refunded_net,refunded_tax,refunded\n" +
		"2026-03,DE,19,,EUR,12.99,2.47,15.46,4.20,0.80,5.00\n2026-03,DE,7,,EUR,10.00,0.70,10.70,0.00,0.00,0.00\n" +
		"2026-04,DE,19,,EUR,0.00,0.00,0.00,8.79,1.67,10.46\n",
	"payouts.csv": "payout,own,kind,currency,gross,net,charged,receipt\npo_1,yes,charge,EUR,15.46,15.46,15.46,a\n" +
		"po_1,yes,charge,EUR,10.70,10.70,10.70,b\npo_1,yes,refund,EUR,-5.00,-5.00,,a\npo_1,yes,refund,EUR,-10.46,-10.46,,a\n",
	"ledger.jsonl": `{"type":"charge","id":"ch_1","payment_intent":"pi_1","amount":1546,"currency":"eur","status":"succeeded","metadata":{"duesday_installation":"x"}}
{"type":"charge","id":"ch_2","payment_intent":"pi_2","amount":1070,"currency":"eur","status":"succeeded","metadata":{"duesday_installation":"x"}}
{"type":"refund","id":"re_1","amount":500,"currency":"eur","status":"succeeded","metadata":{"duesday_installation":"x"}}
{"type":"refund","id":"re_2","amount":1046,"currency":"eur","status":"succeeded","metadata":{"duesday_installation":"x"}}
`,
	"bank.jsonl": `{"id":"po_1","amount":1070,"currency":"eur"}` + "\n",
}

// TestRecompute_Taxes: the script computes each tax from its rate, and what refunds give back. One cent is found, and a
// receipt that is in no payout.
func TestRecompute_Taxes(t *testing.T) {
	t.Parallel()
	needsPython(t)
	dir := t.TempDir()
	for name, text := range taxedBooks {
		writeBook(t, dir, name, text)
	}
	if text, err := recompute(t, dir); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, c := range []struct{ name, was, is, says string }{
		{"receipts.csv", "12.99,2.47", "12.98,2.48", "taxes of receipts a"},
		{"receipts.csv", "10.00,0.70", "9.95,0.75", "taxes of receipts b"},
		{"receipts.csv", "12.99,2.47", "12.99,2.46", "taxes of receipts a"},
		{"taxes.csv", "0.70,10.70", "0.71,10.70", "taxes by month: tax 2026-03, DE, 7, , EUR"},
		{"taxes.csv", "12.99,2.47", "12.98,2.47", "taxes by month: net 2026-03, DE, 19, , EUR"},
		{"taxes.csv", "4.20,0.80", "4.20,0.81", "taxes of refunds: refunded_tax 2026-03, DE, 19, , EUR"},
		{"taxes.csv", "2.47,15.46", "2.47,15.47", "taxes by month: gross 2026-03, DE, 19, , EUR"},
		{"taxes.csv", "1.67,10.46", "1.67,10.45", "taxes of refunds: refunded 2026-04, DE, 19, , EUR"},
		{"taxes.csv", "8.79,1.67", "8.80,1.67", "taxes of refunds: refunded_net 2026-04, DE, 19, , EUR"},
		{"payouts.csv", "po_1,yes,charge,EUR,10.70,10.70,10.70,b", ",yes,receipt,,,,10.70,b", "receipts in payouts b: 0, but recomputed 10.70"},
		{"receipts.csv", "R-2026-000002", "R-2026-000005", "numbers R-2026-000002"},
	} {
		writeBook(t, dir, c.name, strings.Replace(taxedBooks[c.name], c.was, c.is, 1))
		if text, err := recompute(t, dir); err == nil || !strings.Contains(text, c.says) {
			t.Errorf("%s with %s: %v\n%s", c.name, c.is, err, text)
		}
		writeBook(t, dir, c.name, taxedBooks[c.name])
	}
}
