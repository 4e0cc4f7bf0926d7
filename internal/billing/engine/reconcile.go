package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/meta"
	"github.com/duesday/duesday/internal/billing/numbering"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// Reconcile adopts the successful charges that the store does not know, oldest first. Each charge
// settles its period like a late reply. Earlier periods without a charge at the processor become
// void. Reconcile first cancels an unknown intent that was tried and may still succeed. It holds
// the mail about adopted charges, because the lost store may have sent it. Reconcile returns the
// number of adopted charges, and an error that names the other charges and the connected accounts
// that refuse our key.
func (e *Engine) Reconcile(ctx context.Context) (int, error) {
	holding := *e
	holding.hold = true
	return holding.reconcile(call.Without(ctx))
}

func (e *Engine) reconcile(ctx context.Context) (int, error) {
	lost, refused, err := e.Charging().Lost(ctx)
	if err != nil {
		return 0, err
	}
	if err := numbering.BeginSince(ctx, e.Records); err != nil { // the store may have lost numbers without a charge
		return 0, err
	}
	var failed []error
	for at := range refused {
		failed = append(failed, fmt.Errorf("%w: %s was not checked", processor.ErrAccountRefused, at))
	}
	slices.SortStableFunc(lost, func(a, b processor.Intent) int { return a.Tag.Period - b.Tag.Period })
	adopted := 0
	for _, in := range lost {
		in, err := e.Charging().Finish(ctx, in)
		if err == nil && in.State == processor.Succeeded {
			if err = e.adopt(ctx, in); err == nil {
				adopted++
			}
		}
		if errors.Is(err, store.ErrNotFound) {
			const missing = "subscription %s/%s with SKU %s is not in the store; create it again, then run reconcile"
			err = fmt.Errorf(missing, in.Tag.Account, in.Tag.Subscription, in.Tag.SKU)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("charge %s of %s: %w", in.Ref, in.Amount, err))
		}
	}
	return adopted, errors.Join(failed...)
}

// Restored calls billing.Records.Restored. It also holds the mail that waited in the copy, because
// the store may have sent that mail since then. It returns the number of held mails.
func (e *Engine) Restored(ctx context.Context, made time.Time, from, aside string) (int, error) {
	o := outbox.New(e.Store, e.Tables.Outbox, e.Now, nil, nil)
	count, err := o.Decide(ctx, func(f outbox.Effect) (outbox.Fate, error) {
		if f.Kind == outbox.KindOperator {
			return outbox.Keep, nil
		}
		return outbox.Hold, nil
	})
	if err != nil {
		return 0, err
	}
	return count[outbox.Hold], meta.Restored(ctx, e.Records, made, from, aside)
}

// Mailed records what the lost store has sent about the subscription, so that Duesday does not send
// it again. topics are the topics of the mail, told is the day when the customer was last asked
// again to act, and card is the month of the card expiry that the customer was notified of.
func (e *Engine) Mailed(ctx context.Context, n billing.Name, topics []string, told civil.Date, card string) error {
	return e.reload(ctx, n, func(s *billing.Subscription) error {
		was := len(s.Mailed)
		for _, topic := range topics {
			if !slices.Contains(s.Mailed, topic) {
				s.Mailed = append(slices.Clip(s.Mailed), topic)
			}
		}
		told, card = civil.Later(told, s.Told), max(card, s.CardTold)
		if len(s.Mailed) == was && told == s.Told && card == s.CardTold {
			return nil
		}
		s.Told, s.CardTold = told, card
		return e.put(ctx, s)
	})
}

