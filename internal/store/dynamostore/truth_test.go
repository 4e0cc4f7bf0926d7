package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// TestAnswersAreTrue has workers count up a few counters through a service that loses
// requests and replies. What Commit said of each step is held against the counters: one
// that was done counts once, one that was refused does not, and one that is unknown may.
func TestAnswersAreTrue(t *testing.T) {
	const workers, counters = 4, 3
	steps := 25
	if soaktest.On() {
		steps = 1000
	}
	proxy := dynamotest.NewProxy(t, dynamotest.Endpoint(t), dynamotest.Options{Seed: 7, Rates: dynamotest.Rates{
		dynamotest.ErrorBefore: 0.05, dynamotest.ErrorAfter: 0.05, dynamotest.RequestLost: 0.05, dynamotest.ReplyLost: 0.1,
		dynamotest.Conflict: 0.05, dynamotest.Throttling: 0.05,
	}})
	s := openLocal(t, []store.Table{{Name: "t", PartitionKey: "id"}},
		dynamostore.Options{Client: proxy.Client(), Pace: quick()})
	defer closeStore(t, s)
	counter := func(i int) store.Key { return store.Key{PK: fmt.Sprint("counter", i%counters)} }
	for i := range counters {
		for {
			err := s.Commit(t.Context(), store.Put("t", store.NewItem(store.Attribute{Name: "id",
				Value: store.S(counter(i).PK)}, number("n", 0))))
			if err == nil {
				break
			}
			if !errors.Is(err, store.ErrUnknown) {
				t.Fatal(err)
			}
		}
	}
	var tally tally
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for step := range steps {
				tally.add(countUp(t.Context(), s, counter(worker+step), fmt.Sprintf("w%d-%d", worker, step), step%2 == 0))
			}
		})
	}
	all.Wait()
	var sum int64
	for i := range counters {
		it, err := s.Get(t.Context(), "t", counter(i))
		if err != nil {
			t.Fatal(err)
		}
		sum += it.Int("n")
	}
	t.Logf("%d done, %d refused, %d unknown; the counters say %d; faults %v", tally.done, tally.refused,
		tally.unknown, sum, proxy.Counts())
	if tally.other != nil {
		t.Error(tally.other)
	}
	if sum < tally.done || sum > tally.done+tally.unknown {
		t.Errorf("%d steps were done and %d are unknown, the counters say %d", tally.done, tally.unknown, sum)
	}
	if tally.done == 0 || proxy.Counts()[dynamotest.ReplyLost] == 0 {
		t.Error("nothing was done, or nothing was lost: this proves nothing")
	}
}

// countUp reads a counter and writes it one higher, alone or with an item of its own.
func countUp(ctx context.Context, s store.Store, counter store.Key, own string, alone bool) error {
	it, err := s.Get(ctx, "t", counter)
	if err != nil {
		return err
	}
	up := store.Update("t", counter, store.NewItem(number("n", it.Int("n")+1)), nil,
		store.AttributeEquals("n", it.Get("n")))
	if alone {
		return s.Commit(ctx, up)
	}
	return s.Commit(ctx, up, store.Put("t", store.NewItem(store.Attribute{Name: "id", Value: store.S(own)}),
		store.Absent()))
}

// A tally counts answers.
type tally struct {
	mu                     sync.Mutex
	done, refused, unknown int64
	other                  error
}

func (t *tally) add(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.done++
	case errors.Is(err, store.ErrUnknown):
		t.unknown++
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrThrottled):
		t.refused++
	default:
		t.other = err
	}
}

