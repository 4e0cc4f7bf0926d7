// Package store defines Duesday's storage interface: tables of items with conditional, atomic and durable
// writes. It is modeled on DynamoDB, so that DynamoDB and the embedded engines can both implement it
// exactly.
//
// It knows keys, attributes and conditions. It does not know payments: package schema
// declares the tables, and package billing gives the items their meaning.
//
// # What every engine guarantees
//
// The test of package storetest names the case of each sentence.
//
// Durability. When Commit returns nil, the writes survive a crash of the process and of the
// machine (on a disk that honours fsync). Every later read by any process sees them. The
// engine memstore keeps the same order of events without a disk.
//
// Durable reads. Get, Query and Scan show only durable state. A value is never shown before
// its sync has returned, because a power cut could still take it back.
//
// Atomicity. A Commit applies all its writes or none. A Get concurrent with a Commit sees
// the item before or after it. Query and Scan are no snapshots: they may or may not see a
// write made during the iteration. They yield every item exactly once that was durable
// before the iteration began and is not touched during it.
//
// Isolation. Commits on one key are serialised: of two commits whose conditions exclude each
// other at most one succeeds. The other one returns ErrConflict or ErrThrottled: DynamoDB
// cancels transactions that meet, and an engine stops retrying after a while.
//
// Absence. An update or delete of an absent item is a conflict: it never inserts silently
// and never succeeds silently.
//
// Rewriting. Where other programs can write to a table (in DynamoDB), Rewrite leaves every attribute alone
// that its item has as it was read.
//
// Expiry. An item expires at the second in its TTL attribute (a number of Unix seconds). From then
// on Get, base Query and Scan never return it and it is absent to every condition, however late the
// engine deletes it. An index Query may still yield it. A TTL that is zero, negative or no number
// never expires an item. A TTL with a fraction is ErrInvalid, because conditions of DynamoDB cannot
// tell that a number is not whole. The clock is handed in when the engine is opened.
//
// Indexes. An item is in an index only while it has all of that index's key attributes, as
// non-empty strings. An index may lag behind its table, may yield items twice and may yield
// expired ones: an index row is a hint, and the base item decides. An index row carries the
// key attributes of table and index and the projected attributes, no others.
//
// Order. Sort keys are ordered byte by byte. Index rows with equal sort keys, and all rows
// of an index without a sort key, have an order of the engine's own: it stays while nothing
// is written, and cursors follow it. Descending order reverses the sort keys; it may or may
// not reverse rows with equal ones. Partitions have no order.
//
// Text. Keys, attribute names, strings and the bounds of queries are UTF-8, or ErrInvalid:
// DynamoDB has no other strings, and a client would replace the bytes in silence. Bytes go
// into a binary value.
//
// Values of other programs. Where other programs can write to a table (in DynamoDB), an attribute
// may be NULL. It is absent to every read and condition, and an update of other attributes keeps
// it. A NULL in a map or list, and a set anywhere, are values like others: every engine stores them
// and compares them. A NULL reads as no value. A set has strings, numbers or binaries alone, at
// least one, each once, in no order.
//
// Unreadable items. If an engine cannot read the stored form of an item, Get and a Commit
// that needs the item return ErrFormat. A Query or Scan that meets it ends with ErrFormat.
//
// Limits. Every engine refuses a request that DynamoDB would refuse (see the constants in
// limits.go) with ErrTooLarge or ErrInvalid, before anything is written.
//
// Ownership. The caller owns an Item that an engine returns. It may use an Item that it
// passed to Commit again as soon as Commit has returned.
//
// Unknown outcomes. ErrUnknown from Commit means that all the writes or none of them have
// landed, or will land a moment later. The caller must read again before it retries. An
// engine never returns ErrUnknown for a commit that cannot have landed.
package store
