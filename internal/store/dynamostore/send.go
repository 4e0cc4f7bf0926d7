package dynamostore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/store"
)

// single sends the one write of the commit as a request of its own. After a lost answer it reads
// the item back:
//
//	read back          | guarded            | otherwise
//	-------------------+--------------------+-----------
//	our token          | done               | done
//	absent (a delete)  | done               | done
//	anything else      | send it again      | unknown
//
// If the repeated write meets a failed condition, our token in the item means done, as does no
// item for a delete. Otherwise the outcome is unknown: the first write may have landed and have
// been overwritten.
func (c *commit) single(ctx context.Context) error {
	w := &c.list[0]
	unknown := false
	v, err := c.pace.retry(ctx, func(ctx context.Context) (verdict, error) {
		if unknown {
			landed, v, err := c.readBack(ctx)
			switch {
			case v != final || landed:
				return v, err
			case !guarded(w):
				return final, fmt.Errorf("%w: the answer was lost, and the item does not tell", store.ErrUnknown)
			}
		}
		request, sent := watch(ctx)
		a, err := c.sendOne(request)
		if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
			switch {
			case !unknown:
				return final, c.conflict(0, failed.Item)
			case c.done(failed.Item):
				return final, nil
			}
			return final, fmt.Errorf("%w: the answer was lost, and now a condition does not hold", store.ErrUnknown)
		}
		v, err := a.judge(err, sent.Load())
		if v == lost {
			c.noteLost(ctx, err)
			unknown = true
		}
		return v, err
	})
	return c.ended(ctx, unknown, v, err)
}

// done reports whether the stored item, nil for none, shows that the write has landed.
func (c *commit) done(item attributes) bool {
	if c.list[0].Op != store.OpDelete {
		return c.ours(item)
	}
	if item == nil {
		return true
	}
	it, _ := decodeItem(c.tables[0], item)
	return c.tables[0].Expired(it, c.now)
}

// readBack reads the item strongly and reports whether it shows that the write has landed.
func (c *commit) readBack(ctx context.Context) (landed bool, v verdict, err error) {
	w, t := &c.list[0], c.tables[0]
	ctx, sent := watch(ctx)
	item, err := c.getItem(ctx, t, w.KeyIn(t))
	if err != nil {
		v, err = action{"GetItem", "table " + t.Name}.judge(err, sent.Load())
		return false, v, err
	}
	return c.done(item), final, nil
}

// guarded reports whether the write, once it has landed, makes its own condition false: it
// compares an attribute with a value that the write replaces or removes.
func guarded(w *store.Write) bool {
	for _, c := range w.If {
		name, v := c.Parts()
		if name == "" || v.IsZero() {
			continue
		}
		if w.Op == store.OpDelete || w.Op == store.OpPut && !w.Item.Get(name).Equal(v) ||
			slices.Contains(w.Remove, name) || w.Set.Has(name) && !w.Set.Get(name).Equal(v) {
			return true
		}
	}
	return false
}

func (c *commit) sendOne(ctx context.Context) (a action, err error) {
	const total, old = types.ReturnConsumedCapacityTotal, types.ReturnValuesOnConditionCheckFailureAllOld
	r := c.request(0)
	a.tables = "table " + *r.table
	var used *types.ConsumedCapacity
	switch c.list[0].Op {
	case store.OpPut:
		a.name = "PutItem"
		out, err := c.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: r.table, Item: r.item,
			ConditionExpression: r.condition, ExpressionAttributeNames: r.names, ExpressionAttributeValues: r.values,
			ReturnConsumedCapacity: total, ReturnValuesOnConditionCheckFailure: old})
		if err != nil {
			return a, err
		}
		used = out.ConsumedCapacity
	case store.OpUpdate:
		a.name = "UpdateItem"
		out, err := c.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: r.table, Key: r.key,
			UpdateExpression: r.update, ConditionExpression: r.condition, ExpressionAttributeNames: r.names,
			ExpressionAttributeValues: r.values, ReturnConsumedCapacity: total, ReturnValuesOnConditionCheckFailure: old})
		if err != nil {
			return a, err
		}
		used = out.ConsumedCapacity
	default: // a delete: a lone check is a read
		a.name = "DeleteItem"
		out, err := c.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: r.table, Key: r.key,
			ConditionExpression: r.condition, ExpressionAttributeNames: r.names, ExpressionAttributeValues: r.values,
			ReturnConsumedCapacity: total, ReturnValuesOnConditionCheckFailure: old})
		if err != nil {
			return a, err
		}
		used = out.ConsumedCapacity
	}
	c.usage.writes(used)
	return a, nil
}

// A request is one write in DynamoDB's words.
type request struct {
	table             *string
	item              attributes // of a put, with the token of the commit, if it has one
	key               attributes // of the others
	condition, update *string
	names             map[string]string
	values            attributes
}

