// Package dynamostore keeps a store in DynamoDB: the contract of package store over the
// AWS SDK, for any number of processes on one set of tables.
//
// It does not make, check or describe tables. Opening a store sends no request: the first request
// to a missing table returns store.ErrMissing. It deletes no expired items; the table's TTL does.
//
// # How the contract is kept
//
// Get, base Query, Scan and a lone Check are strong reads. One write is a conditional
// PutItem, UpdateItem or DeleteItem, several are one TransactWriteItems. Conditions are
// expressions, in which an expired item counts as absent by the clock of this process.
//
// Every put and update writes 16 random bytes into the attribute _token, which belongs to this
// package: reads leave it out, and writes with that name are refused. After a lost reply the engine
// reads the item back; its token shows whether the write has landed. A transaction is sent again
// under its client token instead, which DynamoDB honours for ten minutes. A single write without
// its token in the item is sent again only if it cannot land twice: its condition compares an
// attribute that the write itself changes, such as a version. Otherwise its outcome is
// store.ErrUnknown. (A caller must not put an old value back under such a condition.)
//
// Values outside the contract (NULL and sets) are kept, as package store demands.
//
// An item too large for its token is written without one, in a transaction.
//
// Retries are in one place (retry.go), and the SDK's are off. Each attempt has a time limit
// and all together have one; the caller's deadline counts before both.
package dynamostore
