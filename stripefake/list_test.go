package stripefake

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestList_Pages: walking in pages of any length, forward or back, one meets each object
// once, in order, and has_more says no on the last page alone.
func TestList_Pages(t *testing.T) {
	w := newWorld(t, Options{})
	var made []string // newest first
	Seeded(t, 100, func(t *testing.T, r *rand.Rand) {
		for range r.IntN(4) {
			made = slices.Insert(made, 0, w.customer(""))
		}
		limit, back := 1+r.IntN(12), r.IntN(2) == 0
		params := url.Values{"limit": {strconv.Itoa(limit)}}
		if back && len(made) > 0 {
			params.Set("ending_before", made[len(made)-1])
		}
		var got []string
		for {
			page := w.ok("GET", customers, params.Encode())
			ids, more := page.ids(), page.body["has_more"] == true
			if more && len(ids) != limit || len(ids) > limit {
				t.Fatalf("a page of %d of %d, has_more %v", len(ids), limit, more)
			}
			if back {
				got = append(slices.Clone(ids), got...)
			} else {
				got = append(got, ids...)
			}
			if !more {
				break
			}
			if back {
				params.Set("ending_before", ids[0])
			} else {
				params.Set("starting_after", ids[len(ids)-1])
			}
		}
		want := made
		switch {
		case back && len(made) > 0:
			want = made[:len(made)-1]
		case back: // without a cursor the first page is the newest
		}
		if !slices.Equal(got, want) {
			t.Fatalf("back %v, limit %d: got %v, want %v", back, limit, got, want)
		}
	})
}

// TestList_Moves: what is made while somebody walks is not met, and nothing is met twice.
func TestList_Moves(t *testing.T) {
	w := newWorld(t, Options{})
	var want []string
	for range 5 {
		want = slices.Insert(want, 0, w.customer(""))
	}
	first := w.ok("GET", customers, "limit=3")
	w.customer("")
	second := w.ok("GET", customers, "limit=3&starting_after="+first.ids()[2])
	equal(t, "met", append(first.ids(), second.ids()...), want)
	equal(t, "list", []any{first.body["object"], first.body["url"], first.body["has_more"], second.body["has_more"]},
		[]any{"list", customers, true, false})
	w.do("GET", customers, "starting_after="+want[0]+"&ending_before="+want[2]).refused(t, "both cursors", 400, nil,
		"starting_after")
	w.ok("DELETE", customers+"/"+want[1], "")
	equal(t, "after a deleted one", w.ok("GET", customers, "starting_after="+want[1]).ids(), want[2:])
	equal(t, "without the deleted one", slices.Contains(w.ok("GET", customers, "").ids(), want[1]), false)
}

func TestList_Created(t *testing.T) {
	w := newWorld(t, Options{})
	var ids []string
	for range 4 {
		ids = append(ids, w.customer(""))
		w.Advance(10 * time.Second)
	}
	at := func(i int) int64 { return testStart.Unix() + int64(10*i) }
	for params, want := range map[string][]string{
		fmt.Sprintf("created=%d", at(1)):                            {ids[1]},
		fmt.Sprintf("created[gt]=%d", at(1)):                        {ids[3], ids[2]},
		fmt.Sprintf("created[gte]=%d", at(1)):                       {ids[3], ids[2], ids[1]},
		fmt.Sprintf("created[lt]=%d", at(1)):                        {ids[0]},
		fmt.Sprintf("created[lte]=%d", at(1)):                       {ids[1], ids[0]},
		fmt.Sprintf("created[gte]=%d&created[lt]=%d", at(1), at(3)): {ids[2], ids[1]},
		fmt.Sprintf("created[gt]=%d", at(3)):                        nil,
	} {
		equal(t, params, w.ok("GET", customers, params).ids(), want)
	}
	w.do("GET", customers, "created[since]=1").refused(t, "created[since]", 400, "parameter_unknown", "created[since]")
	w.do("GET", customers, "created[gt]=today").refused(t, "created[gt]=today", 400, "parameter_invalid_integer",
		"created[gt]")
}

// TestList_EmptyFilter: Stripe refuses an empty filter of any list, which otherwise would find
// everything.
func TestList_EmptyFilter(t *testing.T) {
	w := newWorld(t, Options{})
	filters := 0
	for _, route := range allRoutes() {
		if route.Method != "GET" || !slices.Contains(route.Names(), "limit") {
			continue
		}
		for _, name := range append(route.Names(), "created[gt]") {
			if top, _, _ := strings.Cut(name, "["); name == "expand" || !slices.Contains(route.Names(), top) {
				continue
			}
			filters++
			path := strings.NewReplacer("{customer}", "cus_1", "{invoice}", "in_1").Replace(route.Path)
			code, param := any("parameter_invalid_empty"), any(name)
			if strings.HasPrefix(path, "/v2/") {
				code, param = "invalid_fields", nil
			}
			w.do("GET", path, name+"=").refused(t, path+" "+name, 400, code, param)
		}
	}
	if filters < 100 {
		t.Errorf("%d filters only", filters)
	}
}
