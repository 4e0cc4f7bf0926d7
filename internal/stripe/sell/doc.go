// Package sell implements package tracking's interfaces to Stripe. It creates the objects that a purchase
// needs (sell.go, customer.go, invoice.go, recurring.go), looks up objects that an event does not contain
// (find.go), and lists events and objects for the poller (listing.go).
//
// It decides nothing about the state of a purchase, and reads no webhooks.
package sell
