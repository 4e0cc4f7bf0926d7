//go:build !race

package engine

// Raced: the race detector is on. It makes everything five times slower.
const Raced = false
