package dynamostore

import (
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// usage sums the capacity consumed, as DynamoDB reports it.
type usage struct {
	mu          sync.Mutex
	read, write float64 // guarded by mu
}

// Consumed returns the read and write units DynamoDB has reported for this store's requests so
// far. It reports none for a failed request, also one with a failed condition, nor for a request
// with a lost answer: those cost units too. The repetition of a landed transaction is counted as
// writes, though DynamoDB charges it as reads.
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
