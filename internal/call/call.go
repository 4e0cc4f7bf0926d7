// Package call carries a request from a person, a program or Stripe to the commits that it causes. It
// contains the actor, and the idempotency key, whose row the first of these commits stores.
//
// It does not know what a request changes.
package call

import (
	"cmp"
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

// A Call is one request for a change. With a Key or Expect, only one goroutine may use it.
type Call struct {
	Actor  string // who makes the request, such as "user anna", "key shop" or "event evt_1"
	Reason string // why, in the customer's words; "" if not given

	// Key is the idempotency key, or "" for none. The next fields are only used with a key.
	Key    string
	Caller string // merchant of the caller's API key; "" for billing
	Hash   string // hash of the method, path and decoded body; "" if only Extra identifies the request
	Object string // path of the object that the call creates or changes, such as accounts/123
	Table  string // recurring payments table, which contains the rows of keys
	Now    func() time.Time

	// Expect is the version that the object must have when the call's first commit changes it, or zero
	// for any.
	Expect int64

	// Extra contains attributes that the operation adds to the key's row before its first commit.
	Extra store.Item

	token     string // prefix of this call's tokens, which identify its row
	tries     int    // number of commits with the row; each has its own token
	stored    bool
	committed bool
	repeats   *Row
}

type contextKey struct{}

// With returns a context whose commits belong to the call.
func With(ctx context.Context, c *Call) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// Of returns the context's call, or nil.
func Of(ctx context.Context) *Call {
	c, _ := ctx.Value(contextKey{}).(*Call)
	return c
}

// Without returns a context whose commits belong to no call.
func Without(ctx context.Context) context.Context { return With(ctx, nil) }

// After returns a context for the commits that follow the call's first one. They have the call's actor, but
// no key.
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

// Stored reports whether this call has stored its key's row. From then on, the request is fixed and a
// repeated call finds it.
func (c *Call) Stored() bool { return c != nil && c.stored && c.repeats == nil }

// ErrVersion means that the object's version differs from Call.Expect.
var ErrVersion = errors.New("the object has changed since it was read")

// Check returns ErrVersion if the call has committed nothing yet and the stored item's version differs from
// Call.Expect.
func Check(ctx context.Context, was store.Item) error {
	if c := Of(ctx); c != nil && c.Expect != 0 && !c.committed && was.Int(schema.Version) != c.Expect {
		return ErrVersion
	}
	return nil
}

// Begin returns the row that an earlier call has stored under the key, or nil. If there is one, this call's
// commits continue the earlier request and store no row. If the hashes differ, Begin returns a RepeatedError.
// Otherwise, Begin returns the error of same, which compares the requests. With same, an empty hash never
// differs.
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

// Creates sets the path of the object that the context's call creates, if it is not set yet.
func Creates(ctx context.Context, object string) {
	if c := Of(ctx); c != nil && c.Object == "" {
		c.Object = object
	}
}

// Store stores the key's row before a request to another system, so that a repeated call continues it.
func Store(ctx context.Context, s store.Store) error {
	return store.Retry(ctx, "idempotency key", func() error {
		if c := Of(ctx); c == nil || c.Key == "" || c.stored {
			return nil
		}
		return Commit(ctx, s)
	})
}

// A RepeatedError means that another call has already stored the key. Nothing was written.
type RepeatedError struct{ Row *Row }

func (e *RepeatedError) Error() string {
	return "the idempotency key was used before, on " + e.Row.Created.UTC().Format(time.DateOnly)
}

// Commit commits the writes to s. The first commit of a call with a key also stores the key's row. If
// another call has stored that row, Commit writes nothing and returns a RepeatedError, which ends
// store.Retry. If an earlier attempt of this call has succeeded late, Commit writes nothing and returns a
// conflict, and Stored then reports true.
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
		case errors.Is(rerr, store.ErrNotFound): // another write conflicts, or nothing was written
			return err
		case rerr != nil: // a repeated request finds out
			return fmt.Errorf("%w: %w: %w", store.ErrOvertaken, err, rerr)
		case !c.owns(row):
			return &RepeatedError{row}
		case row.Item.Str(schema.Token) == c.lastToken(): // the row proves that the whole commit succeeded
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
	Hash    string // "" if the key came from a command
	Object  string
	Actor   string
	Created time.Time
	Item    store.Item // with the attributes of Extra
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

// KeyPrefix is the prefix of the partition key of an idempotency key's row.
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
	c.token = cmp.Or(c.token, rand.Text())
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
