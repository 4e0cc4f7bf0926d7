package storetest

import (
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

func testConditions(t *testing.T, open Opener) {
	t.Run("matrix", func(t *testing.T) { testConditionMatrix(t, open) })
	t.Run("by value", func(t *testing.T) { testConditionValues(t, open) })
	key := store.Key{PK: "a", SK: "1"}
	play(t, open,
		scenario{"all have to hold", func(r *rig) {
			it := item("a", "1", number("version", 1), text("note", "n"))
			r.put(it)
			good := store.AttributeEquals("version", store.Int(1))
			bad := store.AttributeAbsent("note")
			want := store.ConflictError{Table: ledger, Key: key, Condition: bad.String()}
			r.conflict(want, store.Put(ledger, item("a", "1"), good, bad))
			r.conflict(want, store.Put(ledger, item("a", "1"), bad, good))
			r.conflict(want, store.Delete(ledger, key, good, bad, good))
			r.commit(store.Put(ledger, item("a", "1"), good, good))
		}},
		scenario{"the write that failed is named", func(r *rig) {
			r.put(item("a", "1"))
			for i := range 4 {
				writes := []store.Write{
					store.Put(ledger, item("w", "0")), store.Put(ledger, item("w", "1")),
					store.Put(plain, store.NewItem(text("id", "w"))), store.Check(ledger, store.Key{PK: "w", SK: "2"}, store.Absent()),
				}
				writes[i] = store.Put(ledger, item("a", "1"), store.Absent())
				r.conflict(store.ConflictError{Write: i, Table: ledger, Key: key, Condition: store.Absent().String()}, writes...)
			}
			r.conflict(store.ConflictError{Write: 1, Table: plain, Key: store.Key{PK: "a"}, Condition: exists},
				store.Put(ledger, item("w", "0")), store.Delete(plain, store.Key{PK: "a"}))
		}},
		scenario{"they see the item before the commit", func(r *rig) {
			r.put(item("a", "1", number("version", 1)), item("a", "2", number("version", 1)))
			one := store.AttributeEquals("version", store.Int(1))
			two := store.NewItem(number("version", 2))
			r.commit(store.Update(ledger, key, two, nil, one), store.Update(ledger, store.Key{PK: "a", SK: "2"}, two, nil, one))
			r.conflict(store.ConflictError{Table: ledger, Key: key, Condition: one.String()}, store.Update(ledger, key, two,
				nil, one))
		}},
		scenario{"one that says nothing is refused", func(r *rig) {
			r.put(item("a", "1"))
			for _, c := range []store.Condition{
				{}, store.AttributeEquals("note", store.Value{}), store.AttributeEquals("", store.S("a")),
				store.AttributeAbsent(""),
			} {
				r.refuse(store.ErrInvalid, store.Put(ledger, item("a", "1"), c))
				r.refuse(store.ErrInvalid, store.Check(ledger, key, c))
			}
		}},
		scenario{"the error does not show the value", func(r *rig) {
			r.put(item("a", "1", text("note", "secret of the item")))
			err := r.refuse(store.ErrConflict,
				store.Check(ledger, key, store.AttributeEquals("note", store.S("secret of the caller"))))
			if strings.Contains(err.Error(), "secret") {
				r.Fatalf("the error shows a value: %v", err)
			}
		}},
	)
}

// testConditionMatrix holds every condition against every state of the item, in
// every operation, as the middle one of three writes.
func testConditionMatrix(t *testing.T, open Opener) {
	const gone, there, expired = 0, 1, 2
	state := [3]string{"absent", "present", "expired"}
	conditions := []struct {
		name  string
		c     store.Condition
		holds [3]bool // gone, there, expired
	}{
		{"absent", store.Absent(), [3]bool{true, false, true}},
		{"attribute absent, it is there", store.AttributeAbsent("version"), [3]bool{true, false, true}},
		{"attribute absent, it is not", store.AttributeAbsent("nope"), [3]bool{true, true, true}},
		{"equals", store.AttributeEquals("version", store.Int(1)), [3]bool{false, true, false}},
		{"equals another", store.AttributeEquals("version", store.Int(2)), [3]bool{false, false, false}},
		{"equals in another kind", store.AttributeEquals("version", store.S("1")), [3]bool{false, false, false}},
		{"equals a missing one", store.AttributeEquals("nope", store.Int(1)), [3]bool{false, false, false}},
		{"equals its key", store.AttributeEquals("pk", store.S("a")), [3]bool{false, true, false}},
	}
	key := store.Key{PK: "a", SK: "1"}
	set := store.NewItem(text("note", "new"))
	writes := []struct {
		name string
		make func(c store.Condition) store.Write
	}{
		{"put", func(c store.Condition) store.Write { return store.Put(ledger, item("a", "1", text("note", "new")), c) }},
		{"update", func(c store.Condition) store.Write { return store.Update(ledger, key, set, nil, c) }},
		{"delete", func(c store.Condition) store.Write { return store.Delete(ledger, key, c) }},
		{"check", func(c store.Condition) store.Write { return store.Check(ledger, key, c) }},
	}
	r := setUp(t, open)
	for was := range state {
		for _, c := range conditions {
			for _, w := range writes {
				old := item("a", "1", number("version", 1), number("ttl", r.clock.unix()+10))
				r.put(old)
				switch was {
				case gone:
					r.commit(store.Delete(ledger, key))
				case expired:
					r.clock.advance(10)
				}
				mayBeAbsent := w.name == "put" || (w.name == "check" && c.name == "absent")
				before, after := store.Put(plain, store.NewItem(text("id", "x"))), store.Check(plain, store.Key{PK: "y"},
					store.Absent())
				err := r.Commit(r.Context(), before, w.make(c.c), after)
				want := ""
				switch {
				case !c.holds[was]:
					want = (&store.ConflictError{Write: 1, Table: ledger, Key: key, Condition: c.c.String()}).Error()
				case was != there && !mayBeAbsent:
					want = (&store.ConflictError{Write: 1, Table: ledger, Key: key, Condition: exists}).Error()
				}
				if got := message(err); got != want {
					t.Errorf("%s of an item %s if %s: %q, want %q", w.name, state[was], c.name, got, want)
				}
			}
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// testConditionValues compares every value with every other: only those that are
// equal hold.
func testConditionValues(t *testing.T, open Opener) {
	r := setUp(t, open)
	vs := sampleValues(t)
	for i, v := range vs {
		r.put(item("a", "1", attribute("v", v)))
		for j, w := range vs {
			if i != j && (i+j)%r.rounds(1, 4) != 0 {
				continue
			}
			err := r.Commit(r.Context(), store.Check(ledger, store.Key{PK: "a", SK: "1"}, store.AttributeEquals("v", w)))
			if (err == nil) != (i == j) {
				t.Errorf("%s equals %s: %v", showValue(v), showValue(w), err)
			}
		}
	}
	// Two texts of one number are one value.
	v, err := store.Number("1.50e1")
	if err != nil {
		t.Fatal(err)
	}
	r.put(item("a", "1", number("v", 15)))
	r.commit(store.Check(ledger, store.Key{PK: "a", SK: "1"}, store.AttributeEquals("v", v)))
}
