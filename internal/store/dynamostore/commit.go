package dynamostore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/store"
)

const (
	tokenBytes  = 16
	markedBytes = len(tokenName) + tokenBytes // size of a token in an item
)

// A commit is the writes of one Commit on their way.
type commit struct {
	*Store
	list   []store.Write
	tables []*store.Table // of each write
	now    int64          // by which items are expired, the same for every attempt
	token  []byte         // of this commit, in every item it puts or updates; nil for none
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, writes ...store.Write) error {
	if err := cmp.Or(s.schema.CheckCommit(ctx, writes), checkReserved(writes)); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	c := &commit{Store: s, list: rewritten(s.schema, writes), now: s.now().Unix()}
	for i := range writes {
		c.tables = append(c.tables, s.schema[writes[i].Table])
	}
	if len(writes) == 1 && writes[0].Op == store.OpCheck {
		return c.check(ctx)
	}
	if c.token = newToken(); !c.fits() {
		c.token = nil
	}
	marked := c.token != nil
	err := c.send(ctx)
	if marked && errors.Is(err, store.ErrTooLarge) {
		// An updated item may be just as large as one may be, without the token.
		c.token = nil
		err = c.send(ctx)
	}
	s.Note(err, writes...)
	if errors.Is(err, store.ErrUnknown) {
		s.log.LogAttrs(ctx, slog.LevelWarn, "the outcome of a write is unknown",
			slog.String("tables", strings.Join(c.names(), ", ")), slog.Any("error", err))
	}
	return err
}

// rewritten returns the writes with those of store.Rewrite as updates.
func rewritten(schema store.Schema, writes []store.Write) []store.Write {
	list := slices.Clone(writes)
	for i := range list {
		w := &list[i]
		if w.Op != store.OpPut || w.Was == nil {
			continue
		}
		if set, remove := w.Differences(); len(set)+len(remove) <= store.MaxUpdateAttributes {
			*w = store.Update(w.Table, w.KeyIn(schema[w.Table]), set, remove, w.If...)
		}
	}
	return list
}

func (c *commit) send(ctx context.Context) error {
	if len(c.list) == 1 && (c.token != nil || c.list[0].Op == store.OpDelete) {
		return c.single(ctx)
	}
	return c.transact(ctx)
}

func newToken() []byte {
	token := make([]byte, tokenBytes)
	rand.Read(token)
	return token
}

// fits reports whether every put, and all of the commit, has room for the token.
func (c *commit) fits() bool {
	total := 0
	for i := range c.list {
		w := &c.list[i]
		it := w.Item
		if w.Op == store.OpUpdate {
			it = w.Set
		}
		size, err := store.Size(it)
		if err != nil || size+markedBytes > store.MaxItemBytes {
			return false
		}
		total += size + markedBytes + len(w.Key.PK) + len(w.Key.SK)
	}
	return total <= store.MaxCommitBytes
}

func checkReserved(writes []store.Write) error {
	for i := range writes {
		w := &writes[i]
		of := func(c store.Condition) bool { name, _ := c.Parts(); return name == tokenName }
		if w.Item.Has(tokenName) || w.Set.Has(tokenName) || slices.Contains(w.Remove, tokenName) ||
			slices.ContainsFunc(w.If, of) {
			return fmt.Errorf("%w: write %d: attribute %s is reserved for the engine", store.ErrInvalid, i, tokenName)
		}
	}
	return nil
}

// check holds the conditions of a lone check against a strong read.
func (c *commit) check(ctx context.Context) error {
	w, t := &c.list[0], c.tables[0]
	it, err := c.living(ctx, t, w.Key, c.now)
	if err == nil {
		_, err = w.Resolve(t, 0, it)
	}
	return err
}

func (c *commit) ours(item attributes) bool {
	b, ok := item[tokenName].(*types.AttributeValueMemberB)
	return ok && c.token != nil && slices.Equal(b.Value, c.token)
}

// conflict returns the error for a failed condition on the item in DynamoDB's answer. If that
// item meets the conditions (another program wrote a TTL with a fraction), the error names the first.
func (c *commit) conflict(i int, item attributes) error {
	w, t := &c.list[i], c.tables[i]
	var old store.Item
	if item != nil {
		if it, _ := decodeItem(t, item); !t.Expired(it, c.now) {
			old = it
		}
	}
	_, err := w.Resolve(t, i, old)
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
		return conflict
	}
	condition := "item exists"
	if len(w.If) > 0 {
		condition = w.If[0].String()
	}
	return &store.ConflictError{Write: i, Table: t.Name, Key: w.KeyIn(t), Condition: condition}
}

// ended turns the last verdict into Commit's answer; unknown: an attempt may have landed.
func (c *commit) ended(ctx context.Context, unknown bool, v verdict, err error) error {
	switch {
	case v == final && (err == nil || !unknown || errors.Is(err, store.ErrUnknown)):
		return err
	case unknown && ctx.Err() != nil:
		return fmt.Errorf("%w: %w", store.ErrUnknown, ctx.Err())
	case unknown:
		// The last error may mean that nothing was written, but only by its own attempt.
		return fmt.Errorf("%w: %v", store.ErrUnknown, err)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

func (c *commit) names() []string {
	var names []string
	for _, t := range c.tables {
		if !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}
