package stripefake

import (
	"fmt"
	"testing"
)

// TestCoupon: a discount lasts as long as its coupon says, and the invoice shows what it takes off.
func TestCoupon(t *testing.T) {
	for _, tt := range []struct {
		coupon string
		paid   []int // by the first invoices of a subscription of 15.00 a month
	}{
		{"percent_off=33.33", []int{1000, 1500, 1500}}, // once by default; 499.95 is 5.00
		{"percent_off=50&duration=forever", []int{750, 750, 750}},
		{"amount_off=400&currency=usd&duration=repeating&duration_in_months=2", []int{1100, 1100, 1500}},
		{"amount_off=9999&currency=usd", []int{0, 1500, 1500}},
		{"amount_off=400&currency=eur&duration=forever", []int{1500, 1500, 1500}},
	} {
		s := newShop(t)
		s.ok("POST", "/v1/coupons", "id=sale&"+tt.coupon)
		customer, _ := s.buyerWith("pm_card_visa")
		sub := s.subscribe(customer, "discounts[0][coupon]=sale").id()
		for i, want := range tt.paid {
			if i > 0 {
				s.until([]string{"", "2026-02-28T14:00:00Z", "2026-03-31T14:00:00Z"}[i])
			}
			o := s.get("subscriptions/"+sub, "expand[]=latest_invoice")
			s.is(o, fmt.Sprint("latest_invoice.amount_paid=", want), "latest_invoice.subtotal=1500", "latest_invoice.status=paid")
			if want < 1500 {
				s.is(o, fmt.Sprint("latest_invoice.total_discount_amounts.0.amount=", 1500-want),
					fmt.Sprint("latest_invoice.lines.data.0.discount_amounts.0.amount=", 1500-want))
			}
		}
		s.is(s.get("coupons/sale"), "times_redeemed=1", "valid=true")
	}
}

// TestCoupon_Lines: discounts apply one after the other, to each line by its part, and not to credits.
func TestCoupon_Lines(t *testing.T) {
	s := newShop(t)
	customer, _ := s.buyerWith("pm_card_visa")
	for _, amount := range []string{"333", "333", "334", "-100"} {
		s.post("invoiceitems", "customer="+customer, "currency=usd", "amount="+amount)
	}
	s.post("invoiceitems", "customer="+customer, "currency=usd", "amount=500", "discountable=false")
	tenth, ten := s.post("coupons", "percent_off=10").id(), s.post("coupons", "amount_off=100", "currency=usd").id()
	o := s.post("invoices", "customer="+customer, "pending_invoice_items_behavior=include", "discounts[0][coupon]="+tenth,
		"discounts[1][coupon]="+ten, "expand[]=discounts.source.coupon")
	s.is(o, "subtotal=1400", "total=1200", "amount_due=1200", "total_discount_amounts.0.amount=100",
		"total_discount_amounts.1.amount=100", "discounts.0.source.coupon.percent_off=10", "discounts.1.invoice="+o.id())
	sum := 0.0
	for _, line := range o.at("lines.data").([]any) {
		for _, d := range line.(map[string]any)["discount_amounts"].([]any) {
			sum += d.(map[string]any)["amount"].(float64)
		}
	}
	equal(t, "the lines' discounts", sum, 200.0)
	s.is(s.post("invoices/"+o.id(), "discounts="), "total=1400", "discounts.0=<nil>")
	s.is(s.post("invoices/"+o.id()+"/pay"), "amount_paid=1400")
	s.try("invoices/"+o.id(), "discounts[0][coupon]="+ten).refused(t, "a paid invoice", 400, "invoice_not_editable", nil)
}

// TestCoupon_Subscription: discounts are added and removed, and prorations are net of them.
func TestCoupon_Subscription(t *testing.T) {
	s := newShop(t)
	half := s.post("coupons", "percent_off=50", "duration=forever", "max_redemptions=1").id()
	customer, _ := s.buyerWith("pm_card_visa")
	sub := s.subscribe(customer, "discounts[0][coupon]="+half)
	s.is(s.get("coupons/"+half), "valid=false")
	s.try("subscriptions/"+sub.id(), "discounts[0][coupon]="+half).refused(t, "a used coupon", 400, "coupon_expired",
		"discounts[0][coupon]")
	s.is(sub, "discounts.0="+s.get("subscriptions/"+sub.id()).at("discounts.0").(string))
	s.until("2026-02-14T12:00:00Z")
	o := s.post("subscriptions/"+sub.id(), "items[0][id]="+sub.at("items.data.0.id").(string), "items[0][quantity]=3",
		"proration_behavior=always_invoice", "expand[]=latest_invoice")
	s.is(o, "latest_invoice.amount_paid=750", "latest_invoice.lines.data.0.amount=-375", "latest_invoice.lines.data.1.amount=1125")
	keep := "discounts[0][discount]=" + sub.at("discounts.0").(string)
	s.is(s.post("subscriptions/"+sub.id(), keep), "discounts.0="+sub.at("discounts.0").(string))
	s.is(s.post("subscriptions/"+sub.id(), "discounts="), "discounts.0=<nil>")
	s.try("subscriptions/"+sub.id(), keep).refused(t, "a discount of before", 400, "resource_missing", "discounts[0][discount]")
	s.until("2026-02-28T14:00:00Z")
	s.is(s.get("subscriptions/"+sub.id(), "expand[]=latest_invoice"), "latest_invoice.amount_paid=4500")
	free := s.post("coupons", "percent_off=100", "duration=forever").id()
	nobody, _ := s.buyerWith("")
	s.is(s.subscribe(nobody, "discounts[0][coupon]="+free), "status=active")

	s.handler = s.Fake // the specification has no old versions
	old := s.ok("POST", "/v1/subscriptions", params([]string{"customer=" + customer, "items[0][price]=" + s.monthly,
		"coupon=" + free}), "Stripe-Version", "2024-06-20")
	s.is(old, "discount.coupon.percent_off=100", "discount.source=<nil>")
	s.is(s.ok("GET", "/v1/invoices/"+old.at("latest_invoice").(string), "", "Stripe-Version", "2024-06-20"),
		"discount.coupon.id="+free, "total=0")
}

func TestCoupon_Refuses(t *testing.T) {
	s := newShop(t)
	s.post("coupons", "id=gone", "percent_off=10")
	s.removes("coupons/gone")
	s.post("coupons", "id=late", "percent_off=10", fmt.Sprint("redeem_by=", testStart.Unix()+1))
	s.post("coupons", "id=sale", "percent_off=10")
	for param, pairs := range map[string][]string{
		"percent_off":        {"duration=once"},
		"currency":           {"amount_off=100"},
		"duration_in_months": {"percent_off=10", "duration=repeating"},
		"id":                 {"percent_off=10", "id=sale"},
		"applies_to":         {"percent_off=10", "applies_to[products][0]=" + s.product},
	} {
		a := s.try("coupons", pairs...)
		a.refused(t, param, 400, a.at("error.code"), param)
	}
	s.try("coupons", "percent_off=101").refused(t, "over 100", 400, nil, "percent_off")
	s.Advance(1e9)
	customer, _ := s.buyerWith("pm_card_visa")
	for coupon, code := range map[string]string{"gone": "resource_missing", "late": "coupon_expired", "none": "resource_missing"} {
		s.try("subscriptions", "customer="+customer, "items[0][price]="+s.monthly, "discounts[0][coupon]="+coupon).refused(t,
			coupon, 400, code, "discounts[0][coupon]")
	}
	equal(t, "subscriptions", len(s.get("subscriptions").ids()), 0)
}
