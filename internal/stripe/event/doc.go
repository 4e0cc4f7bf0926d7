// Package event parses Stripe events of every API version since 2020-08-27 for package tracking, and
// verifies and creates webhook signatures.
//
// It sends nothing and decides nothing about purchases: package tracking does.
//
//   - event.go: the envelope; object.go, part.go: the object in it
//   - reader.go: one pass through JSON, fast
//   - signature.go: the header Stripe-Signature
package event
