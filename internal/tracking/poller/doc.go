// Package poller finds events of connected Stripe accounts whose webhook was missed, and ingests them. Its
// sweep compares objects with Stripe's, and merges changes for which Stripe sent no event.
//
// It does not apply events and does not know Stripe's library: a Ledger applies events, and a Lister
// lists Stripe's events and objects.
package poller
