// Package billing defines the data model of recurring payments: accounts, subscriptions, periods,
// receipts and reversals, with their stored items, keys and state transitions.
//
// It does not decide which subscription is charged and when: package engine does. It knows neither
// the storage engine (package store is the contract) nor a processor (package processor is).
//
// # Where things are
//
//   - account.go, subscription.go, period.go, receipt.go, reversalrecord.go: the items of the
//     recurring-payments table and their attributes; key.go: their keys, and the shards of an index
//   - item.go: the reading and writing of items, and the version condition that lets one worker win
//   - transition.go: changes of a subscription without I/O
//   - legacy.go: items written by other tools from the published model
//   - records.go, read.go: reading and writing the items of a store, its item about itself among them;
//     the access patterns; create.go: new subscriptions and their accounts
//   - watermark.go: the dates of a daily job
//   - input.go: checks of input
//
// Instants are UTC with milliseconds. Days are dates in the subscription's zone, or a run's day.
package billing
