package key_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

const merchant = "6f2c0f5e-0b7e-4d7e-9d0a-1c2d3e4f5a6b"

// A world is a store, a clock, and the keys as two processes see them.
type world struct {
	t      *testing.T
	now    time.Time
	store  *counting
	table  string
	serve  *key.Ring
	person *key.Ring
}

// counting counts the reads of a store, and may fail.
type counting struct {
	store.Store
	mu      sync.Mutex // of commits: a sign-in commits beside the time of the last use
	reads   int
	commits int
	fail    error
	before  func() // the next commit
	lost    bool   // the answer to the next creation
}

func (c *counting) Get(ctx context.Context, table string, k store.Key) (store.Item, error) {
	if c.reads++; c.fail != nil {
		return nil, c.fail
	}
	return c.Store.Get(ctx, table, k)
}

func (c *counting) Commit(ctx context.Context, writes ...store.Write) error {
	c.mu.Lock()
	c.commits++
	c.mu.Unlock()
	if c.before != nil {
		c.before()
	}
	err := c.Store.Commit(ctx, writes...)
	if err == nil && c.lost && len(writes) > 1 {
		c.lost, err = false, store.ErrUnknown
	}
	return err
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), table: schema.New("").RecurringPayments.Name}
	now := func() time.Time { return w.now }
	s, err := memstore.Open(schema.New("").All(), now)
	if err != nil {
		t.Fatal(err)
	}
	w.store = &counting{Store: s}
	o := key.Options{Store: w.store, Table: w.table, Now: now}
	w.person = key.New(o)
	w.serve = key.New(o)
	return w
}

func (w *world) create(k key.Key) (*key.Key, string) {
	w.t.Helper()
	text, err := w.person.Create(w.t.Context(), &k)
	if err != nil {
		w.t.Fatal(err)
	}
	return &k, text.Reveal()
}

// find is the answer to a caller with the text: "" for a valid key, or the reason.
func (w *world) find(text string) string {
	w.t.Helper()
	k, err := w.serve.Find(w.t.Context(), text)
	w.serve.Wait()
	switch {
	case err == nil && k != nil:
		return ""
	case !errors.Is(err, key.ErrRefused):
		w.t.Fatalf("got %v", err)
	}
	return err.Error()
}

// isField reports whether the error is about the field, and has the text.
func isField(err error, name, text string) bool {
	e, ok := errors.AsType[*field.Error](err)
	return ok && e.Field == name && strings.Contains(e.Problem, text)
}

func TestScope_Includes(t *testing.T) {
	all := key.Scopes()
	for i, s := range all {
		for j, other := range all {
			if s.Includes(other) != (i >= j) {
				t.Errorf("%s includes %s: %t", s, other, i < j)
			}
		}
		if s.Includes("") || s.Includes("other") || key.Scope("").Includes(s) || key.Scope("x").Includes(s) {
			t.Errorf("%s: a scope that is none is included, or includes", s)
		}
	}
	if key.Scope("").Includes("") {
		t.Error("the zero scope includes itself")
	}
}

func TestRing_CreateAndFind(t *testing.T) {
	w := newWorld(t)
	k, text := w.create(key.Key{Name: "shop", Scope: key.Charge, Merchant: strings.ToUpper(merchant)})
	if !regexp.MustCompile(`^`+k.ID+`_[0-9a-f]{64}$`).MatchString(text) || secret.Redact(text) == text {
		t.Errorf("got the key %q of the id %q", text, k.ID)
	}
	got, err := w.serve.Find(t.Context(), text)
	if err != nil || got.Name != "shop" || got.Scope != key.Charge || got.Merchant != merchant || !got.Created.Equal(w.now) ||
		!got.Sees(merchant) || got.Sees("other") {
		t.Fatalf("got %+v, %v", got, err)
	}
	it, err := w.store.Store.Get(t.Context(), w.table, store.Key{PK: "KEYS", SK: k.ID})
	if _, hidden, _ := strings.Cut(text[3:], "_"); err != nil || strings.Contains(it.Str(schema.SecretHash), hidden) {
		t.Errorf("the store has the secret: %v, %v", it, err)
	}
	for text, why := range map[string]string{
		"": "does not have the form of a key", "x": "does not have the form of a key", text[1:]: "does not have the form of a key", text + "0": "does not have the form of a key",
		strings.ToUpper(text): "does not have the form of a key", "dd_aaaaaaaaaa_" + text[14:]: "does not exist",
		text[:14] + strings.Repeat("0", 64): "secret is wrong", "environment-key-of-1": "does not have the form of a key",
	} {
		if got := w.find(text); !strings.Contains(got, why) {
			t.Errorf("%q: got %q, want %q", text, got, why)
		}
	}
	w.store.fail = errors.New("down")
	w.now = w.now.Add(time.Minute)
	if _, err := w.serve.Find(t.Context(), text); errors.Is(err, key.ErrRefused) || err == nil {
		t.Errorf("the store is down: got %v", err)
	}
}

