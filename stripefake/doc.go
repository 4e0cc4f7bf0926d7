// Package stripefake serves Stripe's API from memory, for tests. It keeps state: customers, cards,
// payments, refunds, invoices, subscriptions, events and webhooks follow from each other as they do at
// Stripe. It accepts Stripe's test payment methods and idempotency keys, and it has connected accounts, a
// clock that tests move, configurable faults, and a ledger of every charge, refund and dispute.
//
// Start starts a fake for one test. Any Stripe library works with the fake's URL and key. New returns the
// fake as an http.Handler: Stripe's API is under /v1 and /v2, the control API under /_fake, and pages for
// customers, such as a checkout, under every other path. Each method of Fake has an endpoint in the control
// API, and Control is the client of that API.
//
// The fake moves no money, writes nothing to disk, and imports only the standard library. Importing
// this package adds no other module to your go.sum.
//
// The package's tests validate requests and responses against Stripe's OpenAPI specification. The
// file differences.md in this folder lists what the fake does differently from Stripe, and what it does
// where Stripe's documentation leaves a choice.
package stripefake
