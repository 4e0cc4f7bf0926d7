// Package numbering gives receipts and refunds their numbers, such as R-2026-000123, without a gap.
//
// It does not commit numbers: the outbox's drain commits the writes together with what it counts.
package numbering

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/invoice"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/billing/worker"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

const (
	prefix = "NUM"
	job    = billing.Kind("numbers") // of the lease
	length = time.Minute             // of the lease
	format = 6                       // the first one whose builds give numbers
)

// CounterKey is the key of the item that contains the last number of each series.
var CounterKey = store.Key{PK: prefix, SK: "NOW"}

// A Numberer gives numbers in one store. It implements outbox.Numbers, and is safe for concurrent
// use.
type Numberer struct {
	*billing.Records
	leases *worker.Leases // nil: it gives numbers without the lease
	owner  string

	mu    sync.Mutex
	lease *worker.Lease // guarded by mu
}

// New returns a Numberer. If leased is true, it leaves numbers to another process that holds the
// lease.
func New(r *billing.Records, leased bool) *Numberer {
	n := &Numberer{Records: r, owner: rand.Text()}
	if leased {
		n.leases = &worker.Leases{Records: r, Length: length}
	}
	return n
}

// Mine reports whether this process holds the lease on numbering, or needs none. It acquires the
// lease if it is free. The lease only saves conflicts, because the counter's version decides which
// commit succeeds.
func (n *Numberer) Mine(ctx context.Context) (bool, error) {
	if n.leases == nil {
		return true, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lease != nil && n.lease.Held() {
		return true, nil
	}
	l, err := n.leases.Acquire(ctx, job, prefix, n.owner)
	n.lease = l
	return l != nil, err
}

// Older reports whether an older Duesday, which gives no numbers, may drain the store.
func Older(ctx context.Context, r *billing.Records) (bool, error) {
	err := r.NeedFormat(ctx, format)
	if errors.Is(err, billing.ErrState) {
		return true, nil
	}
	return false, err
}

// Gives reports whether the store gives numbers.
func Gives(ctx context.Context, r *billing.Records) (bool, error) {
	cfg, err := settings.Read(ctx, r)
	if err != nil || cfg.ReceiptPrefix == settings.NoNumbers {
		return false, err
	}
	older, err := Older(ctx, r)
	return !older && err == nil, err
}

// Give returns the writes that give each receipt or refund the next number, and those of
// Records.Numbered. An object that is gone, or has a number, gets none. If numbering is off, none
// gets one. If an older Duesday may drain the store, Give returns no writes.
func (n *Numberer) Give(ctx context.Context, objects []store.Key) (writes []store.Write, err error) {
	if older, err := Older(ctx, n.Records); err != nil || older {
		return nil, err
	}
	var items []store.Item
	for i, key := range objects {
		it, err := n.Store.Get(ctx, n.Table, key)
		if billing.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil && !slices.Contains(objects[:i], key) {
			items = append(items, it.Clone())
		}
	}
	cfg, err := settings.Read(ctx, n.Records)
	if err == nil && cfg.ReceiptPrefix != settings.NoNumbers {
		writes, err = n.number(ctx, &cfg, items)
	}
	if err != nil || n.Numbered == nil || len(items) == 0 {
		return writes, err
	}
	told, err := n.Numbered(ctx, items)
	return append(writes, told...), err
}

// number sets the items' numbers, and returns the writes.
func (n *Numberer) number(ctx context.Context, cfg *settings.Settings, items []store.Item) (writes []store.Write, err error) {
	c, err := read(ctx, n.Records)
	if err != nil {
		return nil, err
	}
	now := n.Now()
	year := cfg.ReceiptPrefix + "-" + strconv.Itoa(billing.TodayIn(cfg.TimeZone, now).Year())
	if err := n.notBehind(ctx, c, year); err != nil {
		return nil, err
	}
	series := year + c.letter
	for i := range items {
		it := &items[i]
		if it.Str(schema.Number) != "" {
			continue
		}
		c.last[series]++
		row := Number{Series: series, N: c.last[series], Of: billing.KeyOf(*it), Given: now}
		if at := it.Int(schema.TTL); at > 0 {
			row.Expires = time.Unix(at, 0).UTC()
		}
		set := store.NewItem(store.Attribute{Name: schema.Number, Value: store.S(row.String())})
		if err := invoice.Note(ctx, n.Records, cfg, *it, &set); err != nil {
			return nil, err
		}
		it.Set(schema.Number, set.Get(schema.Number))
		writes = append(writes, store.Update(n.Table, row.Of, set, nil, store.AttributeAbsent(schema.Number)),
			store.Put(n.Table, row.item(), store.Absent()))
	}
	if len(writes) == 0 {
		return nil, nil
	}
	return append(writes, c.put(n.Table)), nil
}

// notBehind takes the next letter if the next number of the series was given already: the counter
// is older than the numbers, so part of the store went back in time.
func (n *Numberer) notBehind(ctx context.Context, c *counter, year string) error {
	for {
		next := Number{Series: year + c.letter, N: c.last[year+c.letter] + 1}
		_, err := n.Store.Get(ctx, n.Table, next.Key())
		if err != nil {
			return billing.IgnoreNotFound(err)
		}
		n.Log.WarnContext(ctx, "the counter of receipt numbers is behind; a new series begins", "exists", next.String())
		c.begin(c, n.Now())
	}
}

// ErrCounter is returned if the counter's item is illegible. No number is given until someone
// repairs it.
var ErrCounter = errors.New("the counter of receipt numbers cannot be read")

// A Number is the item that names the receipt or refund with the number.
type Number struct {
	Series  string // R-2026
	N       int64
	Of      store.Key
	Given   time.Time
	Expires time.Time // when the receipt expires; zero: never
}

func (x Number) String() string { return fmt.Sprintf("%s-%06d", x.Series, x.N) }

// parse reads the text of a number.
func parse(text string) (x Number, ok bool) {
	i := strings.LastIndex(text, "-")
	n, err := strconv.ParseInt(text[i+1:], 10, 64)
	if i < 0 || err != nil {
		return x, false
	}
	return Number{Series: text[:i], N: n}, true
}

// Lookup returns the key of the receipt or refund with the number, or store.ErrNotFound.
func Lookup(ctx context.Context, r *billing.Records, number string) (store.Key, error) {
	x, ok := parse(number)
	if !ok || x.String() != number {
		return store.Key{}, store.ErrNotFound
	}
	it, err := r.Store.Get(ctx, r.Table, x.Key())
	if err != nil {
		return store.Key{}, err
	}
	found, err := Decode(it)
	if err != nil {
		return store.Key{}, err
	}
	return found.Of, nil
}

// Key is the key of the item.
func (x Number) Key() store.Key {
	return store.Key{PK: prefix + "#" + x.Series, SK: fmt.Sprintf("%06d", x.N)}
}

func (x Number) item() store.Item {
	it := billing.ItemAt(x.Key(), store.Attribute{Name: schema.CreatedDate, Value: store.S(billing.Stamp(x.Given))},
		store.Attribute{Name: schema.Numbered, Value: store.L(store.S(x.Of.PK), store.S(x.Of.SK))})
	if !x.Expires.IsZero() {
		it.Set(schema.ExpiresDate, store.S(billing.Stamp(x.Expires)))
	}
	return it
}

// IsNumber reports whether the key is of a number's item.
func IsNumber(k store.Key) bool { return strings.HasPrefix(k.PK, prefix+"#") }

// Decode reads a number's item.
func Decode(it store.Item) (*Number, error) {
	key := billing.KeyOf(it)
	x := &Number{Series: strings.TrimPrefix(key.PK, prefix+"#"), Given: billing.ParseStamp(it.Str(schema.CreatedDate)),
		Expires: billing.ParseStamp(it.Str(schema.ExpiresDate))}
	of := it.Get(schema.Numbered).List()
	n, err := strconv.ParseInt(key.SK, 10, 64)
	if err == nil {
		x.N = n
	}
	if err != nil || n < 1 || x.Key() != key {
		return nil, &billing.IllegibleError{Err: errors.New("its sort key is not a number")}
	}
	if len(of) != 2 {
		return nil, &billing.IllegibleError{Err: errors.New("it does not name a receipt or refund")}
	}
	x.Of = store.Key{PK: of[0].Str(), SK: of[1].Str()}
	return x, nil
}
