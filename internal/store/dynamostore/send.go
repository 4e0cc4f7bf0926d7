package dynamostore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/store"
)

// settle sends the writes by once until their outcome is known or the time is up. unknown tells
// once that an earlier sending may have landed. A condition that fails after that leaves the
// outcome unknown: that sending may have landed and been overwritten, or may land later.
func (c *commit) settle(ctx context.Context, once func(ctx context.Context, unknown bool) (verdict, error)) error {
	unknown := false
	v, err := c.pace.retry(ctx, func(ctx context.Context) (verdict, error) {
		v, err := once(ctx, unknown)
		switch {
		case v == lost:
			unknown = true
			c.log.LogAttrs(ctx, slog.LevelDebug, "the reply to a write was lost; reading the item back to learn whether the write was done",
				slog.String("tables", strings.Join(c.names(), ", ")), slog.Any("error", err))
		case unknown && errors.Is(err, store.ErrConflict):
			err = fmt.Errorf("%w: the reply was lost, and a condition no longer holds", store.ErrUnknown)
		}
		return v, err
	})
	return c.ended(ctx, unknown, v, err)
}

// single sends the one write of the commit alone. After a lost answer it reads the item back:
//
//	read back          | guarded            | otherwise
//	-------------------+--------------------+-----------
//	our token          | done               | done
//	absent (a delete)  | done               | done
//	anything else      | send it again      | unknown
//
// If the repeated write meets a failed condition, our token, or no item for a delete, means done.
func (c *commit) single(ctx context.Context) error {
	return c.settle(ctx, func(ctx context.Context, unknown bool) (verdict, error) {
		if unknown {
			landed, v, err := c.readBack(ctx)
			switch {
			case v != final:
				return again, err // a read changes nothing
			case landed:
				return final, nil
			case !guarded(&c.list[0]):
				return final, fmt.Errorf("%w: the reply was lost, and the item does not show whether the write succeeded", store.ErrUnknown)
			}
		}
		request, sent := watch(ctx)
		a, err := c.sendOne(request)
		if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
			if unknown && c.done(failed.Item) {
				return final, nil
			}
			return final, c.conflict(0, failed.Item)
		}
		return a.judge(err, sent.Load())
	})
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

// sendOne sends the one write, which is no check: a lone check is a read.
func (c *commit) sendOne(ctx context.Context) (action, error) {
	const total = types.ReturnConsumedCapacityTotal
	w, table := c.item(0), "table "+c.tables[0].Name
	switch {
	case w.Put != nil:
		p := w.Put
		out, err := c.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: p.TableName, Item: p.Item,
			ConditionExpression: p.ConditionExpression, ExpressionAttributeNames: p.ExpressionAttributeNames,
			ExpressionAttributeValues: p.ExpressionAttributeValues, ReturnConsumedCapacity: total,
			ReturnValuesOnConditionCheckFailure: p.ReturnValuesOnConditionCheckFailure})
		if err == nil {
			c.usage.writes(out.ConsumedCapacity)
		}
		return action{"PutItem", table}, err
	case w.Update != nil:
		u := w.Update
		out, err := c.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: u.TableName, Key: u.Key,
			UpdateExpression: u.UpdateExpression, ConditionExpression: u.ConditionExpression,
			ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
			ReturnConsumedCapacity: total, ReturnValuesOnConditionCheckFailure: u.ReturnValuesOnConditionCheckFailure})
		if err == nil {
			c.usage.writes(out.ConsumedCapacity)
		}
		return action{"UpdateItem", table}, err
	}
	d := w.Delete
	out, err := c.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: d.TableName, Key: d.Key,
		ConditionExpression: d.ConditionExpression, ExpressionAttributeNames: d.ExpressionAttributeNames,
		ExpressionAttributeValues: d.ExpressionAttributeValues, ReturnConsumedCapacity: total,
		ReturnValuesOnConditionCheckFailure: d.ReturnValuesOnConditionCheckFailure})
	if err == nil {
		c.usage.writes(out.ConsumedCapacity)
	}
	return action{"DeleteItem", table}, err
}

// transact sends the writes as one transaction. After a lost answer the very same request is sent
// again: DynamoDB answers the repeated client token of a transaction that has landed with success.
// It remembers tokens for ten minutes, and maxTotal ends all attempts well before.
//
// An item that shows the token after a failed condition means that the first sending has landed.
func (c *commit) transact(ctx context.Context) error {
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(hex.EncodeToString(newToken())),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal}
	for i := range c.list {
		in.TransactItems = append(in.TransactItems, c.item(i))
	}
	a := action{"TransactWriteItems", "table " + strings.Join(c.names(), " or ")}
	return c.settle(ctx, func(ctx context.Context, unknown bool) (verdict, error) {
		request, sent := watch(ctx)
		out, err := c.client.TransactWriteItems(request, in)
		if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
			ours := func(r types.CancellationReason) bool { return c.ours(r.Item) }
			if unknown && slices.ContainsFunc(cancelled.CancellationReasons, ours) {
				return final, nil
			}
			return c.cancelled(a, cancelled.CancellationReasons)
		}
		if err == nil {
			for i := range out.ConsumedCapacity {
				c.usage.writes(&out.ConsumedCapacity[i])
			}
		}
		return a.judge(err, sent.Load())
	})
}

// cancelled tells the reasons of a cancelled transaction apart, one for each write, in order.
// Nothing was written. A failed condition counts first: no retry can remove it.
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
	return final, fmt.Errorf("%s: DynamoDB canceled the transaction without a reason", a)
}

// item is a write of the commit in DynamoDB's words, with the token, if any, in a put or update.
func (c *commit) item(i int) (item types.TransactWriteItem) {
	const old = types.ReturnValuesOnConditionCheckFailureAllOld
	w, t := &c.list[i], c.tables[i]
	var e expression
	condition := e.condition(w, t, c.now)
	switch w.Op {
	case store.OpPut:
		m := encodeItem(w.Item)
		if c.token != nil {
			m[tokenName] = &types.AttributeValueMemberB{Value: c.token}
		}
		item.Put = &types.Put{TableName: &t.Name, Item: m, ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: old}
	case store.OpUpdate:
		update := e.update(w, c.token)
		item.Update = &types.Update{TableName: &t.Name, Key: encodeKey(t, w.Key), UpdateExpression: update,
			ConditionExpression: condition, ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
			ReturnValuesOnConditionCheckFailure: old}
	case store.OpDelete:
		item.Delete = &types.Delete{TableName: &t.Name, Key: encodeKey(t, w.Key), ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: old}
	default:
		item.ConditionCheck = &types.ConditionCheck{TableName: &t.Name, Key: encodeKey(t, w.Key),
			ConditionExpression: condition, ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
			ReturnValuesOnConditionCheckFailure: old}
	}
	return item
}
