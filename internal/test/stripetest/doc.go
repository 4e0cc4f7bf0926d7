// Package stripetest validates requests and responses in tests, with Stripe's OpenAPI specification and
// with stripe-mock. Load reads the specification, which validates requests, responses and events. Mock
// starts stripe-mock, Stripe's own stateless mock. Watch validates the requests and responses of a
// handler.
//
// It is only for tests and knows nothing of Duesday. It does not call Stripe, and does not validate
// sequences of requests: no specification says which charge follows from a confirmation. Each
// rule beyond the specification has its reason beside it. The specification is a file of the
// module stripe-mock in tools.mod; the go command fetches it.
package stripetest
