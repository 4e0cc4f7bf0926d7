// Package stripefake is Stripe's API in memory, over HTTP, for tests: customers, cards, payment
// intents, refunds, invoices, subscriptions, events and webhooks follow from each other as they
// do at Stripe. It has Stripe's test payment methods, documented idempotency keys, connected
// accounts, a clock that tests move, faults on request and a ledger of the money that moved.
//
// Start starts a fake for one test. Any Stripe library works with its URL and its key. New
// returns the fake as an http.Handler instead: the API is under /v1, the control API under
// /_fake, and the pages for customers everywhere else. The methods of Fake and the control API
// do the same; Control is the control API's client.
//
// The fake moves no money and keeps nothing on disk. It knows nothing of Duesday: Stripe's own
// OpenAPI spec judges it, and what that lacks, Stripe's changelog and its library for Node.
//
// Where Stripe's documentation leaves room, the fake does this:
//   - It forgets an idempotency key 24 hours after the first answer. A replay does not prolong
//     that. A 400 about the parameters frees the key (codes parameter_…, a few such
//     as amount_too_small, or none). Every other error of a request that is carried out is
//     saved. Earlier errors are never saved: 401, 403, 429, 409, unknown parameters.
//   - A 429 has no Retry-After. A 429 and a 409 have Stripe-Should-Retry: true, other errors
//     below 500 have false, a 500 has none.
//   - Times run by the fake's clock; a table of README.md has the exceptions.
//   - A list is in the order of creation, newest first. Objects made during a walk through its
//     pages move nothing.
//   - An event keeps the shape of the account's default version. A webhook has the version of its
//     endpoint.
//   - In the form ThinEvents the list of v1 has no events, and a thin one names no snapshot. A change
//     is lost in both forms, or in none; webhooks are lost, doubled and delayed one by one.
//   - A thin event has the whole second of its change. Its changes are shown when it is asked for, in
//     the shape of the newest version, and not in a webhook.
//   - The lists of v2 have 20 events a page, and the token of the next page has the filters. Times
//     are as RFC 3339 has them, or seconds, as libraries send them. Most codes of v2 errors are
//     this fake's own.
//   - The last failed retry of an invoice cancels its subscription. The metadata
//     fake_after_retries of the subscription changes that to past_due or unpaid; at Stripe it is
//     a setting of the account.
//   - Scheduled changes, such as a renewal or the end of a checkout session, happen when the clock
//     moves past them or with the next request, each at its own time and in order.
//   - A payment intent of an invoice cannot be cancelled; the invoice can be voided.
//   - Latency and faults come before a request is carried out, for all requests side by side.
//     Requests are carried out one at a time.
package stripefake
