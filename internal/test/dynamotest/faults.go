package dynamotest

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

// A Fault is an act of a Proxy on a request. Its text is a name for people.
type Fault string

// The exclusive faults, of which a request meets at most one. Not done: DynamoDB did not see it.
const (
	Throughput  Fault = "throughput"   // not done; ProvisionedThroughputExceededException
	Throttling  Fault = "throttling"   // not done; ThrottlingException
	ErrorBefore Fault = "error before" // not done; 500 InternalServerError or 503 ServiceUnavailable
	ErrorAfter  Fault = "error after"  // done; the reply is replaced by the same
	RequestLost Fault = "request lost" // not done; the connection is closed
	ReplyLost   Fault = "reply lost"   // done; the connection is closed
	// Conflict: not done; a transaction is cancelled by TransactionConflict, a single write is
	// answered with TransactionConflictException.
	Conflict         Fault = "conflict"
	TransactThrottle Fault = "transact throttled" // not done; a transaction is cancelled by ThrottlingError
)

// The faults of reads. They may come together.
const (
	SmallPage Fault = "small page" // a query or scan reads one to three items
	EmptyPage Fault = "empty page" // a page after the first has no items, and continues where it began
)

// Forbidden is switched on and off by Forbid, and not drawn. Not done; AccessDeniedException.
const Forbidden Fault = "forbidden"

// The results of a Hook without a fault.
const (
	ByRates Fault = ""         // the rates decide
	Pass    Fault = "no fault" // none, whatever the rates
)

// Rates are the probabilities, from 0 to 1, of a fault per request it applies to.
type Rates map[Fault]float64

// exclusive are the faults of which a request meets one, in the order of the draw.
var exclusive = []Fault{Throughput, Throttling, ErrorBefore, ErrorAfter, RequestLost, ReplyLost, Conflict,
	TransactThrottle}

// singleWrites are the operations documented to return TransactionConflictException.
var singleWrites = []string{"PutItem", "UpdateItem", "DeleteItem"}

// onData reports whether the operation reads or writes items. Faults happen to these alone.
func onData(operation string) bool {
	return strings.HasSuffix(operation, "Item") || strings.HasSuffix(operation, "Items") || operation == "Query" ||
		operation == "Scan"
}

func (f Fault) applies(operation string) bool {
	switch f {
	case Conflict:
		return strings.HasPrefix(operation, "Transact") || slices.Contains(singleWrites, operation)
	case TransactThrottle:
		return strings.HasPrefix(operation, "Transact")
	case SmallPage, EmptyPage:
		return operation == "Query" || operation == "Scan"
	default:
		return onData(operation)
	}
}

// chance is one request's random source, of the seed and its number, independent of the others.
type chance struct {
	draws     *rand.Rand
	rates     Rates
	forced    Fault
	operation string
}

func (c *chance) happens(f Fault) bool {
	drawn := c.draws.Float64() < c.rates[f] // also when it is not needed: the draws after it stay the same
	switch {
	case !f.applies(c.operation) || c.forced == Pass:
		return false
	case c.forced != ByRates:
		return c.forced == f
	default:
		return drawn
	}
}

// one returns the exclusive fault of the request, or "".
func (c *chance) one() (met Fault) {
	for _, f := range exclusive {
		if c.happens(f) && met == "" {
			met = f
		}
	}
	return met
}

// A failure is an error reply of DynamoDB, in its documented form.
type failure struct {
	status int
	body   map[string]any
}

const modelled = "com.amazonaws.dynamodb.v20120810#" // the beginning of the documented error types

func fail(status int, kind, message string) failure {
	return failure{status, map[string]any{"__type": kind, "message": message}}
}

// failure returns the reply for a fault, status 0 for none, to a transaction of so many actions.
func (c *chance) failure(f Fault, actions int) failure {
	coin := c.draws.IntN(2)
	switch f {
	case Throughput:
		return fail(400, modelled+"ProvisionedThroughputExceededException",
			"The level of configured provisioned throughput for the table was exceeded. "+
				"Consider increasing your provisioning level with the UpdateTable API.")
	case Throttling:
		return fail(400, "com.amazon.coral.availability#ThrottlingException",
			"Rate of requests exceeds the allowed throughput.")
	case ErrorBefore, ErrorAfter:
		if coin == 0 {
			return fail(503, "com.amazon.coral.availability#ServiceUnavailableException", "Service unavailable.")
		}
		return fail(500, modelled+"InternalServerError",
			"The server encountered an internal error trying to fulfill the request.")
	case Conflict:
		if slices.Contains(singleWrites, c.operation) {
			return fail(400, modelled+"TransactionConflictException", "Transaction is ongoing for the item")
		}
		return c.cancelled(actions, "TransactionConflict", "Transaction is ongoing for the item")
	case TransactThrottle:
		return c.cancelled(actions, "ThrottlingError",
			"Throughput exceeds the current throughput limit for your account or table.")
	case Forbidden:
		return failure{400, map[string]any{"__type": "com.amazon.coral.service#AccessDeniedException",
			"Message": "User: arn:aws:iam::000000000000:user/test is not authorized to perform: dynamodb:" + c.operation +
				" because no identity-based policy allows the dynamodb:" + c.operation + " action"}}
	}
	return failure{}
}

// cancelled is a transaction of which one action has the reason and the others have none.
func (c *chance) cancelled(actions int, code, message string) failure {
	actions = max(actions, 1)
	reasons, codes := make([]any, actions), make([]string, actions)
	for i := range reasons {
		reasons[i], codes[i] = map[string]any{"Code": "None"}, "None"
	}
	at := c.draws.IntN(actions)
	reasons[at], codes[at] = map[string]any{"Code": code, "Message": message}, code
	return failure{400, map[string]any{
		"__type": modelled + "TransactionCanceledException",
		"Message": "Transaction cancelled, please refer cancellation reasons " +
			"for specific reasons [" + strings.Join(codes, ", ") + "]",
		"CancellationReasons": reasons,
	}}
}

// page makes the page of a query or scan small, or answers with an empty one.
func (p *Proxy) page(x *exchange) (empty reply, ok bool) {
	small, none, size := x.happens(SmallPage), x.happens(EmptyPage), 1+x.draws.IntN(3)
	start, later := x.body["ExclusiveStartKey"].(map[string]any)
	if none && later && len(start) > 0 {
		p.fired(x.operation, EmptyPage)
		body := map[string]any{"Count": 0, "ScannedCount": 0, "LastEvaluatedKey": start}
		if x.body["Select"] != "COUNT" {
			body["Items"] = []any{}
		}
		if kind := x.body["ReturnConsumedCapacity"]; kind == "TOTAL" || kind == "INDEXES" {
			body["ConsumedCapacity"] = map[string]any{"TableName": x.body["TableName"], "CapacityUnits": 0.5}
		}
		return reply{status: http.StatusOK, text: p.encode(body)}, true
	}
	limit, _ := x.body["Limit"].(json.Number)
	if n, err := limit.Int64(); small && x.body != nil && (err != nil || int64(size) < n) {
		p.fired(x.operation, SmallPage)
		changed := maps.Clone(x.body) // the client's own Limit stays in x.body
		changed["Limit"] = size
		x.sent = p.encode(changed)
	}
	return reply{}, false
}
