package session

import (
	"context"
	"errors"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/person"
	"github.com/duesday/duesday/internal/screen"
)

// EraseAgain erases what a backup has brought back: the accounts that were erased in the session's
// store, or in the store at old, which it replaced. It returns the number of accounts, and warns of
// each that it left, and of an old store that it cannot read. old may be "".
func (p *Program) EraseAgain(ctx context.Context, s *Session, old string) (erased, left int, err error) {
	var replaced *billing.Records
	if old != "" {
		place, err := p.PlaceOf(old)
		if err != nil {
			return 0, 0, err
		}
		tables, err := TablesAt(place)
		if err != nil {
			return 0, 0, err
		}
		kept, err := p.OpenStore(ctx, place, tables, Need{Read: true})
		if err != nil {
			left++
			p.Warn("%v", person.Unknown(err))
		} else {
			defer func() { _ = kept.Close() }() // nothing was written
			replaced = billing.NewRecords(kept, tables, p.Now, nil)
		}
	}
	erased, failed, err := person.Again(ctx, s.Engine.Records, replaced)
	for _, why := range failed {
		left++
		then := "; then run: " + p.Hint("reconcile")
		if !errors.Is(why, billing.ErrState) { // reconcile would find the same
			then = ""
		}
		p.Warn("%v%s", why, then)
	}
	return erased, left, err
}

// SayErased prints what EraseAgain did, as the result of a command.
func (p *Program) SayErased(erased, left int) {
	if erased > 0 {
		p.Say("%s erased again", screen.Plural(erased, "account"))
	}
	if left > 0 {
		p.Code = screen.ExitPerson
	}
}
