package tracking

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
)

// A Rebuilt is the result of a rebuild for one Stripe account. It compares the stored state with
// the state that the stored events imply.
type Rebuilt struct {
	StripeAccount string       `json:"stripe_account"`
	Events        int          `json:"events"`                // events that were folded
	Unread        int          `json:"unread"`                // events not folded because their bodies are not stored
	Erased        int          `json:"erased,omitempty"`      // events not folded because a person's data was erased
	Thin          int          `json:"thin"`                  // applied thin events whose fetched object is not stored, so not folded
	Waiting       []string     `json:"waiting,omitempty"`     // up to 20 events that are not applied yet; replay applies one
	Compared      int          `json:"compared"`              // payments and subscriptions whose first event is stored
	Partial       int          `json:"partial"`               // payments and subscriptions whose first event has expired or was never stored
	Ahead         int          `json:"ahead"`                 // compared objects for which a fetch brought more than the events
	Differences   []Difference `json:"differences,omitempty"` // sorted by object ID
}

// A Difference describes an object whose stored state contradicts its events.
type Difference struct {
	ID     string `json:"id"`
	Stored string `json:"stored"`
	Folded string `json:"folded"`
}

const maxWaiting = 20 // maximum number of IDs in Rebuilt.Waiting

// RebuildSteps are progress callbacks that Rebuild calls once for each event. Neither may be nil.
type RebuildSteps struct {
	Read   func()              // an event was read from the store
	Folded func(done, all int) // an event was folded, after all were read
}

// A rebuild holds the state of one Rebuild call.
type rebuild struct {
	*intake
	sorter
	of map[string]*Rebuilt // by Stripe account
}

