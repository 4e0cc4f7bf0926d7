package dynamostore

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/store"
)

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, table string, key store.Key) (store.Item, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t, err := s.schema.Table(table)
	if err != nil {
		return nil, err
	}
	if err := t.CheckKey(key); err != nil {
		return nil, err
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	it, err := s.living(ctx, t, key, s.now().Unix())
	if err == nil && it == nil {
		return nil, store.ErrNotFound
	}
	return it, err
}

// living returns the item at the key by a strong read, or nil for none or an expired one.
// An item with a foreign attribute is ErrFormat.
func (s *Store) living(ctx context.Context, t *store.Table, key store.Key, now int64) (store.Item, error) {
	var found attributes
	err := s.read(ctx, action{"GetItem", "table " + t.Name}, func(ctx context.Context) error {
		out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &t.Name, Key: encodeKey(t, key), ConsistentRead: aws.Bool(true),
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		})
		if err == nil {
			found = out.Item
			s.usage.reads(out.ConsumedCapacity)
		}
		return err
	})
	if err != nil || found == nil {
		return nil, err
	}
	it, foreign := decodeItem(t, found)
	switch {
	case t.Expired(it, now):
		return nil, nil
	case foreign != nil:
		return nil, foreign
	}
	return it, nil
}

// read retries a request that changes nothing: one item, or one page. If the time ends during
// an attempt, the error is that of an earlier attempt, if there was one.
func (s *Store) read(ctx context.Context, a action, call func(context.Context) error) error {
	var told error
	_, err := s.pace.retry(ctx, func(ctx context.Context) (verdict, error) {
		ctx, sent := watch(ctx)
		v, err := a.judge(call(ctx), sent.Load())
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			told = err
		}
		return v, err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case told != nil && errors.Is(err, context.DeadlineExceeded):
		return told
	}
	return err
}

// Query implements store.Store. An unlimited query is read in DynamoDB's own pages, of
// a megabyte each: a caller that reads only the first items should set a Limit.
func (s *Store) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		t, x, err := s.schema.CheckQuery(q)
		if err != nil {
			yield(nil, err)
			return
		}
		in := &dynamodb.QueryInput{TableName: &t.Name, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
			ScanIndexForward: aws.Bool(!q.Reverse)}
		key, sortKey := t.PartitionKey, t.SortKey
		if x == nil {
			in.ConsistentRead = aws.Bool(true)
		} else {
			in.IndexName, key, sortKey = &x.Name, x.PartitionKey, x.SortKey
		}
		e := newExpression()
		in.KeyConditionExpression = aws.String(e.keyCondition(key, sortKey, q))
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
		start, nothing := begin(t, x, q)
		a := action{"Query", "table " + t.Name}
		s.pages(ctx, reading{table: t, base: x == nil, limit: q.Limit, start: start, nothing: nothing}, yield,
			func(ctx context.Context, start attributes, limit int) (items []attributes, last attributes, err error) {
				in.ExclusiveStartKey, in.Limit = start, nil
				if limit > 0 {
					in.Limit = aws.Int32(int32(min(limit, 1<<20)))
				}
				err = s.read(ctx, a, func(ctx context.Context) error {
					out, err := s.client.Query(ctx, in)
					if err == nil {
						items, last = out.Items, out.LastEvaluatedKey
						s.usage.reads(out.ConsumedCapacity)
					}
					return err
				})
				return items, last, err
			})
	}
}

func (e *expression) keyCondition(key, sortKey string, q store.Query) string {
	text := e.name(key) + " = " + e.text(q.Partition)
	switch {
	case q.Prefix != "":
		return text + " AND begins_with(" + e.name(sortKey) + ", " + e.text(q.Prefix) + ")"
	case q.From != "" && q.To != "":
		return text + " AND " + e.name(sortKey) + " BETWEEN " + e.text(q.From) + " AND " + e.text(q.To)
	case q.From != "":
		return text + " AND " + e.name(sortKey) + " >= " + e.text(q.From)
	case q.To != "":
		return text + " AND " + e.name(sortKey) + " <= " + e.text(q.To)
	}
	return text
}

