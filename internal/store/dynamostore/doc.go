// Package dynamostore implements package store on DynamoDB, through the AWS SDK. Any number of processes
// can share one set of tables.
//
// It does not create, check or describe tables. Opening a store sends no request: the first request
// to a missing table returns store.ErrMissing. It deletes no expired items; the table's TTL does.
//
// # How the contract is kept
//
// docs/internals/store.md describes the requests, the retries, and the handling of lost replies.
// Get, base Query, Scan and a single Check use strongly consistent reads. Conditions become
// expressions, which treat an item as absent if it has expired by this process's clock.
//
// Every put or update writes a token of 16 random bytes to the attribute _token. The attribute is
// reserved for this package: reads omit it, and writes that contain it are rejected. A caller must
// not restore an attribute's old value in a write whose condition compares that attribute, because
// the engine repeats such a write after a lost reply.
//
// Values of other programs (NULL and sets) are kept, as package store requires.
//
// Each attempt has a time limit, and so do all attempts together. The caller's deadline takes
// precedence over both.
package dynamostore
