// Package move defines the states of a store that is being moved: the source is fenced, the
// destination becomes live, or the move is canceled. The META item of each store contains its state.
//
// It does not copy items: package transfer does.
package move
