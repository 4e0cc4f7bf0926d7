package pebblestore

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// A view is a durable state of the database. It is closed when the finisher and the last reader
// have released it: an open view keeps old versions from being compacted away.
type view struct {
	*pebble.Snapshot
	refs atomic.Int64
}

func newView(db *pebble.DB) *view {
	v := &view{Snapshot: db.NewSnapshot()}
	v.refs.Store(1)
	return v
}

func (v *view) release() {
	if v.refs.Add(-1) == 0 {
		// Close fails only for a closed snapshot, which refs rules out.
		_ = v.Close()
	}
}

// views hands out the current view.
type views struct {
	current atomic.Pointer[view]
}

// acquire returns the current view, which the caller must release.
func (vs *views) acquire() *view {
	for {
		v := vs.current.Load()
		// A count of zero means that it has been replaced since the Load.
		for n := v.refs.Load(); n > 0; n = v.refs.Load() {
			if v.refs.CompareAndSwap(n, n+1) {
				return v
			}
		}
	}
}

// publish makes v the current view and takes over its reference.
func (vs *views) publish(v *view) {
	if old := vs.current.Swap(v); old != nil {
		old.release()
	}
}
