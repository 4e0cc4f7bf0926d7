// Package poller finds events of connected Stripe accounts whose webhook was missed, and ingests
// them. Its sweep compares stored rows with Stripe's objects, and merges changes for which Stripe
// sent no event. Import brings in what already runs in an account.
//
// The package does not apply events and does not know Stripe's library. A Ledger applies events,
// and a Lister lists Stripe's events and objects.
//
// It does not apply events and does not know Stripe's library: a Ledger applies events, and a Lister
// lists Stripe's events and objects.
package poller
