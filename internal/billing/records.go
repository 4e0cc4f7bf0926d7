package billing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Records reads and writes billing's items in a store. It decides nothing about payments.
type Records struct {
	Store  store.Store
	Tables schema.Tables
	Table  string           // the recurring-payments table
	Now    func() time.Time // UTC, whole milliseconds
	Log    *slog.Logger
	Opened Meta // as the store was opened
	Shared bool // other processes may write to the store at the same time

	Witnesses []Witness // of the clock; none of a test clock
	Beside    []Beside  // what joins the commits of changed items

	// What joins the commit of a refund's or dispute's record, and of a run's end; nil: nothing.
	Reversed func(ctx context.Context, was, now *ReversalRecord) ([]store.Write, error)
	RunEnded func(ctx context.Context, r *Run) ([]store.Write, error)
	Numbered func(ctx context.Context, objects []store.Item) ([]store.Write, error) // by a drain; see numbering
}

// NewRecords returns the records of the store. If log is nil, Records logs nothing.
func NewRecords(s store.Store, t schema.Tables, now func() time.Time, log *slog.Logger) *Records {
	return &Records{Store: s, Tables: t, Table: t.RecurringPayments.Name, Log: cmp.Or(log, slog.New(slog.DiscardHandler)),
		Now: func() time.Time { return now().UTC().Truncate(time.Millisecond) }}
}

// Today returns the clock's day in UTC.
func (e *Records) Today() civil.Date { return civil.Of(e.Now()) }

// Load returns the subscription under either form of its key. It returns ErrNotFound, ErrMoved or
// an IllegibleError otherwise.
func (e *Records) Load(ctx context.Context, n Name) (*Subscription, error) {
	it, err := e.Store.Get(ctx, e.Table, n.Key())
	if errors.Is(err, store.ErrNotFound) && n.SKU != "" {
		it, err = e.Store.Get(ctx, e.Table, n.TextKey())
	}
	if err != nil {
		return nil, err
	}
	s, err := DecodeSubscription(it)
	switch {
	case err != nil:
		return nil, err
	case s.Moved:
		meta, err := e.Meta(ctx) // which a copy fences before it marks a subscription
		if err == nil && meta.Moved == "" {
			return nil, fmt.Errorf("subscription %s: %w", n, ErrStrayMark)
		}
		return nil, cmp.Or(err, fmt.Errorf("subscription %s was %w", n, ErrMoved))
	}
	return s, nil
}

// ErrStrayMark is that of a subscription with the mark of a copy, in a store that was not copied.
var ErrStrayMark error = &IllegibleError{schema.Moved, "must not be there: remove it", nil}

// IgnoreNotFound returns nil for store.ErrNotFound, and any other error unchanged.
func IgnoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// Put commits the subscription together with the other writes, if the subscription has not changed
// since it was read. After an error the caller must read it again.
func (e *Records) Put(ctx context.Context, s *Subscription, others ...store.Write) error {
	s.Shards = e.Opened.Shards
	w := s.write(e.Table)
	err := e.Commit(ctx, append([]store.Write{w}, others...)...)
	if errors.Is(err, store.ErrTooLarge) { // only other tools make it so large
		err = fmt.Errorf("subscription %s: %w", s.Name, &IllegibleError{"the item", "is larger than an item may be", err})
	}
	if err == nil {
		s.Raw, s.stored = w.Item, nil
	}
	return err
}

// PutWrites returns the writes of Put and what goes with them, for another item's commit.
func (e *Records) PutWrites(ctx context.Context, s *Subscription, others ...store.Write) ([]store.Write, error) {
	s.Shards = e.Opened.Shards
	return e.WithBeside(ctx, append([]store.Write{s.write(e.Table)}, others...)...)
}

// Attributes of META in a store that was put back.
const (
	RestoredDate  = "RestoredDate"
	RestoredFrom  = "RestoredFrom"
	RestoredAside = "RestoredAside" // the folder of the replaced store; absent: there was none
)

