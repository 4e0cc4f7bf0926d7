// Package audit compares a store's records with the processor's ledger. It does not change either.
package audit

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/kept"
	"github.com/duesday/duesday/internal/billing/numbering"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// A Report is the result of an audit.
type Report struct {
	OK            bool
	Subscriptions int
	Receipts      int // of charges
	Charges       int // successful, at the processor
	Imported      int // receipts of imported data
	External      int // receipts of manual payments
	Open          int // periods being charged
	Parked        int // subscriptions waiting for a person
	Others        int // charges of other installations, not compared
	Refunds       int // records of refunds, in any state
	Disputes      int // records of disputes, in any state
	Problems      []Problem
	Notes         []Problem // that are none, and that a person should know
	// Corrections bring the sums to what the records add up to; none if anything else is wrong, too.
	Corrections []report.Correction
}

// A Problem is one disagreement, or one record that contradicts another.
type Problem struct {
	Kind         string
	Account      string
	Subscription string
	Period       int
	Detail       string
}

// Options are the choices of an audit.
type Options struct {
	// ReceiptMonths is for how many months receipts are kept whose subscription does not tell.
	ReceiptMonths int
	Progress      func(n int64) // is called with the number of items, rows and charges read; may be nil
}

// An auditor gathers store and ledger, then compares them. It keeps hashes and numbers in the place of
// texts: a million subscriptions with their receipts take some hundred megabytes.
type auditor struct {
	*billing.Records
	proc      processor.Charger
	o         Options
	now       time.Time
	seed      maphash.Seed
	steps     int64
	subs      map[uint64]*audited // by account and id
	accounts  map[uint64]account
	opens     map[*audited]opening  // open periods, and past ones to be collected
	twins     map[*audited]*audited // the next item of the same id, under another SKU
	texts     []string              // equal ones, once; the first is empty
	numbers   map[string]uint32     // of texts
	agenda    agenda
	placed    map[uint64]string        // connected accounts of receipts, by the hash of their reference
	charged   map[string]bool          // connected accounts of which the store has a receipt
	blind     map[string]bool          // connected accounts refusing our requests
	amounts   map[string]*money.Amount // of the charges with a reversal, by reference
	others    map[otherName]otherCharges
	reversals reversals
	taken     []*billing.Subscription // being taken over
	origins   map[uint64]bool         // hashes of the processor's subscriptions that were taken over: whether one of ours is alive
	overpaid  []Problem               // notes on the overpayments
	lookups   map[uint64]struct{}     // hashes of rows of package lookup that are met without an item, or the reverse
	given     *numbering.Comparison
	sums      sums // the records add up to them
	read      span // the times whose sums are read
	met       span // the times of the sums that the scan has met
	kept      int  // the least months for which a subscription's receipts are kept; 0: for ever, or not known
	result    Report
}

// An opening is an open period, or a past one that is to be collected.
type opening struct {
	ref    string // of the bound intent; "": none is yet
	period int
}

type account struct {
	email uint32 // hash
	zone  uint16 // hash
	mixed bool   // its subscriptions may have other addresses
}

// audited is the summary of one subscription. Texts that many have are numbers, see auditor.once.
type audited struct {
	name     string          // account/id
	marks    []mark          // of its periods
	rows     [indexes]uint32 // hashes of its rows in the indexes that were not yet met; 0: none
	email    uint32          // hash
	next     int32           // its period to be paid next; -1: no item
	owes     int32           // the installments of a completed one; 0: of another
	sku      uint32          // text; of its item
	status   uint32          // text
	kept     uint32          // text; for how many months its receipts are kept
	created  civil.Date
	anchor   civil.Date
	from     int32 // the period due on the anchor
	interval uint16
	unit     civil.Unit
	day      uint8
	pastDue  bool   // and not being cancelled
	zone     uint16 // hash; 0: not compared
}

