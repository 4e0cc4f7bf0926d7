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
// The engine relies on one rule: a payment intent never makes more than one successful charge. The
// package does not know stores, subscriptions or schedules. Only an intent's Tag names its period.
package processor
