package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/notice"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/billing/reversal"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// notice returns the outbox row of the notice, as mail does. The caller must commit the row
// together with the reported event. o is the open period, or nil for the next period.
func (e *Engine) notice(kind string, s *billing.Subscription, o *billing.OpenPeriod, rec *billing.Receipt) []write {
	return e.mail(s, e.effect(kind, s, o, rec))
}

// mail returns the outbox row of the effect. It returns none if the account has no address, or if
// the store that this store replaced has already sent the mail.
func (e *Engine) mail(s *billing.Subscription, f outbox.Effect) []write {
	if s.Email == "" || f.In(s.Mailed) {
		return nil
	}
	if e.hold {
		f.Queue = outbox.Held
	}
	return plain(outbox.Write(e.Tables.Outbox.Name, f))
}

// cancelled ends the subscription permanently, in memory, and returns the outbox row of the
// cancellation notice.
func (e *Engine) cancelled(s *billing.Subscription) []write {
	s.Cancel()
	s.RequestedAt = cmp.Or(s.RequestedAt, e.Now())
	return e.notice(outbox.KindCancelled, s, nil, nil)
}

// reversed returns the outbox rows for a changed refund or dispute record. was is nil for a new
// record. The caller must commit the rows together with the change.
func (e *Engine) reversed(ctx context.Context, was, r *billing.ReversalRecord) (writes []store.Write, err error) {
	var mail []write
	var refund []store.Key
	if r.Kind == processor.Refunded && r.State == processor.ReversalSucceeded {
		mail, err = e.refunded(ctx, r) // each record succeeds only once; see ReversalRecord.Apply
		refund = append(refund, r.Key())
	}
	var parked []store.Write
	if err == nil && e.cfg.AfterReversal == settings.Park && reversal.TakenBack(was, r) {
		parked, err = e.parkReversed(ctx, r)
	}
	if r.Kind == processor.Disputed && (was == nil || was.State != r.State) {
		mail = e.tellOperator(r, len(parked) > 0)
	}
	writes = append(e.withSums(mail, report.OfReversal(r, was), refund, r.ReversalID, string(r.State)), parked...)
	if err != nil || e.Reversed == nil {
		return writes, err
	}
	rows, err := e.Reversed(ctx, was, r)
	return append(writes, rows...), err
}

// parkReversed returns the writes that park the subscription whose payment was taken back, if anything
// is charged for it.
func (e *Engine) parkReversed(ctx context.Context, r *billing.ReversalRecord) ([]store.Write, error) {
	s, err := e.reversedSub(ctx, r)
	if s == nil || !reversal.Park(s, r, s.Today(civil.Date{}, e.Now())) {
		return nil, err
	}
	record := e.putRecord(e.ended(s, billing.EndParked, s.Parked, s.NextOpen()))
	return e.PutWrites(ctx, s, e.writes(s, []write{record})...)
}

// tellOperator returns the outbox row of the mail about a dispute, if the settings name an operator.
func (e *Engine) tellOperator(r *billing.ReversalRecord, parked bool) []write {
	if e.cfg.Operator == "" {
		return nil
	}
	subject, text := reversal.Letter(r, e.cfg.MerchantName, e.cfg.TimeZone, parked)
	now := e.Now()
	return plain(outbox.Write(e.Tables.Outbox.Name, outbox.Effect{ID: "operator/" + r.ReversalID + "/" + string(r.State),
		Kind: outbox.KindOperator, Due: now, Created: now, Data: map[string]string{outbox.DataEmail: e.cfg.Operator,
			outbox.DataSubject: subject, outbox.DataText: text}}))
}

// reversedSub returns the record's subscription, or nil if it cannot be read: recording the reversal is
// more important.
func (e *Engine) reversedSub(ctx context.Context, r *billing.ReversalRecord) (*billing.Subscription, error) {
	s, err := e.Load(ctx, r.Name)
	if errors.Is(err, billing.ErrMoved) || errors.As(err, new(*billing.IllegibleError)) {
		err = nil
	}
	return s, billing.IgnoreNotFound(err)
}

