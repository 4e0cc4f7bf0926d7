// Package processor defines the interfaces of a payment processor: Charger, which every processor
// implements, and the optional Wallet, Refunder, Platform and Identified. Packages stripe and sandbox
// implement them, and package engine charges through them.
//
//   - charger.go: payment intents, and the accounts at a processor
//   - wallet.go: customers and their cards
//   - reversal.go: refunds and disputes
//   - errors.go: the errors, which decide whether a request may be sent again
//   - ask.go: how callers send requests, and gate and repeat them
//
// The engine relies on one rule: a payment intent makes at most one successful charge, for ever.
// The package does not know a store, a subscription or a schedule: a Tag names an intent's period.
package processor
