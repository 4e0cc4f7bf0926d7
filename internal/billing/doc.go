// Package billing runs recurring payments: accounts, subscriptions that are charged on
// the same day of each period, reminders before, receipts after, and the two daily jobs
// that do it. Its charge protocol keeps the promise the product is built on: at most one
// successful charge per subscription period, and every period ends paid, failed, void or
// visibly parked.
//
// It owns the layout and the rules of the recurring-payments table (package schema has
// its names). It does not know which engine stores the table (package store's contract),
// who moves the money (its own interfaces Processor, Wallet, Refunder, Platform and Identified), how mail is sent (package outbox
// takes the effects) or what is typed on a command line.
//
// # Where things are
//
//   - account.go, subscription.go, receipt.go, period.go: the items and their form in the table
//   - request.go: what people ask of a subscription: create, change, pause, resume, cancel
//   - charge.go, advance.go, settle.go: the charge protocol, a step at a time
//   - run.go, floor.go, reminder.go: the two jobs and how they find what is due
//   - gate.go, identity.go, place.go: what has to hold at the processor before anybody is charged
//   - wallet.go, customer.go, cardlink.go, renew.go: with what accounts are charged, and how that changes
//   - return.go, refund.go, returned.go, collectreturn.go: money that goes back
//   - upkeep.go: what a payment run does beside charging
//   - verify.go, verifyreturn.go: the audit of the store against the processor's ledger
//
// All times are instants in UTC with millisecond precision, handed in by Engine.Now; all
// days are civil dates in the subscription's time zone, or the business day of a run.
package billing
