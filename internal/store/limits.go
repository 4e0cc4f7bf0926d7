package store

// DynamoDB's documented limits, which every engine enforces (Service, account and
// table quotas in Amazon DynamoDB).
const (
	MaxItemBytes         = 400 << 10 // names and values, UTF-8
	MaxPartitionKeyBytes = 2048
	MaxSortKeyBytes      = 1024
	MaxNumberDigits      = 38
	MaxDepth             = 32      // levels of maps and lists
	MaxWrites            = 100     // writes in one Commit
	MaxCommitBytes       = 4 << 20 // of all items in one Commit
)
