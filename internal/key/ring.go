package key

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
)

// Options configure a Ring. Log may be nil.
type Options struct {
	Store store.Store
	Table string // of the recurring payments
	Now   func() time.Time
	Log   *slog.Logger
}

// A Ring manages the API keys of a store. It is safe for concurrent use.
type Ring struct {
	o     Options
	mu    sync.Mutex
	cache map[string]*cached // of stored keys, by id
	uses  sync.WaitGroup
}

type cached struct {
	key  *Key
	read time.Time
	used time.Time // when its use was last noted
}

const (
	fresh     = 5 * time.Second // a change by another process counts after it
	noteEvery = time.Minute     // the last use
	noteLimit = 10 * time.Second
)

// New returns the keys of the store.
func New(o Options) *Ring {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Ring{o: o, cache: map[string]*cached{}}
}

// ErrRefused means that the key is not valid. The rest of the error's text is for logs, and must not
// be sent to the client.
var ErrRefused = errors.New("the key is not valid")

func (r *Ring) now() time.Time { return r.o.Now().UTC().Truncate(time.Millisecond) }

// Find returns the valid key with the given text, or ErrRefused. Other errors come from the store.
// A revocation takes effect within five seconds. The caller must not change the returned Key.
func (r *Ring) Find(ctx context.Context, text string) (*Key, error) {
	parts := keyForm.FindStringSubmatch(text)
	if parts == nil {
		return nil, fmt.Errorf("%w: it does not have the form of a key", ErrRefused)
	}
	now, why := r.now(), ""
	c, err := r.read(ctx, parts[1], now)
	switch {
	case errors.Is(err, store.ErrNotFound):
		why = "it does not exist"
	case err != nil:
		return nil, err
	case c.refuses(parts[2]):
		why = "its secret is wrong"
	case !c.key.Revoked.IsZero():
		why = "it is revoked"
	case !c.key.Active(now):
		why = "it has expired"
	default:
		r.note(ctx, c, now)
		return c.key, nil
	}
	return nil, &Refusal{parts[1], why, !c.refuses(parts[2])}
}

// refuses reports whether the secret is not the key's, as of a key that does not exist.
func (c *cached) refuses(secret string) bool { return c == nil || !same(hash(secret), c.key.hash) }

// A Refusal is an ErrRefused with its reason.
type Refusal struct {
	ID, Why string
	Known   bool // the caller has the key's secret
}

func (e *Refusal) Error() string { return ErrRefused.Error() + ": " + e.ID + ": " + e.Why }
func (e *Refusal) Unwrap() error { return ErrRefused }

// hash is that of a secret. It has 256 random bits, so one round is enough.
func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// isWithin reports whether now is less than d after t. A clock that was put back is not.
func isWithin(d time.Duration, t, now time.Time) bool { return !now.Before(t) && now.Sub(t) < d }

// read returns a stored key, cached for a moment if it exists: strangers cannot fill the memory.
func (r *Ring) read(ctx context.Context, id string, now time.Time) (*cached, error) {
	r.mu.Lock()
	was := r.cache[id]
	r.mu.Unlock()
	if was != nil && isWithin(fresh, was.read, now) {
		return was, nil
	}
	it, err := r.o.Store.Get(ctx, r.o.Table, at(id))
	if err != nil {
		return nil, err
	}
	k := keyOf(it)
	c := &cached{k, now, k.Used}
	r.mu.Lock()
	defer r.mu.Unlock()
	if was := r.cache[id]; was != nil && was.used.After(c.used) {
		c.used = was.used
	}
	r.cache[id] = c
	return c, nil
}

// note stores the last use, at most once a minute, beside the request.
func (r *Ring) note(ctx context.Context, c *cached, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if isWithin(noteEvery, c.used, now) {
		return
	}
	c.used = now
	r.uses.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteLimit)
		defer cancel()
		used := store.NewItem(date(schema.UsedDate, now))
		if err := r.o.Store.Commit(ctx, store.Update(r.o.Table, at(c.key.ID), used, nil)); err != nil {
			r.o.Log.Warn("key: the time of its last use was not saved", "key", c.key.ID, "error", err)
		}
	})
}

// Wait waits until the last-use times that are being stored are durable. Callers must not call Find
// meanwhile.
func (r *Ring) Wait() { r.uses.Wait() }

