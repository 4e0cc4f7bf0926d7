package billing

import (
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
)

// A Takeover is the origin of a subscription that the processor ran before. The subscription is held
// until a run has seen the processor's one ended, and then opens its first period; see package takeover.
type Takeover struct {
	From     string    // the processor's subscription
	Boundary time.Time // end of its last period
	Stage    TakeoverStage
	Waits    civil.Date // business day on which a run first found it not ended at the boundary; zero: none
}

// A TakeoverStage is how far a takeover has come. Each is committed.
type TakeoverStage string

// The stages. In the first two the subscription is held.
const (
	TakeoverHeld    TakeoverStage = "held"    // ours is stored; theirs may not end yet
	TakeoverEnding  TakeoverStage = "ending"  // theirs was read back, and ends at the boundary
	TakeoverDone    TakeoverStage = "done"    // theirs has ended, and our first period was opened
	TakeoverUndoing TakeoverStage = "undoing" // ours is canceled; theirs may still end at the boundary
	TakeoverUndone  TakeoverStage = "undone"  // ours is canceled, and theirs continues
)

// Known reports whether the stage is one of those above.
func (s TakeoverStage) Known() bool {
	switch s {
	case TakeoverHeld, TakeoverEnding, TakeoverDone, TakeoverUndoing, TakeoverUndone:
		return true
	}
	return false
}

func (t *Takeover) attributes(c *codec) {
	c.stamp(schema.Boundary, &t.Boundary)
	always(c, schema.Stage, &t.Stage)
	always(c, schema.TakenFrom, &t.From)
	c.date(schema.WaitsDate, &t.Waits)
}

// Held reports whether the subscription must not be charged before the processor's one has ended.
func (s *Subscription) Held() bool {
	return s.Takeover != nil && (s.Takeover.Stage == TakeoverHeld || s.Takeover.Stage == TakeoverEnding)
}

// SetTakeover changes the takeover, in memory.
func (s *Subscription) SetTakeover(change func(*Takeover)) {
	t := *s.Takeover
	change(&t)
	s.Takeover = &t
}