// refunded returns the outbox row of a refund notice if the subscription has an address.
func (e *Engine) refunded(ctx context.Context, r *billing.ReversalRecord) ([]write, error) {
	s, err := e.reversedSub(ctx, r)
	if s == nil || s.Email == "" {
		return nil, err
	}
	f := e.effect(outbox.KindRefund, s, nil, nil)
	f.ID += "/" + r.ReversalID
	f.Data[outbox.DataPeriod], f.Data[outbox.DataDueDate] = strconv.Itoa(r.Period), ""
	f.Data[outbox.DataProcessed], f.Data[outbox.DataCharge] = billing.TodayIn(s.TimeZone, r.Processed).String(), r.Ref
	notice.SetAmount(f.Data, r.Amount)
	return e.mail(s, f), nil
}

func (e *Engine) effect(kind string, s *billing.Subscription, o *billing.OpenPeriod, rec *billing.Receipt) outbox.Effect {
	return notice.Effect(kind, s, o, rec, e.sender(s))
}

func (e *Engine) sender(s *billing.Subscription) notice.Sender {
	due, _ := s.Due()
	return notice.Sender{Installation: e.Opened.Installation, Now: e.Now(), PayBy: e.payBy(s, due, due)}
}

// receipt returns the payment record for the next period to be paid.
func (e *Engine) receipt(s *billing.Subscription, kind billing.ReceiptKind, amount money.Amount, due civil.Date,
	processed time.Time, charge string) *billing.Receipt {
	return &billing.Receipt{Name: s.Name, SKU: s.SKU, Email: s.Email, Kind: kind, Period: s.Period, Due: due,
		Processed: processed, Amount: amount, Charge: charge, Expires: expiry(processed, e.cfg.ReceiptMonths)}
}

// expiry returns the time at which a receipt from the time at expires if it is kept for the number
// of months, or zero if it never expires.
func expiry(at time.Time, months int) time.Time {
	if months == 0 {
		return time.Time{}
	}
	return at.AddDate(0, months, 0)
}

// Remind commits the reminder of the next payment. The commit contains the outbox row and the
// subscription without its NextReminderDate, which removes the subscription's row from the index.
// Settling the payment sets the next date. Remind sends no reminder if the period is paid or open,
// the subscription is paused or cancelled, or the due date has arrived. The reminder names the card
// if the processor returns it.
func (e *Engine) Remind(ctx context.Context, n billing.Name, day civil.Date, dry bool, report func(Result)) error {
	var card *processor.Card
	asked := false
	err := e.reload(ctx, n, func(s *billing.Subscription) error {
		today := s.Today(day, e.Now())
		if s.NextReminder.IsZero() || s.NextReminder.After(today) {
			return nil
		}
		due, err := s.Due()
		if err != nil {
			return err
		}
		r := resultOf(s, OutcomeSkipped, "nothing to remind of")
		var others []write
		told := slices.Contains(s.Mailed, outbox.Topic(outbox.KindReminder, s.Period, due.String()))
		if told {
			r.Reason = "the store that was replaced has sent it"
		}
		if !told && s.Status == billing.Active && s.NextOpen() == nil && !s.CancelAtEnd && due.After(today) {
			r.Outcome, r.Reason = OutcomeSent, ""
			if !asked && !dry && s.Email != "" && s.Collection != billing.ByWire {
				if c, ok := e.Cards().CardOf(ctx, s); ok {
					card = &c
				}
				asked = true
			}
			method, _, err := e.Cards().MethodOf(ctx, s)
			if err != nil {
				return err
			}
			for _, f := range notice.Reminder(s, due, card, method == "" && s.Collection != billing.ByWire, e.sender(s)) {
				others = append(others, e.mail(s, f)...)
			}
			s.LastReminder = e.Now()
		}
		if s.NextReminder = (civil.Date{}); !dry {
			if err := e.put(ctx, s, others...); err != nil {
				return err
			}
		}
		report(*r)
		return nil
	})
	return billing.IgnoreNotFound(err)
}
