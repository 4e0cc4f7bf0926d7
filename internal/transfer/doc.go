// Package transfer moves a store to another location, on the same or another engine, and backs up and
// restores embedded stores.
//
// It does not replicate: once a copy is live, its source is turned off permanently. It does not know the
// meaning of items; package billing does.
//
// # Why two stores can never both charge
//
// docs/internals/recovery.md has the way of a copy. It has a random id, and goes through these
// states, each by a conditional commit:
//
//  1. Claim: the empty destination gets a META item with the source's installation, the id, and
//     a mark that keeps every other command out.
//  2. Fence: the source's META item names the id and the destination, and charging is off. It can
//     name one id only. Then items are copied, and compared.
//  3. Final: from now on the source's fence is lifted only if the destination was canceled. Items
//     are compared once more, and late changes of the source are copied.
//  4. Activate: the destination gets the charging state of the source, if it is still the
//     unfinished copy of the id.
//
// Before state 2 only the source can charge; from 2 to 4 neither can; after 4 only the destination.
// Cancel marks the destination as canceled, if it is still unfinished, then the source, and lifts the
// source's marks and fence. If the destination is lost, it marks the source alone, unless that is
// final. A copier that has set a late fence looks at the destination again, and lifts it if need be.
//
// The fence stops only processes that read META. A worker on a shared source may have read it before,
// and sleep for hours. So each subscription gets a mark and a higher version before it is copied. (A
// legacy item has no version; there the mark itself is the condition.) A commit that sets a mark
// checks that the source is still fenced for this copy, and one that removes it that the copy was
// given up. An embedded source needs no marks: the copying process holds the lock of its folder.
//
// The comparison in state 3 is for commands that read META before the fence and create an item after
// the first comparison. They read META again before each creation. A commit that is under way during
// that whole comparison, and lands after it, is not copied.
//
// # Resuming
//
// Each segment of each table has a place: an item of the destination, moved by the very commit
// that writes the copied items. Of two copiers one gets a conflict and ends. A copier takes the turn
// before it mends: it writes a random text into the plan, which every mend and the activation check.
package transfer
