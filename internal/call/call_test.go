package call_test

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

func put(sk string) store.Write {
	return store.Put(schema.New("").RecurringPayments.Name, store.NewItem(
		store.Attribute{Name: schema.PK, Value: store.S("ACC#1")}, store.Attribute{Name: schema.SK, Value: store.S(sk)}))
}

// TestCommit: the first commit of a call stores its key's row, later ones do not, and another call with
// the key writes nothing.
func TestCommit(t *testing.T) {
	s, err := memstore.Open(schema.New("").All(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	asked := func(key, caller string) (context.Context, *call.Call) {
		c := &call.Call{Actor: "key shop", Key: key, Caller: caller, Hash: "h", Object: "accounts/1",
			Table: schema.New("").RecurringPayments.Name, Now: time.Now}
		return call.With(t.Context(), c), c
	}
	ctx, first := asked("k", "")
	for _, sk := range []string{"a", "b"} {
		if err := call.Commit(ctx, s, put(sk)); err != nil || !first.Stored() {
			t.Fatal(sk, err)
		}
	}
	ctx, second := asked("k", "")
	err = call.Commit(ctx, s, put("c"))
	repeated, ok := errors.AsType[*call.RepeatedError](err)
	if !ok || repeated.Row.Object != "accounts/1" || second.Stored() || store.Retryable(err) {
		t.Fatal(err)
	}
	if _, err := s.Get(ctx, put("c").Table, store.Key{PK: "ACC#1", SK: "c"}); !errors.Is(err, store.ErrNotFound) {
		t.Fatal("the second call has written:", err)
	}
	ctx, other := asked("k", "another merchant")
	if err := call.Commit(ctx, s, put("d")); err != nil || !other.Stored() {
		t.Fatal(err)
	}
}

// flaky answers the next commits as the script says, each once.
type flaky struct {
	store.Store
	script []string
	late   func() // a commit that is still under way
	blind  bool   // the next read fails, too
}

func (f *flaky) Commit(ctx context.Context, writes ...store.Write) error {
	if len(f.script) == 0 {
		return f.Store.Commit(ctx, writes...)
	}
	step := f.script[0]
	f.script = f.script[1:]
	switch step {
	case "lost":
		_ = f.Store.Commit(ctx, writes...)
	case "late":
		f.late = func() { _ = f.Store.Commit(context.Background(), writes...) }
	case "landing": // meanwhile, the late one
		f.late()
		return f.Store.Commit(ctx, writes...)
	case "blind":
		_ = f.Store.Commit(ctx, writes...)
		f.blind = true
	}
	return store.ErrUnknown
}

func (f *flaky) Get(ctx context.Context, table string, key store.Key) (store.Item, error) {
	if f.blind {
		f.blind = false
		return nil, store.ErrThrottled
	}
	return f.Store.Get(ctx, table, key)
}

func open(t *testing.T) store.Store {
	t.Helper()
	s, err := memstore.Open(schema.New("").All(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func asks(t *testing.T, key, hash string) (context.Context, *call.Call) {
	c := &call.Call{Actor: "key shop", Key: key, Hash: hash, Table: schema.New("").RecurringPayments.Name, Now: time.Now}
	return call.With(t.Context(), c), c
}

// TestCommit_LostReplies: the row tells whether a commit without a reply has landed, at once or later, and a
// later commit of the call is never taken for an earlier one.
func TestCommit_LostReplies(t *testing.T) {
	for _, test := range []struct {
		script []string
		errs   []error // of one commit after the other
		stored string  // the write that is in the store
	}{
		{[]string{"lost"}, []error{nil}, "1"},
		{[]string{"never"}, []error{store.ErrUnknown, nil}, "2"},
		{[]string{"late", "landing"}, []error{store.ErrUnknown, store.ErrConflict}, "1"},
		{[]string{"late", "never"}, []error{store.ErrUnknown, store.ErrUnknown, nil}, "3"},
		{[]string{"blind"}, []error{store.ErrOvertaken}, "1"},
	} {
		s := &flaky{Store: open(t), script: test.script}
		ctx, c := asks(t, "k", "h")
		for i, want := range test.errs {
			err := call.Commit(ctx, s, put(strconv.Itoa(i+1)))
			if !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("%v: commit %d: %v, want %v", test.script, i+1, err, want)
			}
		}
		if last := test.errs[len(test.errs)-1]; !c.Stored() && !errors.Is(last, store.ErrOvertaken) {
			t.Errorf("%v: the row is not known to be stored", test.script)
		}
		for i := range 4 {
			_, err := s.Get(t.Context(), put("").Table, store.Key{PK: "ACC#1", SK: strconv.Itoa(i)})
			if (err == nil) != (strconv.Itoa(i) == test.stored) {
				t.Errorf("%v: write %d: %v", test.script, i, err)
			}
		}
		again, second := asks(t, "k", "h")
		if row, err := call.Begin(again, s, nil); err != nil || row == nil || second.Repeats() != row || second.Stored() {
			t.Errorf("%v: repeated: %v %v", test.script, row, err)
		}
	}
}

// TestBegin: an equal call continues, and its commits store no row. A call that asks for something else is
// refused, also where only one of both has a hash.
func TestBegin(t *testing.T) {
	s := open(t)
	ctx, _ := asks(t, "k", "h")
	if row, err := call.Begin(ctx, s, nil); row != nil || err != nil {
		t.Fatal(row, err)
	}
	if err := errors.Join(call.Store(ctx, s), call.Store(ctx, s), call.Commit(ctx, s, put("a"))); err != nil {
		t.Fatal(err)
	}
	same := func(*call.Row) error { return nil }
	other := errors.New("another request")
	for _, test := range []struct {
		hash string
		same func(*call.Row) error
		want error // nil: it continues
	}{
		{"h", nil, nil}, {"h", same, nil}, {"", same, nil}, {"", func(*call.Row) error { return other }, other},
		{"x", nil, new(call.RepeatedError)}, {"x", same, new(call.RepeatedError)}, {"", nil, new(call.RepeatedError)},
	} {
		ctx, c := asks(t, "k", test.hash)
		row, err := call.Begin(ctx, s, test.same)
		_, repeated := errors.AsType[*call.RepeatedError](err)
		_, want := errors.AsType[*call.RepeatedError](test.want)
		if row == nil || repeated != want || !want && !errors.Is(err, test.want) || (c.Repeats() != nil) != (err == nil) {
			t.Errorf("%q: %v, %v", test.hash, row, err)
		}
		if err == nil {
			if err := call.Commit(ctx, s, put("b")); err != nil {
				t.Error(err)
			}
		}
	}
	if row, err := call.Begin(t.Context(), s, nil); row != nil || err != nil {
		t.Error(row, err)
	}
}

// TestCommit_Twins: of two processes with one key, one commits.
func TestCommit_Twins(t *testing.T) {
	for range 50 {
		s := open(t)
		errs := make(chan error, 2)
		for _, sk := range []string{"a", "b"} {
			ctx, _ := asks(t, "k", "h")
			go func() { errs <- call.Commit(ctx, s, put(sk)) }()
		}
		first, second := <-errs, <-errs
		if _, repeated := errors.AsType[*call.RepeatedError](cmp.Or(first, second)); !repeated || first != nil && second != nil {
			t.Fatal(first, second)
		}
	}
}

// TestCheck: the version counts until the call has committed once.
func TestCheck(t *testing.T) {
	s := open(t)
	item := func(version int64) store.Item {
		return store.NewItem(store.Attribute{Name: schema.Version, Value: store.Int(version)})
	}
	for _, key := range []string{"", "k"} {
		ctx, c := asks(t, key, "h")
		c.Expect = 3
		if err := errors.Join(call.Check(ctx, item(3)), call.Check(t.Context(), item(4))); err != nil {
			t.Error(err)
		}
		for _, was := range []store.Item{item(2), item(4), nil} {
			if err := call.Check(ctx, was); !errors.Is(err, call.ErrVersion) || store.Retryable(err) {
				t.Error(was, err)
			}
		}
		if err := errors.Join(call.Commit(ctx, s, put("a")), call.Check(ctx, item(4))); err != nil {
			t.Error(err)
		}
	}
}
