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
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Call is one request for a change. It belongs to one goroutine.
type Call struct {
	Actor string // who asks, such as "user anna", "key shop" or "event evt_1"

	// Key is the idempotency key, or "" for none. The fields below are used only with a key.
	Key    string
	Caller string // merchant of the caller's API key; "" for a caller of billing
	Hash   string // identifies what is asked: method, path and decoded body; "" if only Extra does
	Object string // path of the object that the call creates or changes, such as accounts/123
	Table  string // recurring payments table, which has the rows of keys
	Now    func() time.Time

	// Extra has attributes that the operation adds to the key's row before its first commit.
	Extra store.Item

	token  string // tells our row from that of another call with the same key
	stored bool
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

// Stored reports whether the key's row is stored, so that the request is fixed and a repeat finds it.
func (c *Call) Stored() bool { return c.stored }

// A RepeatedError is that of a commit whose key another call has stored before. Nothing was written.
type RepeatedError struct{ Row *Row }

func (e *RepeatedError) Error() string {
	return "the idempotency key was used before, on " + e.Row.Created.UTC().Format(time.DateOnly)
}

// Commit commits the writes to s. The first commit of a call with a key also stores the key's row. If
// another call has stored that row, Commit writes nothing and returns a RepeatedError, which ends
// store.Retry.
func Commit(ctx context.Context, s store.Store, writes ...store.Write) error {
	c := Of(ctx)
	if c == nil || c.Key == "" || c.stored {
		return s.Commit(ctx, writes...)
	}
	err := s.Commit(ctx, append(writes, store.Put(c.Table, c.item(), store.Absent()))...)
	switch {
	case err == nil:
		c.stored = true
	case store.Retryable(err):
		row, rerr := c.Find(ctx, s)
		switch {
		case errors.Is(rerr, store.ErrNotFound): // something else is in the way, or nothing was written
		case rerr != nil:
			return errors.Join(err, rerr)
		case row.Item.Str(schema.Token) != c.token:
			return &RepeatedError{row}
		default:
			c.stored = true // the caller reads again, and finds its other writes
		}
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

func (c *Call) item() store.Item {
	if c.token == "" {
		c.token = rand.Text()
	}
	key := c.rowKey()
	it := c.Extra.Clone()
	for name, text := range map[string]string{schema.PK: key.PK, schema.SK: key.SK, schema.Actor: c.Actor,
		schema.RequestHash: c.Hash, schema.Object: c.Object, schema.Token: c.token,
		schema.CreatedDate: c.Now().UTC().Format("2006-01-02T15:04:05.000Z")} {
		if text != "" {
			it.Set(name, store.S(text))
		}
	}
	return it
}
