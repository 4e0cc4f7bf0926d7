//go:build !race

package billing_test

const raced = false
