package settings

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Key parts of the settings item and of the change rows. Each settings version has its own change
// row.
const (
	settingsPK   = "SETTINGS"
	changePrefix = "CHANGE#"
)

// Key is the key of the settings item.
var Key = store.Key{PK: settingsPK, SK: "NOW"}

// Read returns the store's settings, or the defaults with Version 0 if the store has no settings.
// If a stored value is invalid, Read returns an IllegibleError that names the setting, and also
// returns the other settings.
func Read(ctx context.Context, e *billing.Records) (Settings, error) {
	it, err := e.Store.Get(ctx, e.Table, Key)
	if err != nil {
		return Default(), billing.IgnoreNotFound(err)
	}
	return Decode(it)
}

// Decode reads the settings from their item, which stores each setting as text under its name. A
// missing setting has its default.
func Decode(it store.Item) (Settings, error) {
	s := Default()
	s.raw, s.Version = it, it.Int(schema.Version)
	var wrong []error
	data := it.Get(schema.Data)
	if data.Kind() != store.KindMap {
		wrong = append(wrong, billing.Invalid("data", "is not a map"))
	}
	for _, f := range settings() {
		if v := data.Map().Get(f.name); !v.IsZero() && v.Kind() != store.KindString {
			wrong = append(wrong, billing.Invalid(f.name, "is not a string"))
		}
		wrong = append(wrong, s.Set(f.name, data.Map().Str(f.name)))
	}
	for _, a := range data.Map() {
		if strings.HasPrefix(a.Name, productPrefix) {
			wrong = append(wrong, s.Set(a.Name, a.Value.Str()))
		}
	}
	if s.Version < 1 {
		wrong = append(wrong, billing.Invalid("version", "is missing"))
	}
	if err := errors.Join(wrong...); err != nil {
		return s, &billing.IllegibleError{Err: fmt.Errorf("the settings in the store (item SETTINGS NOW): %w", err)}
	}
	return s, nil
}

// A Changed is one change of one setting. It never expires.
type Changed struct {
	At            time.Time
	Version       int64 // settings version that the change created
	Name          string
	Before, After string // Before is empty in a store's first change
	Actor         string // who changed it; "" if not known
}

// History yields the changes of the settings, the oldest first.
func History(ctx context.Context, e *billing.Records) iter.Seq2[Changed, error] {
	return func(yield func(Changed, error) bool) {
		q := store.Query{Table: e.Table, Partition: settingsPK, Prefix: changePrefix}
		for it, err := range e.Store.Query(ctx, q) {
			if err != nil {
				yield(Changed{}, err)
				return
			}
			for _, a := range it.Get(schema.After).Map() {
				if !yield(Changed{billing.ParseStamp(it.Str(schema.CreatedDate)), it.Int(schema.Version), a.Name,
					it.Get(schema.Before).Map().Str(a.Name), a.Value.Str(), it.Str(schema.Actor)}, nil) {
					return
				}
			}
		}
	}
}