// due returns the due date of the period by the present schedule.
func (s *audited) due(period int) (civil.Date, error) {
	return civil.Schedule{Anchor: s.anchor, From: int(s.from), Day: int(s.day),
		Interval: civil.Interval{N: int(s.interval), Unit: s.unit}}.Due(period)
}

func (a *auditor) nameOf(s *audited) billing.Name {
	account, id, _ := strings.Cut(s.name, "/")
	return billing.Name{Account: account, ID: id, SKU: a.texts[s.sku]}
}

// A mark is one receipt, record or charge of a period.
type mark struct {
	ref      uint64 // hash of the processor's reference
	minor    int64
	sku      uint32 // text
	price    uint32 // hash of the receipt's price as a text
	period   int32
	due      civil.Date
	taken    civil.Date // in UTC; of a receipt
	currency money.Currency
	kind     markKind
	failed   bool // the period has failed
	seen     bool // a success at the processor
}

type markKind uint8

const (
	receiptOfCharge markKind = iota
	receiptOfPerson
	recordOfEnd
	recordOfParking
	chargeAlone // a success without a receipt
)

// Verify audits the whole store, and compares it with the processor's ledger. No period may be
// charged twice and none skipped. Every receipt must have its charge, and every charge its receipt,
// unless the receipt has expired and its period is past. Every run must balance. Each charged
// subscription must be where a run finds it in time. Verify scans, and changes nothing.
func Verify(ctx context.Context, e *billing.Records, proc processor.Charger, o Options) (*Report, error) {
	return verify(ctx, e, proc, o, span{e.Opened.Created.AddDate(-1, 0, 0), e.Now().AddDate(0, 1, 0)})
}

