// Package store is the storage contract of Duesday: tables of items with
// conditional, atomic, durable writes, drawn from DynamoDB so that the embedded
// engines and DynamoDB itself can keep it to the letter.
//
// It knows keys, attributes and conditions. It knows nothing of payments: what
// the tables are is package schema's business, what the items mean is billing's.
//
// # What every engine guarantees
//
// Durability. When Commit returns nil, the writes survive a crash of the process
// and of the machine (on a disk that honours fsync), and every later read, by
// anybody, sees them. memstore keeps the same order of events without a disk.
//
// Durable reads. Get, Query and Scan show only durable state. A value whose
// commit has not been synced yet is never shown: a reader that acted on it would
// act on something a power cut can take back.
//
// Atomicity. A Commit applies all its writes or none. A Get concurrent with a
// Commit sees the item before or after it. Query and Scan are no snapshots: a
// write made during the iteration may or may not be seen; what was durable before
// it began and is not touched meanwhile is seen exactly once.
//
// Isolation. Commits on one key are serialised: of two commits whose conditions
// exclude each other at most one succeeds. The other gets a conflict, or ErrThrottled:
// DynamoDB cancels transactions that meet, and an engine gives up after a while.
//
// Absence. An update or delete of an item that is absent is a conflict, never a
// silent insert or a silent success.
//
// Expiry. An item whose TTL attribute (a number of Unix seconds) is at or before
// the clock's now is expired: Get, base Query and Scan never return it, and it is
// absent to every condition, however late the engine deletes it. An index Query
// may still yield it. A TTL of zero, below zero or that is no number never expires an
// item. One with a fraction is ErrInvalid: a condition of DynamoDB can compare it, but
// not tell that it is not whole. The clock is handed in when the engine is opened.
//
// Indexes. An item is in an index only while it has all of that index's key
// attributes, as non-empty strings. An index may lag behind its table, may yield
// items twice and may yield expired ones: what it yields is a hint, and the base
// item decides. An index row carries the key attributes of table and index and the
// projected attributes, no others.
//
// Order. Sort keys are ordered byte by byte. Index rows with equal index sort keys, and
// all rows of an index without a sort key, are in an order of the engine's own, which
// stays while nothing is written and which cursors follow; DynamoDB promises no other.
// Descending order turns the sort keys round, and ties or not. Partitions have no order.
//
// Text. Keys, attribute names, strings and the bounds of queries are UTF-8, or ErrInvalid:
// DynamoDB has no other strings, and a client would replace the bytes in silence.
// Bytes go into a binary value.
//
// Foreign values. In tables that other programs can write to (DynamoDB's) an item may have
// what a Value cannot be. NULL is as good as absent, also inside maps and lists. An
// attribute that is a set, or holds one, is left out of what Query and Scan yield, so that
// no one item ends an iteration; Get of that item, and a lone Check, return ErrFormat and
// name table, key and attribute, so that nobody puts the item back without it. Who copies
// items out of a Query or Scan to put them elsewhere has to Get those he cannot lose part of.
//
// Limits. Every engine refuses what DynamoDB would refuse (see the constants in
// limits.go) with ErrTooLarge or ErrInvalid, before anything is written.
//
// Ownership. An Item that an engine returns belongs to the caller; an Item handed
// to Commit may be used again by the caller as soon as Commit has returned.
//
// Unknown outcomes. ErrUnknown from Commit means that the writes may or may not
// have landed, now or a moment later: read again before retrying. An engine never
// returns it for a commit that cannot have landed.
package store
