// Package move defines the states of a store during a move, in which the source is fenced and then
// the destination becomes live or the move is canceled. The META item of each store contains its
// state.
//
// It does not copy items: package transfer does.
package move
