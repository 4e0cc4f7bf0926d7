// Package storetest holds a storage engine to the contract of package store: Run has a
// subtest per topic. A bug found in any engine becomes a case here.
//
// It also has Faulty, which wraps a store to fail at a chosen operation, for crash
// programmes above the store.
//
// It does not test properties of one engine, such as its file layout or its speed. It reads an
// index right after a write: an engine whose indexes lag or repeat items cannot run the suite yet.
//
// # Each sentence and its case
//
// A case is topic/subtest of Run, or the test of another package where an engine needs more
// than the contract to show it. A sentence marked "-" promises nothing that could fail.
//
//	Durability
//	  When Commit returns nil: pebblestore.TestCrash; pebblestore.TestEveryFault
//	  Every later read by any: GetPut/every reader sees a commit at once
//	  The engine memstore keeps: -
//	Durable reads
//	  Get, Query and Scan show: pebblestore.TestUnsyncedIsInvisible
//	  A value is never shown: pebblestore.TestUnsyncedIsInvisible
//	Atomicity
//	  A Commit applies all: Atomicity; Atomicity/all or nothing means all;
//	      Concurrency/transfers keep the sum
//	  A Get concurrent with: Concurrency/no reader sees half an item
//	  Query and Scan are no: Iteration/writes in the loop; Iteration/moved on by the loop
//	  They yield every item: Iteration/writes in the loop;
//	      Iteration/a scan left early, and writes in it
//	Isolation
//	  Commits on one key: Concurrency/commits that exclude each other;
//	      Concurrency/one of many inserts succeeds; Concurrency/compare and set loses nothing
//	  The other one returns: Concurrency/commits that exclude each other
//	Absence
//	  An update or delete: Update/an absent item is a conflict;
//	      Delete/an absent item is a conflict; Update/a deleted item is a conflict
//	Expiry
//	  An item expires at: Expiry/at the second, not before
//	  From then on Get: Expiry/hidden from query and scan; ExpiredWrites/absent to writes;
//	      ExpiredWrites/put over an expired item
//	  An index Query may: Expiry/an index yields the living
//	  A TTL that is: Expiry/what never expires
//	  A TTL with a: ItemLimits/expiry is in whole seconds
//	  The clock is handed: Expiry/at the second, not before
//	Indexes
//	  An item is in: Indexes/in and out
//	  An index may lag: -
//	  An index row carries: Projections/keys and what is included; Projections/all;
//	      Projections/keys only
//	Order
//	  Sort keys are ordered: Order/sort keys; Order/index sort keys; Ranges/in a table
//	  Index rows with equal: Order/index ties; Cursors/page by page
//	  Descending order reverses the: Order/sort keys; Order/index ties
//	  Partitions have no order: -
//	Text
//	  Keys, attribute names, strings: Text/writes; Text/reads
//	  Bytes go into a: Text/writes
//	Unsupported values
//	  Where other programs can: Unsupported/values that are written in another form
//	  NULL reads as absent: Unsupported/null is absent;
//	      Unsupported/null is absent to conditions
//	  An attribute that is: Unsupported/iterations leave a set out
//	  Get of its item: Unsupported/a get and a lone check name the attribute;
//	      Unsupported/an expired item with a set is absent
//	  To conditions the attribute: Unsupported/a set is present and equals nothing
//	  An update of other: Unsupported/an update keeps a set, other writes take it away
//	  A caller that copies: -
//	Unreadable items
//	  If an engine cannot: Unreadable/a damaged item
//	  A Query or Scan: Unreadable/a damaged item
//	Limits
//	  Every engine refuses a: ItemLimits/the largest item; KeyLimits/the longest keys;
//	      CommitLimits/a hundred writes; ReadLimits/query
//	Ownership
//	  The caller owns an: Returned/an item that was got; Returned/rows
//	  It may use an: Ownership/an item that was put; Ownership/an item of a failed commit
//	Unknown outcomes
//	  ErrUnknown from Commit means: Unknown/the answer is lost;
//	      Unknown/a commit cancelled under way
//	  The caller must read: Unknown/a commit cancelled under way
//	  An engine never returns: Unknown/a refusal is not unknown;
//	      Unknown/a commit under way when the store is closed
package storetest
