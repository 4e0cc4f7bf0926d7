package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/store"
)

// single sends the one write of the commit as a request of its own. After a lost answer:
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
	out, err := c.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &t.Name, Key: encodeKey(t, w.KeyIn(t)), ConsistentRead: aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		v, err = action{"GetItem", "table " + t.Name}.judge(err, sent.Load())
		return false, v, err
	}
	c.usage.reads(out.ConsumedCapacity)
	return c.done(out.Item), final, nil
}

// guarded reports whether the write, once it has landed, makes its own condition false: it
// compares an attribute with a value that the write replaces or removes.
func guarded(w *store.Write) bool {
	for _, c := range w.If {
		name, v := c.Parts()
		if name == "" || v.IsZero() {
			continue
		}
		switch w.Op {
		case store.OpDelete:
			return true
		case store.OpPut:
			if !w.Item.Get(name).Equal(v) {
				return true
			}
		case store.OpUpdate:
			if slices.Contains(w.Remove, name) {
				return true
			}
			if w.Set.Has(name) && !w.Set.Get(name).Equal(v) {
				return true
			}
		}
	}
	return false
}

func (c *commit) sendOne(ctx context.Context) (a action, err error) {
	w, t := &c.list[0], c.tables[0]
	e := newExpression()
	condition := e.condition(w, t, c.now)
	var used *types.ConsumedCapacity
	const capacity, old = types.ReturnConsumedCapacityTotal, types.ReturnValuesOnConditionCheckFailureAllOld
	switch w.Op {
	case store.OpPut:
		a.name = "PutItem"
		in := &dynamodb.PutItemInput{
			TableName: &t.Name, Item: c.marked(w), ConditionExpression: condition, ReturnConsumedCapacity: capacity,
			ReturnValuesOnConditionCheckFailure: old,
		}
		if condition != nil {
			in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
		}
		var out *dynamodb.PutItemOutput
		if out, err = c.client.PutItem(ctx, in); err == nil {
			used = out.ConsumedCapacity
		}
	case store.OpUpdate:
		a.name = "UpdateItem"
		in := &dynamodb.UpdateItemInput{
			TableName: &t.Name, Key: encodeKey(t, w.Key), ConditionExpression: condition, UpdateExpression: e.update(w, c.token),
			ReturnConsumedCapacity: capacity, ReturnValuesOnConditionCheckFailure: old,
		}
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
		var out *dynamodb.UpdateItemOutput
		if out, err = c.client.UpdateItem(ctx, in); err == nil {
			used = out.ConsumedCapacity
		}
	default: // a delete: a lone check is a read
		a.name = "DeleteItem"
		in := &dynamodb.DeleteItemInput{
			TableName: &t.Name, Key: encodeKey(t, w.Key), ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnConsumedCapacity: capacity,
			ReturnValuesOnConditionCheckFailure: old,
		}
		var out *dynamodb.DeleteItemOutput
		if out, err = c.client.DeleteItem(ctx, in); err == nil {
			used = out.ConsumedCapacity
		}
	}
	c.usage.writes(used)
	a.tables = "table " + t.Name
	return a, err
}

// marked returns the item of a put with the token of the commit, if it has one.
func (c *commit) marked(w *store.Write) attributes {
	m := encodeItem(w.Item)
	if c.token != nil {
		m[tokenName] = &types.AttributeValueMemberB{Value: c.token}
	}
	return m
}
