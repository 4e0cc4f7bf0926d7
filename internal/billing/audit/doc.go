// Package audit holds a store's records against the processor's ledger. It reads both and
// does not change either.
package audit
