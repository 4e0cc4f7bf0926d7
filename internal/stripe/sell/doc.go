// Package sell is Stripe for package tracking. It makes the objects that a purchase orders
// (sell.go, customer.go, invoice.go, recurring.go). It looks up objects missing from an event
// (find.go). For the poller it lists events and objects (listing.go).
//
// It decides nothing about the state of a purchase, and reads no webhooks.
package sell
