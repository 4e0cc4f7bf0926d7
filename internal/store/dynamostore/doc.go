// Package dynamostore keeps a store in DynamoDB: the contract of package store over the
// AWS SDK, for any number of processes on one set of tables.
//
// It does not make, check or describe tables, and opening a store asks the service for
// nothing: a table that is not there is store.ErrMissing at the first request that meets
// it. It deletes no expired items; the table's own TTL does.
//
// # How the contract is kept
//
// Get, base Query, Scan and a lone Check are strong reads. One write is a conditional
// PutItem, UpdateItem or DeleteItem, several are one TransactWriteItems. Conditions are
// expressions, in which an expired item counts as absent by the clock of this process.
//
// Every put and update writes 16 random bytes into the attribute _token, which belongs to
// this package: it is taken out of everything that is read, and refused in what is
// written. After a lost reply the item is read back, and its token says whether the write
// has landed. A transaction is sent again under its client token instead, which DynamoDB
// honours for ten minutes. A single write whose token is not found is sent again only if a
// second landing is impossible: a condition compares an attribute that the write itself
// changes, a version for instance. Otherwise its outcome is store.ErrUnknown. (A caller
// that puts an old value back under such a condition defeats it.)
//
// Values that the contract does not support (NULL and sets) are kept as package store has it.
//
// An item that is too large for its token is written without one, in a transaction.
//
// Retries are in one place (retry.go), and the SDK's are off. Each attempt has a time limit
// and all together have one; the caller's deadline counts before both.
package dynamostore
