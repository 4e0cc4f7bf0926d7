package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

// A spy stands between all processes and the store. It sees what really lands, holds
// every single commit against the rules of the design, and remembers what the store
// forgets (receipts that expire), for the audit at the end.
type spy struct {
	store.Store
	w   *world
	mem *memstore.Store

	mu        sync.Mutex
	subs      map[string]store.Item // guarded by mu, as are the others
	before    store.Item            // the subscription that the last commit changed, as it was
	receipts  map[string][]store.Item
	ended     map[string]store.Item
	outside   map[string]int        // manual payments of a subscription/period, overpayments among them
	keys      map[string]store.Item // requests with a key
	notices   map[string]notice     // outbox rows by effect id
	bound     map[string]string     // ref -> subscription/period
	wired     map[string]bool       // subscription/period asked for by wire -> it still waits
	fallbacks map[string]int        // ref -> how often the fallback took the first method's place
	day       civil.Date            // business day of the run under way
	counts    tally
}

// A notice is what one effect tells of which subscription/period, and how many rows it has.
type notice struct {
	kind, period string
	rows         int
}

type tally struct{ receipts, failed int }

func newSpy(w *world, mem *memstore.Store) *spy {
	return &spy{Store: mem, w: w, mem: mem, subs: map[string]store.Item{}, receipts: map[string][]store.Item{},
		ended: map[string]store.Item{}, outside: map[string]int{}, keys: map[string]store.Item{},
		notices: map[string]notice{}, bound: map[string]string{}, wired: map[string]bool{}, fallbacks: map[string]int{}}
}

// snapshot is a backup of the store, with what the spy remembers of it.
func (s *spy) snapshot() *spy {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := newSpy(s.w, s.mem.Snapshot())
	c.subs, c.receipts, c.ended = maps.Clone(s.subs), maps.Clone(s.receipts), maps.Clone(s.ended)
	c.outside, c.keys = maps.Clone(s.outside), maps.Clone(s.keys)
	c.notices, c.bound, c.fallbacks = maps.Clone(s.notices), maps.Clone(s.bound), maps.Clone(s.fallbacks)
	c.wired = maps.Clone(s.wired)
	return c
}

func (s *spy) business(day civil.Date) { s.mu.Lock(); s.day = day; s.mu.Unlock() }

// period is the one to be paid next, as it landed in whatever store.
func (s *spy) period(n billing.Name) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.subs["ACC#"+n.String()].Int(schema.Period))
}

func (s *spy) tally() tally { s.mu.Lock(); defer s.mu.Unlock(); return s.counts }

// Commit implements store.Store.
func (s *spy) Commit(ctx context.Context, writes ...store.Write) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.Store.Commit(ctx, writes...)
	if err == nil || errors.Is(err, store.ErrUnknown) && s.landed(ctx, writes) {
		for i := range writes {
			s.see(&writes[i], writes)
		}
	}
	return err
}

// landed reports whether a commit of which the store itself does not know has been done:
// all of it or nothing has. It must be called with mu held, so that nobody has gone on from it.
func (s *spy) landed(ctx context.Context, writes []store.Write) bool {
	for i := range writes {
		w := &writes[i]
		if w.Op != store.OpPut {
			continue
		}
		if s.subs[subName(billing.KeyOf(w.Item))].Equal(w.Item) {
			return false // a twin wrote the very same before
		}
		for range 100 {
			it, err := s.Store.Get(ctx, w.Table, w.KeyIn(s.table(w.Table)))
			if err == nil || errors.Is(err, store.ErrNotFound) {
				return it.Equal(w.Item)
			}
		}
	}
	return false
}

func (s *spy) table(name string) *store.Table {
	if name == s.w.tables.Outbox.Name {
		return &s.w.tables.Outbox
	}
	return &s.w.tables.RecurringPayments
}

