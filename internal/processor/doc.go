// Package processor defines the interfaces of a payment processor: Charger, which every processor
// implements, and the optional Wallet, Refunder, Platform, Identified and Settler. Packages stripe and
// sandbox implement them (the sandbox has no payouts), and package engine charges through them.
//
//   - charger.go: payment intents, and the accounts at a processor
//   - wallet.go: customers and their cards
//   - reversal.go: refunds and disputes
//   - payout.go: payouts and the transactions in them
//   - errors.go: the errors, which decide whether a request may be sent again
//   - ask.go: how callers send requests, and gate and repeat them
//
// The engine relies on one rule: a payment intent never makes more than one successful charge. The
// package does not know stores, subscriptions or schedules. Only an intent's Tag names its period.
package processor
