package storetest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/store"
)

// An Opener opens a new, empty store of these tables and clock, closed by the suite, for test t.
type Opener func(t *testing.T, tables []store.Table, now func() time.Time) store.Store

// Run holds the engine to the contract, each topic on stores of its own and at the same time as the
// others. A store whose method Remote returns true, across a network, gets fewer rounds.
func Run(t *testing.T, open Opener) {
	for _, topic := range []struct {
		name string
		run  func(t *testing.T, open Opener)
	}{
		{"GetPut", testGetPut}, {"Update", testUpdate}, {"Delete", testDelete}, {"Check", testCheck},
		{"Conditions", testConditions}, {"Atomicity", testAtomicity}, {"Order", testOrder}, {"Ranges", testRanges},
		{"Cursors", testCursors}, {"Indexes", testIndexes}, {"Projections", testProjections}, {"Expiry", testExpiry},
		{"ExpiredWrites", testExpiredWrites}, {"Scan", testScan}, {"ScanCursors", testScanResume},
		{"ItemLimits", testItemLimits}, {"KeyLimits", testKeyLimits}, {"CommitLimits", testCommitLimits},
		{"ReadLimits", testReadLimits}, {"Values", testValues}, {"Text", testText}, {"Ownership", testOwnership},
		{"Returned", testReturned}, {"Iteration", testIteration}, {"Lifecycle", testLifecycle},
		{"Concurrency", testConcurrency}, {"Unknown", testUnknown}, {"Model", testModel},
	} {
		t.Run(topic.name, func(t *testing.T) {
			t.Parallel()
			topic.run(t, open)
		})
	}
}

// The suite's tables. ledger has expiry and three indexes: one projects some attributes, one all
// and has no sort key, one swaps the parts of the base key. plain has no sort key and no expiry.
const (
	ledger   = "ledger"
	byState  = "byState"
	byOwner  = "byOwner"
	inverted = "inverted"
	plain    = "plain"
	byName   = "byName"
)

func suiteTables() []store.Table {
	return []store.Table{
		{
			Name: ledger, PartitionKey: "pk", SortKey: "sk", TTL: "ttl",
			Indexes: []store.Index{
				{Name: byState, PartitionKey: "state", SortKey: "due", Include: []string{"amount", "note"}},
				{Name: byOwner, PartitionKey: "owner", All: true},
				{Name: inverted, PartitionKey: "sk", SortKey: "pk"},
			},
		},
		{
			Name: plain, PartitionKey: "id",
			Indexes: []store.Index{{Name: byName, PartitionKey: "kind", SortKey: "name", All: true}},
		},
	}
}

// A clock stands still until it is moved.
type clock struct{ seconds atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.seconds.Store(1_800_000_000)
	return c
}

func (c *clock) now() time.Time  { return time.Unix(c.seconds.Load(), 0) }
func (c *clock) unix() int64     { return c.seconds.Load() }
func (c *clock) advance(s int64) { c.seconds.Add(s) }