// Change applies change to the store's settings, and returns the resulting settings. It writes the
// settings and the change row in one commit. The change takes effect only once, even if a store
// reply is lost. If change changes nothing, Change writes only if the store has no settings yet.
func Change(ctx context.Context, e *billing.Records, change func(*Settings) error) (s Settings, err error) {
	id := rand.Text()
	var asked *store.Key // change row of the last commit, whose reply may be lost
	err = store.Retry(ctx, "changing the settings", func() error {
		meta, err := e.Meta(ctx)
		if err == nil && meta.Moved != "" {
			err = fmt.Errorf("this store was %w: %s", billing.ErrMoved, meta.Moved)
		}
		if err != nil {
			return err
		}
		s, err = Read(ctx, e)
		if _, wrong := errors.AsType[*billing.IllegibleError](err); err != nil && !wrong { // a change can correct invalid settings
			return err
		}
		if asked != nil {
			if _, err := e.Store.Get(ctx, e.Table, *asked); !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		was := s
		if err := cmp.Or(call.Check(ctx, s.raw), change(&s), s.Check()); err != nil {
			return err
		}
		if s.Tax == On && was.Tax != On { // an older build would not park a period without a rate
			if err := e.NeedFormat(ctx, billing.TermsFormat); err != nil {
				return err
			}
		}
		writes := writes(e, &was, &s, id)
		if len(writes) == 0 {
			return call.Store(ctx, e.Store)
		}
		if c := call.Of(ctx); c != nil && len(writes) > 1 {
			writes[1].Item.Set(schema.Actor, store.S(c.Actor))
		}
		asked = new(changeKey(s.Version, id))
		return call.Commit(ctx, e.Store, append(writes,
			store.Check(e.Table, billing.MetaKey, store.AttributeAbsent(schema.Moved)))...)
	})
	return s, err
}

// First returns the writes that store the settings of a new store. The caller adds them to the
// commit that creates META.
func First(e *billing.Records, s Settings) []store.Write {
	return writes(e, new(Default()), &s, rand.Text())
}

// writes returns the writes that change the settings and increase their version, on the condition
// that the settings have not changed since they were read. It returns no writes if nothing changes.
// It always writes a missing settings item.
func writes(e *billing.Records, was, now *Settings, id string) []store.Write {
	it, condition := billing.ItemAt(Key), store.Absent()
	if was.raw != nil {
		it, condition = was.raw.Clone(), billing.Unchanged(schema.Version, was.raw.Get(schema.Version))
	}
	data, before, after := it.Get(schema.Data).Map().Clone(), store.Item{}, store.Item{}
	all := slices.Clip(settings())
	for sku := range now.Products {
		all = append(all, product(sku))
	}
	for sku := range was.Products {
		if _, stays := now.Products[sku]; !stays {
			all = append(all, product(sku))
		}
	}
	for _, f := range all {
		old, text := f.get(was), f.get(now)
		if v := data.Get(f.name); !v.IsZero() {
			old = v.Str() // the stored text may be invalid
		}
		if data.Set(f.name, store.S(text)); old == text {
			continue
		}
		if text == "" && strings.HasPrefix(f.name, productPrefix) {
			data.Remove(f.name)
		}
		if after.Set(f.name, store.S(text)); was.raw != nil {
			before.Set(f.name, store.S(old))
		}
	}
	if len(after) == 0 && was.Version > 0 {
		return nil
	}
	now.Version = max(0, was.Version) + 1
	it.Set(schema.Version, store.Int(now.Version))
	it.Set(schema.Data, store.M(data))
	now.raw = it
	writes := []store.Write{store.Put(e.Table, it, condition)}
	if len(after) > 0 {
		writes = append(writes, store.Put(e.Table, billing.ItemAt(changeKey(now.Version, id),
			store.Attribute{Name: schema.CreatedDate, Value: store.S(billing.Stamp(e.Now()))},
			store.Attribute{Name: schema.Version, Value: store.Int(now.Version)},
			store.Attribute{Name: schema.Before, Value: store.M(before)},
			store.Attribute{Name: schema.After, Value: store.M(after)})))
	}
	return writes
}

// changeKey returns the key of a change row. The id distinguishes the row from another row with the
// same version.
func changeKey(version int64, id string) store.Key {
	return store.Key{PK: settingsPK, SK: fmt.Sprintf("%s%09d#%s", changePrefix, version, id)}
}

// NameProducts stores the product names that customers see, by SKU.
func NameProducts(ctx context.Context, e *billing.Records, names map[string]string) error {
	if len(names) == 0 {
		return nil
	}
	_, err := Change(ctx, e, func(now *Settings) (err error) {
		for sku, name := range names {
			err = cmp.Or(err, now.NameProduct(sku, name))
		}
		return err
	})
	return err
}
