package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// audit holds the store against the processor's ledger, by its own reckoning and by the
// engine's Verify, and returns every violation that was ever noted.
func (w *world) audit() []string {
	w.spy.mu.Lock()
	a := auditor{w: w, spy: w.spy, lines: w.ledger(), successes: map[string][]sandbox.Entry{}, declined: map[string]int{},
		last: map[string]processor.State{}}
	a.readLedger()
	for _, name := range slices.Sorted(mapKeys(w.spy.subs)) {
		a.subscription(name, w.spy.subs[name])
	}
	a.notices()
	a.manual()
	a.boundIntents()
	a.answeredCanceled()
	for _, e := range a.lines {
		if w.spy.wired[periodOf(e)] && e.State != processor.Opened && e.State != processor.Canceled {
			w.violate("%s was paid by wire, and %s is %s", periodOf(e), e.Ref, e.State)
		}
	}
	w.spy.mu.Unlock()
	w.verify()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.violations)
}

func mapKeys[K cmp.Ordered, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

type auditor struct {
	w         *world
	spy       *spy
	lines     []sandbox.Entry
	successes map[string][]sandbox.Entry // by subscription/period
	declined  map[string]int             // by subscription/period
	last      map[string]processor.State // by ref
}

func periodOf(e sandbox.Entry) string {
	return fmt.Sprintf("ACC#%s/%s/%d", e.Tag.Account, e.Tag.Subscription, e.Tag.Period)
}

// readLedger sorts the lines, and finds what is wrong with them by themselves: an attempt
// made twice under one number, an intent opened twice within the life of its key.
func (a *auditor) readLedger() {
	type attempt struct {
		ref    string
		number int
	}
	charges := map[attempt]string{}
	opened := map[string]sandbox.Entry{}
	for _, e := range a.lines {
		p := periodOf(e)
		a.last[e.Ref] = e.State
		switch e.State {
		case processor.Opened:
			key := fmt.Sprintf("%v/%v/%s", e.Tag, e.Amount, e.Method)
			if before, ok := opened[key]; ok && e.Changed.Sub(before.Changed) < sandbox.DefaultKeyLife && !a.w.reopens {
				a.w.violate("%s: opened twice within a day: %s and %s", p, before.Ref, e.Ref)
			}
			opened[key] = e
			continue
		case processor.Canceled:
			continue
		case processor.Succeeded:
			a.successes[p] = append(a.successes[p], e)
		case processor.Declined, processor.RequiresAction: // who does not authenticate in time has not paid either
			a.declined[p]++
		}
		k := attempt{e.Ref, e.Attempt}
		if before := charges[k]; before != "" && before != e.Latest && !a.w.twins {
			a.w.violate("%s: attempt %d ran twice: %s and %s", p, e.Attempt, before, e.Latest)
		}
		charges[k] = e.Latest
	}
	for p, list := range a.successes {
		if len(list) > 1 {
			a.w.violate("%s was charged %d times: %s and %s", p, len(list), list[0].Ref, list[1].Ref)
		}
	}
}

// subscription: every period below n is paid or has its record; every success has its
// receipt.
func (a *auditor) subscription(name string, it store.Item) {
	n := int(it.Int(schema.Period))
	for p := range n {
		id := fmt.Sprintf("%s/%d", name, p)
		receipts, ended := a.spy.receipts[id], a.spy.ended[id]
		again := len(receipts) == 2 && a.returned(receipts)
		switch {
		case len(receipts) > 1 && !again:
			a.w.violate("%s has %d receipts", id, len(receipts))
		case len(receipts) == 1 && ended != nil:
			a.w.violate("%s is paid and %s", id, ended.Str(schema.Status))
		case len(receipts) == 0 && ended == nil:
			a.w.violate("%s is below n=%d and neither paid nor ended", id, n)
		case ended != nil && ended.Str(schema.Status) == "parked":
			a.w.violate("%s is below n=%d and still parked", id, n)
		case ended != nil && len(a.successes[id]) > 0:
			a.w.violate("%s is %s, but %s was paid", id, ended.Str(schema.Status), a.successes[id][0].Ref)
		case len(receipts) == 1 || again:
			a.receipt(id, receipts[0], it)
		}
	}
	open := it.Get(schema.OpenPeriod).Map()
	for p := n; ; p++ {
		id := fmt.Sprintf("%s/%d", name, p)
		list := a.successes[id]
		if len(list) == 0 {
			break
		}
		if p > n || open.Str(schema.Ref) != list[0].Ref {
			a.w.violate("%s: %s was paid and the store (n=%d) does not know", id, list[0].Ref, n)
		} else {
			a.w.violate("%s: %s was paid and is not settled", id, list[0].Ref)
		}
	}
}

// returned reports whether the receipts are of a charge and of a manual payment after it, and whether the
// customer had the whole charge back at some time, as the processor has it.
func (a *auditor) returned(receipts []store.Item) bool {
	box, ok := a.w.box.(*sandbox.Sandbox)
	charge, manual := receipts[0], receipts[1]
	if !ok || charge.Has(schema.Kind) || manual.Str(schema.Kind) != "external" {
		return false
	}
	back := int64(0)
	for _, r := range box.AllReversals() {
		if r.Ref == charge.Str(schema.Charge) && (r.State == processor.ReversalSucceeded || r.State == processor.ReversalFailed) {
			back += r.Amount.Minor()
		}
	}
	return back >= cents(charge.Str(schema.ProcessedAmount))
}

func (a *auditor) receipt(id string, r store.Item, sub store.Item) {
	charged := a.successes[id]
	if r.Str(schema.Kind) == "external" {
		if len(charged) > 0 {
			a.w.violate("%s was paid outside and charged as %s", id, charged[0].Ref)
		}
		return
	}
	if len(charged) == 0 {
		a.w.violate("%s has a receipt of %s, but no charge", id, r.Str(schema.Charge))
		return
	}
	c := charged[0]
	if r.Str(schema.Charge) != c.Ref || r.Str(schema.ProcessedAmount) != c.Amount.Decimal() ||
		r.Str(schema.Currency) != c.Amount.Currency().Code() {
		a.w.violate("%s: receipt of %s %s, charge %s of %s", id, r.Str(schema.Charge), r.Str(schema.ProcessedAmount), c.Ref,
			c.Amount)
	}
	for _, e := range a.lines {
		if e.Ref == c.Ref && e.Amount != c.Amount {
			a.w.violate("%s: opened for %s, charged %s", id, e.Amount, c.Amount)
		}
	}
	zone := time.UTC
	if text := sub.Str(schema.TimeZone); text != "" {
		zone, _ = civil.Zone(text)
	}
	if due := date(r.Str(schema.DueDate)); civil.Today(c.Changed, zone).Before(due) && !a.w.early {
		a.w.violate("%s was due on %s and charged on %s", id, due, c.Changed)
	}
	if want, ok := a.w.amounts[id]; ok && want != c.Amount {
		a.w.violate("%s was charged %s, want %s", id, c.Amount, want)
	}
}

// manual: each payment that a person has told of under a key is recorded once, or waits to be. None is
// recorded for a period to come.
func (a *auditor) manual() {
	told := map[string]int{}
	for key, it := range a.spy.keys {
		if it.Str(schema.Kind) != string(billing.KeyedReceipt) {
			continue
		}
		name := "ACC#" + it.Str(schema.Account) + "/" + it.Str(schema.Subscription)
		id := fmt.Sprintf("%s/%d", name, it.Int(schema.Period))
		sub := a.spy.subs[name]
		waits := sub.Get(schema.Manual).Map()
		told[id]++
		if a.spy.outside[id] != 1 && (waits == nil || waits.Int(schema.Period) != it.Int(schema.Period)) {
			a.w.violate("%s: the manual payment of %s is recorded %d times", key, id, a.spy.outside[id])
		}
	}
	for id, n := range a.spy.outside {
		if n > 1 || told[id] > 1 {
			a.w.violate("%s has %d manual payments, and %d keys", id, n, told[id])
		}
	}
}

// notices: one receipt notice for each receipt, and no word of a decline that never was.
func (a *auditor) notices() {
	declines, receipts := map[string]int{}, map[string]int{} // by subscription/period
	for id, n := range a.spy.notices {
		asked := a.w.early && n.kind == outbox.KindActionRequired // by a clock ahead, and again on that day
		if n.rows > 1 && !asked && !(a.w.remindAgain && n.kind == outbox.KindReminder) {
			a.w.violate("effect %s was written %d times", id, n.rows)
		}
		switch n.kind {
		case outbox.KindReceipt:
			receipts[n.period]++
		case outbox.KindDeclined, outbox.KindFailed:
			declines[n.period]++
		}
	}
	for id, list := range a.spy.receipts {
		if receipts[id] != len(list) {
			a.w.violate("%s: %d receipts and %d notices of it", id, len(list), receipts[id])
		}
	}
	for id, n := range declines {
		if _, wired := a.spy.wired[id]; wired {
			n-- // that of its end is of no decline
		}
		if n > a.declined[id] {
			a.w.violate("%s: the customer was told of %d declines, the processor knows %d", id, n, a.declined[id])
		}
	}
}

// boundIntents: nothing can pay a period that has ended.
func (a *auditor) boundIntents() {
	for ref, id := range a.spy.bound {
		name := id[:strings.LastIndexByte(id, '/')]
		sub := a.spy.subs[name]
		ended := sub.Get(schema.OpenPeriod).Map() == nil ||
			fmt.Sprintf("%s/%d", name, sub.Get(schema.OpenPeriod).Map().Int(schema.Period)) != id
		if state := a.last[ref]; ended && state != processor.Succeeded && state != processor.Canceled {
			a.w.violate("%s has ended, and its intent %s is still %s", id, ref, state)
		}
	}
}

func (a *auditor) answeredCanceled() {
	for name, lines := range a.w.canceled {
		for _, e := range a.lines[lines:] {
			if e.State == processor.Succeeded && "ACC#"+e.Tag.Account+"/"+e.Tag.Subscription == name {
				a.w.violate("%s was charged (%s) after it was answered canceled", name, e.Ref)
			}
		}
	}
}

// noteCanceled remembers that a person was told that the subscription is canceled.
func (w *world) noteCanceled(s *billing.Subscription, err error) {
	if err != nil || s.Status != billing.CanceledSub {
		return
	}
	lines := len(w.ledger())
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.canceled["ACC#"+s.Account+"/"+s.ID]; !ok {
		w.canceled["ACC#"+s.Account+"/"+s.ID] = lines
	}
}

// verify asks the engine's own audit, when no index lags any more.
func (w *world) verify() {
	w.pass(2 * time.Minute)
	a, err := w.start().Verify(context.Background())
	for tries := 0; errors.Is(err, processor.ErrUnknown) && tries < 10; tries++ { // a bank that loses answers
		a, err = w.start().Verify(context.Background())
	}
	if err != nil {
		w.violate("verify: %v", err)
		return
	}
	for _, p := range a.Problems {
		w.violate("verify: %s/%s period %d: %s: %s", p.Account, p.Subscription, p.Period, p.Kind, p.Detail)
	}
	if a.OK != (len(a.Problems) == 0) {
		w.violate("verify: ok=%t with %d problems", a.OK, len(a.Problems))
	}
}
