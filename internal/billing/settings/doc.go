// Package settings has the rules of a store, such as the retry days and the time of the daily jobs: how
// people write them, the item that keeps them, and their history.
//
// It does not apply the rules: package engine, package mail and package status do.
package settings
