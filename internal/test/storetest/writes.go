package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// exists is the condition in a ConflictError about an absent item.
const exists = "item exists"

func testUpdate(t *testing.T, open Opener) {
	key := at("a", "1")
	set := store.NewItem(number("amount", 6), text("zone", "z"))
	play(t, open,
		scenario{"sets, removes and leaves the rest", func(r *rig) {
			r.put(item("a", "1", number("amount", 5), text("note", "n"), text("keep", "k")), item("a", "2", number("amount", 5)))
			r.commit(update(key, set, []string{"note"}))
			r.want(ledger, item("a", "1", number("amount", 6), text("zone", "z"), text("keep", "k")),
				item("a", "2", number("amount", 5)))
		}},
		scenario{"removing what is not there", func(r *rig) {
			r.put(item("a", "1", text("keep", "k")))
			r.commit(update(key, nil, []string{"note", "aaa", "zzz"}))
			r.want(ledger, item("a", "1", text("keep", "k")))
		}},
		scenario{"changing nothing", func(r *rig) {
			r.put(item("a", "1", text("keep", "k")))
			r.commit(update(key, nil, nil))
			r.want(ledger, item("a", "1", text("keep", "k")))
			r.conflict(exists, update(at("a", "2"), nil, nil))
		}},
		scenario{"an absent item is a conflict", func(r *rig) {
			r.put(item("a", "2"), item("b", "1"))
			r.conflict(exists, update(key, set, nil), update(key, set, nil, store.AttributeAbsent("amount")),
				update(key, set, nil, store.Absent()))
			r.wantNone(ledger, key)
		}},
		scenario{"a deleted item is a conflict", func(r *rig) {
			r.put(item("a", "1"))
			r.commit(remove(key))
			r.conflict(exists, update(key, set, nil))
		}},
		scenario{"another kind of value", func(r *rig) {
			r.put(item("a", "1", number("amount", 5)))
			r.commit(update(key, store.NewItem(text("amount", "five")), nil))
			r.want(ledger, item("a", "1", text("amount", "five")))
		}},
		scenario{"no sort key", func(r *rig) {
			r.commit(store.Put(plain, store.NewItem(text("id", "a"))))
			r.commit(store.Update(plain, at("a", ""), set, nil))
			r.want(plain, store.NewItem(text("id", "a"), number("amount", 6), text("zone", "z")))
		}},
	)
}

func testDelete(t *testing.T, open Opener) {
	key := at("a", "1")
	play(t, open,
		scenario{"deletes the item and no other", func(r *rig) {
			r.put(item("a", "1"), item("a", "2"), item("a", "11"), item("b", "1"))
			r.commit(remove(key))
			r.wantNone(ledger, key)
			r.wantSorts(in("a"), "11", "2")
			r.wantSorts(in("b"), "1")
		}},
		scenario{"an absent item is a conflict", func(r *rig) {
			r.put(item("a", "2"))
			r.conflict(exists, remove(key), remove(key, store.AttributeAbsent("note")), remove(key, store.Absent()))
		}},
		scenario{"twice is a conflict", func(r *rig) {
			r.put(item("a", "1"))
			r.commit(remove(key))
			r.conflict(exists, remove(key))
		}},
		scenario{"a condition that fails keeps it", func(r *rig) {
			it, c := item("a", "1", number("version", 2)), equals("version", store.Int(1))
			r.put(it)
			r.conflict(c.String(), remove(key, c))
			r.want(ledger, it)
		}},
		scenario{"and put again", func(r *rig) {
			r.put(item("a", "1", text("note", "old"), text("state", "open"), text("due", "1")))
			r.commit(remove(key))
			it := item("a", "1", text("keep", "new"))
			r.commit(put(it, store.Absent()))
			r.want(ledger, it)
		}},
		scenario{"no sort key", func(r *rig) {
			r.commit(store.Put(plain, store.NewItem(text("id", "a"))), store.Put(plain, store.NewItem(text("id", "b"))))
			r.commit(store.Delete(plain, at("a", "")))
			r.wantNone(plain, at("a", ""))
			r.want(plain, store.NewItem(text("id", "b")))
		}},
	)
}

func testCheck(t *testing.T, open Opener) {
	key := at("a", "1")
	play(t, open,
		scenario{"changes nothing", func(r *rig) {
			r.put(item("a", "1", number("version", 1), text("state", "open"), text("due", "1")))
			r.unchanged(func() {
				r.commit(check(key))
				r.commit(check(key, equals("version", store.Int(1)), store.AttributeAbsent("note")))
				r.commit(check(at("a", "2"), store.Absent()))
			})
			r.wantNone(ledger, at("a", "2"))
		}},
		scenario{"the item must exist unless absence is the condition", func(r *rig) {
			r.conflict(exists, check(key), check(key, store.AttributeAbsent("note")))
			r.commit(check(key, store.Absent()))
			r.put(item("a", "1"))
			r.conflict(store.Absent().String(), check(key, store.Absent()))
		}},
		scenario{"holds back the other writes", func(r *rig) {
			r.put(item("a", "1", number("version", 1)))
			other, c := item("b", "1"), equals("version", store.Int(2))
			r.conflictAt(1, c.String(), put(other), check(key, c))
			r.wantNone(ledger, at("b", "1"))
			r.commit(put(other), check(key, equals("version", store.Int(1))))
			r.want(ledger, other)
		}},
	)
}

