// Package stripefake is Stripe's API for tests and for trying things out, over HTTP and with
// a memory: customers, cards, payment intents, refunds, invoices, subscriptions, events and
// webhooks that follow from each other as they do at Stripe, test payment methods, idempotency
// keys as documented, connected accounts, a clock of its own, and faults on request.
//
// It moves no money and keeps nothing on disk. It knows nothing of Duesday: what it does is
// held against Stripe's own OpenAPI spec, not against what Duesday would like.
package stripefake
