package pebblestore

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/duesday/duesday/internal/store"
)

// format is the version of everything under the table keys. A store of a newer format is
// refused; one of an older format would be converted here.
const format = 1

// meta is the store's description of itself. Format never moves: it says whether the rest is
// readable.
type meta struct {
	Format int
	Names  []string
	Tables []metaTable
}

type metaTable struct {
	ID          byte
	Declaration store.Table
}

// register checks the options against the store's description, adds new tables and names to it,
// and returns the layouts of the options' tables.
func register(db *pebble.DB, o *Options) (map[string]*layout, error) {
	m, err := readMeta(db, o.Create)
	if err != nil {
		return nil, err
	}
	stored := *m
	m.Format = format
	if err := m.mergeNames(o.Names); err != nil {
		return nil, err
	}
	names, err := NewDictionary(m.Names)
	if err != nil {
		return nil, err
	}
	layouts := make(map[string]*layout, len(o.Tables))
	for i := range o.Tables {
		t := o.Tables[i]
		id, err := m.table(&t)
		if err != nil {
			return nil, err
		}
		layouts[t.Name] = newLayout(&t, id, names)
	}
	if reflect.DeepEqual(stored, *m) {
		return layouts, nil
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return layouts, db.Set(metaKey, b, pebble.Sync)
}

// readMeta returns the zero meta for a new store, and for one whose creation was interrupted.
func readMeta(db *pebble.DB, create bool) (*meta, error) {
	b, closer, err := db.Get(metaKey)
	if errors.Is(err, pebble.ErrNotFound) {
		empty, err := isEmpty(db)
		switch {
		case err != nil:
			return nil, err
		case !empty:
			return nil, fmt.Errorf("%w: the folder holds a database of another program", store.ErrFormat)
		case !create:
			return nil, store.ErrMissing
		}
		return &meta{}, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := parseMeta(b)
	return m, errors.Join(err, closer.Close())
}

func parseMeta(b []byte) (*meta, error) {
	var version struct{ Format int }
	if err := json.Unmarshal(b, &version); err != nil || version.Format < 1 {
		return nil, fmt.Errorf("%w: its description is damaged", store.ErrFormat)
	}
	if version.Format > format {
		return nil, fmt.Errorf("%w: the store has format %d, this program knows formats up to %d; use a newer Duesday",
			store.ErrFormat, version.Format, format)
	}
	m := &meta{}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("%w: its description is damaged: %w", store.ErrFormat, err)
	}
	return m, nil
}

func isEmpty(db *pebble.DB) (bool, error) {
	it, err := db.NewIter(nil)
	if err != nil {
		return false, err
	}
	found := it.First()
	return !found, it.Close()
}

// mergeNames appends new names. If the store has more names than the program, an older one, it uses
// the store's list.
func (m *meta) mergeNames(names []string) error {
	for i := range min(len(m.Names), len(names)) {
		if m.Names[i] != names[i] {
			return fmt.Errorf("%w: attribute name %d is %q in the store and %q in this program", store.ErrFormat, i,
				m.Names[i], names[i])
		}
	}
	if len(names) > len(m.Names) {
		m.Names = slices.Clone(names)
	}
	return nil
}

// table returns the id of the table, a new one if the store does not know it yet.
func (m *meta) table(t *store.Table) (id byte, err error) {
	declared := normal(*t)
	for _, known := range m.Tables {
		if known.Declaration.Name != t.Name {
			continue
		}
		if !reflect.DeepEqual(normal(known.Declaration), declared) {
			return 0, fmt.Errorf("%w: table %s was made with other keys, indexes or projections "+
				"than this program declares: stored %+v, declared %+v", store.ErrFormat, t.Name, known.Declaration, declared)
		}
		return known.ID, nil
	}
	if len(m.Tables) >= maxTables || len(t.Indexes) > maxIndexes {
		return 0, fmt.Errorf("%w: table %s: more than %d tables or %d indexes", store.ErrTooLarge, t.Name, maxTables,
			maxIndexes)
	}
	id = byte(len(m.Tables) + 1)
	m.Tables = append(m.Tables, metaTable{id, declared})
	return id, nil
}

// normal returns the declaration with sorted include lists, because their order has no meaning.
// The order of the indexes stays: it numbers them.
func normal(t store.Table) store.Table {
	t.Indexes = slices.Clone(t.Indexes)
	if len(t.Indexes) == 0 {
		t.Indexes = nil
	}
	for i := range t.Indexes {
		x := &t.Indexes[i]
		x.Include = slices.Sorted(slices.Values(x.Include))
		if x.Include = slices.Compact(x.Include); x.All || len(x.Include) == 0 {
			x.Include = nil
		}
	}
	return t
}
