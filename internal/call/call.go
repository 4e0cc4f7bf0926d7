// Package call carries a request of a person, a program or Stripe to the commits that it causes: who
// asks, and the idempotency key whose row the first of these commits stores.
//
// It does not know what a request changes.
package call

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Call is one request for a change. With a Key or Expect, it belongs to one goroutine.
type Call struct {
	Actor string // who asks, such as "user anna", "key shop" or "event evt_1"

	// Key is the idempotency key, or "" for none. The fields below are used only with a key.
	Key    string
	Caller string // merchant of the caller's API key; "" for a caller of billing
	Hash   string // identifies what is asked: method, path and decoded body; "" if only Extra does
	Object string // path of the object that the call creates or changes, such as accounts/123
	Table  string // recurring payments table, which has the rows of keys
	Now    func() time.Time

	// Expect is the version that the object must have when the call's first commit changes it. Zero
	// accepts any.
	Expect int64

	// Extra has attributes that the operation adds to the key's row before its first commit.
	Extra store.Item

	token     string // begins the token that tells our row from that of another call with the same key
	tries     int    // commits with the row; each has its own token
	stored    bool
	committed bool
	repeats   *Row
}

type contextKey struct{}

// With returns a context whose commits belong to the call.
func With(ctx context.Context, c *Call) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// Of returns the call to which the context belongs, or nil.
func Of(ctx context.Context) *Call {
	c, _ := ctx.Value(contextKey{}).(*Call)
	return c
}

// Without returns a context whose commits belong to no call.
func Without(ctx context.Context) context.Context { return With(ctx, nil) }

// After returns a context for the commits that follow the first one of the context's call: they have its
// actor, and no key.
func After(ctx context.Context) context.Context {
	c := Of(ctx)
	if c == nil {
		return ctx
	}
	return With(ctx, &Call{Actor: c.Actor})
}

// KeyOf returns the idempotency key of the context's call, or "".
func KeyOf(ctx context.Context) string {
	if c := Of(ctx); c != nil {
		return c.Key
	}
	return ""
}

// Stored reports whether this call has stored its key's row, so that the request is fixed and a repeat
// finds it.
func (c *Call) Stored() bool { return c != nil && c.stored && c.repeats == nil }

// ErrVersion means that the object has another version than the call expects.
var ErrVersion = errors.New("the object has changed since it was read")

// Check returns ErrVersion if the call has committed nothing yet and expects another version than the
// stored item has.
func Check(ctx context.Context, was store.Item) error {
	if c := Of(ctx); c != nil && c.Expect != 0 && !c.committed && was.Int(schema.Version) != c.Expect {
		return ErrVersion
	}
	return nil
}

// Begin returns the row that an earlier call has stored under the key, or nil. The commits that follow
// then continue the earlier request, and store no row. Begin returns the error of same, which is nil if
// both calls ask for the same. If their hashes differ, Begin returns a RepeatedError. With same, that takes
// two hashes.
func Begin(ctx context.Context, s store.Store, same func(*Row) error) (*Row, error) {
	c := Of(ctx)
	if c == nil || c.Key == "" || c.stored {
		return c.Repeats(), nil
	}
	row, err := c.Find(ctx, s)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case c.owns(row):
		c.stored, c.committed = true, true
		return nil, nil
	case row.Hash != c.Hash && (same == nil || row.Hash != "" && c.Hash != ""):
		err = &RepeatedError{row}
	case same != nil:
		err = same(row)
	}
	if err == nil {
		c.stored, c.committed, c.repeats = true, true, row
	}
	return row, err
}

// Repeats returns the row of the earlier call that this call repeats, or nil. Only Begin finds it.
func (c *Call) Repeats() *Row {
	if c == nil {
		return nil
	}
	return c.repeats
}

// Creates sets the path of the object that the context's call creates, if the caller could not.
func Creates(ctx context.Context, object string) {
	if c := Of(ctx); c != nil && c.Object == "" {
		c.Object = object
	}
}

// Store stores the key's row before a request to another system, which its repetition then continues.
func Store(ctx context.Context, s store.Store) error {
	return store.Retry(ctx, "idempotency key", func() error {
		if c := Of(ctx); c == nil || c.Key == "" || c.stored {
			return nil
		}
		return Commit(ctx, s)
	})
}

