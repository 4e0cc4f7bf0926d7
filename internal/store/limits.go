package store

// DynamoDB's documented limits (service, account and table quotas), which every engine enforces.
const (
	MaxItemBytes         = 400 << 10 // names and values, UTF-8
	MaxPartitionKeyBytes = 2048
	MaxSortKeyBytes      = 1024
	MaxNumberDigits      = 38
	MaxDepth             = 31      // levels of maps and lists; DynamoDB's 32 count the innermost value too
	MaxWrites            = 100     // writes in one Commit
	MaxCommitBytes       = 4 << 20 // of all items in one Commit
	MaxNameBytes         = 64<<10 - 1
	MaxSegments          = 1_000_000 // of a Scan
)

// DynamoDB accepts an update and its conditions as two expressions of at most 4 KB each, with at
// most 300 operators. Every update within these limits fits into such expressions.
const (
	MaxUpdateAttributes = 250 // set and removed by one update
	MaxConditions       = 50  // of one write
)