// Meta is the store's item about itself.
type Meta struct {
	Installation  string // random, made once; part of every idempotency key
	Salt, LinkKey string // random, and never shown; a restore replaces LinkKey; "": an older Duesday has made the store
	Charging      bool
	Reason        string // why charging is off
	Switched      string // who turned charging on or off; "": not known
	Created       time.Time
	Shards        int       // partitions of an index per date
	Moved         string    // the place of the live store; "": this one is it
	Accepted      string    // other installations whose charges a person has accepted, with spaces between
	OthersSeen    bool      // the processor has shown charges of other installations
	Processor     string    // the Identity of the processor in use; "": none has told it yet
	Format        int       // FormatVersion of the Duesday that made it or migrated it last
	RunEnded      time.Time // of the last payment run; zero: none, or an older Duesday has recorded it
	Summed        time.Time // since when the sums have been kept; Created: since it was made; zero: an older Duesday's
	Restored      time.Time // when a backup was put back; zero: never
	Aside         string    // the folder of the store that it has replaced; "": there was none
	Caused        time.Time // since when the cause of each status is stored; Created: since it was made; zero: not yet
	Looked        time.Time // since when every account and subscription has its rows for lookups; zero: not yet
	ClockRight    time.Time // the latest instant at which the clock is known to have been right; zero: none
}

// FormatVersion is the version of the items' layout. Duesday refuses a store with a newer version,
// because its items may have another meaning. docs/internals/recovery.md lists what each format
// added, and what an older build would do wrong.
const FormatVersion = 7

// The first formats whose builds know a state: an open past period and a requested manual payment, or a
// subscription that is paid by wire. An older build, at work beside this one, would charge wrongly.
const (
	PastFormat    = 3
	WireFormat    = 4
	SkipFormat    = 4
	TermsFormat   = 6 // a quantity, a discount or a tax: an older build would charge the unit amount
	UpgradeFormat = 6

	TakeoverFormat = 7 // a subscription held for a takeover: an older build would charge it beside the processor
)

// NeedFormat returns ErrState for a shared store of a lower format, on which older builds may work.
func (e *Records) NeedFormat(ctx context.Context, format int) error {
	if !e.Shared || e.Opened.Format >= format {
		return nil // it was raised when it was opened
	}
	meta, err := e.Meta(ctx)
	if err == nil && meta.Format < format {
		err = fmt.Errorf("this store has format %d, which an older Duesday may still be using; run duesday store migrate "+
			"first: %w", meta.Format, ErrState)
	}
	return err
}

// ErrNoStore: the table is no store of Duesday's, or not one any more. It is also store.ErrMissing.
var ErrNoStore = fmt.Errorf("this is not a Duesday store (%w)", store.ErrMissing)

// ErrMoved means that the store or the subscription was copied to another store, which charges now.
var ErrMoved = errors.New("moved to another store")

// MetaKey is the key of the store's item about itself.
var MetaKey = store.Key{PK: MetaPK, SK: MetaPK}

// AnyItem reports whether the table contains an item.
func AnyItem[T any](items iter.Seq2[T, error]) (there bool, err error) {
	for _, err := range items {
		return err == nil, err
	}
	return false, nil
}

// Meta reads the store's item about itself.
func (e *Records) Meta(ctx context.Context) (Meta, error) {
	it, err := e.Store.Get(ctx, e.Table, MetaKey)
	if err != nil {
		return Meta{}, err
	}
	return DecodeMeta(it)
}

