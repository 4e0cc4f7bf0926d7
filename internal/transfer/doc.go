// Package transfer moves a store to another place, as a copy between any two engines, and
// makes and restores backups of an embedded one.
//
// It does not replicate: when a copy has become live its source is switched off for good.
// It does not know what items mean; package billing does.
//
// # Why two stores can never both charge
//
// A copy has a random id. It goes through these states, each a conditional commit:
//
//  1. The destination, which is empty, is claimed: it gets a META item with the source's
//     installation, the id, and a mark that keeps every other command out.
//  2. The source is fenced: its META item says where it is moving to, under the id, and
//     that charging is off. Only one id can ever be there.
//  3. Items are copied, and compared.
//  4. The source is marked final: its fence is lifted only when the destination was canceled.
//  5. Items are compared once more. What the source got meanwhile is mended; with differences
//     left it ends here, and is gone on with from here.
//  6. The destination is activated, on the condition that it is still the unfinished copy
//     of that id: it gets the charging state that the source had.
//
// Before 2 only the source can charge, from 2 to 6 neither, after 6 only the destination.
// To cancel, the destination is first marked as canceled, on the condition that it is still
// unfinished, and then the source; then the source's marks and its fence are lifted. Of an
// activation and a cancellation one gets a conflict. A fence that comes late is followed by
// another look at the destination, and lifted by whoever set it. Where the destination is
// lost, the source alone is marked, on the condition that it is not final: it must not wait
// for ever for what cannot come. Should it be found again, the same copy can be taken up
// again. A destination that was claimed for another id than the one its source is
// fenced for is never gone on with.
//
// That is for those who read META. A worker on a shared source may have read it before the
// fence, and sleep for hours, so each subscription is fenced by itself before it is copied:
// it gets a mark and a higher version, conditionally, and what is copied is what stands
// then. (One that Duesday has never written has no version, and gets none; there the mark
// itself is the condition.) A mark is set in one commit with a check that the source is still
// fenced for the copy, and taken off in one with a check that the copy was given up. A worker that had read it before and wakes between opening an intent and binding it
// gets a conflict, and the unbound intent is never confirmed. One that reads it later sees
// the mark. If it had bound the intent before the mark, the reference is copied, both
// stores confirm the same intent, and that succeeds once. An embedded source needs no
// marks: its folder is locked by the process that copies it.
//
// Step 5 is for commands that read META before the fence and create something after the first
// comparison. They look at META again before each creation; what was on its way by then has
// until the second comparison to land. A commit that reaches the source even later, which
// takes a request that was under way all through a comparison, is not copied.
//
// # Resuming
//
// The copy of each segment of each table keeps its place in an item of the destination,
// which moves on in the very commit that writes the items before it. A copier that was
// killed goes on from there; of two at one time one gets a conflict and ends. Who begins to
// mend takes the turn, by a random text in the plan, which every mend and the activation
// check: what another copier read some time ago cannot land any more.
package transfer
