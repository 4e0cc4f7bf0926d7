// Package wallet gives the accounts of a store customers and payment methods at the processor, and
// finds the method and the card for a payment.
//
// It does not change subscriptions: package engine applies an account's new method to them, and takes
// over the cards that customers give.
package wallet
