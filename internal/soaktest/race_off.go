//go:build !race

package soaktest

const raced = false
