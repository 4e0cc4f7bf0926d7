// Package poller finds the events of connected Stripe accounts whose webhook was missed, and
// sends them to the webhook endpoint. Its sweep compares objects of which no event told.
//
// It does not apply events and does not know Stripe's library: Ledger says what is stored,
// Lister what Stripe has, and Sender delivers.
package poller
