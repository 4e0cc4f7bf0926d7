package pebblestore

import (
	"bytes"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/duesday/duesday/internal/store"
)

// A stage is the committer's work on a group. It resolves each request against the items as the
// earlier ones leave them, and collects the accepted writes in a batch.
type stage struct {
	*Store
	recent *recent
	iter   *pebble.Iterator // over the state before the group; made when first needed
	batch  *pebble.Batch    // made when first needed

	outcomes []outcome // of the current request
}

// An outcome is an item before and after a write.
type outcome struct {
	old *entry
	new store.Item // nil for none
}

// apply applies the staged changes of the group, without waiting for the sync. An error is fatal.
func (st *stage) apply(g *group) error {
	if st.iter != nil {
		if err := st.iter.Close(); err != nil { // also what load has met
			return fmt.Errorf("read: %w", damaged(st.dir, err))
		}
		st.iter = nil
	}
	if st.batch == nil {
		return nil
	}
	g.batch, st.batch = st.batch, nil
	apply := st.db.ApplyNoSyncWait
	if !st.sync.Sync { // a test's planted bug
		apply = st.db.Apply
	}
	if err := apply(g.batch, st.sync); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	g.view = newView(st.db)
	st.recent.rotate()
	return nil
}

// add stages the request's writes. It resolves every one before it stages any, so that a conflict
// leaves no change.
func (st *stage) add(r *request, now int64) error {
	st.outcomes = st.outcomes[:0]
	for i := range r.writes {
		w, p := &r.writes[i], &r.plans[i]
		e, err := &entry{}, error(nil)
		if !p.blind(w) {
			if e, err = st.load(p.layout, p.id, p.key); err != nil {
				return err
			}
		}
		old := e.item
		if old != nil && p.Expired(old, now) {
			old = nil
		}
		it, err := w.Resolve(p.Table, i, old)
		if err != nil {
			return err
		}
		st.outcomes = append(st.outcomes, outcome{e, it})
	}
	for i, o := range st.outcomes {
		p := &r.plans[i]
		switch r.writes[i].Op {
		case store.OpUpdate:
			p.item, p.value, p.marks = o.new, p.layout.value(o.new), p.layout.marks(p.id, o.new)
			fallthrough
		case store.OpPut:
			st.replace(p, o.old)
		case store.OpDelete:
			st.remove(p.key, o.old)
		}
	}
	return nil
}

// blind reports whether the write does not depend on the stored item: a put into the outbox, for
// instance. A seek for an absent key was a tenth of the committer's time.
func (p *plan) blind(w *store.Write) bool {
	return w.Op == store.OpPut && len(w.If) == 0 && len(p.indexes) == 0 && p.TTL == ""
}

// load returns the current item at the key, expired or not.
//
// Most keys put by a payment or an event are absent. Pebble's Get does not use the bloom filters
// of the bottom level and reads a block for each key; an iterator can use them. (Conditions on
// absence were 39% of the CPU before, 11% after.)
func (st *stage) load(l *layout, id store.Key, key []byte) (*entry, error) {
	if e := st.recent.get(key); e != nil {
		return e, nil
	}
	if st.iter == nil {
		it, err := st.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
		if err != nil {
			return nil, fmt.Errorf("read: %w", damaged(st.dir, err))
		}
		st.iter = it
	}
	e := &entry{}
	if st.iter.SeekPrefixGE(key) && bytes.Equal(st.iter.Key(), key) {
		value, err := st.iter.ValueAndErr()
		if err != nil {
			return nil, fmt.Errorf("read: %w", damaged(st.dir, err))
		}
		if e.item, err = l.decodeBase(key[2:], value, id.PK); err != nil {
			return nil, fmt.Errorf("table %s: %w", l.Name, err)
		}
		e.marks, e.size = l.marks(id, e.item), len(value)
	} else if err := st.iter.Error(); err != nil {
		return nil, fmt.Errorf("read: %w", damaged(st.dir, err))
	}
	return e, nil
}

func (st *stage) writes() *pebble.Batch {
	if st.batch == nil {
		st.batch = st.db.NewBatch()
	}
	return st.batch
}

// replace stages the new item. An unchanged index row is not written again: it would be more
// bytes to sync and to compact.
//
// Set and Delete on a batch fail only while the batch is being committed.
func (st *stage) replace(p *plan, old *entry) {
	b := st.writes()
	_ = b.Set(p.key, p.value, nil)
	for i, is := range p.marks {
		var was row
		if old.item != nil {
			was = old.marks[i]
		}
		same := bytes.Equal(was.key, is.key)
		if was.key != nil && !same {
			_ = b.Delete(was.key, nil)
		}
		if is.key != nil && (!same || !bytes.Equal(was.value, is.value)) {
			_ = b.Set(is.key, is.value, nil)
		}
	}
	st.recent.put(p.key, &entry{item: p.item, marks: p.marks, size: len(p.value)})
}

func (st *stage) remove(key []byte, old *entry) {
	b := st.writes()
	_ = b.Delete(key, nil)
	for _, r := range old.marks {
		if r.key != nil {
			_ = b.Delete(r.key, nil)
		}
	}
	st.recent.put(key, &entry{})
}

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
