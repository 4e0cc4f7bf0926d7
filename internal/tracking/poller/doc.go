// Package poller finds events of connected Stripe accounts whose webhook was missed, and sends
// them to the webhook endpoint. Its sweep merges objects of which Stripe made no event.
//
// It does not apply events and does not know Stripe's library: Ledger reads the store, Lister
// lists from Stripe, and Sender delivers.
package poller
