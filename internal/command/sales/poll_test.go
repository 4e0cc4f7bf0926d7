package sales

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/tracking/poller"
)

// TestPollView checks the names, the order and the omitted fields of the JSON.
func TestPollView(t *testing.T) {
	at := func(ms int) time.Time { return time.Date(2026, 11, 21, 12, 0, 0, ms*1e6, time.UTC) }
	failures := []poller.Failure{{StripeAccount: "acct_1", Error: "e"}, {}}
	for _, x := range []struct {
		view *pollView
		want string
	}{
		{&pollView{Report: poller.Report{Accounts: 1, Skipped: 2, Listed: 3, Missing: 4, Sent: 5, Failed: 6,
			Failures: failures, Lost: []poller.Gap{{StripeAccount: "acct_2", From: at(1), To: at(20), Changed: 7}},
			Through: at(0)}, Sweep: &poller.SweepReport{Accounts: 8, Skipped: 9, Objects: 10, Changed: 11, Failed: 12,
			Failures: failures}, Disconnected: []string{"acct_3"}},
			`{"accounts":1,"skipped":2,"listed":3,"missing":4,"sent":5,"failed":6,` +
				`"failures":[{"stripe_account":"acct_1","error":"e"},{"stripe_account":"","error":""}],` +
				`"lost":[{"stripe_account":"acct_2","from":"2026-11-21T12:00:00.001Z","to":"2026-11-21T12:00:00.020Z",` +
				`"changed":7}],"verified_through":"2026-11-21T12:00:00.000Z","disconnected":["acct_3"],` +
				`"sweep":{"accounts":8,"skipped":9,"objects":10,"changed":11,"untold":0,` +
				`"failed":12,"failures":[{"stripe_account":"acct_1","error":"e"},{"stripe_account":"","error":""}]}}`},
		{&pollView{}, `{"accounts":0,"skipped":0,"listed":0,"missing":0,"sent":0,"failed":0,"failures":[],"lost":[]}`},
		{&pollView{Sweep: &poller.SweepReport{}}, `{"accounts":0,"skipped":0,"listed":0,"missing":0,"sent":0,"failed":0,` +
			`"failures":[],"lost":[],"sweep":{"accounts":0,"skipped":0,"objects":0,"changed":0,"untold":0,"failed":0,"failures":[]}}`},
	} {
		got, err := json.Marshal(x.view.view())
		if err != nil || string(got) != x.want {
			t.Errorf("got %s, %v\nwant %s", got, err, x.want)
		}
	}
}
