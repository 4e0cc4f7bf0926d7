// Package stripefake is Stripe's API for tests and for trying things out, over HTTP and with
// a memory: customers, cards, payment intents, refunds, invoices, subscriptions, events and
// webhooks that follow from each other as they do at Stripe, test payment methods, idempotency
// keys as documented, connected accounts, a clock of its own, and faults on request.
//
// It moves no money and keeps nothing on disk. It knows nothing of Duesday: what it does is
// held against Stripe's own OpenAPI spec, not against what Duesday would like. That spec has
// the shapes since 2025-03-31.basil alone: those of versions before it follow the changes that
// Stripe's changelog documents, and are held by golden files of this package only.
//
// New makes a Fake, which is an http.Handler; Serve serves it. The API is under /v1, for the
// keys of DefaultKeys, the pages that customers see beside it, and the control API under
// /_fake: clock, faults, ledger, connected accounts, revoked keys. The methods of Fake do the
// same, and so does a Control from another process.
//
// Where Stripe's documentation leaves room, this is what it does:
//   - An idempotency key is forgotten 24 hours after its first request was answered, to the
//     second; a replay does not prolong that. A 400 about the parameters frees it (codes
//     parameter_…, a few like amount_too_small, or none); every other error that a request
//     runs into while it is carried out is saved. What comes before that is never saved: 401,
//     403, 429, 409, unknown parameters.
//   - A 429 has no Retry-After; it and 409 have Stripe-Should-Retry: true, other errors below
//     500 have false, a 500 has none.
//   - The rate limit is on the real clock, as whoever is limited waits on that; all else is on
//     the fake's.
//   - Lists are in the order in which things were made, newest first; what is made while
//     somebody walks through the pages moves nothing.
//   - An event is in the shape of the account's default version for good. Webhooks are in that
//     of their endpoint, signed by the clock that the fake started from, which nobody moves, and tried for three days of it, with
//     pauses of a second, two, four and so on up to a minute of the real clock.
//   - After the last retry of an invoice its subscription is cancelled, unless the
//     subscription's metadata have fake_after_retries: past_due, or unpaid. At Stripe that is a
//     setting of the account.
//   - What happens by itself, such as a renewal or the end of a checkout session, happens when
//     the clock is moved past it or the next request comes, at its own time and in order.
//   - A payment intent that an invoice has made cannot be cancelled; the invoice can be voided.
//   - Requests wait and have their faults before they are carried out, side by side; they are
//     carried out one at a time.
package stripefake
