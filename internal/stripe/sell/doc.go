// Package sell is Stripe as package tracking asks for it: it makes what a purchase orders
// (sell.go, customer.go, invoice.go, recurring.go), looks up objects that an event does not tell
// of (find.go), and lists events and objects for the poller (listing.go, rows.go).
//
// It decides nothing about the state of a purchase, and reads no webhooks.
package sell
