package api

import (
	"cmp"
	"slices"
)

// A Count is stripefake.Count.
type Count struct {
	Endpoint string // unknown: no endpoint of the fake
	Status   int    // 0: the connection broke
	Requests int64
	Replays  int64 // answers among them that repeat an earlier one
}

type countKey struct {
	endpoint string
	status   int
}

// A tally counts answers.
type tally struct{ requests, replays int64 }

func (x *exchange) count(status int) {
	x.f.Mu.Lock()
	defer x.f.Mu.Unlock()
	k := countKey{x.name, status}
	n := x.f.counts[k]
	if n == nil {
		n = &tally{}
		x.f.counts[k] = n
	}
	n.requests++
	if x.replay != nil {
		n.replays++
	}
}

// Requests returns the counts so far, by endpoint and status.
func (f *Fake) Requests() []Count {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	list := make([]Count, 0, len(f.counts))
	for k, n := range f.counts {
		list = append(list, Count{k.endpoint, k.status, n.requests, n.replays})
	}
	slices.SortFunc(list, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Status, b.Status))
	})
	return list
}
