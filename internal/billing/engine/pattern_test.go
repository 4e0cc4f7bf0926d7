package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/test/dynamotest"
)

// A reader reads the table as anybody would who has the published schema and an SDK.
type reader struct {
	t      *testing.T
	client *dynamodb.Client
	table  string
}

func (r *reader) query(index, condition string, values ...string) []map[string]types.AttributeValue {
	r.t.Helper()
	in := &dynamodb.QueryInput{TableName: &r.table, KeyConditionExpression: &condition,
		ExpressionAttributeValues: map[string]types.AttributeValue{}}
	if index != "" {
		in.IndexName = &index
	} else {
		in.ConsistentRead = aws.Bool(true)
	}
	for i, v := range values {
		in.ExpressionAttributeValues[fmt.Sprint(":", string(rune('a'+i)))] = &types.AttributeValueMemberS{Value: v}
	}
	out, err := r.client.Query(r.t.Context(), in)
	if err != nil {
		r.t.Fatal(err)
	}
	return out.Items
}

func (r *reader) get(pk, sk string) map[string]types.AttributeValue {
	r.t.Helper()
	out, err := r.client.GetItem(r.t.Context(),
		&dynamodb.GetItemInput{TableName: &r.table, ConsistentRead: aws.Bool(true), Key: map[string]types.AttributeValue{
			"PK": &types.AttributeValueMemberS{Value: pk}, "SK": &types.AttributeValueMemberS{Value: sk}}})
	if err != nil {
		r.t.Fatal(err)
	}
	return out.Item
}

