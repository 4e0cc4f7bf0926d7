package dynamostore_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/dynamotest"
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
		if _, err := p.client.CreateTable(t.Context(), dynamotable.Input(table, dynamotable.Settings{})); err != nil { // there at once
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
func (p *prefixed) Remote() bool { return !soak() }

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
