// Package storetest holds a storage engine to the contract of package store: Run
// has a subtest per topic, a file per topic, and every sentence of store's package
// comment has a case in one of them. A bug found in any engine becomes a case here.
//
// It also has Faulty, which wraps a store to fail at a chosen operation, for crash
// programmes above the store.
//
// It does not test what is an engine's own: that writes survive a power cut, how a
// file is laid out, how fast it is. It reads an index as soon as it has written: an
// engine whose indexes lag or repeat items cannot run the suite yet.
package storetest
