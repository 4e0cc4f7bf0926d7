// Package poller finds events of connected Stripe accounts whose webhook was missed, and ingests
// them. Its sweep merges objects of which Stripe made no event.
//
// It does not apply events and does not know Stripe's library: Ledger is the service that does, and
// Lister lists from Stripe.
package poller
