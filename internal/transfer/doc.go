// Package transfer copies a store to another place, between any two engines, and makes and
// restores backups of an embedded store.
//
// It does not replicate: once a copy is live, its source is off for good. It does not know the
// meaning of items; package billing does.
//
// # Why two stores can never both charge
//
// A copy has a random id. It goes through these states, each by a conditional commit:
//
//  1. Claim: the empty destination gets a META item with the source's installation, the id, and
//     a mark that keeps every other command out.
//  2. Fence: the source's META item names the id and the destination, and charging is off. It can
//     name one id only.
//  3. Items are copied, and compared.
//  4. Final: from now on the source's fence is lifted only if the destination was canceled.
//  5. Items are compared once more, and late changes of the source are copied. If differences
//     remain, the copy stops, and the next Run continues here.
//  6. Activate: the destination gets the charging state of the source, if it is still the
//     unfinished copy of the id.
//
// Before state 2 only the source can charge; from 2 to 6 neither can; after 6 only the destination.
//
// Cancel first marks the destination as canceled, if it is still unfinished, and then the source.
// Then it lifts the marks and the fence of the source. Of an activation and a cancellation one
// gets a conflict. A copier that has set a late fence looks at the destination again, and lifts
// its fence if need be. If the destination is lost, Cancel marks the source alone, unless the
// source is final. If the destination is found again, the same copy can continue. A destination
// claimed for one id never continues with a source fenced for another.
//
// The fence stops only processes that read META. A worker on a shared source may have read it
// before, and sleep for hours. So each subscription is fenced too, before it is copied: a
// conditional commit gives it a mark and a higher version, and the marked item is copied. (A
// legacy item has no version and gets none; there the mark itself is the condition.) The commit
// that sets a mark checks that the source is still fenced for this copy. The commit that removes
// one checks that the copy was given up.
//
// A worker that read the subscription before its mark, and wakes between opening an intent and
// binding it, gets a conflict; the unbound intent is never confirmed. A worker that reads it
// later sees the mark. If a worker has bound the intent before the mark, the reference is copied:
// both stores confirm the same intent, and one confirmation succeeds. An embedded source needs no
// marks: the copying process holds the lock of its folder.
//
// State 5 is for commands that read META before the fence and create an item after the first
// comparison. They read META again before each creation, and a creation under way has until the
// second comparison to land. A commit that is under way during a whole comparison, and lands after
// it, is not copied.
//
// # Resuming
//
// Each segment of each table has a place: an item of the destination, moved by the very commit
// that writes the copied items. A killed copier resumes from the places. If two copiers run at
// once, one gets a conflict and ends. A copier takes the turn before it mends: it writes a random
// text into the plan. Every mend and the activation check that text, so a late write of another
// copier cannot land.
package transfer