func closeStore(t testing.TB, s store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestMissingTable: a table that is not there is found out by the first request.
func TestMissingTable(t *testing.T) {
	name := dynamotest.Prefix(t) + "none"
	s, err := dynamostore.Open(t.Context(), dynamostore.Options{Tables: []store.Table{{Name: name,
		PartitionKey: "id"}}, Client: dynamotest.Client(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	_, got := s.Get(t.Context(), name, keyA)
	write := store.Put(name, itemA())
	for _, err := range []error{got, s.Commit(t.Context(), write),
		s.Commit(t.Context(), write, store.Check(name, store.Key{PK: "b"}, store.Absent()))} {
		if !errors.Is(err, store.ErrMissing) {
			t.Errorf("%v, want ErrMissing", err)
		}
	}
}

// TestTokens reads what is in the table: each put and update leaves a token of its own,
// and the largest item none.
func TestTokens(t *testing.T) {
	s := openLocal(t, []store.Table{{Name: "t", PartitionKey: "id"}}, dynamostore.Options{})
	defer closeStore(t, s)
	large := store.NewItem(store.Attribute{Name: "id", Value: store.S("b")})
	size, err := store.Size(large)
	if err != nil {
		t.Fatal(err)
	}
	large.Set("blob", store.B(make([]byte, store.MaxItemBytes-size-len("blob"))))
	seen := map[string]bool{}
	for i, c := range []struct {
		writes []store.Write
		key    string
		token  bool
	}{
		{[]store.Write{store.Put("t", itemA(number("n", 1)))}, "a", true},
		{[]store.Write{store.Update("t", keyA, store.NewItem(number("n", 2)), nil)}, "a", true},
		{[]store.Write{store.Update("t", keyA, nil, nil), store.Check("t", store.Key{PK: "c"}, store.Absent())}, "a", true},
		{[]store.Write{store.Put("t", large)}, "b", false},
		{[]store.Write{store.Update("t", store.Key{PK: "b"}, store.NewItem(number("n", 1)), []string{"blob"})}, "b", true},
		{[]store.Write{store.Update("t", store.Key{PK: "b"},
			store.NewItem(store.Attribute{Name: "blob", Value: large.Get("blob")}), []string{"n"})}, "b", false},
	} {
		if err := s.Commit(t.Context(), c.writes...); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		out, err := s.client.GetItem(t.Context(), &dynamodb.GetItemInput{
			TableName: aws.String(s.prefix + "t"),
			Key:       map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: c.key}},
		})
		if err != nil {
			t.Fatal(err)
		}
		token, ok := out.Item["_token"].(*types.AttributeValueMemberB)
		if ok != c.token || (ok && (len(token.Value) != 16 || seen[string(token.Value)])) {
			t.Errorf("write %d leaves the token %v, want one of its own: %t", i, token, c.token)
		}
		if ok {
			seen[string(token.Value)] = true
		}
	}
}

func TestConsumed(t *testing.T) {
	s := openLocal(t, []store.Table{{Name: "t", PartitionKey: "id"}}, dynamostore.Options{})
	defer closeStore(t, s)
	if err := s.Commit(t.Context(), store.Put("t", itemA(store.Attribute{Name: "blob",
		Value: store.B(make([]byte, 5000))}))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "t", keyA); err != nil {
		t.Fatal(err)
	}
	if read, write := s.Consumed(); read != 2 || write != 5 {
		t.Errorf("Consumed = %g, %g; want 2 read units (strong, over 4 KB) and 5 write units", read, write)
	}
}

func BenchmarkLocal(b *testing.B) {
	s := openLocal(b, []store.Table{{Name: "t", PartitionKey: "id"}}, dynamostore.Options{})
	defer closeStore(b, s)
	put := func(id string) store.Write {
		return store.Put("t", store.NewItem(store.Attribute{Name: "id", Value: store.S(id)}, number("n", 1),
			store.Attribute{Name: "blob", Value: store.B(make([]byte, 500))}))
	}
	if err := s.Commit(b.Context(), put("a")); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		do   func(i int) error
	}{
		{"Get", func(int) error { _, err := s.Get(b.Context(), "t", keyA); return err }},
		{"Put", func(i int) error { return s.Commit(b.Context(), put(fmt.Sprint("p", i%100))) }},
		{"Transaction", func(i int) error {
			return s.Commit(b.Context(), put(fmt.Sprint("p", i%100)), put(fmt.Sprint("q", i%100)),
				store.Update("t", keyA, store.NewItem(number("n", int64(i))), nil))
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if err := c.do(i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
