// Package pebblestore keeps the store contract on the local disk, in one folder,
// with Pebble underneath. It is the engine Duesday uses when it is told no other.
//
// It does not replicate, does not serve a second process, and does not survive a
// disk that lies about fsync.
//
// # Commits
//
// One goroutine, the committer, decides every commit. It takes all requests that
// wait, holds each against the items as they will stand after the earlier ones, puts
// what passes into one batch and hands that to Pebble with Sync; a second goroutine,
// the finisher, waits for the sync and answers. So conditions need no locks, and a
// disk that takes 200 microseconds a sync still carries tens of thousands of commits
// a second. Two groups are under way at most: one being synced, one being decided.
//
// # Reads
//
// Pebble shows a batch before its sync has returned. A reader that acted on it would
// act on what a power cut can take back, so readers never look at the database: they
// look at a view, a snapshot that was taken when the group had been applied and that
// becomes the current one only when the group has been synced.
//
// # Layout
//
// All keys begin with a table's id and a kind. PK', SK' are escaped so that they
// keep their order and end visibly; the last component is not escaped.
//
//	00 "meta"                          format, names and tables, as JSON
//	table 00 PK' SK                    the item without its key attributes
//	table index iPK' iSK' PK' SK       the projected attributes that are not in the key
//	table FF expiry PK' SK             nothing; expiry is 8 bytes, big-endian
//
// What an item looks like is in codec.go.
//
// # Failure
//
// A failed write or sync ends the process: what the disk holds is then unknown, and
// an fsync that is tried again reports success for pages the kernel has dropped.
// Reopening replays the log up to the last thing that was synced.
package pebblestore
