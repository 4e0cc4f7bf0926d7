package tracking

import "testing"

// TestOrder_StoredForm checks that the bytes of a stored order do not change, and neither does the
// hash that identifies a repeated order.
func TestOrder_StoredForm(t *testing.T) {
	full := Order{Tag: Tag{Purchase: "p"}, At: "acct_1", Merchant: "m", Kind: Product, Key: "k<1>", Amount: 5,
		Currency: "EUR", Price: "price_1", Payments: 3, Description: "d", Customer: "cus_1", Email: "e@x", Name: "n",
		PaymentMethod: "pm_1"}
	for _, x := range []struct {
		order        Order
		stored, hash string
	}{
		{full, `{"account":"m","kind":"product","key":"k\u003c1\u003e","amount":5,"currency":"EUR","price":"price_1",` +
			`"payments":3,"description":"d","customer":"cus_1","email":"e@x","name":"n","payment_method":"pm_1"}`,
			"849e2272a1fdfaaa6435f8252deab9aa"},
		{Order{}, `{"account":"","kind":"","key":""}`, "54306504f2a8009a43827f09c8d29774"},
	} {
		if stored, hash, err := x.order.encode(); err != nil || stored != x.stored || hash != x.hash {
			t.Errorf("got %s %s, %v\nwant %s %s", stored, hash, err, x.stored, x.hash)
		}
	}
}