// Rebuild folds the stored events of registered Stripe accounts into fresh state. It compares that
// state with the stored state for each object whose first event is still stored. It changes nothing
// and sends no request to Stripe. The stored state may be ahead of the events because Duesday
// fetched an object for which Stripe never created an event or has not sent one yet. Rebuild counts
// such an object but does not report a difference. It sorts the events by object in temporary
// files, so its memory grows with the number of differences and not with the number of events.
func (in *intake) Rebuild(ctx context.Context, stripeAccounts []string, step RebuildSteps) (list []*Rebuilt, err error) {
	r := &rebuild{intake: in, of: map[string]*Rebuilt{}}
	for _, at := range stripeAccounts {
		if _, err := in.ConnectedAccount(ctx, at); err != nil {
			return nil, err
		}
		r.of[at] = &Rebuilt{StripeAccount: at, Waiting: []string{}, Differences: []Difference{}}
		list = append(list, r.of[at])
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err = r.sortEvents(ctx, stripeAccounts, step.Read); err == nil {
		err = r.foldSorted(ctx, step.Folded)
	}
	for _, r := range list {
		slices.SortFunc(r.Differences, func(a, b Difference) int { return strings.Compare(a.ID, b.ID) })
	}
	return list, err
}

func (b *rebuild) sortEvents(ctx context.Context, stripeAccounts []string, read func()) error {
	for e, err := range b.stored(ctx, stripeAccounts) {
		if err != nil {
			return err
		}
		read()
		r := b.of[e.StripeAccount]
		if r != nil && !e.Status.Final() && len(r.Waiting) < maxWaiting {
			r.Waiting = append(r.Waiting, e.ID)
		}
		if r == nil || !e.Status.Final() || e.Status == Refused {
			continue
		}
		if e.Erased != "" {
			r.Erased++
			continue
		}
		decoded, err := b.decode(e.Body)
		if err != nil { // the body was too large to store
			r.Unread++
			continue
		}
		if decoded.Object.Thin {
			decoded.Object = Object{}
			if json.Unmarshal([]byte(e.fetched), &decoded.Object) != nil {
				if e.Status == Applied {
					r.Thin++
				}
				continue
			}
		}
		r.Events++
		if id := owner(&decoded.Object); id != "" {
			if err := b.add(told{e.StripeAccount, id, e.Type, decoded.Object}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *rebuild) foldSorted(ctx context.Context, step func(done, all int)) error {
	done := 0
	for part := range sorterFiles {
		objects := map[[2]string]*folded{}
		for t, err := range b.each(part) {
			if err != nil {
				return err
			}
			key := [2]string{t.At, t.ID}
			objects[key] = cmp.Or(objects[key], &folded{})
			objects[key].add(t, b.takerAt(t.At))
			done++
			step(done, b.n)
		}
		for key, f := range objects {
			if err := b.compare(ctx, b.of[key[0]], key[1], f); err != nil {
				return err
			}
		}
	}
	return nil
}

// stored yields the stored events of the Stripe accounts. On a local store it scans the events
// table if that reads several accounts at once or no other account exists. Otherwise it reads one
// account after the other through the index, because the runtime policy does not allow scans of a
// shared store.
func (b *rebuild) stored(ctx context.Context, stripeAccounts []string) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		others := false
		for a, err := range b.ConnectedAccounts(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			others = others || a.StripeAccount != stripeAccounts[0]
		}
		if !b.o.Shared && (!others || len(stripeAccounts) > 1) { // a scan in storage order is much faster
			sequence.Map(b.o.Store.Scan(ctx, store.Scan{Table: b.events}), eventOf)(yield)
			return
		}
		rows := sequence.Flat(slices.Values(stripeAccounts), func(at string) iter.Seq2[EventRow, error] {
			return b.Events(ctx, EventQuery{StripeAccount: at})
		})
		sequence.Map(rows, func(row EventRow) (*Event, error) { return unlessGone(b.Event(ctx, row.ID)) })(yield)
	}
}

// owner returns the ID of the payment or subscription into which the object is merged, or "" if
// there is none.
func owner(o *Object) string {
	switch {
	case o.Tag.Charge:
	case o.Kind == KindCharge || o.Kind == KindRefund || o.Kind == KindDispute:
		return o.Payment
	case o.Kind == KindSchedule && o.Subscription != "":
		return o.Subscription
	case o.Kind == KindPayment || o.Kind == KindSubscription || o.Kind == KindSchedule:
		return o.ID
	}
	return ""
}

// folded is the state of one object derived from its events.
type folded struct {
	payment      *Payment
	subscription *Subscription
	whole        bool // the events include the creation of the object
}

func (f *folded) add(t told, taker string) {
	o := t.Object
	if o.Kind == KindSubscription || o.Kind == KindSchedule {
		f.subscription = cmp.Or(f.subscription, &Subscription{ID: t.ID, Status: SubscriptionNew})
		f.whole = f.whole || t.Type == "customer.subscription.created" || t.ID == o.ID &&
			t.Type == "subscription_schedule.created"
		if o.Schedule == "" && o.Kind == KindSubscription {
			o.Schedule = f.subscription.Schedule
		}
		// The merge does not wait for a schedule, because all events are available in some order
		// and the last one decides.
		mergeSubscription(f.subscription, o, rule{force: true, taker: taker})
		return
	}
	f.payment = cmp.Or(f.payment, &Payment{ID: t.ID, Status: PaymentNew})
	f.whole = f.whole || t.Type == "payment_intent.created"
	mergePayment(f.payment, o, false)
}

func (b *rebuild) compare(ctx context.Context, r *Rebuilt, id string, f *folded) (err error) {
	var stored, now string
	var ahead bool
	if f.payment != nil {
		var p *Payment
		if p, err = b.Payment(ctx, r.StripeAccount, id); err == nil {
			stored, now, ahead = p.summary(), f.payment.summary(), p.includes(f.payment)
		}
	} else {
		var sub *Subscription
		if sub, err = b.Subscription(ctx, r.StripeAccount, id); err == nil {
			stored, now, ahead = sub.summary(), f.subscription.summary(), sub.sound() && sub.includes(f.subscription)
		}
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil // the object is not ours
	case err != nil:
		return err
	case !f.whole:
		r.Partial++
		return nil
	case stored == now:
	case ahead:
		r.Ahead++
	default:
		r.Differences = append(r.Differences, Difference{ID: id, Stored: stored, Folded: now})
	}
	r.Compared++
	return nil
}

// includes reports whether the payment has reached at least the state of the other payment.
func (p *Payment) includes(q *Payment) bool {
	if paymentRank[q.Status] > paymentRank[p.Status] || q.told > max(p.told, p.Refunded) {
		return false
	}
	for id, r := range q.Refunds {
		if refundRank[r.Status] > refundRank[p.Refunds[id].Status] {
			return false
		}
	}
	for id, d := range q.Disputes {
		if disputeRank[d.Status] > disputeRank[p.Disputes[id].Status] {
			return false
		}
	}
	return true
}

// sound reports whether the status and ending follow from the other fields of the row.
func (s *Subscription) sound() bool {
	status, ending := s.decide()
	return s.Status == status && s.Ending == ending
}

func (s *Subscription) includes(t *Subscription) bool {
	return (!t.activated || s.activated) && (!t.over || s.over) && (!t.expired || s.expired) && (!t.TakenOver || s.TakenOver) &&
		scheduleRank[t.scheduleStatus] <= scheduleRank[s.scheduleStatus]
}

// summary returns a one-line description of the state that events alone determine.
func (p *Payment) summary() string {
	parts := []string{string(p.Status)}
	if p.Refunded > 0 {
		parts = append(parts, fmt.Sprintf("%d refunded", p.Refunded))
	}
	for _, id := range slices.Sorted(maps.Keys(p.Disputes)) {
		parts = append(parts, "dispute "+p.Disputes[id].Status)
	}
	return strings.Join(parts, ", ")
}

func (s *Subscription) summary() string {
	switch s.Ending {
	case "":
		return string(s.Status)
	case EndSetting: // only a fetched object can cause this ending
		return string(SubscriptionActive)
	}
	return string(s.Status) + ": " + string(s.Ending)
}

// A told is the information that one event contains about a payment or subscription.
type told struct {
	At, ID, Type string // Stripe account, payment or subscription ID, event type
	Object       Object
}

// sorterFiles is the number of files in a sorter. A rebuild holds the objects of one file in
// memory.
const sorterFiles = 64

// A sorter writes all entries about one object to the same file, in order. The files are private
// temporary files. The sorter unlinks each file when it creates it, so the files disappear with the
// process.
type sorter struct {
	seed  maphash.Seed
	files [sorterFiles]*os.File // nil if the file is empty
	out   [sorterFiles]*bufio.Writer
	n     int // number of added entries
}

func (s *sorter) add(t told) error {
	if s.seed == (maphash.Seed{}) {
		s.seed = maphash.MakeSeed()
	}
	part := maphash.Comparable(s.seed, [2]string{t.At, t.ID}) % sorterFiles
	if s.files[part] == nil {
		f, err := os.CreateTemp("", "duesday-rebuild-")
		if err != nil {
			return err
		}
		s.files[part], s.out[part] = f, bufio.NewWriterSize(f, 32<<10)
		if err := os.Remove(f.Name()); err != nil {
			return err
		}
	}
	s.n++
	return json.NewEncoder(s.out[part]).Encode(t)
}

// each yields the entries of one file. After that the caller must not add entries to the file.
func (s *sorter) each(part int) iter.Seq2[told, error] {
	return func(yield func(told, error) bool) {
		if s.files[part] == nil {
			return
		}
		err := s.out[part].Flush()
		if err == nil {
			_, err = s.files[part].Seek(0, io.SeekStart)
		}
		if err != nil {
			yield(told{}, err)
			return
		}
		for from := json.NewDecoder(s.files[part]); ; {
			var t told
			err := from.Decode(&t)
			if err == io.EOF || !yield(t, err) || err != nil {
				return
			}
		}
	}
}

func (s *sorter) close() (err error) {
	for _, f := range s.files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}
