package billing

import (
	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func invoicePaymentRoutes() []api.Route {
	return []api.Route{
		on("GET", "/v1/invoice_payments", api.ListParams+"created invoice payment status:canceled|open|paid",
			call.listInvoicePayments),
		on("GET", "/v1/invoice_payments/{invoice_payment}", "", call.getInvoicePayment),
	}
}

func (c call) getInvoicePayment() (object, error) {
	return c.Find("invoice_payment", c.Path["invoice_payment"], "invoice_payment")
}

// listInvoicePayments finds the way from a payment intent to its invoice too, as
// payment[type]=payment_intent&payment[payment_intent]=pi_….
func (c call) listInvoicePayments() (object, error) {
	intent := ""
	if of := c.Form.Sub("payment"); of != nil {
		if of.Str("type") != "payment_intent" {
			return nil, shape.Invalid("", "payment[type]", "This fake knows the type payment_intent only.")
		}
		if intent = of.Str("payment_intent"); intent == "" {
			return nil, shape.Invalid("parameter_missing", "payment[payment_intent]",
				"Missing required param: payment[payment_intent].")
		}
	}
	return c.List("invoice_payment", func(o object) bool {
		return (intent == "" || o.Sub("payment").Str("payment_intent") == intent) &&
			c.Keeps(o, "invoice status")
	})
}
