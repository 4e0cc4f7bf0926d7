package dynamotest

import (
	"encoding/json"
	"maps"
	"net/http"
)

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
		text, err := json.Marshal(body)
		if err != nil {
			p.t.Errorf("proxy: %v", err)
		}
		return reply{status: http.StatusOK, text: text}, true
	}
	if small && x.body != nil && int64(size) < limitOf(x.body) {
		p.fired(x.operation, SmallPage)
		x.sent = withLimit(p, x, size)
	}
	return reply{}, false
}

const unlimited = 1 << 40

// limitOf is the Limit in the request.
func limitOf(body map[string]any) int64 {
	if number, ok := body["Limit"].(json.Number); ok {
		if n, err := number.Int64(); err == nil {
			return n
		}
	}
	return unlimited
}

// withLimit returns the request with another Limit; the client's own stays in x.body.
func withLimit(p *Proxy, x *exchange, size int) []byte {
	changed := make(map[string]any, len(x.body)+1)
	maps.Copy(changed, x.body)
	changed["Limit"] = size
	text, err := json.Marshal(changed)
	if err != nil {
		p.t.Errorf("proxy: %v", err)
		return x.sent
	}
	return text
}

// actions are the actions of a transaction, in their order.
func (x *exchange) actions() []any {
	actions, _ := x.body["TransactItems"].([]any)
	return actions
}
