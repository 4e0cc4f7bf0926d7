// Package stripe implements a payment processor on Stripe, for the platform's own account and for connected
// accounts. Its Processor is a processor.Charger over PaymentIntents, with an identity. It is a
// processor.Wallet (customers, cards and the page to give one) and a processor.Refunder (refunds and
// disputes) as well.
//
// It decides nothing about periods, retries on later days or dunning: package billing does. It
// serves no HTTP, keeps nothing on disk and stores no card data. It never uses Stripe's search,
// which lags. Package api sends its requests and classifies the answers. Package event reads
// events, and package sell is Stripe for package tracking.
//
// # Guarantees
//
// A PaymentIntent makes at most one successful charge. An answer is yes, no or unknown, by its
// code. An answer in no known form, such as the page of a proxy, is unknown and never a no.
//
// # Files
//
//   - processor.go: the Processor, its options, and lists to their end
//   - charge.go: open, look up, cancel, list; confirm.go: take the money, or note why not
//   - intent.go: the meaning of Stripe's intent, and the names and marks of ours
//   - wallet.go, refund.go: the other contracts of package billing
package stripe
