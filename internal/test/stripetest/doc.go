// Package stripetest gives tests two judges of Stripe's API. Load reads Stripe's OpenAPI
// specification, which judges requests, responses and events. Mock starts stripe-mock, Stripe's
// own stateless mock. Watch puts the specification around a handler.
//
// It is for tests alone and knows nothing of Duesday. It does not talk to Stripe, and judges no
// sequence of requests: no specification says which charge follows from a confirmation. Each
// rule beyond the specification has its reason beside it. The specification is a file of the
// module stripe-mock in tools.mod; the go command fetches it.
package stripetest
