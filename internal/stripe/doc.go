// Package stripe takes payments through Stripe: a billing.Processor over PaymentIntents,
// with its Wallet (customers, cards and the page by which they are given), its Refunder
// (refunds and disputes) and its identity, on our own account and on connected ones.
//
// It decides nothing about periods, retries on later days or dunning: package billing does. It
// serves no HTTP, keeps nothing on disk, stores no card data, and never uses Stripe's search,
// which lags behind. Requests, their budget and the meaning of errors are package api's; events
// are package event's; sales and look-ups for package tracking are package sell's.
//
// # What can be relied on
//
// A PaymentIntent makes at most one successful charge. An answer is yes, no or unknown. It is
// read by its code, and an answer that is not understood, such as the page of a proxy, is unknown
// and never a no.
//
// # Where things are
//
//   - processor.go, url.go: options of a Processor, and how they are written on a command line
//   - charge.go: open, look up, cancel, list; confirm.go: take the money, or the page to authenticate on
//   - intent.go: the meaning of Stripe's intent; pages.go: lists to their end
//   - note.go: attempts that Stripe refuses without leaving a trace of them
//   - wallet.go, refund.go, dispute.go, identity.go, platform.go: the other seams of package billing
//   - ref.go, metadata.go: how intents are named and marked as ours
package stripe