// begin returns the start key of a query, nil for its beginning, or reports that it is empty.
// DynamoDB refuses a reversed range, and a start outside the range.
func begin(t *store.Table, x *store.Index, q store.Query) (start attributes, nothing bool) {
	if q.To != "" && q.From > q.To {
		return nil, true
	}
	if q.After.IsZero() {
		return nil, false
	}
	at := q.After.Key.SK
	if x != nil {
		at = q.After.Index.SK
	}
	before := at < max(q.From, q.Prefix)
	behind := (q.To != "" && at > q.To) || (!before && !strings.HasPrefix(at, q.Prefix))
	if before || behind {
		return nil, before == q.Reverse
	}
	if far := q.To; x == nil && at != "" {
		// DynamoDB Local refuses a start at the far end, where nothing can follow.
		if q.Reverse {
			far = q.From
		}
		if at == far {
			return nil, true
		}
	}
	start = encodeKey(t, q.After.Key)
	if x != nil {
		start[x.PartitionKey] = &types.AttributeValueMemberS{Value: q.After.Index.PK}
		if x.SortKey != "" {
			start[x.SortKey] = &types.AttributeValueMemberS{Value: q.After.Index.SK}
		}
	}
	return start, false
}

// Scan implements store.Store.
func (s *Store) Scan(ctx context.Context, sc store.Scan) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		t, err := s.schema.CheckScan(sc)
		if err != nil {
			yield(nil, err)
			return
		}
		in := &dynamodb.ScanInput{
			TableName: &t.Name, ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
			Segment: aws.Int32(int32(sc.Segment)), TotalSegments: aws.Int32(int32(max(sc.Segments, 1))),
		}
		r := reading{table: t, base: true}
		if !sc.After.IsZero() {
			r.start = encodeKey(t, sc.After.Key)
		}
		a := action{"Scan", "table " + t.Name}
		s.pages(ctx, r, yield, func(ctx context.Context, start attributes, _ int) (items []attributes,
			last attributes, err error) {
			in.ExclusiveStartKey = start
			err = s.read(ctx, a, func(ctx context.Context) error {
				out, err := s.client.Scan(ctx, in)
				if err == nil {
					items, last = out.Items, out.LastEvaluatedKey
					s.usage.reads(out.ConsumedCapacity)
				}
				return err
			})
			return items, last, err
		})
	}
}

// A reading is one iteration over the pages of a query or scan.
type reading struct {
	table   *store.Table
	base    bool // of the table itself: expired items are hidden
	limit   int  // 0 for none
	start   attributes
	nothing bool // there can be no rows
}

type fetch func(ctx context.Context, start attributes, limit int) (items []attributes, last attributes, err error)

// pages yields page after page. A page without items is not the end: DynamoDB says that
// by giving no place to go on from.
func (s *Store) pages(ctx context.Context, r reading, yield func(store.Item, error) bool, next fetch) {
	left := r.limit
	for start := r.start; ; {
		items, last, err := s.page(ctx, r, start, left, next)
		if err != nil {
			yield(nil, err)
			return
		}
		now := s.now().Unix()
		for _, m := range items {
			it, _ := decodeItem(r.table, m) // a foreign attribute is left out
			if r.base && r.table.Expired(it, now) {
				continue
			}
			if !yield(it, nil) {
				return
			}
			if left--; left == 0 {
				return
			}
		}
		if len(last) == 0 {
			return
		}
		start = last
	}
}

func (s *Store) page(ctx context.Context, r reading, start attributes, limit int,
	next fetch) (items []attributes, last attributes, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if err := s.enter(); err != nil {
		return nil, nil, err
	}
	defer s.leave()
	if r.nothing {
		return nil, nil, nil
	}
	return next(ctx, start, max(limit, 0))
}
