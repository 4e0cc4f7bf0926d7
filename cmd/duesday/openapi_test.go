package main

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/test/spectest"
	"github.com/duesday/duesday/stripefake"
)

// TestOpenAPI_Examples: each example of openapi.json is a request that the server carries out, in this order, and
// each answer fits openapi.json.
func TestOpenAPI_Examples(t *testing.T) {
	c := newServeCLI(t)
	c.clock.Set(time.Date(2027, 1, 10, 9, 0, 0, 0, time.UTC))
	v, stop := c.serveBy(c.clock.Now, "--no-poll", "--on-fulfil", "exit 100")
	c.to.Store(&v.Base) // Stripe's events arrive
	to, err := url.Parse(v.APIBase)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	e := &spectest.Examples{Spec: spectest.New(t), Handler: httputil.NewSingleHostReverseProxy(to),
		Values: map[string]string{"account": "123", "subscription": "gym", "period": "0", "date": "2027-01-31", "stripe_account": "acct_shop"},
		Scopes: map[string]string{"createRun/verify": "admin"},
		Key: func(scope string) string {
			if keys[scope] == "" {
				keys[scope] = c.object(exitDone, "key", "create", "example-"+scope, "--scope", scope)["key"].(string)
			}
			return keys[scope]
		}}
	send := func(operation string, examples ...string) map[string]any {
		t.Helper()
		var last map[string]any
		for _, x := range examples {
			last = e.Send(t, operation, x)
		}
		return last
	}
	row := func(list map[string]any) map[string]any {
		t.Helper()
		rows, _ := list["data"].([]any)
		if len(rows) == 0 {
			t.Fatalf("an empty list: %v", list)
		}
		return rows[0].(map[string]any)
	}

	e.Values["endpoint"] = fmt.Sprint(send("createEndpoint", "default")["id"])
	send("createAccount", "default")
	send("createCardLink", "account")
	send("attachPaymentMethod", "default")
	send("getAccount", "")
	send("updateAccount", "default")
	send("createSubscription", "monthly", "trial")
	send("previewSubscription", "default")
	send("createCardLink", "subscription")
	send("getSubscription", "")
	row(send("getSubscriptionsByAccount", ""))
	row(send("getDuePaymentsByDate", ""))
	e.Values["date"] = "2027-01-24"
	row(send("getDueRemindersByDate", ""))
	c.must("settings", "set", "portal=on", "public-url=https://pay.example.com", "seller=Gym", "seller-address=Here")
	send("createPortalLink", "link", "revoke")
	send("getOverview", "")
	send("previewUpdate", "reminder", "day")
	send("updateSubscription", "reminder")
	send("previewPlan", "default")
	send("changePlan", "default")
	send("previewPause", "default")
	send("pauseSubscription", "default")
	send("previewResume", "default")
	send("resumeSubscription", "default")

	// The first period falls due, and is charged by a run.
	c.clock.Set(time.Date(2027, 1, 31, 9, 0, 0, 0, time.UTC))
	send("getCharging", "")
	send("setCharging", "off", "on")
	run := send("createRun", "payments")
	e.Values["run"] = fmt.Sprint(run["id"])
	for ended := time.Now().Add(time.Minute); send("getRun", "")["state"] == "running"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(ended) {
			t.Fatal("the run does not end")
		}
	}
	row(send("listRuns", ""))
	send("listUnpaid", "")
	equal(t, "period", send("getPeriod", "")["state"], any("paid"))
	equal(t, "proof", send("provePeriod", "")["alarm"], any(false))
	e.Values["?account"] = "123"
	e.Values["number"] = fmt.Sprint(row(send("getReceiptsByAccount", ""))["id"])
	send("getReceipt", "")
	send("previewRefund", "default")
	send("createRefund", "default")
	row(send("listRefunds", ""))
	equal(t, "charged before", send("chargePeriod", "default")["paid_before"], any(true))
	send("listPeriods", "")
	send("getReport", "")
	c.fake.PayOut(stripefake.Payout{})
	e.Values["from"] = "2027-01-01"
	equal(t, "payouts", len(send("getPayoutReport", "")["payouts"].([]any)), 1)
	send("getStatus", "")

	// The second one is charged by itself, the third is paid by wire, and then comes the end.
	c.clock.Set(time.Date(2027, 2, 28, 9, 0, 0, 0, time.UTC))
	send("previewCharge", "default")
	send("chargeSubscription", "default")
	c.clock.Set(time.Date(2027, 3, 31, 9, 0, 0, 0, time.UTC))
	send("previewReceipt", "default")
	send("createReceipt", "default")
	send("updateSubscription", "day")
	send("previewSkip", "default")
	send("skipPeriod", "default")
	send("previewCancel", "default")
	send("cancelSubscription", "default")
	send("createRun", "verify")

	send("getSettings", "")
	send("updateSettings", "default")
	e.Values["key"] = fmt.Sprint(send("createKey", "default")["id"])
	row(send("listKeys", ""))
	send("revokeKey", "")

	send("createMerchant", "default")
	row(send("listMerchants", ""))
	send("importMerchant", "default")
	e.Values["?merchant"] = shopAccount
	ordered := send("createPurchase", "default")
	e.Values["purchase"] = fmt.Sprint(ordered["purchase"].(map[string]any)["id"])
	e.Values["payment"] = fmt.Sprint(ordered["objects"].([]any)[0].(map[string]any)["id"])
	send("getPurchase", "")
	send("listPurchases", "")
	send("listPayments", "")
	send("getPayment", "")
	for ended := time.Now().Add(time.Minute); len(send("listEvents", "")["data"].([]any)) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(ended) {
			t.Fatal("no event arrives")
		}
	}
	e.Values["event"] = fmt.Sprint(row(send("listEvents", ""))["id"])
	send("getEvent", "")
	equal(t, "replayed", send("replayEvent", "default")["id"], any(e.Values["event"]))
	c.pay(e.Values["payment"])
	c.until("the fulfilment is given up", func() bool {
		jobs := send("listJobs", "")["data"].([]any)
		return len(jobs) > 0 && jobs[0].(map[string]any)["dead"] == true
	})
	e.Values["job"] = fmt.Sprint(row(send("listJobs", ""))["id"])
	equal(t, "retried", send("retryJob", "default")["id"], any(e.Values["job"]))

	row(send("listAccounts", ""))
	equal(t, "exported", send("exportAccount", "default")["account"].(map[string]any)["id"], any("123"))
	row(send("listSubscriptions", ""))
	row(send("listHistory", ""))
	row(send("listEndpoints", ""))
	send("getEndpoint", "")
	c.until("a mail is sent", func() bool { return len(send("listMails", "")["data"].([]any)) > 0 })
	e.Values["mail"] = fmt.Sprint(row(send("listMails", ""))["id"])
	equal(t, "the mail of the text", send("getMail", "")["id"], any(e.Values["mail"]))
	e.Values["delivery"] = fmt.Sprint(row(send("listDeliveries", ""))["id"])
	send("getDelivery", "")
	e.Instead = map[string]string{"msg_9kq2": fmt.Sprint(row(send("listDeliveries", ""))["id"])}
	send("updateEndpoint", "types", "pause", "resume") // the clock of months has it paused
	send("replayDeliveries", "one", "since")
	send("rotateEndpoint", "default")
	send("deleteEndpoint", "")
	for _, subscription := range []string{"123/gym", "123/sauna"} {
		c.must("subscription", "cancel", subscription)
	}
	c.until("the account is erased", func() bool { // an event may wait in the inbox for minutes of this clock
		c.clock.Set(c.clock.Now().Add(time.Minute))
		return c.run("account", "erase", "123", "--confirm", "123").code == exitDone
	})
	equal(t, "erased", send("eraseAccount", "default")["account"], any("123"))

	customer, sub := c.subscribeAtStripe()
	e.Instead = map[string]string{"sub_1PqX2": sub}
	equal(t, "planned", row(send("listTakeovers", ""))["state"], any("ready"))
	equal(t, "taken over", send("startTakeover", "default")["state"], any("ending"))
	for flag, exported := range map[string]bool{"--format=csv": false, "--all": true} { // another store would charge it
		equal(t, "exported", strings.Contains(c.run("export", "subscriptions", flag).out, sub), exported)
	}
	e.Values["account"], e.Values["subscription"] = customer, sub
	equal(t, "handed back", send("undoTakeover", "default")["status"], any("canceled"))

	equal(t, "examples that were not sent", strings.Join(e.Rest(), " "), "")
	equal(t, "exit", stop().code, exitDone)
}

// subscribeAtStripe has a customer subscribe at Stripe.
func (c *stripeCLI) subscribeAtStripe() (customer, subscription string) {
	c.t.Helper()
	make := func(path, form string) string { return c.askAt("", http.MethodPost, "/v1/"+path, form)["id"].(string) }
	customer = make("customers", "email=ada@example.com")
	method := make("payment_methods/pm_card_visa/attach", "customer="+customer)
	price := make("prices", "currency=eur&unit_amount=1299&recurring[interval]=month&product="+make("products", "name=Gym"))
	return customer, make("subscriptions", "customer="+customer+"&default_payment_method="+method+"&items[0][price]="+price)
}
