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
// write, in order; nothing was written. A failed condition counts before everything else:
// only this error stays after every retry.
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
