// Package tracking follows the payments that Stripe runs: purchases that buyers make through
// Stripe, their payments and subscriptions, and the events that tell what became of them. It
// stores each event once, merges it into what is known in the same commit, and asks for
// fulfilment and for unsubscribe actions once. What webhooks missed is found by package poller.
//
// It does not speak HTTP and does not know Stripe's library: what it asks of Stripe are the
// interfaces Finder and Seller, and what an event says is an Object. It takes no
// recurring payments itself; that is package billing, which it does not know either.
package tracking
