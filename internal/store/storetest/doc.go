// Package storetest holds a storage engine to the contract of package store: Run
// has a subtest per topic, a file per topic, and every sentence of store's package
// comment has a case in one of them. A bug found in any engine becomes a case here.
//
// It also has Faulty, which wraps a store to fail at a chosen operation, for crash
// programmes above the store.
//
// It does not test what is an engine's own: that writes survive a power cut, how a
// file is laid out, how fast it is. Every query of an index is read by
// rig.rows, at once: an engine whose indexes lag cannot run the suite yet.
package storetest
