// Package storetest tests whether a storage engine implements package store correctly. Run has one subtest
// for each topic. A bug found in any engine becomes a case here.
//
// It also has Faulty, a store that fails at a chosen operation, for crash programmes above stores.
//
// It does not test properties of one engine, such as its file layout or its speed. It reads an
// index right after a write: an engine whose indexes lag or repeat items cannot run the suite yet.
package storetest