func testConditions(t *testing.T, open Opener) {
	key := at("a", "1")
	play(t, open,
		scenario{"matrix", testConditionMatrix},
		scenario{"by value", testConditionValues},
		scenario{"all have to hold", func(r *rig) {
			r.put(item("a", "1", number("version", 1), text("note", "n")))
			good, bad := equals("version", store.Int(1)), store.AttributeAbsent("note")
			r.conflict(bad.String(), put(item("a", "1"), good, bad), put(item("a", "1"), bad, good),
				remove(key, good, bad, good))
			r.commit(put(item("a", "1"), good, good))
		}},
		scenario{"the write that failed is named", func(r *rig) {
			r.put(item("a", "1"))
			for i := range 4 {
				writes := []store.Write{put(item("w", "0")), put(item("w", "1")), store.Put(plain, store.NewItem(text("id", "w"))),
					check(at("w", "2"), store.Absent())}
				writes[i] = put(item("a", "1"), store.Absent())
				r.conflictAt(i, store.Absent().String(), writes...)
			}
			r.conflictAt(1, exists, put(item("w", "0")), store.Delete(plain, at("a", "")))
		}},
		scenario{"they see the item before the commit", func(r *rig) {
			r.put(item("a", "1", number("version", 1)), item("a", "2", number("version", 1)))
			one, two := equals("version", store.Int(1)), store.NewItem(number("version", 2))
			r.commit(update(key, two, nil, one), update(at("a", "2"), two, nil, one))
			r.conflict(one.String(), update(key, two, nil, one))
		}},
		scenario{"one that says nothing is refused", func(r *rig) {
			r.put(item("a", "1"))
			for _, c := range []store.Condition{{}, equals("note", store.Value{}), equals("", store.S("a")),
				store.AttributeAbsent("")} {
				r.refuse(store.ErrInvalid, put(item("a", "1"), c))
				r.refuse(store.ErrInvalid, check(key, c))
			}
		}},
		scenario{"the error does not show the value", func(r *rig) {
			r.put(item("a", "1", text("note", "secret of the item")))
			err := r.refuse(store.ErrConflict, check(key, equals("note", store.S("secret of the caller"))))
			if strings.Contains(err.Error(), "secret") {
				r.Fatalf("the error shows a value: %v", err)
			}
		}},
	)
}

// testConditionMatrix holds every condition against every state of the item, in
// every operation, as the middle one of three writes.
func testConditionMatrix(r *rig) {
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
		{"equals", equals("version", store.Int(1)), [3]bool{false, true, false}},
		{"equals another", equals("version", store.Int(2)), [3]bool{false, false, false}},
		{"equals in another kind", equals("version", store.S("1")), [3]bool{false, false, false}},
		{"equals a missing one", equals("nope", store.Int(1)), [3]bool{false, false, false}},
		{"equals its key", equals("pk", store.S("a")), [3]bool{false, true, false}},
	}
	key, set := at("a", "1"), store.NewItem(text("note", "new"))
	for was := range state {
		for _, c := range conditions {
			for name, w := range map[string]store.Write{"put": put(item("a", "1", text("note", "new")), c.c),
				"update": update(key, set, nil, c.c), "delete": remove(key, c.c), "check": check(key, c.c)} {
				r.put(item("a", "1", number("version", 1), number("ttl", r.clock.unix()+10)))
				switch was {
				case gone:
					r.commit(remove(key))
				case expired:
					r.clock.advance(10)
				}
				mayBeAbsent := name == "put" || (name == "check" && c.name == "absent")
				err := r.Commit(r.Context(), store.Put(plain, store.NewItem(text("id", "x"))), w,
					store.Check(plain, at("y", ""), store.Absent()))
				want := error(&store.ConflictError{Write: 1, Table: ledger, Key: key, Condition: c.c.String()})
				switch {
				case c.holds[was] && (was == there || mayBeAbsent):
					want = nil
				case c.holds[was]:
					want = &store.ConflictError{Write: 1, Table: ledger, Key: key, Condition: exists}
				}
				if fmt.Sprint(err) != fmt.Sprint(want) {
					r.Errorf("%s of an item %s if %s: %v, want %v", name, state[was], c.name, err, want)
				}
			}
		}
	}
}

// testConditionValues compares every value with every other: only those that are equal hold.
func testConditionValues(r *rig) {
	vs, key := sampleValues(), at("a", "1")
	for i, v := range vs {
		r.put(item("a", "1", attribute("v", v)))
		for j, w := range vs {
			if i != j && (i+j)%r.rounds(1, 4) != 0 {
				continue
			}
			if err := r.Commit(r.Context(), check(key, equals("v", w))); (err == nil) != (i == j) {
				r.Errorf("%s equals %s: %v", showValue(v), showValue(w), err)
			}
		}
	}
	// Two texts of one number are one value.
	r.put(item("a", "1", number("v", 15)))
	r.commit(check(key, equals("v", decimal("1.50e1"))))
}
