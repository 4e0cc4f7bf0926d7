package storetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// A scenario is one case of a topic, on a store of its own.
type scenario struct {
	name string
	run  func(r *rig)
}

func play(t *testing.T, open Opener, scenarios ...scenario) {
	t.Helper()
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) { s.run(setUp(t, open)) })
	}
}

// dump reads all items, and all index rows of their partitions, for a comparison before and after
// a call.
func (r *rig) dump() []string {
	r.Helper()
	var lines []string
	for _, t := range suiteTables() {
		items, err := collect(r.Scan(r.Context(), store.Scan{Table: t.Name}))
		if err != nil {
			r.Fatalf("Scan(%s): %v", t.Name, err)
		}
		for _, it := range items {
			lines = append(lines, t.Name+" "+show(it))
		}
		for i := range t.Indexes {
			x := &t.Indexes[i]
			partitions := map[string]bool{}
			for _, it := range items {
				if k, ok := x.KeyOf(it); ok {
					partitions[k.PK] = true
				}
			}
			for p := range partitions {
				for _, row := range r.rows(store.Query{Table: t.Name, Index: x.Name, Partition: p}) {
					lines = append(lines, t.Name+"."+x.Name+" "+show(row))
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// unchanged runs fail, which must write nothing.
func (r *rig) unchanged(fail func()) {
	r.Helper()
	before := r.dump()
	fail()
	if after := r.dump(); !slices.Equal(before, after) {
		r.Fatalf("a refused commit wrote something:\nbefore %q\nafter  %q", before, after)
	}
}

// conflict commits writes that must conflict and write nothing, and checks the error.
func (r *rig) conflict(want store.ConflictError, writes ...store.Write) {
	r.Helper()
	r.unchanged(func() {
		r.Helper()
		err := r.refuse(store.ErrConflict, writes...)
		got, ok := errors.AsType[*store.ConflictError](err)
		if !ok || *got != want {
			r.Fatalf("Commit = %#v, want %#v", err, &want)
		}
	})
}
