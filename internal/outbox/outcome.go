package outbox

import (
	"context"

	"github.com/duesday/duesday/internal/store"
)

// An End is how an effect left its queue.
type End uint8

// The ends.
const (
	Delivered End = iota
	Unwanted      // the guard or an operator did not want it delivered; see Outcome.Asked
	GivenUp       // it is a dead letter
	Replayed      // the dead letter is due again
)

// An Outcome is what a Recorder learns of an effect.
type Outcome struct {
	End    End
	Asked  bool   // an operator dropped it
	Tries  int    // deliveries that were attempted
	Answer string // of the receiver; "" if there is none
	Err    error  // why it was given up
}

// A Recorder returns the writes that record how an effect ended. The commit that ends the effect contains
// them, so the record exists if, and only if, the effect ended. row is the effect's row, without its claim.
type Recorder func(row store.Item, e Effect, o Outcome) []store.Write

// Recording returns an outbox that records the ends of its effects. It does not record rows whose creation
// time cannot be read.
func (o Outbox) Recording(r Recorder) *Outbox {
	o.record = r
	return &o
}

// recorded returns the writes of the effect's record.
func (o *Outbox) recorded(it store.Item, e Effect, out Outcome) []store.Write {
	if o.record == nil || e.Created.IsZero() {
		return nil
	}
	return o.record(it, e, out)
}

// gone returns the writes that delete and record the effect. They hold while the claim is as read.
func (o *Outbox) gone(it store.Item, e Effect, out Outcome) []store.Write {
	return append([]store.Write{o.Gone(it)}, o.recorded(it, e, out)...)
}

// answerKey is the key of a delivery's answer in its context.
type answerKey struct{}

// Answer notes what the receiver answered to the delivery with this context. A Deliverer calls it before it
// returns nil.
func Answer(ctx context.Context, text string) {
	if to, ok := ctx.Value(answerKey{}).(*string); ok {
		*to = text
	}
}
