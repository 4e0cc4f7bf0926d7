// Package pebblestore keeps the store contract on the local disk, in one folder, on Pebble. It
// is Duesday's default engine.
//
// It does not replicate, does not serve a second process, and does not survive a disk that
// reports an fsync it has not done.
//
// # Commits
//
// One goroutine, the committer, decides every commit. It takes all waiting requests and checks
// each against the items as the earlier requests leave them. The accepted writes go into one
// batch, which it gives to Pebble with Sync. A second goroutine, the finisher, waits for the
// sync and answers. So conditions need no locks, and a disk with a sync of 200 microseconds
// still carries tens of thousands of commits a second. At most two groups are under way: one
// is being synced, one is being decided.
//
// # Reads
//
// Pebble shows a batch before its sync has returned, and a power cut could still undo it. So
// readers never read the database. They read a view: a snapshot taken after the group was
// applied, which becomes the current one after the group has been synced.
//
// # Layout
//
// All keys begin with a table's id and a kind. PK', SK' are escaped: they keep their order and
// have a visible end. The last component is not escaped.
//
//	00 "meta"                          format, names and tables, as JSON
//	table 00 PK' SK                    the item without its key attributes
//	table index iPK' iSK' PK' SK       the projected attributes outside the key
//	table FF expiry PK' SK             empty; expiry is 8 bytes, big-endian
//
// The file codec.go has the format of an item.
//
// # Failure
//
// A failed write or sync ends the process, because the content of the disk is then unknown: the
// kernel has dropped the pages, and a second fsync reports success. Reopening replays the log
// up to the last sync.
package pebblestore