func (s *spy) see(w *store.Write, all []store.Write) {
	if w.Table == s.w.tables.Outbox.Name {
		if w.Op == store.OpPut {
			_, id, _ := strings.Cut(w.Item.Str(schema.SK), "#")
			data := w.Item.Get(schema.Data).Map()
			s.notices[id] = notice{w.Item.Str(schema.Kind),
				"ACC#" + data.Str(outbox.DataAccount) + "/" + data.Str(outbox.DataSubscription) + "/" + data.Str(outbox.DataPeriod),
				s.notices[id].rows + 1}
		}
		return
	}
	key := w.Key
	if w.Op == store.OpPut {
		key = s.w.tables.RecurringPayments.KeyOf(w.Item)
	}
	switch kind, _, _ := strings.Cut(key.SK, "#"); {
	case strings.HasPrefix(key.PK, "KEY#"):
		if s.keys[key.PK] != nil {
			s.w.violate("%s: a key was taken for a new request again", key)
		}
		s.keys[key.PK] = w.Item
	case !strings.HasPrefix(key.PK, "ACC#"):
	case kind == "REC" && w.Op == store.OpPut:
		id := key.PK + "/" + w.Item.Str(schema.Subscription) + "/" + fmt.Sprint(w.Item.Int(schema.Period))
		switch w.Item.Str(schema.Kind) {
		case "imported":
			return
		case "external":
			s.outside[id]++
		case "overpayment":
			s.outside[id]++
			s.w.happened(moveOverpaid)
			return
		}
		s.receipts[id] = append(s.receipts[id], w.Item)
		if was := s.ended[id]; was != nil && was.Str(schema.Status) != "parked" && w.Item.Str(schema.Kind) == "" {
			s.w.happened(moveCollected)
		}
		if w.Item.Str(schema.Kind) == "" {
			s.counts.receipts++
		}
	case kind == "PER" && w.Op == store.OpPut:
		id := key.PK + "/" + w.Item.Str(schema.Subscription) + "/" + fmt.Sprint(w.Item.Int(schema.Period))
		was := s.ended[id]
		again := was.Str(schema.Status) == "failed" && s.before.Str(schema.Requested) != "" ||
			was.Str(schema.Reason) == w.Item.Str(schema.Reason) &&
				len(was.Get(schema.Attempts).List()) == len(w.Item.Get(schema.Attempts).List()) // it has not failed anew
		s.ended[id] = w.Item
		if strings.HasPrefix(w.Item.Str(schema.Reason), "not paid before") {
			s.w.happened(moveUnpaid)
		}
		if w.Item.Str(schema.Status) == "failed" && !again {
			s.counts.failed++
		}
	case kind == "PER" && w.Op == store.OpDelete:
		for id, it := range s.ended {
			if s.w.tables.RecurringPayments.KeyOf(it) == key {
				delete(s.ended, id)
			}
		}
	case kind == "SUB" && w.Op == store.OpPut:
		s.seeSubscription(key, w.Item, all)
	}
}

// subName is a subscription's name as the spy has it; of another item its key.
func subName(key store.Key) string {
	n, ok := billing.NameOf(key)
	if !ok {
		return key.PK + "/" + key.SK
	}
	return "ACC#" + n.String()
}

// seeSubscription holds one version of a subscription against the one before.
func (s *spy) seeSubscription(key store.Key, is store.Item, all []store.Write) {
	name := subName(key)
	was, existed := s.subs[name]
	s.before = was
	s.subs[name] = is
	next, open := is.Str(schema.NextPaymentDate), is.Get(schema.OpenPeriod).Map()
	if open != nil && next == "" {
		s.w.violate("%s: the row of an open period has left the index", name)
	}
	status := is.Str(schema.Status)
	if live := status == "" || status == "active" || status == "parked" || is.Has(schema.Collect) ||
		is.Str(schema.Requested) == "cancel"; open == nil && live != (next != "") {
		s.w.violate("%s is %s; in the payment index: %v", name, status, next != "")
	}
	if !is.Has(schema.LastPaymentDate) || !is.Has(schema.LastReminderDate) {
		s.w.violate("%s: lacks the sort key of an index", name)
	}
	if !existed {
		return
	}
	// A date that another tool wrote without its shard may stand in its shard from now on.
	if next != "" && billing.IndexDate(next) != billing.IndexDate(was.Str(schema.NextPaymentDate)) {
		oldest := civil.Of(s.w.now()).AddDays(-1) // it may be yesterday still, west of here
		if !s.day.IsZero() && s.day.Before(oldest) {
			oldest = s.day
		}
		date, _, _ := strings.Cut(next, "#")
		if d, err := civil.Parse(date); err != nil || d.Before(oldest) {
			s.w.violate("%s: NextPaymentDate %s was written in the past", name, next)
		}
	}
	s.seeMoves(name, was, is)
	s.seeUpgrade(name, was, is, all)
	s.seePrice(name, was, is)
	n := was.Int(schema.Period)
	switch is.Int(schema.Period) - n {
	case 0:
	case 1:
		s.seeEnd(name, n, all)
	default:
		if is.Int(schema.Period) < n || int(is.Int(schema.Period)-n) > len(all)-1 {
			s.w.violate("%s: the period went from %d to %d", name, n, is.Int(schema.Period))
		}
	}
	if ref := open.Str(schema.Ref); ref != "" {
		s.seeBound(name, fmt.Sprintf("%s/%d", name, open.Int(schema.Period)), ref)
	}
}

