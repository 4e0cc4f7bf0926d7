// Package dynamostore implements package store on DynamoDB, through the AWS SDK. Any number of processes
// can share one set of tables.
//
// It does not create, check or describe tables. Opening a store sends no request: the first request
// to a missing table returns store.ErrMissing. It deletes no expired items; the table's TTL does.
//
// # How the contract is kept
//
// docs/internals/store.md has the requests, the retries and the way out of a lost reply.
// Get, base Query, Scan and a lone Check are strong reads. Conditions are expressions, in which an
// expired item counts as absent by the clock of this process.
//
// The token of a put or update is 16 random bytes in the attribute _token, which belongs to this
// package: reads leave it out, and writes with it are refused. A caller must not put an old value
// back under a condition on an attribute that its write changes: a lost reply sends it again.
//
// Values outside the contract (NULL and sets) are kept, as package store demands.
//
// Each attempt has a time limit and all together have one; the caller's deadline counts before both.
package dynamostore
