// Package wallet creates processor customers and payment methods for accounts, and selects the payment
// method and card for a payment.
//
// It does not change subscriptions: package engine applies an account's new method to them, and
// processes the cards that customers enter.
package wallet
