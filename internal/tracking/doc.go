// Package tracking creates purchases at Stripe, and tracks their payments and subscriptions from Stripe's
// events. It stores each Stripe event once, and merges it into the stored rows in the same commit. It
// requests each fulfilment and each unsubscribe once. Package poller finds events whose webhook was
// missed.
//
// A new reader can start with ingest.go (an event arrives), turn.go (its decision), apply.go and merge.go
// (the rules) and file.go (the commit). The package does not speak HTTP and does not know Stripe's
// library. It sends requests through the interfaces Finder and Seller, and receives each event as an
// Object. It does not charge recurring payments, and does not know package billing, which does.
package tracking