func TestRing_RevokeCountsWithinSeconds(t *testing.T) {
	w := newWorld(t)
	k, text := w.create(key.Key{Name: "shop", Scope: key.Read})
	if why := w.find(text); why != "" {
		t.Fatal(why)
	}
	if _, err := w.person.Revoke(t.Context(), k.ID); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(5 * time.Second)
	if why := w.find(text); !strings.Contains(why, "revoked") {
		t.Errorf("five seconds after: %q", why)
	}
	w.now = w.now.Add(-time.Hour) // a clock that was put back must not make it valid again
	if why := w.find(text); !strings.Contains(why, "revoked") {
		t.Errorf("by an earlier clock: %q", why)
	}
	if _, err := w.person.Revoke(t.Context(), k.ID); !isField(err, "key", "must be the name or ID") {
		t.Errorf("again: %v", err)
	}
}

// TestRing_UseAfterRevocation: noting a use does not take the revocation back.
func TestRing_UseAfterRevocation(t *testing.T) {
	w := newWorld(t)
	_, text := w.create(key.Key{Name: "shop", Scope: key.Read})
	if _, err := w.person.Revoke(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	other := key.New(key.Options{Store: w.store, Table: w.table, Now: func() time.Time { return w.now }})
	if _, err := other.Find(t.Context(), text); !errors.Is(err, key.ErrRefused) {
		t.Fatalf("got %v", err)
	}
	other.Wait()
	for k, err := range w.person.All(t.Context()) {
		if err != nil || k.Revoked.IsZero() || !k.Used.IsZero() {
			t.Errorf("got %+v, %v", k, err)
		}
	}
}

func TestRing_Expiry(t *testing.T) {
	w := newWorld(t)
	_, text := w.create(key.Key{Name: "shop", Scope: key.Read, Expires: w.now.Add(time.Hour)})
	w.now = w.now.Add(time.Hour - time.Millisecond)
	if why := w.find(text); why != "" {
		t.Errorf("before its end: %s", why)
	}
	w.now = w.now.Add(time.Millisecond)
	if why := w.find(text); !strings.Contains(why, "expired") {
		t.Errorf("at its end: %q", why)
	}
	w.now = w.now.Add(401 * 24 * time.Hour)
	for k := range w.person.All(t.Context()) {
		t.Errorf("still listed after 400 days: %+v", k)
	}
}

func TestRing_LastUseIsNotedOnceAMinute(t *testing.T) {
	w := newWorld(t)
	_, text := w.create(key.Key{Name: "shop", Scope: key.Read})
	w.store.commits, w.store.reads = 0, 0
	begun := w.now
	for range 120 {
		w.find(text)
		w.now = w.now.Add(time.Second)
	}
	if w.store.commits != 2 || w.store.reads > 24 {
		t.Errorf("two minutes of a use each second: %d writes, %d reads", w.store.commits, w.store.reads)
	}
	for k := range w.person.All(t.Context()) {
		if !k.Used.Equal(begun.Add(time.Minute)) {
			t.Errorf("last used %s", k.Used)
		}
	}
	before := w.store.reads
	for range 100 {
		w.find("dd_aaaaaaaaaa_" + text[14:])
	}
	if n := w.store.reads - before; n != 100 {
		t.Errorf("100 unknown keys: %d reads: they are cached", n)
	}
}

func TestRing_TwoKeysOfAName(t *testing.T) {
	w := newWorld(t)
	old, oldText := w.create(key.Key{Name: "shop", Scope: key.Read})
	_, newText := w.create(key.Key{Name: "shop", Scope: key.Read})
	if _, err := w.person.Create(t.Context(), &key.Key{Name: "shop", Scope: key.Read}); !isField(err, "name", old.ID) {
		t.Errorf("a third one: %v", err)
	}
	if w.find(oldText) != "" || w.find(newText) != "" {
		t.Error("one of two is refused")
	}
	if _, err := w.person.Revoke(t.Context(), "shop"); !isField(err, "key", old.ID) {
		t.Errorf("by the name of two: %v", err)
	}
	if k, err := w.person.Revoke(t.Context(), old.ID); err != nil || k.ID != old.ID {
		t.Errorf("by its id: %v", err)
	}
	if k, err := w.person.Revoke(t.Context(), "shop"); err != nil || k.ID == old.ID {
		t.Errorf("by the name of one: %v", err)
	}
}

// TestRing_CreateAtOnce: of several creations at one instant no more than two make a valid key, and the
// key of a creation whose answer was lost is the one that was shown.
func TestRing_CreateAtOnce(t *testing.T) {
	w := newWorld(t)
	w.create(key.Key{Name: "other", Scope: key.Read})
	between := func(n int) { // so many creations by others just before the commit
		w.store.before = func() {
			for range n {
				w.store.before = nil
				w.create(key.Key{Name: "shop", Scope: key.Read})
			}
		}
	}
	between(2)
	if _, err := w.person.Create(t.Context(), &key.Key{Name: "shop", Scope: key.Read}); !isField(err, "name", "two valid keys") {
		t.Errorf("a third one: %v", err)
	}
	w = newWorld(t)
	between(1)
	w.store.lost = true
	k, text := w.create(key.Key{Name: "shop", Scope: key.Read})
	n := 0
	for range w.person.All(t.Context()) {
		n++
	}
	if n != 2 || w.find(text) != "" {
		t.Errorf("%d keys, and %s is %q", n, k.ID, w.find(text))
	}
}

func TestRing_CreateRefuses(t *testing.T) {
	w := newWorld(t)
	for want, k := range map[string]key.Key{
		"name":     {Name: "a b", Scope: key.Read},
		"name ":    {Scope: key.Read},
		"name  ":   {Name: "dd_abcdefghij", Scope: key.Read},
		"name   ":  {Name: "4242-4242-4242-4242", Scope: key.Read},
		"scope":    {Name: "a"},
		"scope ":   {Name: "a", Scope: "root"},
		"merchant": {Name: "a", Scope: key.Read, Merchant: "m"},
		"expires":  {Name: "a", Scope: key.Read, Expires: w.now},
	} {
		_, err := w.person.Create(t.Context(), &k)
		if e, ok := errors.AsType[*field.Error](err); !ok || e.Field != strings.TrimSpace(want) {
			t.Errorf("%+v: got %v, want %s", k, err, want)
		}
	}
	for k := range w.person.All(t.Context()) {
		t.Errorf("stored: %+v", k)
	}
}

// TestRing_DamagedItem: an end or a merchant that cannot be read does not widen what the key may do.
func TestRing_DamagedItem(t *testing.T) {
	for _, name := range []string{schema.ExpiresDate, schema.RevokedDate, schema.Merchant, schema.Scope, schema.SecretHash} {
		w := newWorld(t)
		k, text := w.create(key.Key{Name: "shop", Scope: key.Admin, Merchant: merchant, Expires: w.now.Add(time.Hour)})
		err := w.store.Store.Commit(t.Context(), store.Update(w.table, store.Key{PK: "KEYS", SK: k.ID},
			store.NewItem(store.Attribute{Name: name, Value: store.Int(1)}), nil))
		if err != nil {
			t.Fatal(err)
		}
		got, err := w.serve.Find(t.Context(), text)
		if err == nil && (name != schema.Scope || got.Scope.Includes(key.Read)) {
			t.Errorf("%s is no text: got %+v", name, got)
		}
		w.serve.Wait()
	}
}
