//go:build race

package billing_test

// raced: the race detector makes everything five times slower.
const raced = true
