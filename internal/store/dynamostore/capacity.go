package dynamostore

import (
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// usage sums the capacity that DynamoDB says it has consumed.
type usage struct {
	mu          sync.Mutex
	read, write float64 // guarded by mu
}

// Consumed returns the read and write units that DynamoDB has reported for this store's
// requests so far. It reports none for a request that failed, a condition that did not
// hold included, nor for one whose answer was lost: those cost units too. A transaction
// that had landed and was sent again is counted as writes, though the repetition is read.
func (s *Store) Consumed() (read, write float64) {
	s.usage.mu.Lock()
	defer s.usage.mu.Unlock()
	return s.usage.read, s.usage.write
}

func (u *usage) reads(c *types.ConsumedCapacity) { u.add(&u.read, c) }

func (u *usage) writes(c *types.ConsumedCapacity) { u.add(&u.write, c) }

func (u *usage) add(sum *float64, c *types.ConsumedCapacity) {
	if c == nil || c.CapacityUnits == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	*sum += *c.CapacityUnits
}
