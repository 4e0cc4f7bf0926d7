package dynamotable_test

import (
	"encoding/json"
	"testing"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamotable"
)

// TestInput_PublishedModel holds the request for the recurring-payments table to the published
// model: keys, indexes and projections in its own order, and its capacity when provisioned.
func TestInput_PublishedModel(t *testing.T) {
	p := dynamotable.DefaultProvisioned()
	in := dynamotable.Input(schema.New("x-").RecurringPayments,
		dynamotable.Settings{Provisioned: &p, DeletionProtection: true})
	const throughput = `{"ReadCapacityUnits":5,"WriteCapacityUnits":5}`
	sameJSON(t, in, `{"TableName":"x-recurring-payments",
		"AttributeDefinitions":[{"AttributeName":"LastPaymentDate","AttributeType":"S"},{"AttributeName":"LastReminderDate","AttributeType":"S"},
			{"AttributeName":"NextPaymentDate","AttributeType":"S"},{"AttributeName":"NextReminderDate","AttributeType":"S"},
			{"AttributeName":"PK","AttributeType":"S"},{"AttributeName":"SK","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"PK","KeyType":"HASH"},{"AttributeName":"SK","KeyType":"RANGE"}],
		"BillingMode":"PROVISIONED","ProvisionedThroughput":`+throughput+`,"DeletionProtectionEnabled":true,
		"GlobalSecondaryIndexes":[
			{"IndexName":"GSI-1","KeySchema":[{"AttributeName":"NextReminderDate","KeyType":"HASH"},{"AttributeName":"LastReminderDate","KeyType":"RANGE"}],
			 "Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["SK","PK","SKU","Email","NextPaymentDate"]},"ProvisionedThroughput":`+throughput+`},
			{"IndexName":"GSI-2","KeySchema":[{"AttributeName":"NextPaymentDate","KeyType":"HASH"},{"AttributeName":"LastPaymentDate","KeyType":"RANGE"}],
			 "Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["PK","SK","Email","PaymentDay","PaymentAmount","SKU","PaymentDetails"]},"ProvisionedThroughput":`+throughput+`}]}`)
}

func TestInput_ProjectionsAndKeys(t *testing.T) {
	in := dynamotable.Input(store.Table{Name: "one", PartitionKey: "id", TTL: "expires", Indexes: []store.Index{
		{Name: "all", PartitionKey: "b", All: true},
		{Name: "keys", PartitionKey: "a", SortKey: "id"},
		{Name: "own", PartitionKey: "a", SortKey: "b", Include: []string{"b", "x", "a", "x"}},
		{Name: "onlyown", PartitionKey: "a", Include: []string{"a"}}}}, dynamotable.Settings{})
	sameJSON(t, in, `{"TableName":"one","BillingMode":"PAY_PER_REQUEST","DeletionProtectionEnabled":false,
		"AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"},{"AttributeName":"b","AttributeType":"S"},{"AttributeName":"id","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
		"GlobalSecondaryIndexes":[
			{"IndexName":"all","KeySchema":[{"AttributeName":"b","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}},
			{"IndexName":"keys","KeySchema":[{"AttributeName":"a","KeyType":"HASH"},{"AttributeName":"id","KeyType":"RANGE"}],"Projection":{"ProjectionType":"KEYS_ONLY"}},
			{"IndexName":"own","KeySchema":[{"AttributeName":"a","KeyType":"HASH"},{"AttributeName":"b","KeyType":"RANGE"}],"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["x"]}},
			{"IndexName":"onlyown","KeySchema":[{"AttributeName":"a","KeyType":"HASH"}],"Projection":{"ProjectionType":"KEYS_ONLY"}}]}`)
}

// sameJSON compares a value, without its empty members, with JSON.
func sameJSON(t *testing.T, got any, want string) {
	t.Helper()
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var g, w any
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%v in %s", err, want)
	}
	gb, _ := json.MarshalIndent(withoutEmpty(g), "", " ")
	wb, _ := json.MarshalIndent(w, "", " ")
	if string(gb) != string(wb) {
		t.Errorf("got %s\nwant %s", gb, wb)
	}
}

func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if value == nil || value == "" {
				delete(v, name)
			} else {
				v[name] = withoutEmpty(value)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
	}
	return v
}
