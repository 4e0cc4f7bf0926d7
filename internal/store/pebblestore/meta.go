package pebblestore

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/duesday/duesday/internal/store"
)

// format is the version of everything under the table keys. A store of a newer format is
// refused; one of an older format is raised when it is opened.
//
//   - 1: the names and indexes of the store are those of the program.
//   - 2: names are the store's own, and Revision tells whose indexes it has. Duesday may keep its
//     settings in the store.
//   - 3: as 2. A past period of a subscription may be open.
//   - 4: as 3. A subscription may be paid by wire, which an older program would charge.
//   - 5: as 4. Every commit of an account or subscription keeps the rows by which lists find it.
//   - 6: as 5. Drains give receipts numbers.
const format = 6

// meta is the store's description of itself. Format and Program never move: they say whether the
// rest is readable, and for whom.
type meta struct {
	Format   int
	Program  string `json:",omitempty"` // the version that made the store or raised it last; "": unknown
	Revision int    `json:",omitempty"` // of the tables, see Options
	Raising  bool   `json:",omitempty"` // a raise has begun and not ended: indexes may be incomplete
	Names    []string
	Tables   []metaTable
}

type metaTable struct {
	ID          byte
	Declaration store.Table
}

// register checks the options against the store's description, raises an older store, adds new
// tables and names to the description, and returns the layouts of the options' tables.
func register(db *pebble.DB, path string, disk *failStopFS, o *Options) (map[string]*layout, error) {
	stored, err := readMeta(db, o.Create)
	if err != nil {
		return nil, err
	}
	m := *stored
	m.Format, m.Raising, m.Tables = format, false, slices.Clone(stored.Tables)
	m.addNames(o.Names)
	names, err := NewDictionary(m.Names)
	if err != nil {
		return nil, err
	}
	layouts := make(map[string]*layout, len(o.Tables))
	var stale []*layout
	for i := range o.Tables {
		t := o.Tables[i]
		id, changed, err := m.table(&t, o.Revision)
		if err != nil {
			return nil, err
		}
		layouts[t.Name] = newLayout(&t, id, names)
		if changed || stored.Raising {
			stale = append(stale, layouts[t.Name])
		}
	}
	m.Revision = max(m.Revision, o.Revision)
	switch {
	case o.ReadOnly && len(stale) > 0:
		return nil, fmt.Errorf("%w: it has the indexes of an older version; the first command that can write to the folder "+
			"upgrades it", store.ErrFormat)
	case o.ReadOnly, reflect.DeepEqual(*stored, m):
		return layouts, nil
	}
	if stored.Format != 0 && (stored.Format < format || len(stale) > 0) {
		m.Program = o.Program
		err = raise(db, path, disk, &m, *stored, stale, o)
	} else if stored.Format == 0 {
		m.Program = o.Program
	}
	if err != nil {
		return nil, err
	}
	disk.armed.Store(true)
	if err := m.write(db); err != nil || stored.Format != 0 {
		return layouts, err
	}
	// The first log of a database does not say what is synced, see checkRecords; and with its description
	// in a log alone, a store whose log is damaged would look like none.
	return layouts, db.Flush()
}

func (m *meta) write(db *pebble.DB) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return db.Set(metaKey, b, pebble.Sync)
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
			return nil, fmt.Errorf("%w: the folder contains another program's database", store.ErrFormat)
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
	var version struct {
		Format  int
		Program string
	}
	if err := json.Unmarshal(b, &version); err != nil || version.Format < 1 {
		return nil, fmt.Errorf("%w: its description is damaged", store.ErrFormat)
	}
	if version.Format > format {
		return nil, fmt.Errorf("%w: the store has format %d, but this version of Duesday reads formats up to %d; use Duesday %s, which "+
			"upgraded it, or a newer version", store.ErrFormat, version.Format, format, cmp.Or(version.Program, "of a later version"))
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

// addNames appends the names that the store does not have. Its own stay at their places, in whatever
// order its programs have added them.
func (m *meta) addNames(names []string) {
	m.Names = slices.Clone(m.Names)
	for _, name := range names {
		if !slices.Contains(m.Names, name) {
			m.Names = append(m.Names, name)
		}
	}
}

// table returns the id of the table, a new one if the store does not know it yet, and whether its
// indexes are those of an older revision.
func (m *meta) table(t *store.Table, revision int) (id byte, changed bool, err error) {
	declared := normal(*t)
	for i := range m.Tables {
		known := &m.Tables[i]
		if known.Declaration.Name != t.Name {
			continue
		}
		had := normal(known.Declaration)
		switch {
		case reflect.DeepEqual(had, declared):
			return known.ID, false, nil
		case had.PartitionKey != declared.PartitionKey || had.SortKey != declared.SortKey:
			return 0, false, fmt.Errorf("%w: the keys of table %s differ from the keys that this program declares", store.ErrFormat,
				t.Name)
		case m.Revision >= revision:
			return 0, false, fmt.Errorf("%w: the indexes of table %s differ from the indexes that this program declares; they were "+
				"created by Duesday %s, so use that version or a newer one", store.ErrFormat, t.Name, cmp.Or(m.Program, "of another version"))
		case len(t.Indexes) > maxIndexes:
			return 0, false, tooMany(t)
		}
		known.Declaration = declared
		return known.ID, true, nil
	}
	if len(m.Tables) >= maxTables || len(t.Indexes) > maxIndexes {
		return 0, false, tooMany(t)
	}
	id = byte(len(m.Tables) + 1)
	m.Tables = append(m.Tables, metaTable{id, declared})
	return id, false, nil
}

func tooMany(t *store.Table) error {
	return fmt.Errorf("%w: table %s: a store has at most %d tables, with at most %d indexes each", store.ErrTooLarge, t.Name,
		maxTables, maxIndexes)
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
