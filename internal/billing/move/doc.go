// Package move has the states of a store that is copied to another place: the source is fenced, the
// destination becomes live, or the copy is canceled. META keeps the states in both stores.
//
// It does not copy items: package transfer does.
package move
