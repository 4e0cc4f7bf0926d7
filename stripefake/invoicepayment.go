package stripefake

func invoicePaymentRoutes() []route {
	return []route{
		on("GET", "/v1/invoice_payments", listParams+"created invoice payment status", (*call).listInvoicePayments),
		on("GET", "/v1/invoice_payments/{invoice_payment}", "", (*call).getInvoicePayment),
	}
}

func (c *call) getInvoicePayment() (object, error) {
	return c.find("invoice_payment", c.path["invoice_payment"], "invoice_payment")
}

// listInvoicePayments finds the way from a payment intent to its invoice too, as
// payment[type]=payment_intent&payment[payment_intent]=pi_….
func (c *call) listInvoicePayments() (object, error) {
	intent := ""
	if payment := c.form.sub("payment"); payment != nil {
		if payment.str("type") != "payment_intent" {
			return nil, invalid("", "payment[type]", "This fake knows the type payment_intent only.")
		}
		if intent = payment.str("payment_intent"); intent == "" {
			return nil, invalid("parameter_missing", "payment[payment_intent]", "Missing required param: payment[payment_intent].")
		}
	}
	if _, err := c.choice("status", "canceled", "open", "paid"); err != nil {
		return nil, err
	}
	return c.list("invoice_payment", func(o object) bool {
		return (intent == "" || o.sub("payment").str("payment_intent") == intent) &&
			(!c.form.has("invoice") || c.form.str("invoice") == o.str("invoice")) &&
			(!c.form.has("status") || c.form.str("status") == o.str("status"))
	})
}
