package pages_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/pages"
)

// TestToday_Chart: the chart of 90 days has bars of what was recovered, collected and declined. What failed is in its
// table only, because it was declined before.
func TestToday_Chart(t *testing.T) {
	day := map[string]any{"date": "2026-03-14", "currency": "EUR", "collected": 3000, "outside": 0, "refunded": 0, "declined": 2500, "failed": 1234,
		"recovered": 1000}
	api := newStore{"overview": map[string]any{"date": "2026-03-15", "days": []any{day}}}
	h := pages.New(pages.Options{API: api, Keys: keys{scope: key.Admin}, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	text := ask(h, "GET", "/", nil, nil).Body.String()
	for _, want := range []string{`<rect class="recovered"`, `<rect class="collected"`, `<rect class="declined"`, `2026-03-14: declined 25.00 EUR`,
		`<span class="declined">`, `<th scope="col" class="money">failed</th>`, `<td class="money">12.34 EUR</td>`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, `<rect class="failed"`) {
		t.Error("a bar of what failed")
	}
}
