package tracking

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/store"
)

// formatErased is the first byte of the mark in place of an erased body. The body's SHA-256
// follows.
const formatErased = 2

// erase replaces the body by its hash. An event that waits for an operator is ignored from now on.
func (e *Event) erase() {
	sum := sha256.Sum256(e.Body)
	if e.Body, e.Erased = nil, hex.EncodeToString(sum[:]); !e.Status.Final() {
		e.Status, e.Reason = Ignored, "the person's data was erased"
	}
}

// EraseEvent returns the write that replaces the stored event's body by its hash, or false if there
// is none.
func EraseEvent(table string, it store.Item) (w store.Write, is bool, err error) {
	e, err := eventOf(it)
	if err != nil || len(e.Body) == 0 {
		return w, false, err
	}
	e.erase()
	it, err = e.item()
	return store.Put(table, it, *e.was), true, err
}

// ErasePurchase returns the write that removes the texts about the buyer from the stored purchase,
// or false if there are none.
func ErasePurchase(table string, it store.Item, now time.Time) (w store.Write, is bool, err error) {
	p, err := DecodePurchase(it)
	if err != nil || p.keyHash == "" {
		return w, false, err
	}
	was := p.order
	p.Order.Email, p.Order.Name, p.Order.Description = "", "", ""
	p.order, _, err = p.Order.encode()
	is = p.order != was
	for _, prefix := range []string{declinedProblem, refusedProblem} { // Stripe's texts, which may repeat the order
		for text := range p.texts() {
			if strings.HasPrefix(*text, prefix) {
				*text, is = strings.TrimSuffix(prefix, ": "), true
			}
		}
	}
	return put(table, p.fields, now), is, err
}

// texts yields the texts about creating the purchase.
func (p *Purchase) texts() func(yield func(*string) bool) {
	return func(yield func(*string) bool) {
		for i := range p.History {
			if !yield(&p.History[i].What) {
				return
			}
		}
		yield(&p.Problem)
	}
}
