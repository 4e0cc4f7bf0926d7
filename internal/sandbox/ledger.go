package sandbox

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
)

// A ledger holds all lines and the state that follows from them. Lines written now and lines read
// from the file both go through add. A million lines must fit a small machine's memory, hence the
// numbers for strings.
type ledger struct {
	view
	refs      map[string]uint32      // intents by ref
	keys      map[keyHash]uint32     // the line of the key's answer
	names     map[string]uint32      // places in text, of repeated strings
	successes []uint32               // succeeded lines by (at, line)
	flaky     map[processor.Tag]bool // periods in which the flaky method has had its decline
	reversals reversals
}

// A view shows the lines at the time of its copy, and needs no lock: lines and terms never change,
// and it reads only the ref of an intent.
type view struct {
	lines   pages[line]
	terms   pages[terms]
	intents pages[intent]
	text    []string // the first is empty
}

// A line is one line of the ledger. Lines number from 0 in the order of the file.
type line struct {
	at      int64 // Unix milliseconds
	intent  uint32
	terms   uint32
	method  uint32 // name
	code    uint32 // name
	attempt int32
	charge  uint32 // the intent's n-th attempt; with oddCharge, a name; 0: none
	state   state
	hard    bool
}

// oddCharge marks a charge whose id was not made here but read from the file.
const oddCharge = 1 << 31

// terms are the parameters of an intent except the method. A line by hand may differ from its
// intent, and then has terms of its own, for an audit to see.
type terms struct {
	ids                string // account and subscription, one after the other
	minor              int64
	install, sku       uint32 // names
	price              uint32 // likewise
	period, generation int32
	cut                uint16 // where the subscription begins in ids
	currency           money.Currency
}

func (t *terms) amount() money.Amount { return money.New(t.minor, t.currency) }

// An intent has the state of its last line.
type intent struct {
	ref     string
	last    uint32 // line; it stays when the intent is final
	charges uint32 // attempts so far
}

type (
	state   uint8
	keyHash [16]byte
)

// states gives each state a number: the index.
var states = [...]processor.State{processor.Opened, processor.Succeeded, processor.Declined,
	processor.RequiresAction, processor.Processing, processor.Canceled}

const (
	opened state = iota
	succeeded
	declined
	requiresAction
	processing
	canceled
)

func stateOf(s processor.State) (state, bool) {
	i := slices.Index(states[:], s)
	return state(max(i, 0)), i >= 0
}

func hashKey(key string) keyHash {
	sum := sha256.Sum256([]byte(key))
	return keyHash(sum[:16])
}

func newLedger() *ledger {
	return &ledger{view: view{text: []string{""}}, refs: map[string]uint32{}, keys: map[keyHash]uint32{},
		names: map[string]uint32{"": 0}, flaky: map[processor.Tag]bool{}}
}

// add appends the line and moves its intent. key is "" when there is none.
func (l *ledger) add(n line, key string) uint32 {
	number := l.lines.add(n)
	if key != "" {
		l.keys[hashKey(key)] = number
	}
	in := l.intents.at(n.intent)
	if n.charge&oddCharge == 0 {
		in.charges = max(in.charges, n.charge)
	}
	// Succeeded and canceled are final, but a success by hand counts after a cancellation.
	if was := l.lines.at(in.last).state; in.last == number || was != succeeded &&
		(was != canceled || n.state == succeeded) {
		in.last = number
	}
	switch {
	case n.state == succeeded:
		l.addSuccess(number, n.at)
	case n.state == declined && l.name(n.method) == methodFlaky:
		l.flaky[l.flakyKey(n.terms)] = true
	}
	return number
}

// addSuccess keeps successes in order even if the clock went back.
func (l *ledger) addSuccess(number uint32, at int64) {
	i := len(l.successes)
	if i > 0 && l.lines.at(l.successes[i-1]).at > at {
		i = l.since(at + 1)
	}
	l.successes = slices.Insert(l.successes, i, number)
}

func (l *ledger) since(at int64) int {
	i, _ := slices.BinarySearchFunc(l.successes, at, func(n uint32, at int64) int {
		if l.lines.at(n).at < at {
			return -1
		}
		return 1
	})
	return i
}

