// Package pebblestore implements package store on the local disk, in one folder, with Pebble. It is
// Duesday's default engine. docs/internals/store.md describes how a commit passes from the committer to
// the finisher, what readers see, and why a failed sync ends the process.
//
// It does not replicate, does not serve a second process, and does not protect against a disk that
// reports an fsync before it has stored the data.
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
package pebblestore
