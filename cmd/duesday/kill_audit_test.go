package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/stripefake"
)

// auditScript is the audit that shares nothing with the product.
const auditScript = "testdata/audit.mjs"

// settle lets the payment job finish its work, on as many days as retries take.
func (k *killedStore) settle() {
	k.t.Helper()
	if err := k.fake.SetFaults(stripefake.Faults{}); err != nil {
		k.t.Fatal(err)
	}
	for range 16 { // banks decide no more
		k.whole(k.command("run", "payments"), exitPerson)
		k.ahead.Add(int64(24 * time.Hour))
	}
	k.whole(k.command("run", "payments"), exitPerson)
	k.clean("store", "the last day")
}

// audit exports the store and the ledger, and has the script hold them against the calendar.
func (k *killedStore) audit(node, days string) {
	k.t.Helper()
	k.whole(k.command("export", "subscriptions", "--all", "--format", "jsonl", "--out", k.path("subscriptions.jsonl")))
	for _, kind := range []string{"receipts", "periods", "refunds"} {
		k.whole(k.command("export", kind, "--format", "jsonl", "--out", k.path(kind+".jsonl")))
	}
	ledger, err := os.Create(k.path("ledger.jsonl"))
	if err != nil {
		k.t.Fatal(err)
	}
	for e := range k.fake.Ledger() {
		if err := json.NewEncoder(ledger).Encode(e); err != nil {
			k.t.Fatal(err)
		}
	}
	if err := ledger.Close(); err != nil {
		k.t.Fatal(err)
	}
	if out, err := exec.Command(node, auditScript, k.dir, k.today(), days).CombinedOutput(); err != nil {
		k.t.Errorf("%s on %s: %v\n%s", auditScript, k.today(), err, out)
	} else if days != "" {
		k.t.Logf("%s", out)
	}
}

// auditFiles has the lines of the files that the script reads.
type auditFiles map[string][]map[string]any

// charge returns a charge in the ledger, of a first period whose subscription has paid for the next too.
func (f auditFiles) charge() map[string]any {
	return f["ledger"][slices.IndexFunc(f["ledger"], func(e map[string]any) bool {
		of := e["metadata"].(map[string]any)
		return of["duesday_period"] == "0" && slices.ContainsFunc(f["receipts"], func(r map[string]any) bool {
			return r["account"] == of["duesday_account"] && r["subscription"] == of["duesday_subscription"] && r["period"] == 1.0
		})
	})]
}

// receipt returns the place of the charge's receipt.
func (f auditFiles) receipt() int {
	return slices.IndexFunc(f["receipts"], func(r map[string]any) bool { return r["charge"] == f.charge()["payment_intent"] })
}

// planted are bugs that a store and its processor could have, with the finding of each.
var planted = map[string]struct {
	plant func(f auditFiles)
	found string
}{
	"a charge twice": {func(f auditFiles) { f["ledger"] = append(f["ledger"], f.charge()) }, "was charged 2 times"},
	"a charge that the store does not know": {func(f auditFiles) { f.charge()["payment_intent"] = "pi_other" },
		"which no receipt of the period names"},
	"a receipt without a charge": {func(f auditFiles) { f["receipts"][f.receipt()]["charge"] = "pi_other" }, "which took no money"},
	"a missing period": {func(f auditFiles) {
		i := f.receipt()
		f["ledger"] = slices.DeleteFunc(f["ledger"], func(e map[string]any) bool { return e["payment_intent"] == f["receipts"][i]["charge"] })
		f["receipts"] = slices.Delete(f["receipts"], i, i+1)
	}, "has neither a payment nor an end"},
	"another amount":             {func(f auditFiles) { f.charge()["amount"] = 1 }, "was charged 1 "},
	"another currency":           {func(f auditFiles) { f.charge()["currency"] = "kwd" }, " KWD, its receipt says"},
	"a charge before its day":    {func(f auditFiles) { f.charge()["at"] = "2026-01-02T00:00:00Z" }, "was charged on 2026-01-02, it is due"},
	"a receipt of another day":   {func(f auditFiles) { f["receipts"][f.receipt()]["due_date"] = "2026-01-02" }, "has a receipt for 2026-01-02"},
	"a lost subscription":        {func(f auditFiles) { f["subscriptions"] = f["subscriptions"][1:] }, "is not in the store"},
	"a subscription of nobody's": {func(f auditFiles) { f["orders"] = f["orders"][1:] }, "nobody ordered it"},
	"another due date": {func(f auditFiles) {
		for _, s := range f["subscriptions"] {
			s["next_payment_date"] = "2027-02-29"
		}
	}, "is next due on 2027-02-29, its calendar has"},
	"a cancellation of nobody's": {func(f auditFiles) {
		for _, s := range f["subscriptions"] {
			s["status"] = "canceled"
		}
	}, "is canceled, and nobody asked for it"},
	"a pause of nobody's": {func(f auditFiles) {
		for _, s := range f["subscriptions"] {
			s["status"] = "paused"
		}
	}, "is paused, and nobody asked for it"},
	"past due without a failure": {func(f auditFiles) {
		for _, s := range f["subscriptions"] {
			s["status"] = "past_due"
		}
	}, "is past_due, and no period of it has failed"},
	"a dispute that the store does not know": {func(f auditFiles) {
		f["ledger"] = append(f["ledger"], map[string]any{"type": "dispute", "id": "du_other", "charge": "ch_other", "amount": 1.0,
			"currency": "usd", "status": "lost"})
	}, "du_other"},
	"a paid period that ended": {func(f auditFiles) {
		r := f["receipts"][f.receipt()]
		f["periods"] = append(f["periods"], map[string]any{"account": r["account"], "subscription": r["subscription"],
			"period": r["period"], "due_date": r["due_date"], "amount": r["amount"], "currency": r["currency"], "ending": "void"})
	}, "was paid, and ended void too"},
}

// plant holds that the script finds what it is for, in copies of the files that it has found clean.
func (k *killedStore) plant(node string) {
	k.t.Helper()
	for what, p := range planted {
		dir, files := k.t.TempDir(), auditFiles{}
		for _, name := range []string{"orders", "ledger", "subscriptions", "receipts", "periods", "refunds"} {
			text, err := os.Open(k.path(name + ".jsonl"))
			if err != nil {
				k.t.Fatal(err)
			}
			for d := json.NewDecoder(text); err == nil; {
				var line map[string]any
				if err = d.Decode(&line); err == nil {
					files[name] = append(files[name], line)
				}
			}
			text.Close()
		}
		p.plant(files)
		for _, name := range []string{"orders", "ledger", "subscriptions", "receipts", "periods", "refunds"} {
			var text bytes.Buffer
			for _, line := range files[name] {
				if err := json.NewEncoder(&text).Encode(line); err != nil {
					k.t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, name+".jsonl"), text.Bytes(), 0o600); err != nil {
				k.t.Fatal(err)
			}
		}
		out, err := exec.Command(node, auditScript, dir, k.today(), "14").CombinedOutput()
		if err == nil || !strings.Contains(string(out), p.found) {
			k.t.Errorf("planted: %s: %v, want %q\n%s", what, err, p.found, out)
		}
	}
}