// from is since for any instant, cut to the ledger's milliseconds.
func (l *ledger) from(at time.Time) int {
	switch y := at.UTC().Year(); {
	case y < 0:
		return 0
	case y > 9999:
		return len(l.successes)
	}
	return l.since(at.UnixMilli())
}

// addIntent makes an intent whose first line is the next one to be added.
func (l *ledger) addIntent(ref string) uint32 {
	i := l.intents.add(intent{ref: ref, last: l.lines.n})
	l.refs[ref] = i
	return i
}

// addTerms copies the tag's strings, which may be parts of larger ones. The account has at most
// 65,535 bytes.
func (l *ledger) addTerms(tag processor.Tag, amount money.Amount, price string) uint32 {
	return l.terms.add(terms{
		ids: strings.Clone(tag.Account + tag.Subscription), cut: uint16(len(tag.Account)),
		install: l.intern(tag.Installation), sku: l.intern(tag.SKU), price: l.intern(price),
		period: int32(tag.Period), generation: int32(tag.Generation), minor: amount.Minor(), currency: amount.Currency(),
	})
}

func (l *ledger) intern(s string) uint32 {
	if i, ok := l.names[s]; ok {
		return i
	}
	i := uint32(len(l.text))
	s = strings.Clone(s) // not a part of the caller's larger buffer
	l.text = append(l.text, s)
	l.names[s] = i
	return i
}

// flakyKey names the period of the terms.
func (l *ledger) flakyKey(t uint32) processor.Tag {
	tag := l.tag(l.terms.at(t))
	tag.SKU, tag.Generation = "", 0
	return tag
}

func (v *view) name(i uint32) string { return v.text[i] }

func (v *view) tag(t *terms) processor.Tag {
	return processor.Tag{Installation: v.name(t.install), Account: t.ids[:t.cut], Subscription: t.ids[t.cut:],
		SKU: v.name(t.sku), Period: int(t.period), Generation: int(t.generation)}
}

const (
	refPrefix    = "pi_sandbox_"
	chargePrefix = "ch_sandbox_"
)

func chargeID(ref string, n uint32) string {
	return chargePrefix + strings.TrimPrefix(ref, refPrefix) + "_" + strconv.FormatUint(uint64(n), 10)
}

func (v *view) charge(n *line) string {
	switch {
	case n.charge == 0:
		return ""
	case n.charge&oddCharge != 0:
		return v.name(n.charge &^ oddCharge)
	}
	return chargeID(v.intents.at(n.intent).ref, n.charge)
}

// intent returns the answer of the line.
func (v *view) intent(number uint32) processor.Intent {
	n := v.lines.at(number)
	t := v.terms.at(n.terms)
	return processor.Intent{Ref: v.intents.at(n.intent).ref, State: states[n.state], Tag: v.tag(t), Amount: t.amount(),
		Price:  v.name(t.price),
		Latest: v.charge(n), Code: v.name(n.code), Hard: n.hard, Debit: v.name(n.method) == methodDebit,
		Changed: time.UnixMilli(n.at).UTC()}
}

// An Entry is a line of the ledger, with the intent's state after that line.
type Entry struct {
	processor.Intent
	Attempt int // as the caller numbered it; 0 before the first
	Method  string
}

func (v *view) entry(number uint32) Entry {
	n := v.lines.at(number)
	return Entry{v.intent(number), int(n.attempt), v.name(n.method)}
}

// pages is a list that only grows. It never moves its elements: a copy made under the lock shows
// the same elements without the lock. It wastes at most one page, and a slice a quarter.
type pages[T any] struct {
	full []*[pageSize]T
	n    uint32
}

const pageSize = 256

func (p *pages[T]) at(i uint32) *T { return &p.full[i/pageSize][i%pageSize] }

func (p *pages[T]) add(v T) uint32 {
	if p.n%pageSize == 0 {
		p.full = append(p.full, new([pageSize]T))
	}
	i := p.n
	p.n++
	*p.at(i) = v
	return i
}
