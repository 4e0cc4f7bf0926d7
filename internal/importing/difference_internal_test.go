package importing

import (
	"fmt"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
)

// TestOfSubscription_Discount: the file that gave a discount does not give it again, whenever it is imported.
func TestOfSubscription_Discount(t *testing.T) {
	ten := price.Discount{Percent: 100_000, Periods: 3}
	five := price.Discount{Percent: 50_000}
	for _, tt := range []struct {
		file   price.Discount
		period int
		want   string
	}{
		{ten, 0, ""},
		{ten, 2, ""},
		{ten, 9, ""},
		{price.Discount{Percent: ten.Percent, Periods: 1}, 2, ""},
		{price.Discount{Percent: ten.Percent, Periods: 5}, 1, "discount_periods 2 -> 5 "},
		{five, 1, "discount 10% -> 5% changes"},
	} {
		s := &billing.Subscription{Period: tt.period, Terms: price.Terms{Discount: ten}}
		n := &billing.NewSubscription{Terms: price.Terms{Discount: tt.file}}
		c, all := ofSubscription(s, n, func(field string) bool { return field == "discount" || field == "discount_periods" })
		var got strings.Builder
		for _, d := range all {
			got.WriteString(fmt.Sprintf("%s %s -> %s ", d.Field, d.Stored, d.Given))
		}
		if c.Discount != nil {
			got.WriteString("changes")
		}
		if got.String() != tt.want {
			t.Errorf("%+v in period %d: %q, want %q", tt.file, tt.period, got.String(), tt.want)
		}
	}
}