func (c *commit) request(i int) request {
	w, t := &c.list[i], c.tables[i]
	var e expression
	r := request{table: &t.Name, condition: e.condition(w, t, c.now)}
	if w.Op == store.OpPut {
		r.item = encodeItem(w.Item)
		if c.token != nil {
			r.item[tokenName] = &types.AttributeValueMemberB{Value: c.token}
		}
	} else {
		r.key = encodeKey(t, w.Key)
	}
	if w.Op == store.OpUpdate {
		r.update = e.update(w, c.token)
	}
	r.names, r.values = e.names, e.values
	return r
}

// transact sends the writes as one transaction. After a lost answer the very same request
// is sent again: DynamoDB answers the repeated client token of a transaction that has
// landed with success. It remembers tokens for ten minutes, and maxTotal ends all
// attempts well before.
//
// A condition that fails after a lost answer leaves the outcome unknown, unless an item
// shows the token: the first sending may still be under way, and land once the condition
// holds again.
func (c *commit) transact(ctx context.Context) error {
	in := &dynamodb.TransactWriteItemsInput{
		TransactItems: c.items(), ClientRequestToken: aws.String(hex.EncodeToString(newToken())),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	a := action{"TransactWriteItems", "table " + strings.Join(c.names(), " or ")}
	unknown := false
	v, err := c.pace.retry(ctx, func(ctx context.Context) (verdict, error) {
		request, sent := watch(ctx)
		out, err := c.client.TransactWriteItems(request, in)
		if err == nil {
			for i := range out.ConsumedCapacity {
				c.usage.writes(&out.ConsumedCapacity[i])
			}
			return final, nil
		}
		if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
			v, err := c.cancelled(a, cancelled.CancellationReasons)
			if unknown && errors.Is(err, store.ErrConflict) {
				if slices.ContainsFunc(cancelled.CancellationReasons, c.marks) {
					return final, nil
				}
				return final, fmt.Errorf("%w: the answer was lost, and now a condition does not hold", store.ErrUnknown)
			}
			return v, err
		}
		v, err := a.judge(err, sent.Load())
		if v == lost {
			c.noteLost(ctx, err)
			unknown = true
		}
		return v, err
	})
	return c.ended(ctx, unknown, v, err)
}

// cancelled tells the reasons of a cancelled transaction apart. There is one for each
// write, in order; nothing was written. A failed condition counts before everything else: it is the
// only reason that a retry cannot remove.
func (c *commit) cancelled(a action, reasons []types.CancellationReason) (verdict, error) {
	var busy, refused error
	for i := range reasons {
		code, message := aws.ToString(reasons[i].Code), aws.ToString(reasons[i].Message)
		switch code {
		case "", "None":
		case "ConditionalCheckFailed":
			if i < len(c.list) {
				return final, c.conflict(i, reasons[i].Item)
			}
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			busy = fmt.Errorf("%w: write %d: %s: %s", store.ErrThrottled, i, a, code)
		case "ValidationError":
			refused = fmt.Errorf("write %d: %w", i, a.invalid(message))
		case "ItemCollectionSizeLimitExceeded":
			refused = fmt.Errorf("%w: write %d: %s: %s", store.ErrTooLarge, i, a, code)
		default:
			refused = fmt.Errorf("write %d: %s: %s: %s", i, a, code, message)
		}
	}
	switch {
	case refused != nil:
		return final, refused
	case busy != nil:
		return again, busy
	}
	return final, fmt.Errorf("%s: cancelled without a reason", a)
}

// marks reports whether the returned item carries the token of the commit.
func (c *commit) marks(reason types.CancellationReason) bool { return c.ours(reason.Item) }

func (c *commit) items() []types.TransactWriteItem {
	const old = types.ReturnValuesOnConditionCheckFailureAllOld
	items := make([]types.TransactWriteItem, len(c.list))
	for i := range c.list {
		switch r := c.request(i); c.list[i].Op {
		case store.OpPut:
			items[i].Put = &types.Put{TableName: r.table, Item: r.item, ConditionExpression: r.condition,
				ExpressionAttributeNames: r.names, ExpressionAttributeValues: r.values, ReturnValuesOnConditionCheckFailure: old}
		case store.OpUpdate:
			items[i].Update = &types.Update{TableName: r.table, Key: r.key, UpdateExpression: r.update,
				ConditionExpression: r.condition, ExpressionAttributeNames: r.names, ExpressionAttributeValues: r.values,
				ReturnValuesOnConditionCheckFailure: old}
		case store.OpDelete:
			items[i].Delete = &types.Delete{TableName: r.table, Key: r.key, ConditionExpression: r.condition,
				ExpressionAttributeNames: r.names, ExpressionAttributeValues: r.values, ReturnValuesOnConditionCheckFailure: old}
		default:
			items[i].ConditionCheck = &types.ConditionCheck{TableName: r.table, Key: r.key, ConditionExpression: r.condition,
				ExpressionAttributeNames: r.names, ExpressionAttributeValues: r.values, ReturnValuesOnConditionCheckFailure: old}
		}
	}
	return items
}
