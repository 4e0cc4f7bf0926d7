package pebblestore

import "github.com/duesday/duesday/internal/store"

// recent caches items as all decided requests leave them: those of the current group, and those
// written lately. A payment updates a subscription twice within milliseconds, so the second read
// is nearly always answered here.
//
// The committer alone uses it. It is always right, because the committer is the only writer.
//
// It has two generations of entries. A lookup moves its entry to the young one. A full young
// generation becomes the old one.
type recent struct {
	young, old map[string]*entry
	bytes      int // of the young
}

// An entry is the item at a key, nil for an absent one, and its marks.
type entry struct {
	item  store.Item
	marks marks
	size  int // of the item's encoding
}

// recentBytes bounds a generation, some thousand items. An item in memory is about six times its
// encoding, and the collector doubles that: 8 MiB here cost a process 200 MB without a benefit.
const recentBytes = 3 << 20

const entryOverhead = 200

func newRecent() *recent {
	return &recent{young: map[string]*entry{}, old: map[string]*entry{}}
}

func (r *recent) get(key []byte) *entry {
	if e := r.young[string(key)]; e != nil {
		return e
	}
	e := r.old[string(key)]
	if e != nil {
		r.put(key, e)
	}
	return e
}

func (r *recent) put(key []byte, e *entry) {
	r.young[string(key)] = e
	r.bytes += entryOverhead + len(key) + e.size
}

// rotate makes room. It must not be called before the changes of a group are applied: until then
// they are here alone.
func (r *recent) rotate() {
	if r.bytes > recentBytes {
		r.old, r.young, r.bytes = r.young, r.old, 0
		clear(r.young)
	}
}