// All yields the stored keys ordered by ID, including keys that are no longer valid.
func (r *Ring) All(ctx context.Context) iter.Seq2[*Key, error] {
	q := store.Query{Table: r.o.Table, Partition: partition, Prefix: IDPrefix}
	return sequence.Map(r.o.Store.Query(ctx, q), func(it store.Item) (*Key, error) { return keyOf(it), nil })
}

// Any reports whether there is any key, valid or not.
func (r *Ring) Any(ctx context.Context) (any bool, err error) {
	for _, err = range r.All(ctx) {
		return true, err
	}
	return false, nil
}

// maxActive is the most valid keys of one name: two, while one replaces the other.
const maxActive = 2

// Create stores a new key with the given Name, Scope, Merchant and Expires, sets its other fields,
// and returns its text, which cannot be shown again. It returns a field.Error for a wrong field,
// and if two valid keys already have the name.
func (r *Ring) Create(ctx context.Context, k *Key) (secret.Text, error) {
	k.Merchant, k.Created = strings.ToLower(k.Merchant), r.now()
	if err := k.Check(k.Created); err != nil {
		return secret.Text{}, err
	}
	text := k.name(IDPrefix)
	return text, store.Retry(ctx, "key "+k.Name, func() error { return r.add(ctx, k) })
}

// name gives the key an ID and a secret, and returns its text.
func (k *Key) name(prefix string) secret.Text {
	random := make([]byte, sha256.Size)
	_, _ = rand.Read(random) // never fails
	text := hex.EncodeToString(random)
	k.ID, k.hash = prefix+strings.ToLower(rand.Text()[:10]), hash(text)
	return secret.New(k.ID + "_" + text)
}

// made is the sort key of the row that counts the keys that were made: of several at once, each sees
// those before it.
const made = "MADE"

func (r *Ring) add(ctx context.Context, k *Key) error {
	count, err := r.o.Store.Get(ctx, r.o.Table, at(made))
	unchanged := store.AttributeEquals(schema.Version, count.Get(schema.Version))
	switch {
	case errors.Is(err, store.ErrNotFound):
		unchanged, err = store.Absent(), nil
	case !count.Has(schema.Version): // another tool has removed it
		unchanged = store.AttributeAbsent(schema.Version)
	}
	if err != nil {
		return err
	}
	found, err := r.active(ctx, k.Name)
	switch {
	case err != nil || slices.ContainsFunc(found, func(f *Key) bool { return f.ID == k.ID }): // by an earlier try
		return err
	case len(found) >= maxActive:
		return field.Wrong("name", "is used by two valid keys already; first revoke one of them: "+ids(found))
	}
	next := store.NewItem(store.Attribute{Name: schema.PK, Value: store.S(partition)},
		store.Attribute{Name: schema.SK, Value: store.S(made)},
		store.Attribute{Name: schema.Version, Value: store.Int(count.Int(schema.Version) + 1)})
	call.Creates(ctx, "keys/"+k.ID)
	return call.Commit(ctx, r.o.Store, store.Put(r.o.Table, next, unchanged), store.Put(r.o.Table, k.item(), store.Absent()))
}

func ids(keys []*Key) string {
	var all []string
	for _, k := range keys {
		all = append(all, k.ID)
	}
	return strings.Join(all, " or ")
}

// active returns the valid keys of the name, or of the id.
func (r *Ring) active(ctx context.Context, name string) (list []*Key, err error) {
	for k, err := range r.All(ctx) {
		if err != nil {
			return nil, err
		}
		if (k.Name == name || k.ID == name) && k.Active(r.now()) {
			list = append(list, k)
		}
	}
	return list, nil
}

// Revoke permanently ends the valid key with the given name or ID. It returns a field.Error if no
// key or several keys match.
func (r *Ring) Revoke(ctx context.Context, name string) (*Key, error) {
	found, err := r.active(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, field.Wrong("key", "must be the name or ID of a valid key")
	case len(found) > 1:
		return nil, field.Wrong("key", "several valid keys have this name; use an ID instead: "+ids(found))
	}
	k := found[0]
	k.Revoked = r.now()
	return k, call.Commit(ctx, r.o.Store, store.Update(r.o.Table, at(k.ID), store.NewItem(end(schema.RevokedDate, k.Revoked)...), nil))
}
