// Package stripe takes payments through Stripe: a billing.Processor over PaymentIntents,
// with its Wallet (customers, cards and the page by which they are given), its Refunder
// (refunds and disputes) and its identity, on our own account and on connected ones; and a
// Tracker, which is what package tracking asks of Stripe, with the reading of events and the
// check of their signatures. It is the only package that uses Stripe's client library.
//
// It decides nothing about periods, retries on later days or dunning: package billing does. Nor
// what an event changes: package tracking does. It serves no HTTP, keeps nothing on disk, stores no card data, and never uses
// Stripe's search, which lags behind.
//
// # What can be relied on
//
// A PaymentIntent makes at most one successful charge; all else here only has to be honest
// about what is known. An answer is yes, no or unknown. It is read by its code (classify.go),
// and whatever is not understood, a page of a proxy among them, is unknown and never a no.
//
// # Where things are
//
//   - processor.go, url.go: what a Processor is made of, and how it is written on a command line
//   - charge.go: open, look up, cancel, list; confirm.go: take the money, or the page to authenticate on
//   - intent.go: what Stripe's intent means; pages.go: lists to their end
//   - note.go: attempts that Stripe refuses without leaving a trace of them
//   - sender.go, transport.go: one request, and the one loop that sends it again
//   - budget.go: how many requests a second
//   - classify.go, decline.go: what an answer means; failure.go: how it is told
//   - currency.go: amounts as Stripe writes them, and their limits
//   - wallet.go, refund.go, dispute.go, identity.go, platform.go: the other seams of package billing
//   - event*.go: an event of any version, in one form; signature.go: that it is Stripe's, and signing as Stripe does
//   - sell*.go: what a purchase asks for; find*.go: what an event does not tell; listing.go: events and objects, for the poller
//   - ref.go, metadata.go: how intents are named and marked as ours
package stripe
