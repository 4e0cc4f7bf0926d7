package billing

import (
	"fmt"
	"hash/fnv"
	"iter"
	"strings"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A date is a partition of an index, and DynamoDB takes about a thousand writes a second into
// one. Therefore a store has a number of shards per date, set when it is made. One shard is
// exactly the published model's "2023-06-28"; more append the shard: "2023-06-28#07".

// MaxShards is the largest number of shards per date: two digits.
const MaxShards = 100

const shardMark = "#"

// placed returns the date as an index's partition key. The shard is a hash of the name: a
// subscription stays in its shard for good.
func placed(d civil.Date, n Name, shards int) string {
	if shards <= 1 {
		return d.String()
	}
	h := fnv.New32a()
	h.Write([]byte(n.Account + "/" + n.ID))
	return fmt.Sprintf("%s%s%02d", d, shardMark, h.Sum32()%uint32(shards))
}

// IndexDate returns the date of a partition key, with or without a shard.
func IndexDate(text string) string {
	d, _, _ := strings.Cut(text, shardMark)
	return d
}

// Partitions yields the partitions of an index with possible rows of the date. The bare date is
// always one of them: other tools write it.
func (e *Records) Partitions(d civil.Date) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(d.String()) || e.Opened.Shards <= 1 {
			return
		}
		for i := range e.Opened.Shards {
			if !yield(fmt.Sprintf("%s%s%02d", d, shardMark, i)) {
				return
			}
		}
	}
}

// Walks reports whether the jobs look at an index partition, or its attribute is absent.
func (e *Records) Walks(attribute string) bool {
	d, err := civil.Parse(IndexDate(attribute))
	if err != nil {
		return attribute == ""
	}
	for partition := range e.Partitions(d) {
		if partition == attribute {
			return true
		}
	}
	return false
}

// reshard returns a subscription's item for a store with that many shards per date. Other items
// stay as they are.
func reshard(it store.Item, shards int) store.Item {
	n, ok := NameOf(KeyOf(it))
	if !ok {
		return it
	}
	it = it.Clone()
	for _, name := range [...]string{schema.NextPaymentDate, schema.NextReminderDate} {
		if d, err := civil.Parse(IndexDate(it.Str(name))); err == nil {
			it.Set(name, store.S(placed(d, n, shards)))
		}
	}
	return it
}