// A RepeatedError is that of a commit whose key another call has stored before. Nothing was written.
type RepeatedError struct{ Row *Row }

func (e *RepeatedError) Error() string {
	return "the idempotency key was used before, on " + e.Row.Created.UTC().Format(time.DateOnly)
}

// Commit commits the writes to s. The first commit of a call with a key also stores the key's row. If
// another call has stored that row, Commit writes nothing and returns a RepeatedError, which ends
// store.Retry. If an earlier try of this call has landed late, Commit writes nothing and returns a
// conflict, after which Stored reports true.
func Commit(ctx context.Context, s store.Store, writes ...store.Write) error {
	c := Of(ctx)
	if c == nil || c.Key == "" || c.stored {
		err := s.Commit(ctx, writes...)
		if err == nil && c != nil && c.Expect != 0 {
			c.committed = true
		}
		return err
	}
	err := s.Commit(ctx, append(slices.Clone(writes), store.Put(c.Table, c.item(), store.Absent()))...)
	if store.Retryable(err) {
		row, rerr := c.Find(ctx, s)
		switch {
		case errors.Is(rerr, store.ErrNotFound): // something else is in the way, or nothing was written
			return err
		case rerr != nil: // a repetition of the request finds out
			return fmt.Errorf("%w: %w: %w", store.ErrOvertaken, err, rerr)
		case !c.owns(row):
			return &RepeatedError{row}
		case row.Item.Str(schema.Token) == c.lastToken(): // all or nothing: the row tells that it is all
			err = nil
		}
		c.stored, c.committed = true, true
	}
	if err == nil {
		c.stored, c.committed = true, true
	}
	return err
}

// A Row is the stored row of an idempotency key. It never expires.
type Row struct {
	Hash    string // "" if the key came from a command line
	Object  string
	Actor   string
	Created time.Time
	Item    store.Item // with the attributes of Extra
}

// ObjectPath returns the path of the row's object, or "" without a row.
func (r *Row) ObjectPath() string {
	if r == nil {
		return ""
	}
	return r.Object
}

// Find returns the row of the call's key, or store.ErrNotFound.
func (c *Call) Find(ctx context.Context, s store.Store) (*Row, error) {
	it, err := s.Get(ctx, c.Table, c.rowKey())
	if err != nil {
		return nil, err
	}
	at, err := time.Parse(time.RFC3339, it.Str(schema.CreatedDate))
	if err != nil {
		return nil, fmt.Errorf("row of an idempotency key: %s is not a timestamp: %w", schema.CreatedDate, err)
	}
	return &Row{Hash: it.Str(schema.RequestHash), Object: it.Str(schema.Object), Actor: it.Str(schema.Actor), Created: at, Item: it}, nil
}

// KeyPrefix begins the partition key of an idempotency key's row.
const KeyPrefix = "KEY#"

func (c *Call) rowKey() store.Key {
	sum := sha256.Sum256([]byte(c.Caller + "\x00" + c.Key))
	return store.Key{PK: KeyPrefix + hex.EncodeToString(sum[:16]), SK: "KEY"}
}

// owns reports whether a commit of this call has stored the row.
func (c *Call) owns(row *Row) bool {
	return c.token != "" && strings.HasPrefix(row.Item.Str(schema.Token), c.token)
}

func (c *Call) lastToken() string { return c.token + "-" + strconv.Itoa(c.tries) }

func (c *Call) item() store.Item {
	if c.token == "" {
		c.token = rand.Text()
	}
	c.tries++
	key := c.rowKey()
	it := c.Extra.Clone()
	for name, text := range map[string]string{schema.PK: key.PK, schema.SK: key.SK, schema.Actor: c.Actor,
		schema.RequestHash: c.Hash, schema.Object: c.Object, schema.Token: c.lastToken(),
		schema.CreatedDate: c.Now().UTC().Format("2006-01-02T15:04:05.000Z")} {
		if text != "" {
			it.Set(name, store.S(text))
		}
	}
	return it
}
