package billingapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/maillog"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/store"
)

// TestMails: the API lists ended mail page by page and by account, the outbox's mail by state, and shows one mail
// with a text that says that it was rendered again.
func TestMails(t *testing.T) {
	w := newWorld(t)
	table := w.tables.RecurringPayments.Name
	for i := range 5 {
		e := outbox.Effect{ID: fmt.Sprint("mail/", i), Kind: outbox.KindReceipt, Created: w.now(), Due: w.now(), Data: map[string]string{
			outbox.DataAccount: fmt.Sprint("acc", i%2), outbox.DataEmail: "<b>@example.com", outbox.DataPeriod: "0", outbox.DataAmount: "12.99"}}
		row := outbox.Write(w.tables.Outbox.Name, e)
		writes := maillog.Record(table, w.now(), row.Item, e, outbox.Outcome{Tries: 1, Answer: "250 queued"})
		if i == 4 { // it waits
			writes = []store.Write{row}
		}
		if err := w.faults.Commit(context.Background(), writes...); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]int{"/v1/mails": 4, "/v1/mails?account=acc0": 2, "/v1/mails?state=sent": 4, "/v1/mails?state=bounced": 0,
		"/v1/mails?state=waiting": 1, "/v1/mails?state=held": 0, "/v1/mails?account=acc1&state=waiting": 0, "/v1/mails?from=2020-01-01": 4,
		"/v1/mails?to=2020-01-01": 0} {
		if n := w.pages(path); n != want {
			t.Errorf("%s: %d mails, want %d", path, n, want)
		}
	}
	for path, want := range map[string]string{"/v1/mails?state=lost": "state", "/v1/mails?from=yesterday": "from", "/v1/mails?from=2027-02-01&to=2027-01-01": "from"} {
		if a := w.ask("read", "GET", path, "", ""); a.status != 422 || a.names() != want {
			t.Errorf("%s: %d %s", path, a.status, a.text)
		}
	}
	for _, list := range []string{"/v1/mails", "/v1/mails?state=waiting"} {
		id := w.must("GET", list, "").body["data"].([]any)[0].(map[string]any)["id"].(string)
		a := w.ask("read", "GET", "/v1/mails/"+id, "", "")
		if a.status != 200 || a.body["text"] != "To <b>@example.com" || !strings.Contains(fmt.Sprint(a.body["note"]), "rendered now") || a.body["period"] != 0.0 {
			t.Errorf("%d %s", a.status, a.text)
		}
	}
	if a := w.ask("read", "GET", "/v1/mails/mail_1", "", ""); a.status != 404 {
		t.Errorf("%d %s", a.status, a.text)
	}
}