// seeMoves: the fallback is tried once with an intent, and the plan stays while its period is open.
func (s *spy) seeMoves(name string, was, is store.Item) {
	before, open := was.Get(schema.OpenPeriod).Map(), is.Get(schema.OpenPeriod).Map()
	if is.Str(schema.Requested) == string(billing.RequestManual) && was.Str(schema.Requested) != is.Str(schema.Requested) {
		s.w.happened(moveLive)
	}
	if before != nil && open.Has(schema.FallbackFor) && !before.Has(schema.FallbackFor) {
		s.w.happened(moveFallback)
		if s.fallbacks[open.Str(schema.Ref)]++; s.fallbacks[open.Str(schema.Ref)] > 1 {
			s.w.violate("%s: the fallback was tried twice with %s", name, open.Str(schema.Ref))
		}
	}
	if before == nil && open.Has(schema.PayBy) {
		s.w.happened(moveAsked)
		s.wired[fmt.Sprintf("%s/%d", name, open.Int(schema.Period))] = true
	}
	if before.Has(schema.PayBy) && open == nil { // it may be charged later, if a person says so
		s.wired[fmt.Sprintf("%s/%d", name, before.Int(schema.Period))] = false
	}
	if before.Has(schema.PayBy) && (open.Has(schema.Ref) || open != nil && open.Str(schema.PayBy) > before.Str(schema.PayBy)) &&
		before.Int(schema.Period) == open.Int(schema.Period) {
		s.w.violate("%s: a period by wire became %v", name, open)
	}
	if was.Has(schema.SKU) && was.Str(schema.SKU) != is.Str(schema.SKU) {
		s.w.happened(movePlan)
		if n := is.Int(schema.Period); before != nil && open != nil && before.Int(schema.Period) == n && open.Int(schema.Period) == n {
			s.w.violate("%s: the plan was changed while period %d was open", name, n)
		}
	}
}

// seeEnd: a period ends in one commit with its receipt or the record of how it ended.
func (s *spy) seeEnd(name string, n int64, all []store.Write) {
	proofs := 0
	for _, w := range all {
		if w.Op != store.OpPut || w.Item.Int(schema.Period) != n || w.Item.Str(schema.SK) == "" {
			continue
		}
		switch kind, _, _ := strings.Cut(w.Item.Str(schema.SK), "#"); {
		case kind == "REC" && w.Item.Str(schema.Kind) != "overpayment", kind == "PER" && w.Item.Str(schema.Status) != "parked":
			proofs++
		}
	}
	if proofs != 1 {
		s.w.violate("%s: period %d ended with %d proofs in its commit", name, n, proofs)
	}
}

// seeBound: an intent is bound to one period, and no second one while the first may pay.
func (s *spy) seeBound(name, period, ref string) {
	if is, ok := s.bound[ref]; ok {
		if is != period {
			s.w.violate("%s was bound to %s and then to %s", ref, is, period)
		}
		return
	}
	for other, is := range s.bound {
		if is != period {
			continue
		}
		if state := s.w.state(other); state != processor.Canceled {
			s.w.violate("%s: %s was bound while %s, bound before, is %s", period, ref, other, state)
		}
	}
	s.bound[ref] = period
}

// mayConfirm notes a confirm of an intent that no commit has bound.
func (s *spy) mayConfirm(ref string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bound[ref] == "" {
		s.w.violate("%s was confirmed before it was bound", ref)
	}
}

// state is where an intent stands, by the ledger. A bank that loses answers is asked again.
func (w *world) state(ref string) processor.State {
	for range 50 {
		in, err := w.box.Lookup(context.Background(), ref)
		switch {
		case err == nil:
			return in.State
		case errors.Is(err, processor.ErrNoIntent):
			return ""
		}
	}
	w.violate("%s cannot be looked up", ref)
	return ""
}

// ledger returns the lines of the processor's ledger.
func (w *world) ledger() []sandbox.Entry {
	var all []sandbox.Entry
	for e := range w.box.Entries() {
		all = append(all, e)
	}
	return all
}

// dealings counts what was opened and tried at the processor. Orphans may be swept any day.
func (w *world) dealings() (n int) {
	for _, e := range w.ledger() {
		if e.State != processor.Canceled {
			n++
		}
	}
	return n
}
