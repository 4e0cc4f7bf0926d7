// Package stripefake serves a stateful fake of Stripe's API from memory, for tests. A payment updates its
// charge, invoice and subscription, and emits events and webhooks, as Stripe does. The fake accepts Stripe's
// test payment methods and idempotency keys. It supports connected accounts, a clock that tests can move,
// configurable faults, and a ledger of every charge, refund and dispute.
//
// Start runs a fake for one test. Any Stripe library can use it through the fake's URL and key. New
// returns the fake as an http.Handler that serves Stripe's API under /v1 and /v2, the control API under
// /_fake, and customer pages, such as checkout, under every other path. The control API has an endpoint
// for each method of Fake. Control is a client for this API.
//
// The fake moves no money, writes nothing to disk, and imports only the standard library. Importing
// this package adds no other module to your go.sum.
//
// The package's tests validate requests and responses against Stripe's OpenAPI specification. The file
// differences.md in this folder lists the differences from Stripe, and describes what the fake does
// where Stripe's documentation does not define the behavior.
package stripefake
