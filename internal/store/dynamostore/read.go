package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/duesday/duesday/internal/store"
)

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, table string, key store.Key) (store.Item, error) {
	t, err := s.schema.CheckGet(ctx, table, key)
	if err != nil {
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

// living returns the item by a strong read, nil if none or expired, or ErrFormat for a bad value.
func (s *Store) living(ctx context.Context, t *store.Table, key store.Key, now int64) (store.Item, error) {
	var found attributes
	err := s.read(ctx, action{"GetItem", "table " + t.Name}, func(ctx context.Context) (err error) {
		found, err = s.getItem(ctx, t, key)
		return err
	})
	if err != nil || found == nil {
		return nil, err
	}
	it, unsupported := decodeItem(t, found)
	switch {
	case t.Expired(it, now):
		return nil, nil
	case unsupported != nil:
		return nil, unsupported
	}
	return it, nil
}

func (s *Store) getItem(ctx context.Context, t *store.Table, key store.Key) (attributes, error) {
	sent := s.now()
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.Name, Key: encodeKey(t, key),
		ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal})
	if err != nil {
		return nil, err
	}
	s.usage.reads(out.ConsumedCapacity)
	if raw, ok := middleware.GetRawResponse(out.ResultMetadata).(*smithyhttp.Response); ok {
		s.clock.Note(raw.Header, sent, s.now())
	}
	return out.Item, nil
}

// read retries a request that changes nothing: one item, or one page. If the time ends during
// an attempt, the error is that of an earlier attempt, if there was one.
func (s *Store) read(ctx context.Context, a action, call func(context.Context) error) error {
	var told error
	_, err := s.pace.retry(ctx, func(ctx context.Context) (verdict, error) {
		ctx, sent := watch(ctx)
		v, err := a.judge(call(ctx), sent.Load())
		if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound && !s.answered.Load() {
			return final, fmt.Errorf("there is no DynamoDB at %s; check the region or the endpoint in the store's URL", dns.Name)
		}
		if v == final {
			s.answered.Store(true)
		}
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
	return store.Paged(ctx, func() (store.Pages, error) {
		t, x, err := s.schema.CheckQuery(q)
		if err != nil {
			return store.Pages{}, err
		}
		in := &dynamodb.QueryInput{TableName: &t.Name, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
			ScanIndexForward: aws.Bool(!q.Reverse)}
		key, sortKey := t.PartitionKey, t.SortKey
		if x == nil {
			in.ConsistentRead = aws.Bool(!q.Eventual)
		} else {
			in.IndexName, key, sortKey = &x.Name, x.PartitionKey, x.SortKey
		}
		var e expression
		in.KeyConditionExpression = aws.String(e.keyCondition(key, sortKey, q))
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
		r := reading{Store: s, table: t, base: x == nil, action: action{"Query", "table " + t.Name}}
		r.start, r.nothing = begin(t, x, q)
		return r.pages(ctx, q.Limit, func(ctx context.Context, start attributes, n int) (page, error) {
			in.ExclusiveStartKey, in.Limit = start, nil
			if n > 0 {
				in.Limit = aws.Int32(int32(min(n, 1<<20)))
			}
			out, err := s.client.Query(ctx, in)
			if err != nil {
				return page{}, err
			}
			return page{out.Items, out.LastEvaluatedKey, out.ConsumedCapacity}, nil
		}), nil
	})
}

// Scan implements store.Store.
func (s *Store) Scan(ctx context.Context, sc store.Scan) iter.Seq2[store.Item, error] {
	return store.Paged(ctx, func() (store.Pages, error) {
		t, err := s.schema.CheckScan(sc)
		if err != nil {
			return store.Pages{}, err
		}
		in := &dynamodb.ScanInput{
			TableName: &t.Name, ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
			Segment: aws.Int32(int32(sc.Segment)), TotalSegments: aws.Int32(int32(max(sc.Segments, 1))),
		}
		r := reading{Store: s, table: t, base: true, action: action{"Scan", "table " + t.Name}}
		if !sc.After.IsZero() {
			r.start = encodeKey(t, sc.After.Key)
		}
		return r.pages(ctx, 0, func(ctx context.Context, start attributes, _ int) (page, error) {
			in.ExclusiveStartKey = start
			out, err := s.client.Scan(ctx, in)
			if err != nil {
				return page{}, err
			}
			return page{out.Items, out.LastEvaluatedKey, out.ConsumedCapacity}, nil
		}), nil
	})
}

// A reading is one iteration over the pages of a query or scan.
type reading struct {
	*Store
	action
	table   *store.Table
	base    bool       // of the table itself: expired items are hidden
	start   attributes // where the next page begins
	nothing bool       // there can be no rows
}

// A page is an answer to a query or scan.
type page struct {
	items []attributes
	last  attributes // the place to go on from
	used  *types.ConsumedCapacity
}

// pages reads a page by call. A page without items is not the end: one without a last place is.
func (r *reading) pages(ctx context.Context, limit int,
	call func(ctx context.Context, start attributes, n int) (page, error)) store.Pages {
	return store.Pages{Limit: limit, Next: func(n int) (items []store.Item, more bool, err error) {
		if err := r.enter(); err != nil {
			return nil, false, err
		}
		defer r.leave()
		if r.nothing {
			return nil, false, nil
		}
		var got page
		if err := r.read(ctx, r.action, func(ctx context.Context) (err error) {
			got, err = call(ctx, r.start, n)
			return err
		}); err != nil {
			return nil, false, err
		}
		r.usage.reads(got.used)
		now := r.now().Unix()
		for _, m := range got.items {
			it, _ := decodeItem(r.table, m) // an unsupported value is left out
			if !r.base || !r.table.Expired(it, now) {
				items = append(items, it)
			}
		}
		r.start = got.last
		return items, len(got.last) > 0, nil
	}}
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
