package dynamotest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// newTable makes a table keyed by P and S with an index "by-day" of D and S that shows
// Note but not Secret, and returns its name and a client that goes past all proxies.
func newTable(t *testing.T) (string, *dynamodb.Client) {
	t.Helper()
	direct := Client(t)
	name := Prefix(t) + "rows"
	attribute := func(name string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS}
	}
	key := func(hash, sort string) []types.KeySchemaElement {
		return []types.KeySchemaElement{{AttributeName: &hash, KeyType: types.KeyTypeHash},
			{AttributeName: &sort, KeyType: types.KeyTypeRange}}
	}
	_, err := direct.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: key("P", "S"),
		AttributeDefinitions: []types.AttributeDefinition{attribute("P"), attribute("S"), attribute("D")},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{IndexName: aws.String("by-day"), KeySchema: key("D", "S"),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{"Note"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := direct.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Error(err)
		}
	})
	return name, direct
}

type attributes = map[string]types.AttributeValue

func s(text string) types.AttributeValue { return &types.AttributeValueMemberS{Value: text} }

func row(p, sort, day, note string) attributes {
	return attributes{"P": s(p), "S": s(sort), "D": s(day), "Note": s(note), "Secret": s("x")}
}

func put(t *testing.T, c *dynamodb.Client, table string, item attributes) error {
	t.Helper()
	_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item})
	return err
}

func transact(t *testing.T, c *dynamodb.Client, table string, items ...attributes) error {
	t.Helper()
	in := &dynamodb.TransactWriteItemsInput{}
	for _, item := range items {
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Put: &types.Put{TableName: &table, Item: item}})
	}
	_, err := c.TransactWriteItems(t.Context(), in)
	return err
}

func exists(t *testing.T, c *dynamodb.Client, table, p string) bool {
	t.Helper()
	got, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table,
		Key: attributes{"P": s(p), "S": s("1")}, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return len(got.Item) > 0
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func connectionLost(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "EOF") ||
		strings.Contains(err.Error(), "connection reset") || strings.Contains(err.Error(), "broken pipe"))
}

// TestEachFaultOnce: the reply is what it says, the write is done or not as it says, the
// fault is counted, and the next request meets none.
func TestEachFaultOnce(t *testing.T) {
	table, direct := newTable(t)
	single := func(c *dynamodb.Client, p string) error { return put(t, c, table, row(p, "1", "d", "")) }
	transaction := func(c *dynamodb.Client, p string) error {
		return transact(t, c, table, row(p, "1", "d", ""), row(p, "2", "d", ""), row(p, "3", "d", ""))
	}
	serverError := func(err error) bool {
		return isA[*types.InternalServerError](err) || strings.Contains(fmt.Sprint(err), "StatusCode: 503")
	}
	cancelledBy := func(code string) func(error) bool {
		return func(err error) bool {
			cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
			if !ok || len(cancelled.CancellationReasons) != 3 {
				return false
			}
			var codes []string
			for _, reason := range cancelled.CancellationReasons {
				codes = append(codes, aws.ToString(reason.Code))
			}
			slices.Sort(codes)
			want := []string{"None", "None", code}
			slices.Sort(want)
			return slices.Equal(codes, want)
		}
	}
	for _, test := range []struct {
		fault  Fault
		write  func(*dynamodb.Client, string) error
		met    func(error) bool
		isDone bool
	}{
		{Throughput, single, isA[*types.ProvisionedThroughputExceededException], false},
		{Throughput, transaction, isA[*types.ProvisionedThroughputExceededException], false},
		{Throttling, single, isA[*types.ThrottlingException], false},
		{ErrorBefore, single, serverError, false},
		{ErrorAfter, single, serverError, true},
		{ErrorAfter, transaction, serverError, true},
		{RequestLost, single, connectionLost, false},
		{ReplyLost, single, connectionLost, true},
		{ReplyLost, transaction, connectionLost, true},
		{Conflict, single, isA[*types.TransactionConflictException], false},
		{Conflict, transaction, cancelledBy("TransactionConflict"), false},
		{TransactThrottle, transaction, cancelledBy("ThrottlingError"), false},
	} {
		for seed := range uint64(4) { // both of what a coin decides
			proxy := NewProxy(t, Endpoint(t), Options{Seed: seed, Rates: Rates{test.fault: 1}})
			p := Prefix(t)
			err := test.write(proxy.Client(), p)
			if !test.met(err) {
				t.Errorf("%s: got %v", test.fault, err)
			}
			if got := exists(t, direct, table, p); got != test.isDone {
				t.Errorf("%s: done is %v, want %v", test.fault, got, test.isDone)
			}
			if proxy.Count("", test.fault) != 1 || proxy.Count("", "") != 1 {
				t.Errorf("%s: counted %v in %d requests", test.fault, proxy.Counts(), proxy.Count("", ""))
			}
			proxy.setRates(nil)
			if err := test.write(proxy.Client(), p); err != nil || !exists(t, direct, table, p) {
				t.Errorf("after %s: %v", test.fault, err)
			}
		}
	}
}