func DecodeMeta(it store.Item) (Meta, error) {
	format := int(it.Int(schema.Format))
	if format > FormatVersion {
		upgrade := "a newer version of Duesday"
		if v := it.Str(schema.Program); v != "" {
			upgrade = "Duesday " + v + " or newer"
		}
		return Meta{}, fmt.Errorf("%w: this store has format %d, but this Duesday only supports formats up to %d; use %s",
			store.ErrFormat, format, FormatVersion, upgrade)
	}
	m, c := Meta{Shards: 1}, codec{stored: it}
	text(&c, schema.Actor, &m.Switched)
	c.stamp(schema.CausesDate, &m.Caused)
	c.flag(schema.Charging, &m.Charging)
	c.stamp(schema.ClockDate, &m.ClockRight)
	c.stamp(schema.CreatedDate, &m.Created)
	c.stamp(schema.EndedDate, &m.RunEnded)
	c.number(schema.Format, &m.Format)
	text(&c, schema.Installation, &m.Installation)
	text(&c, schema.LinkKey, &m.LinkKey)
	c.stamp(schema.LookupDate, &m.Looked)
	text(&c, schema.Moved, &m.Moved)
	text(&c, schema.OtherInstallations, &m.Accepted)
	c.flag(schema.OthersSeen, &m.OthersSeen)
	text(&c, schema.Processor, &m.Processor)
	text(&c, schema.Reason, &m.Reason)
	text(&c, RestoredAside, &m.Aside)
	c.stamp(RestoredDate, &m.Restored)
	text(&c, schema.Salt, &m.Salt)
	c.number(schema.Shards, &m.Shards)
	c.stamp(schema.SumsDate, &m.Summed)
	for _, x := range []struct {
		name string
		at   time.Time
	}{{schema.CausesDate, m.Caused}, {schema.SumsDate, m.Summed}} {
		if x.at.IsZero() && it.Has(x.name) { // noting them again would never succeed
			c.fail(x.name, "is not a time", nil)
		}
	}
	if m.Shards = max(1, m.Shards); c.err != nil { // for every row: nothing is charged
		return m, fmt.Errorf("%w: item %s %[2]s: %v; correct it with the tool that wrote it", store.ErrFormat, MetaPK, c.err)
	}
	return m, nil
}

// Accepts reports whether the installation ID is the store's own, or an operator has accepted it.
func (m *Meta) Accepts(installation string) bool {
	return installation == m.Installation || slices.Contains(strings.Fields(m.Accepted), installation)
}

// Live returns ErrMoved if another process has moved the store: nobody reads writes to it any more.
func (e *Records) Live(ctx context.Context) error {
	if !e.Shared {
		return nil
	}
	meta, err := e.Meta(ctx)
	if err == nil && meta.Moved != "" {
		err = fmt.Errorf("%w: %s", ErrMoved, meta.Moved)
	}
	return err
}

// processorPK is the partition of the connected accounts at which an account has been charged:
// every list at the processor is asked for at each of them.
const processorPK = "PROCESSOR"

// Places returns the processor's accounts charged here: "" for our own, then the connected ones.
func (e *Records) Places(ctx context.Context) ([]string, error) {
	places := []string{""}
	for it, err := range e.Store.Query(ctx, store.Query{Table: e.Table, Partition: processorPK}) {
		if err != nil {
			return nil, err
		}
		places = append(places, it.Str(schema.SK))
	}
	return places, nil
}

// OfPlaces asks at each of Places, and returns all answers, and the places' errors except for connected
// accounts' refusals.
func OfPlaces[T any](ctx context.Context, e *Records, ask func(at string) (T, error)) (all []T, err error) {
	places, err := e.Places(ctx)
	failed := []error{err}
	for i, a := range processor.AskEach(places, ask) {
		if places[i] != "" && errors.Is(a.Err, processor.ErrAccountRefused) {
			e.Log.WarnContext(ctx, "a connected account refuses requests", "connected", places[i])
			a.Err = nil
		}
		all, failed = append(all, a.Value), append(failed, a.Err)
	}
	return all, errors.Join(failed...)
}

// RegisterPlace returns the writes to add the payer's connected account to Places; none for our own
// account. They must be in the commit which gives an account the payer.
func (e *Records) RegisterPlace(p processor.Payer) []store.Write {
	if p.At == "" {
		return nil
	}
	return []store.Write{store.Put(e.Table, ItemAt(store.Key{PK: processorPK, SK: strings.Clone(p.At)}))}
}

// A Making is the action of Open on a store without a META item.
type Making uint8

// The actions of Open.
const (
	MakeNew     Making = iota // make one, in an empty table
	MakeNever                 // ErrNoStore
	MakeAdopted               // make one beside the items of other tools
)

// PutBack begins the reason for which charging is off in a store that was put back.
const PutBack = "put back to how it stood at "

// Unreconciled reports whether the store was put back, and neither reconciled nor switched on
// since: it does not know what was mailed.
func (m *Meta) Unreconciled() bool {
	return !m.Charging && !m.Restored.IsZero() && strings.HasPrefix(m.Reason, PutBack)
}
