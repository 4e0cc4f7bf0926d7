// Package event reads Stripe's events, of any version of the API since 2020-08-27, into the form
// of package tracking, checks their signatures, and signs as Stripe does.
//
// It sends nothing and decides nothing about purchases: package tracking does.
//
//   - event.go: the envelope; object.go, part.go: the object in it
//   - reader.go: one pass through JSON, fast
//   - signature.go: the header Stripe-Signature
package event