// TestSameSeedSameFaults: and another seed, others.
func TestSameSeedSameFaults(t *testing.T) {
	table, _ := newTable(t)
	run := func(seed uint64) (outcomes []string) {
		proxy := NewProxy(t, Endpoint(t), Options{Seed: seed,
			Rates: Rates{Throttling: 0.2, ErrorBefore: 0.2, Conflict: 0.2, ReplyLost: 0.1}})
		for i := range 40 {
			err := put(t, proxy.Client(), table, row(fmt.Sprint(i), "1", "d", ""))
			outcomes = append(outcomes, fmt.Sprint(err != nil))
		}
		return append(outcomes, fmt.Sprint(proxy.Counts()))
	}
	first, second, other := run(7), run(7), run(8)
	if !slices.Equal(first, second) {
		t.Errorf("seed 7: %v, then %v", first, second)
	}
	if slices.Equal(first, other) {
		t.Error("seeds 7 and 8 are the same")
	}
}

// TestHookDecides: it names faults by number and operation, and sees what was sent.
func TestHookDecides(t *testing.T) {
	table, direct := newTable(t)
	proxy := NewProxy(t, Endpoint(t), Options{Rates: Rates{Throttling: 1}})
	proxy.SetHook(func(r Request) Fault {
		if r.Body["TableName"] != table || r.Operation != "PutItem" {
			t.Errorf("hook: %+v", r)
		}
		return []Fault{ReplyLost, Pass, ByRates, SmallPage}[r.N-1]
	})
	if err := put(t, proxy.Client(), table, row("a", "1", "d", "")); !connectionLost(err) ||
		!exists(t, direct, table, "a") {
		t.Errorf("reply lost: %v", err)
	}
	if err := put(t, proxy.Client(), table, row("b", "1", "d", "")); err != nil {
		t.Errorf("pass: %v", err)
	}
	if err := put(t, proxy.Client(), table, row("c", "1", "d", "")); !isA[*types.ThrottlingException](err) {
		t.Errorf("by rates: %v", err)
	}
	if err := put(t, proxy.Client(), table, row("d", "1", "d", "")); err != nil {
		t.Errorf("a small page of a put: %v", err)
	}
	if got := fmt.Sprint(proxy.Counts()); got != "map[reply lost:1 throttling:1]" {
		t.Errorf("counted %s", got)
	}
}

// TestPagesAreSmall: all rows come, in order, over pages of at most three, some of them empty.
func TestPagesAreSmall(t *testing.T) {
	table, direct := newTable(t)
	for i := range 25 {
		if err := put(t, direct, table, row("p", fmt.Sprintf("%02d", i), "d", "")); err != nil {
			t.Fatal(err)
		}
	}
	proxy := NewProxy(t, Endpoint(t), Options{Seed: 1, Rates: Rates{SmallPage: 1, EmptyPage: 0.2}})
	query := &dynamodb.QueryInput{TableName: &table, KeyConditionExpression: aws.String("P = :p"),
		ExpressionAttributeValues: attributes{":p": s("p")}}
	rows, empty := 0, 0
	for pages := dynamodb.NewQueryPaginator(proxy.Client(), query); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Items) > 3 {
			t.Errorf("a page of %d", len(page.Items))
		}
		if len(page.Items) == 0 && page.LastEvaluatedKey != nil {
			empty++
		}
		for _, item := range page.Items {
			if got := item["S"].(*types.AttributeValueMemberS).Value; got != fmt.Sprintf("%02d", rows) {
				t.Errorf("row %d is %s", rows, got)
			}
			rows++
		}
	}
	if rows != 25 || empty == 0 || proxy.Count("Query", EmptyPage) != empty || proxy.Count("Query", SmallPage) < 9 {
		t.Errorf("%d rows, %d empty pages, counted %v", rows, empty, proxy.Counts())
	}
	query.Limit = aws.Int32(1)
	for range 10 {
		page, err := proxy.Client().Query(t.Context(), query)
		if err != nil || len(page.Items) != 1 {
			t.Errorf("a Limit of 1 gave %d rows: %v", len(page.Items), err)
		}
	}
	rows = 0
	for pages := dynamodb.NewScanPaginator(proxy.Client(), &dynamodb.ScanInput{TableName: &table}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows += len(page.Items)
	}
	if rows != 25 || proxy.Count("Scan", SmallPage) == 0 {
		t.Errorf("a scan gave %d rows, counted %v", rows, proxy.Counts())
	}
}