func text(it map[string]types.AttributeValue, name string) string {
	if v, ok := it[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

func member(it map[string]types.AttributeValue, name, of string) string {
	if v, ok := it[name].(*types.AttributeValueMemberM); ok {
		return text(v.Value, of)
	}
	return ""
}

// TestAccessPatternsByPlainCalls reads back the seven access patterns exactly as the table of
// the published schema has them: what operation, which index, which keys. A new subscription
// is in both indexes at once. With more shards a date is several partitions, and else nothing
// is different.
func TestAccessPatternsByPlainCalls(t *testing.T) {
	for _, shards := range []int{1, 4} {
		t.Run(fmt.Sprint(shards, " shards"), func(t *testing.T) {
			s := &service{t: t, endpoint: dynamotest.Endpoint(t)}
			w := newWorld("2023-05-18T09:41", planted{engine: s.engine(1)})
			defer s.drop()
			w.shards = shards
			p := w.start()
			r := &reader{t: t, client: dynamotest.ClientAt(s.endpoint), table: s.tables.RecurringPayments.Name}

			// 1. createSubscription: an item SUB#<id>#SKU#<sku> of its account.
			n := w.create(billing.NewSubscription{Account: "123", Email: "s@s.com", ID: "123", SKU: "999", Amount: usd(1299),
				PaymentDay: 28,
				Method:     "pm_card_visa", Address: "12 Bridge Street, Birmingham, B12 7ST", ReminderDays: 7,
				NextPayment: date("2023-06-28")})
			sub := r.get("ACC#123", "SUB#123#SKU#999")
			for name, want := range map[string]string{"Email": "s@s.com", "PaymentDay": "28", "PaymentAmount": "12.99",
				"SKU":         "999",
				"CreatedDate": "2023-05-18T09:41:00.000Z", "LastPaymentDate": "2023-05-18T09:41:00.000Z",
				"LastReminderDate": "2023-05-18T09:41:00.000Z"} {
				if got := text(sub, name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if got := member(sub, "PaymentDetails", "default-address"); got != "12 Bridge Street, Birmingham, B12 7ST" {
				t.Errorf("default-address: %q", got)
			}

			// 4. and 5. getDueRemindersByDate and getDuePaymentsByDate: query GSI-1 and GSI-2.
			reminder := r.due("GSI-1", "NextReminderDate", "2023-06-21", shards)
			payment := r.due("GSI-2", "NextPaymentDate", "2023-06-28", shards)
			if text(reminder, "Email") != "s@s.com" || text(reminder, "SKU") != "999" ||
				text(reminder, "SK") != "SUB#123#SKU#999" ||
				!strings.HasPrefix(text(reminder, "NextPaymentDate"), "2023-06-28") {
				t.Errorf("GSI-1 shows %v", reminder)
			}
			if text(payment, "PaymentAmount") != "12.99" || text(payment, "PaymentDay") != "28" ||
				member(payment, "PaymentDetails", "PaymentMethod") != "pm_card_visa" {
				t.Errorf("GSI-2 shows %v", payment)
			}

			// 2. and 3. createReceipt and updateSubscription: the payment job writes both.
			w.goTo(date("2023-06-28"))
			p.run(civil.Date{})
			sub = r.get("ACC#123", "SUB#123#SKU#999")
			if got := text(sub, "NextPaymentDate"); got != placedIn("2023-07-28", payment, shards) {
				t.Errorf("NextPaymentDate %q after the payment", got)
			}
			if got := text(sub, "LastPaymentDate"); got != "2023-06-28T09:00:00.000Z" {
				t.Errorf("LastPaymentDate %q after the payment", got)
			}
			if rows := r.query("GSI-2", "NextPaymentDate = :a", placedIn("2023-06-28", payment, shards)); len(rows) != 0 {
				t.Errorf("still due: %v", rows)
			}

			// 6. getSubscriptionsByAccount: begins_with SUB#.
			if subs := r.query("", "PK = :a AND begins_with(SK, :b)", "ACC#123", "SUB#"); len(subs) != 1 ||
				text(subs[0], "SK") != "SUB#123#SKU#999" {
				t.Errorf("subscriptions: %v", subs)
			}
			// 7. getReceiptsByAccount: begins_with REC#.
			receipts := r.query("", "PK = :a AND begins_with(SK, :b)", "ACC#123", "REC#")
			if len(receipts) != 1 || !strings.HasPrefix(text(receipts[0], "SK"), "REC#2023-06-28T09:00:00.000Z#SKU#999") ||
				text(receipts[0], "ProcessedAmount") != "12.99" ||
				text(receipts[0], "ProcessedDate") != "2023-06-28T09:00:00.000Z" || text(receipts[0], "Email") != "s@s.com" {
				t.Errorf("receipts: %v", receipts)
			}
			if ttl, ok := receipts[0]["TTL"].(*types.AttributeValueMemberN); !ok ||
				ttl.Value != fmt.Sprint(w.now().AddDate(0, 6, 0).Unix()) {
				t.Errorf("TTL %v, want six months on in seconds", receipts[0]["TTL"])
			}
			if !w.settled(n) {
				t.Error(w.describe(n))
			}
			w.report(t)
		})
	}
}

// due queries an index for its one row of a date: with one shard under the bare date, with
// more under exactly one of the date's shards, and none under the bare date.
func (r *reader) due(index, attribute, d string, shards int) map[string]types.AttributeValue {
	r.t.Helper()
	rows := r.query(index, attribute+" = :a", d)
	if shards > 1 && len(rows) > 0 {
		r.t.Errorf("%s has %d rows on the bare %s", index, len(rows), d)
	}
	for i := range shards {
		if shards > 1 {
			rows = append(rows, r.query(index, attribute+" = :a", fmt.Sprintf("%s#%02d", d, i))...)
		}
	}
	if len(rows) != 1 {
		r.t.Fatalf("%s has %d rows on %s, want 1", index, len(rows), d)
	}
	return rows[0]
}

// placedIn is the date in the same shard as the row's.
func placedIn(d string, row map[string]types.AttributeValue, shards int) string {
	if shards == 1 {
		return d
	}
	_, shard, _ := strings.Cut(text(row, "NextPaymentDate"), "#")
	return d + "#" + shard
}
