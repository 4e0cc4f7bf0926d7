package pages

import (
	"encoding/json"
	"testing"
	"time"
)

// TestTimeline: each period has its own receipts and mails, the first one first. Mails of other subscriptions and of
// periods that are not shown stay out.
func TestTimeline(t *testing.T) {
	list := func(all ...any) object { return object{"data": all} }
	mail := func(id, subscription, period string) any {
		return object{"id": id, "subscription": subscription, "period": json.Number(period)}
	}
	data := object{"subscription": object{"id": "1", "period": json.Number("2"), "due_date": "2026-05-31"},
		"receipts": list(object{"id": "r2", "subscription": "1", "period": json.Number("1")}, object{"id": "r1", "subscription": "1", "period": json.Number("1")},
			object{"id": "imported", "subscription": "1"}),
		"periods": list(object{"period": json.Number("0"), "ending": "failed"}),
		"mails": list(mail("receipt", "1", "1"), mail("other", "2", "1"), mail("old", "1", "7"), mail("reminder", "1", "1"),
			object{"id": "card", "subscription": "1"})}
	if err := timeline(&visit{Handler: &Handler{o: Options{Now: time.Now}}}, data); err != nil {
		t.Fatal(err)
	}
	periods := data["timeline"].([]any)
	if len(periods) != 3 {
		t.Fatalf("periods: %v", periods)
	}
	next, paid, failed := periods[0].(object), periods[1].(object), periods[2].(object)
	if next["next"] != true || failed["ended"].(object)["ending"] != "failed" {
		t.Errorf("the next period: %v, the failed one: %v", next, failed)
	}
	ids := func(p object, name string) (all string) {
		of, _ := p[name].([]any)
		for _, x := range of {
			all += x.(object)["id"].(string) + " "
		}
		return all
	}
	if ids(paid, "receipts") != "r1 r2 " || ids(paid, "mails") != "reminder receipt " || ids(next, "mails")+ids(failed, "mails") != "" {
		t.Errorf("the paid period: %v", paid)
	}
}
