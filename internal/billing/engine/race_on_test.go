//go:build race

package engine_test

// raced: the race detector makes everything five times slower.
const raced = true
