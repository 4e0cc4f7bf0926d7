package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/secret"
)

// A start that is under way is no problem. One that has not ended after startLasts was interrupted.
const startLasts = time.Hour

// addTakeover keeps a takeover that is not complete.
func (a *auditor) addTakeover(s *billing.Subscription) {
	k := s.Takeover
	if k == nil {
		return
	}
	if from := a.hash(k.From); k.Stage != billing.TakeoverUndone {
		if a.origins[from] && !s.Over() {
			a.problem("taken over twice", s.Name, s.Period, "%s was also taken over as another subscription; cancel one of them", k.From)
		}
		a.origins[from] = a.origins[from] || !s.Over()
	}
	if k.Stage != billing.TakeoverDone {
		due, _ := s.Due()
		a.taken = append(a.taken, &billing.Subscription{Name: s.Name, Period: s.Period, Status: s.Status, Takeover: s.Takeover, Created: s.Created,
			CancelAtEnd: s.CancelAtEnd, NextPayment: due, TimeZone: s.TimeZone})
	}
}

func (a *auditor) note(kind string, s *billing.Subscription, format string, args ...any) {
	a.result.Notes = append(a.result.Notes, Problem{Kind: kind, Account: s.Account, Subscription: s.ID, Period: s.Period, Detail: fmt.Sprintf(format, args...)})
}

// compareTakeovers looks up the processor's subscriptions that are being taken over. Each customer must have
// theirs or ours, and theirs must end if ours waits for that.
func (a *auditor) compareTakeovers(ctx context.Context) error {
	b, ok := a.proc.(processor.Biller)
	for _, s := range a.taken {
		k := s.Takeover
		if !ok {
			a.problem("takeover not compared", s.Name, s.Period, "this processor does not have %s", k.From)
			continue
		}
		theirs, err := processor.Ask(ctx, func() (processor.Succession, error) { return b.Succession(ctx, k.From, k.Boundary) })
		switch {
		case errors.Is(err, processor.ErrInvalid):
			a.problem("takeover not compared", s.Name, s.Period, "%s", secret.MaskCards(err.Error()))
			continue
		case err != nil:
			return err
		}
		continues := theirs.Ended.IsZero() && !theirs.Ends
		_, again := a.origins[a.hash(k.From)]
		switch {
		case k.Stage == billing.TakeoverUndone && again:
		case k.Stage == billing.TakeoverUndone && theirs.TakenBy == a.Opened.Installation:
			a.problem("handed back, but marked", s.Name, s.Period, "a start has marked %s after its undo. Its end triggers no unsubscribe, and then nobody charges its customer. "+
				"To let it continue, run duesday takeover undo %s. If it was canceled or has ended, decide what its customer gets, and remove its metadata duesday_takeover", k.From, s.Name)
		case k.Stage == billing.TakeoverUndone && theirs.Ended.IsZero() && theirs.Ends:
			a.note("handed back and ending", s, "%s ends with its period; if nobody canceled it at the processor, let it continue there", k.From)
		case k.Stage == billing.TakeoverUndone:
		case k.Stage == billing.TakeoverUndoing && continues:
			a.note("unfinished undo", s, "run duesday takeover undo %s again", s.Name)
		case k.Stage == billing.TakeoverUndoing && !continues:
			a.problem("alive on neither side", s.Name, s.Period, "it is canceled here, and %s has ended or ends with its period; run duesday takeover undo %s again",
				k.From, s.Name)
		case continues && s.Over():
			a.problem("alive at the processor", s.Name, s.Period, "it is canceled here, but %s continues; cancel it at the processor, or run duesday takeover undo %s to let it continue", k.From, s.Name)
		case !continues && (s.CancelAtEnd || s.Period > 0 && !theirs.Ended.IsZero() && s.NextPayment.After(billing.TodayIn(s.TimeZone, k.Boundary))):
			// A person has decided: ours ends, too, or the period at the boundary was skipped.
		case !continues && !s.Over() && s.Status != billing.ParkedState &&
			(theirs.Refused || theirs.TakenBy != a.Opened.Installation || !theirs.Ended.IsZero() && theirs.Ended.Before(k.Boundary)):
			a.problem("canceled at the processor", s.Name, s.Period, "%s was canceled there, perhaps by its customer, or its metadata duesday_takeover was removed; cancel %s here, "+
				"or let it continue there and run duesday takeover start or undo", k.From, s.Name)
		case !continues:
		case a.now.Sub(s.Created) > startLasts:
			a.problem("alive on both sides", s.Name, s.Period, "%s continues, so it will charge, and ours waits; run duesday takeover start or takeover undo", k.From)
		}
	}
	return nil
}