func TestForbiddenOperations(t *testing.T) {
	table, _ := newTable(t)
	proxy := NewProxy(t, Endpoint(t), Options{})
	proxy.Forbid("Scan", "DescribeTable")
	_, err := proxy.Client().Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	if err == nil || !strings.Contains(err.Error(), "AccessDeniedException") ||
		!strings.Contains(err.Error(), "dynamodb:Scan") {
		t.Errorf("scan: %v", err)
	}
	if _, err := proxy.Client().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table}); err == nil {
		t.Error("describe was not forbidden")
	}
	if err := put(t, proxy.Client(), table, row("a", "1", "d", "")); err != nil {
		t.Error(err)
	}
	if proxy.Count("Scan", Forbidden) != 1 || proxy.Count("", Forbidden) != 2 {
		t.Errorf("counted %v", proxy.Counts())
	}
	proxy.Forbid()
	if _, err := proxy.Client().Scan(t.Context(), &dynamodb.ScanInput{TableName: &table}); err != nil {
		t.Error(err)
	}
}

// TestDocumentedForm: a failure on the wire is as DynamoDB's documentation shows it.
func TestDocumentedForm(t *testing.T) {
	proxy := NewProxy(t, Endpoint(t), Options{Rates: Rates{Conflict: 1}})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.URL(),
		strings.NewReader(`{"TransactItems":[{}]}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Amz-Target", "DynamoDB_20120810.TransactWriteItems")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := bufio.NewReader(response.Body).ReadString(0)
	want := `{"CancellationReasons":[{"Code":"TransactionConflict","Message":"Transaction is ongoing for the item"}],` +
		`"Message":"Transaction cancelled, please refer cancellation reasons for specific reasons [TransactionConflict]",` +
		`"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException"}`
	if got != want || response.StatusCode != 400 || response.Header.Get("Content-Type") != "application/x-amz-json-1.0" {
		t.Errorf("got %d %v %s (%v)\nwant 400 %s", response.StatusCode, response.Header, got, err, want)
	}
}

// TestManyAtOnce: with faults on, the race detector watching.
func TestManyAtOnce(t *testing.T) {
	table, direct := newTable(t)
	proxy := NewProxy(t, Endpoint(t), Options{Seed: 3, Rates: Rates{Throttling: 0.1, ReplyLost: 0.1, SmallPage: 0.5}})
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			client := proxy.Client()
			for i := range 25 {
				for put(t, client, table, row(fmt.Sprint(w, "-", i%5), "1", "d", fmt.Sprint(i))) != nil {
				}
				if _, err := client.Query(t.Context(), byDay(table, "d")); err != nil &&
					!isA[*types.ThrottlingException](err) && !connectionLost(err) {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	got, err := direct.Query(t.Context(), byDay(table, "d"))
	if err != nil || len(got.Items) != 20 {
		t.Errorf("%d rows, %v", len(got.Items), err)
	}
	for _, fault := range []Fault{Throttling, ReplyLost, SmallPage} {
		if proxy.Count("", fault) == 0 {
			t.Errorf("%s did not happen: %v", fault, proxy.Counts())
		}
	}
}

func byDay(table, day string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{TableName: &table, IndexName: aws.String("by-day"),
		KeyConditionExpression:   aws.String("#d = :d"),
		ExpressionAttributeNames: map[string]string{"#d": "D"}, ExpressionAttributeValues: attributes{":d": s(day)}}
}

// setRates replaces all rates from the next request on; nil: no faults.
func (p *Proxy) setRates(rates Rates) { p.locked(func() { p.rates = rates }) }