// adopt settles the charge's period, step by step.
func (e *Engine) adopt(ctx context.Context, in processor.Intent) error {
	n := billing.TaggedName(in.Tag)
	defer e.locks.Lock(n)()
	for done := false; !done; {
		err := e.reload(ctx, n, func(s *billing.Subscription) error {
			known, err := e.Charging().Knows(ctx, in)
			switch done = s.Period > in.Tag.Period && known; {
			case err != nil || done:
				return err
			case s.Collecting() && s.Open.Ref != in.Ref && (s.Period <= in.Tag.Period || s.Open.Period == in.Tag.Period):
				return e.stopCollecting(ctx, s)
			case s.Period > in.Tag.Period:
				return e.adoptEnded(ctx, s, in)
			}
			return e.adoptInto(ctx, s, in)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// adoptEnded replaces the record of a period that ended unpaid with a receipt.
func (e *Engine) adoptEnded(ctx context.Context, s *billing.Subscription, in processor.Intent) error {
	p, err := e.RecordOf(ctx, s.Name, in.Tag.Period)
	if err != nil {
		return billing.IgnoreNotFound(err) // the store knows the charge by now
	}
	return e.put(ctx, s, e.bookCharge(s, in, p.Period, p.SKU, p.Due, p, billing.TodayIn(s.TimeZone, e.Now()))...)
}

// stopCollecting stops the collection of a past period, because the adopted charge has priority.
func (e *Engine) stopCollecting(ctx context.Context, s *billing.Subscription) error {
	today := billing.TodayIn(s.TimeZone, e.Now())
	canceled, err := e.cancelOther(ctx, s, today)
	switch {
	case canceled && s.Manual != nil:
		_, err = e.endManual(ctx, s, today)
	case canceled:
		_, err = e.endPast(ctx, s, today, "another charge of the processor came before it")
	}
	return err
}

// cancelOther cancels the open period's intent so that the charge can be adopted instead, or
// settles the intent if it is paid.
func (e *Engine) cancelOther(ctx context.Context, s *billing.Subscription, today civil.Date) (canceled bool, err error) {
	if s.Open.ByWire() {
		return true, nil
	}
	in, err := e.proc.Cancel(ctx, s.Open.Ref)
	switch {
	case err != nil:
		return false, err
	case in.State == processor.Canceled:
		noteDecline(s.Open, in, s.Open.Attempt, s.Open.Method)
		return true, nil
	case in.State == processor.Succeeded:
		_, err = e.settle(ctx, s, in, today)
		return false, err
	}
	return false, fmt.Errorf("the subscription already has payment intent %s for period %d, which is %s: %w", s.Open.Ref,
		s.Open.Period, in.State, billing.ErrState)
}

// adoptInto cancels another intent of the period, voids one earlier period, or settles the period.
func (e *Engine) adoptInto(ctx context.Context, s *billing.Subscription, in processor.Intent) error {
	today := billing.TodayIn(s.TimeZone, e.Now())
	if s.Open != nil && s.Open.Ref != in.Ref {
		if canceled, err := e.cancelOther(ctx, s, today); !canceled {
			return err
		}
	}
	if s.Upgrading() && (s.Open == nil || s.Open.Ref != in.Ref) { // else it is the upgrade's own charge
		s.Open = nil
		s.EndUpgrade("the store was reconciled")
	}
	if s.Period < in.Tag.Period && s.Manual != nil {
		_, err := e.end(ctx, s, today)
		return err
	}
	if s.Period < in.Tag.Period {
		void := e.ended(s, billing.EndVoid, "no charge at the processor when the store was reconciled", s.Open)
		return e.put(ctx, s, append([]write{e.putRecord(void)}, e.pass(s, today, false, e.Now())...)...)
	}
	due, err := s.Due()
	if err != nil {
		return err
	}
	if s.Open == nil || s.Open.Ref != in.Ref {
		o := &billing.OpenPeriod{Period: s.Period, Generation: in.Tag.Generation, Ref: in.Ref, Amount: in.Amount,
			Price: s.PriceOf(s.Period), Method: s.Method, Due: due, Attempt: 1, Opened: e.Now()}
		if s.NextOpen() != nil {
			o.Attempts, o.Declined = s.Open.Attempts, s.Open.Declined
		}
		s.Open = o
	}
	_, err = e.settle(ctx, s, in, today)
	return err
}
