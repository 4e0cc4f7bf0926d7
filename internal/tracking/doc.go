// Package tracking follows payments run by Stripe: purchases made through Stripe, with their
// payments and subscriptions. It stores each event of Stripe's once, merges it into the stored rows
// in the same commit, and asks once for fulfilment and once for unsubscribe. Package poller finds
// events whose webhook was missed.
//
// A new reader begins with ingest.go (an event comes), decide.go (the decision about it) and
// merge.go (the rules). The package does not speak HTTP and does not know Stripe's library: it
// asks Stripe through the interfaces Finder and Seller, and sees each event as an Object. It
// takes no recurring payments: package billing does, which it does not know either.
package tracking
