package metering_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/dynamotest"
)

// object is a JSON object of DynamoDB's protocol. The tests speak it themselves: what they
// compare is in every answer, and no engine has to hand it out.
type object = map[string]any

// local is a table in DynamoDB Local.
type local struct {
	endpoint string
	table    store.Table
}

// newLocal makes the table, under a name of its own.
func newLocal(t *testing.T, table store.Table) *local {
	t.Helper()
	l := &local{endpoint: dynamotest.Endpoint(t), table: table}
	l.table.Name = dynamotest.Prefix(t) + table.Name
	var names []object
	seen := map[string]bool{}
	keys := func(partition, sort string) []object {
		for _, n := range []string{partition, sort} {
			if !seen[n] {
				seen[n] = true
				names = append(names, object{"AttributeName": n, "AttributeType": "S"})
			}
		}
		return []object{{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}}
	}
	request := object{"TableName": l.table.Name, "BillingMode": "PAY_PER_REQUEST",
		"KeySchema": keys(table.PartitionKey, table.SortKey)}
	var indexes []object
	for _, x := range table.Indexes {
		projection := object{"ProjectionType": "ALL"}
		if !x.All {
			projection = object{"ProjectionType": "INCLUDE", "NonKeyAttributes": x.Include}
		}
		indexes = append(indexes, object{"IndexName": x.Name, "KeySchema": keys(x.PartitionKey, x.SortKey),
			"Projection": projection})
	}
	request["GlobalSecondaryIndexes"], request["AttributeDefinitions"] = indexes, names
	if _, err := l.call("CreateTable", request); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := l.call("DeleteTable", object{"TableName": l.table.Name}); err != nil {
			t.Error(err)
		}
	})
	return l
}

// call sends one request. DynamoDB Local wants a signature and does not check it.
func (l *local) call(op string, request object) (answer object, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequest(http.MethodPost, l.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+dynamotest.AccessKey+"/20260101/"+dynamotest.Region+
		"/dynamodb/aws4_request, SignedHeaders=host, Signature=none")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", op, response.Status, text)
	}
	if err != nil {
		return nil, err
	}
	return answer, json.Unmarshal(text, &answer)
}

func (l *local) key(k store.Key) object {
	return object{l.table.PartitionKey: object{"S": k.PK}, l.table.SortKey: object{"S": k.SK}}
}

// consumed returns the units in an answer: of the table under "", and of the indexes.
func consumed(answer object) map[string]float64 {
	all := map[string]float64{}
	list, many := answer["ConsumedCapacity"].([]any)
	if !many {
		list = []any{answer["ConsumedCapacity"]}
	}
	for _, one := range list {
		c, _ := one.(object)
		add := func(index string, of any) {
			if o, ok := of.(object); ok {
				if n, ok := o["CapacityUnits"].(float64); ok && n != 0 {
					all[index] += n
				}
			}
		}
		add("", c["Table"])
		indexes, _ := c["GlobalSecondaryIndexes"].(object)
		for name, of := range indexes {
			add(name, of)
		}
	}
	return all
}

// wireItem is an item, or a map, in the protocol's form.
func wireItem(it store.Item) object {
	o := object{}
	for _, a := range it {
		o[a.Name] = wireValue(a.Value)
	}
	return o
}

func wireValue(v store.Value) object {
	switch v.Kind() {
	case store.KindString:
		return object{"S": v.Str()}
	case store.KindNumber:
		return object{"N": v.Num()}
	case store.KindBool:
		return object{"BOOL": v.Bool()}
	case store.KindBinary:
		return object{"B": base64.StdEncoding.EncodeToString(v.Bytes())}
	case store.KindMap:
		return object{"M": wireItem(v.Map())}
	}
	list := []object{}
	for _, e := range v.List() {
		list = append(list, wireValue(e))
	}
	return object{"L": list}
}
