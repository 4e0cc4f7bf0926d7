// Package stripetest gives tests two judges of Stripe's API that know nothing of Duesday:
// Load reads Stripe's OpenAPI specification, which tells of a request, a response or an
// event whether it is one of Stripe's, and Mock starts stripe-mock, Stripe's own stateless
// mock. Watch puts the specification around a handler, Transport around a client.
//
// It is for tests alone. It does not talk to Stripe and keeps no state of Stripe's: that a
// charge follows from a confirmation, no specification says. What it adds to the
// specification is said where it is added; nothing of it is in this repository, the go
// command brings it as a part of the module of stripe-mock that tools.mod names.
package stripetest
