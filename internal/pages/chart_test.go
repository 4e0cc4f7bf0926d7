package pages

import (
	"encoding/json"
	"testing"
	"time"
)

// TestCharts: a bar is where its date is, the highest one is as high as the chart, and what was recovered is not
// counted twice. Manual payments are a part of the bar of what was collected.
func TestCharts(t *testing.T) {
	row := func(date, currency, collected, recovered string) any {
		return object{"date": date, "currency": currency, "collected": json.Number(collected), "recovered": json.Number(recovered)}
	}
	begin, end := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 5, 29, 0, 0, 0, 0, time.UTC)
	all := charts([]any{row("2026-03-01", "EUR", "100", "0"), row("2026-03-01", "JPY", "7", "0"), row("2026-03-29", "EUR", "200", "50"),
		row("2026-05-29", "EUR", "999999999999999999", "0"), row("2026-05-30", "EUR", "-5", "x")}, begin, end, "recovered", "collected", "declined")
	if len(all) != 2 || all[0].Currency != "EUR" || len(all[0].Rows) != 4 {
		t.Fatalf("charts: %+v", all)
	}
	if yen := all[1]; yen.First != "2026-03-01" || yen.Last != "2026-05-30" || yen.Bars[0].X != 0 {
		t.Errorf("the axis of the second chart: %+v", yen)
	}
	later := charts([]any{row("2026-03-02", "EUR", "100", "0"), row("2026-03-05", "JPY", "7", "0")}, begin, end, "collected")
	if x := later[1].Bars[0].X; x != 4*chartWidth/90 {
		t.Errorf("the same day is elsewhere in the chart of another currency: %d", x)
	}
	if all[0].Highest != "200" || all[1].Highest != "7" {
		t.Errorf("the highest bars: %s and %s", all[0].Highest, all[1].Highest)
	}
	euro := all[0].Bars
	if len(euro) != 3 || euro[0].X != 0 || euro[0].Height != 60 || euro[1].Kind != "recovered" || euro[1].Height != 30 || euro[2].Height != 90 ||
		euro[2].Y != 0 || euro[1].X != 28*chartWidth/91 || euro[2].Amount != "200" {
		t.Errorf("bars: %+v", euro)
	}
	manual := object{"date": "2026-05-01", "currency": "EUR", "collected": json.Number("950"), "outside": json.Number("950"), "recovered": json.Number("950")}
	c := charts([]any{manual}, begin, end, "recovered", "collected", "failed")[0]
	if len(c.Bars) != 2 || c.Highest != "1900" || c.Bars[0].Height != 60 || c.Bars[1].Kind != "collected" || c.Bars[1].Height != 60 || c.Bars[1].Amount != "1900" {
		t.Errorf("a manual payment that recovers a period hides what was collected: %+v", c)
	}
	if charts(nil, begin, end, "amount") != nil || charts([]any{}, begin, end, "amount") != nil {
		t.Error("a chart of nothing")
	}
}