// verify is Verify with the sums of the span. If there are earlier or later ones, such as by a
// clock that was ahead, it begins again: they too are read before the items and after them.
func verify(ctx context.Context, e *billing.Records, proc processor.Charger, o Options, read span) (*Report, error) {
	a := &auditor{Records: e, proc: proc, o: o, now: e.Now(), seed: maphash.MakeSeed(),
		subs: map[uint64]*audited{}, accounts: map[uint64]account{}, opens: map[*audited]opening{},
		twins: map[*audited]*audited{}, texts: []string{""}, numbers: map[string]uint32{"": 0},
		origins: map[uint64]bool{}, placed: map[uint64]string{}, charged: map[string]bool{}, blind: map[string]bool{},
		amounts: map[string]*money.Amount{}, others: map[otherName]otherCharges{},
		lookups: map[uint64]struct{}{}, given: numbering.NewComparison(e), sums: sums{}, read: read, met: read,
		reversals: reversals{byRef: map[string]*billing.ReversalRecord{}, byID: map[string]*billing.ReversalRecord{},
			asked: map[string]string{}, charges: map[uint64][]*billing.ReversalRecord{}}}
	if err := a.readWalk(ctx); err != nil {
		return nil, err
	}
	least, err := a.readSums(ctx, true)
	if err != nil {
		return nil, err
	}
	for it, err := range e.Store.Scan(ctx, store.Scan{Table: e.Table}) {
		if err != nil {
			return nil, err
		}
		a.step()
		a.add(it)
	}
	if a.met != read {
		return verify(ctx, e, proc, o, a.met)
	}
	if err := a.compareSums(ctx, least); err != nil {
		return nil, err
	}
	a.parted()
	if err := a.given.Report(ctx, func(number, detail string) {
		a.problem("receipt number differs", billing.Name{}, 0, "%s: %s", number, detail)
	}); err != nil {
		return nil, err
	}
	if err := a.compareLookups(ctx); err != nil {
		return nil, err
	}
	if err := a.readRows(ctx); err != nil {
		return nil, err
	}
	places, err := a.Places(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.compareCharges(ctx, places); err != nil {
		return nil, err
	}
	a.compareSubscriptions(ctx)
	if err := a.compareReversals(ctx, places); err != nil {
		return nil, err
	}
	if err := a.compareTakeovers(ctx); err != nil {
		return nil, err
	}
	a.noteOverpaid()
	if err := a.lookAgain(ctx); err != nil {
		return nil, err
	}
	slices.SortFunc(a.result.Problems, func(x, y Problem) int { return strings.Compare(x.sortKey(), y.sortKey()) })
	a.result.OK = len(a.result.Problems) == 0
	if slices.ContainsFunc(a.result.Problems, func(p Problem) bool { return p.Kind != sumDiffers && p.Kind != "unreadable sums" }) {
		a.result.Corrections = nil
	}
	return &a.result, nil
}

func (p *Problem) sortKey() string {
	return fmt.Sprint(p.Account, "/", p.Subscription, " ", p.Period, p.Kind, p.Detail)
}

// step counts one thing read.
func (a *auditor) step() {
	if a.steps++; a.o.Progress != nil {
		a.o.Progress(a.steps)
	}
}

func (a *auditor) problem(kind string, n billing.Name, period int, format string, args ...any) {
	a.result.Problems = append(a.result.Problems, Problem{Kind: kind, Account: strings.Clone(n.Account),
		Subscription: strings.Clone(n.ID), Period: period, Detail: fmt.Sprintf(format, args...)})
}

func (a *auditor) unreadable(noun string, key store.Key, reason any) {
	a.problem("unreadable "+noun, billing.Name{Account: billing.AccountOf(key.PK)}, 0, "%s: %v", key.SK, reason)
}

// once returns the number of the text in texts.
func (a *auditor) once(text string) uint32 {
	n, known := a.numbers[text]
	if !known {
		n, text = uint32(len(a.texts)), strings.Clone(text)
		a.texts, a.numbers[text] = append(a.texts, text), n
	}
	return n
}

func (a *auditor) hash(text string) uint64 { return maphash.String(a.seed, text) }

// sub returns the summary of the account's first subscription of the id.
func (a *auditor) sub(n billing.Name) *audited {
	h := maphash.Comparable(a.seed, billing.Name{Account: n.Account, ID: n.ID})
	s := a.subs[h]
	if s == nil {
		s = &audited{name: n.Account + "/" + n.ID, next: -1}
		a.subs[h] = s
	}
	return s
}

// find returns the summary of the subscription, or nil if the store has no item of it. The SKU
// matters only if the account has several of the id.
func (a *auditor) find(n billing.Name) *audited {
	first := a.subs[maphash.Comparable(a.seed, billing.Name{Account: n.Account, ID: n.ID})]
	if first == nil || first.next < 0 {
		return nil
	}
	for s := first; s != nil; s = a.twins[s] {
		if a.texts[s.sku] == n.SKU {
			return s
		}
	}
	return first
}

// each yields every summary.
func (a *auditor) each() iter.Seq[*audited] {
	return func(yield func(*audited) bool) {
		for _, s := range a.subs {
			for ; s != nil; s = a.twins[s] {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// parted gives the marks of two subscriptions of one id to the one whose SKU they have.
func (a *auditor) parted() {
	for _, first := range a.subs {
		if a.twins[first] == nil {
			continue
		}
		all := first.marks
		first.marks = nil
		for _, m := range all {
			owner := first
			for s := first; s != nil; s = a.twins[s] {
				if s.sku == m.sku {
					owner = s
				}
			}
			owner.marks = append(owner.marks, m)
		}
	}
}

// earliest returns a time before the period's payment, by the present schedule.
func (s *audited) earliest(period int) time.Time {
	if due, err := s.due(period); err == nil {
		return due.AddDays(-2).In(time.UTC) // far east of Greenwich the day begins earlier than in UTC
	}
	return s.created.In(time.UTC)
}

// expired reports whether the receipt of the period, processed at that time, may have expired. The
// subscription tells for how long it was kept; else the shortest time of the settings counts.
func (a *auditor) expired(s *audited, period int, processed time.Time) bool {
	months, known := kept.Months(a.texts[s.kept], period)
	if !known {
		months = a.o.ReceiptMonths
	}
	return months > 0 && !processed.AddDate(0, months, 0).After(a.now)
}
