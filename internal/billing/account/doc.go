// Package account creates accounts and changes them, with the copies of their values on subscriptions and
// receipts.
//
// It does not know payment methods, which package wallet attaches, and never decides about a charge.
package account
