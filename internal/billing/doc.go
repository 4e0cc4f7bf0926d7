// Package billing has the nouns of recurring payments: accounts, subscriptions, periods,
// receipts and reversals, with their items, keys and pure transitions, and the contracts
// with a payment processor (Processor, Wallet, Refunder, Platform, Identified).
//
// It decides nothing about who is charged and when: package engine does. It does not know
// which engine stores the table (package store's contract), and imports no processor.
//
// # Where things are
//
//   - account.go, subscription.go, period.go, receipt.go, reversalrecord.go: the items of the
//     recurring-payments table and their attributes; key.go and shard.go: their keys
//   - transition.go: the changes of a subscription that need no I/O
//   - legacy.go: items that other tools have written from the published model
//   - records.go, read.go: reading and writing the items of a store; the access patterns
//   - watermark.go: the dates that a daily job looks at
//   - meta.go, move.go: the store's item about itself, and how a store is moved
//   - processor.go, wallet.go, reversal.go, connected.go: the contracts with the processor
//   - input.go: checks of input
//
// Instants are UTC with millisecond precision. Days are civil dates in the subscription's
// time zone, or the business day of a run.
package billing
