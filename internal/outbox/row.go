package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A row is the item of one effect. It is found at <lane>#<shard> / <due>#<id>, so that a
// query up to now yields what is due, oldest first; a dead letter is at <lane>#DEAD
// under the same sort key. The due time stands in the key alone: to move a row is to
// delete it and to put it elsewhere, which only one of two workers can do.
const (
	shards      = 16                         // of a lane; fixed: a row's shard is computed from its id
	stampLayout = "2006-01-02T15:04:05.000Z" // sorts as text as it does in time
	maxReason   = 500                        // bytes of LastError that are kept
)

func (l Lane) shard(n int) string { return fmt.Sprintf("%s#%02d", l.prefix(), n) }

func (l Lane) dead() string { return l.prefix() + "#DEAD" }

func (l Lane) prefix() string { return cmp.Or(string(l), string(Mail)) }

func (l Lane) keyOf(id string, due time.Time) store.Key {
	h := fnv.New32a()
	h.Write([]byte(id)) // never fails
	return store.Key{PK: l.shard(int(h.Sum32() % shards)), SK: stamp(due) + "#" + id}
}

// lastDue is the upper end, inclusive, of the sort keys that are due at now: '$'
// comes next after '#'.
func lastDue(now time.Time) string { return stamp(now) + "$" }

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

// Write returns the put that a cause includes in its own commit: the effect exists
// if, and only if, the cause happened. It has no condition, the cause's own decide;
// an effect written again under one id may be delivered again. A zero Due means at
// once. An id longer than 999 bytes or data of hundreds of kilobytes make the commit
// fail with store.ErrTooLarge. The table must be keyed by schema.PK and schema.SK.
func Write(table string, e Effect) store.Write {
	key := e.Lane.keyOf(e.ID, e.Due)
	data := make(store.Item, 0, len(e.Data))
	for _, name := range slices.Sorted(maps.Keys(e.Data)) {
		data.Set(name, store.S(e.Data[name]))
	}
	it := store.NewItem(
		store.Attribute{Name: schema.CreatedDate, Value: store.S(stamp(e.Created))},
		store.Attribute{Name: schema.Data, Value: store.M(data)},
		store.Attribute{Name: schema.Kind, Value: store.S(e.Kind)},
		store.Attribute{Name: schema.PK, Value: store.S(key.PK)},
		store.Attribute{Name: schema.SK, Value: store.S(key.SK)},
	)
	setFailure(&it, e.Tries, e.Error)
	return store.Put(table, it)
}

// setFailure records the failed tries and the reason; none of either leaves no
// attribute behind.
func setFailure(it *store.Item, tries int, reason string) {
	it.Remove(schema.Tries)
	if tries > 0 {
		it.Set(schema.Tries, store.Int(int64(tries)))
	}
	it.Remove(schema.LastError)
	if reason = strings.ToValidUTF8(reason[:min(len(reason), maxReason)], ""); reason != "" {
		it.Set(schema.LastError, store.S(reason))
	}
}

// decode reads a row. With an error, the effect holds what could be read.
func decode(it store.Item) (Effect, error) {
	var wrong []error
	lane, shard, _ := strings.Cut(it.Str(schema.PK), "#")
	e := Effect{Lane: Lane(lane), Dead: shard == "DEAD", Kind: it.Str(schema.Kind), Tries: int(max(it.Int(schema.Tries), 0)), Error: it.Str(schema.LastError)}
	due, id, ok := strings.Cut(it.Str(schema.SK), "#")
	if !ok || id == "" {
		wrong, id = append(wrong, errors.New("its key has no id")), it.Str(schema.SK)
	}
	e.ID = id
	var err error
	if e.Due, err = time.Parse(stampLayout, due); err != nil {
		wrong = append(wrong, errors.New("its key has no due time"))
	}
	if e.Created, err = time.Parse(stampLayout, it.Str(schema.CreatedDate)); err != nil {
		wrong = append(wrong, fmt.Errorf("%s is no timestamp", schema.CreatedDate))
	}
	if e.Kind == "" {
		wrong = append(wrong, fmt.Errorf("%s is missing", schema.Kind))
	}
	if it.Get(schema.Data).Kind() != store.KindMap {
		wrong = append(wrong, fmt.Errorf("%s is no map", schema.Data))
	}
	e.Data = make(map[string]string)
	for _, a := range it.Get(schema.Data).Map() {
		if a.Value.Kind() != store.KindString {
			wrong = append(wrong, fmt.Errorf("%s: %s is no string", schema.Data, a.Name))
			continue
		}
		e.Data[a.Name] = a.Value.Str()
	}
	if len(wrong) > 0 {
		return e, fmt.Errorf("unreadable effect: %w", errors.Join(wrong...))
	}
	return e, nil
}
