package session

import (
	"context"
	"errors"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/person"
	"github.com/duesday/duesday/internal/screen"
)

// EraseAgain erases what a backup has brought back: the accounts that were erased in the session's store, or in the
// store at old, which it replaced. It prints what it did, and returns the number of accounts. old may be "".
func (p *Program) EraseAgain(ctx context.Context, s *Session, old string) (n int, err error) {
	var replaced *billing.Records
	if old != "" {
		place, err := p.PlaceOf(old)
		if err != nil {
			return 0, err
		}
		tables, err := TablesAt(place)
		if err != nil {
			return 0, err
		}
		kept, err := p.OpenStore(ctx, place, tables, Need{Read: true})
		if err != nil {
			p.Code = screen.ExitPerson
			p.Warn("%v", person.Unknown(err))
		} else {
			defer func() { err = errors.Join(err, kept.Close()) }()
			replaced = billing.NewRecords(kept, tables, p.Now, nil)
		}
	}
	n, left, err := person.Again(ctx, s.Engine.Records, replaced)
	if n > 0 {
		p.Say("%s erased again", screen.Plural(n, "account"))
	}
	for _, why := range left {
		p.Code = screen.ExitPerson
		then := "; then run: " + p.Hint("reconcile")
		if !errors.Is(why, billing.ErrState) { // reconcile would find the same
			then = ""
		}
		p.Warn("%v%s", why, then)
	}
	return n, err
}
