package dynamostore_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// openLocal opens a store over tables of its own in DynamoDB Local, under a prefix that
// the caller does not see. They are dropped when the store is closed.
func openLocal(t testing.TB, tables []store.Table, o dynamostore.Options) *prefixed {
	t.Helper()
	if o.Client == nil {
		o.Client = dynamotest.Client(t)
	}
	p := &prefixed{prefix: dynamotest.Prefix(t), client: dynamotest.Client(t)}
	for _, table := range tables {
		// Faults are for the store: the tables are made without.
		table.Name = p.prefix + table.Name
		// there at once
		if _, err := p.client.CreateTable(t.Context(), dynamotable.Input(table, dynamotable.Settings{})); err != nil {
			t.Fatalf("CreateTable(%s): %v", table.Name, err)
		}
		o.Tables = append(o.Tables, table)
		p.tables = append(p.tables, table.Name)
	}
	s, err := dynamostore.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	p.Store = s
	return p
}

// prefixed shows the tables of a store without the prefix of their names.
type prefixed struct {
	*dynamostore.Store
	prefix string
	client *dynamodb.Client
	tables []string
}

// Remote tells the suite to do with fewer rounds.
func (p *prefixed) Remote() bool { return !soaktest.On() }

func (p *prefixed) plainly(err error) error {
	if c, ok := errors.AsType[*store.ConflictError](err); ok {
		c.Table = c.Table[len(p.prefix):]
	}
	return err
}

func (p *prefixed) Get(ctx context.Context, table string, key store.Key) (store.Item, error) {
	return p.Store.Get(ctx, p.prefix+table, key)
}

func (p *prefixed) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	q.Table = p.prefix + q.Table
	return p.Store.Query(ctx, q)
}

func (p *prefixed) Scan(ctx context.Context, s store.Scan) iter.Seq2[store.Item, error] {
	s.Table = p.prefix + s.Table
	return p.Store.Scan(ctx, s)
}

func (p *prefixed) Commit(ctx context.Context, writes ...store.Write) error {
	own := make([]store.Write, len(writes))
	for i, w := range writes {
		w.Table = p.prefix + w.Table
		own[i] = w
	}
	return p.plainly(p.Store.Commit(ctx, own...))
}

func (p *prefixed) Close() error {
	err := p.Store.Close()
	if errors.Is(err, store.ErrClosed) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, name := range p.tables {
		_, dropped := p.client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
		err = errors.Join(err, dropped)
	}
	return err
}

// losing is a store behind a proxy that can lose the answers to all of its requests. While it
// does, commits are given up soon; all else has the time that a busy machine needs.
type losing struct {
	*prefixed
	hurried *prefixed // the same tables
	proxy   *dynamotest.Proxy
	loses   atomic.Bool
}

func openLosing(t testing.TB, tables []store.Table, now func() time.Time) *losing {
	t.Helper()
	proxy := dynamotest.NewProxy(t, dynamotest.Endpoint(t), dynamotest.Options{Seed: 1})
	o := dynamostore.Options{Now: now, Client: proxy.Client(), Pace: quick()}
	l := &losing{prefixed: openLocal(t, tables, o), proxy: proxy}
	for _, table := range tables {
		table.Name = l.prefix + table.Name
		o.Tables = append(o.Tables, table)
	}
	o.Pace.Total = time.Second
	hurried, err := dynamostore.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hurried.Close() })
	l.hurried = &prefixed{Store: hurried, prefix: l.prefix}
	return l
}

func (l *losing) Commit(ctx context.Context, writes ...store.Write) error {
	if l.loses.Load() {
		return l.hurried.Commit(ctx, writes...)
	}
	return l.prefixed.Commit(ctx, writes...)
}

// LoseAnswers implements storetest.AnswerLoser: what is asked about a lost write is lost too.
func (l *losing) LoseAnswers(done bool) (restore func()) {
	fault := dynamotest.RequestLost
	if done {
		fault = dynamotest.ReplyLost
	}
	l.loses.Store(true)
	l.proxy.SetHook(func(dynamotest.Request) dynamotest.Fault { return fault })
	return func() {
		l.loses.Store(false)
		l.proxy.SetHook(nil)
	}
}

// PutJSON puts an item, given in DynamoDB's JSON, as another program does.
func (p *prefixed) PutJSON(table, item string) error {
	var parsed map[string]map[string]any
	if err := json.Unmarshal([]byte(item), &parsed); err != nil {
		return err
	}
	table = p.prefix + table
	_, err := p.client.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &table, Item: fromJSON(parsed)})
	return err
}

func fromJSON(item map[string]map[string]any) map[string]types.AttributeValue {
	m := map[string]types.AttributeValue{}
	for name, v := range item {
		m[name] = valueFromJSON(v)
	}
	return m
}

// valueFromJSON turns {"S": "text"} and the like into a value of the SDK.
func valueFromJSON(typed map[string]any) types.AttributeValue {
	for kind, v := range typed {
		switch kind {
		case "S":
			return &types.AttributeValueMemberS{Value: v.(string)}
		case "N":
			return &types.AttributeValueMemberN{Value: v.(string)}
		case "BOOL":
			return &types.AttributeValueMemberBOOL{Value: v.(bool)}
		case "NULL":
			return &types.AttributeValueMemberNULL{Value: v.(bool)}
		case "B":
			return &types.AttributeValueMemberB{Value: bytesFromJSON(v)}
		case "SS":
			return &types.AttributeValueMemberSS{Value: stringsFromJSON(v)}
		case "NS":
			return &types.AttributeValueMemberNS{Value: stringsFromJSON(v)}
		case "BS":
			return &types.AttributeValueMemberBS{Value: [][]byte{bytesFromJSON(v.([]any)[0])}}
		case "L":
			list := []types.AttributeValue{}
			for _, e := range v.([]any) {
				list = append(list, valueFromJSON(e.(map[string]any)))
			}
			return &types.AttributeValueMemberL{Value: list}
		case "M":
			m := map[string]types.AttributeValue{}
			for name, e := range v.(map[string]any) {
				m[name] = valueFromJSON(e.(map[string]any))
			}
			return &types.AttributeValueMemberM{Value: m}
		}
	}
	return nil
}

func bytesFromJSON(v any) []byte {
	b, err := base64.StdEncoding.DecodeString(v.(string))
	if err != nil {
		panic(err) // the tests' own text
	}
	return append([]byte{}, b...)
}

func stringsFromJSON(v any) (all []string) {
	for _, s := range v.([]any) {
		all = append(all, s.(string))
	}
	return all
}
