package refund

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// The refund protocol. A receipt is never changed: what goes back has a record of its own,
// REF#…, beside it.
//
//  1. READ     the receipt, and the charge at the processor; LOOK what has gone back of that
//     charge, and record what is not recorded yet; read what is recorded.
//  2. RECORD   in one commit: the refund, as requested; its name among the unfinished; and a
//     new version of the account, so that of two that would both fit, one decides anew.
//  3. SEND     with a key made of the record's id. A lost answer: LOOK for a refund with that
//     id, and send again, under the same key, only where there is none.
//  4. RECORD   the processor's id, state and time, and strike the name out.
//
// Why the processor never gives back twice what was asked for once: there is one record of
// one id, made of the installation, the charge, the amount and the person's key; a request
// is sent only for a record, only just after a look that showed none of its id, and always
// with its one key. Within a day the key holds two senders off each other; after a day,
// which the processor may have forgotten the key in, the look shows what the first has done.
// Nothing else is a fence here, as an intent is for charges: so there is no second key, and
// a failure that the processor has saved under the key delays the refund by that day. What
// is left is a sender that sleeps for a day between its look and its request.
//
//	crash, or answer lost        | what stands               | who comes next
//	before or at RECORD (2)      | nothing, or 2             | the command: nothing was sent; 2, or as below
//	after 2, before SEND         | requested                 | LOOK: none. SEND
//	SEND, request lost           | requested                 | LOOK: none. SEND, the same key
//	SEND, answer lost            | requested, and done       | LOOK: there. RECORD (4)
//	SEND refused                 | requested                 | LOOK: none. SEND, refused again: RECORD (4) failed
//	before or at RECORD (4)      | requested, and done; or 4 | LOOK: there. RECORD (4); or nothing is left to do
//	the store is lost behind 2   | nothing here, and done    | LOOK records it under its id before 2 is thought of
//
// Who comes next is the same command again, or the next payment run (CollectReversals), which
// finds the name among the unfinished.

// A RefundOrder is what a person asks for.
type Order struct {
	billing.Name
	Period int
	Amount money.Amount         // zero: all that has not gone back yet
	Reason billing.RefundReason // "" for none
	Key    string               // tells two refunds of one amount apart; "" is a key as well
	Charge string               // of a period whose receipt has expired: the processor's reference; else ""
}

// A RefundService gives money back, and records what went back by others' hands.
type Service struct {
	*billing.Records
	proc billing.Processor
}

// NewRefunds returns the service over the records; proc is asked for what it can as a Refunder.
func New(r *billing.Records, proc billing.Processor) *Service {
	return &Service{r, proc}
}

// lookAge is how long after a look at the processor a request may be sent.
const lookAge = 10 * time.Minute

// ErrNoRefunds: the processor gives nothing back.
var ErrNoRefunds = errors.New("this processor cannot give money back")

// refundID is one and the same for the same order. An order for the rest has no amount in
// it: what the rest is changes once it is recorded.
func (e *Service) refundID(o Order, charge string) string {
	amount := "rest"
	if !o.Amount.IsZero() {
		amount = o.Amount.Decimal() + " " + o.Amount.Currency().Code()
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{"refund", e.Opened.Installation, charge, amount, o.Key}, "\x00")))
	return billing.RefundIDPrefix + hex.EncodeToString(sum[:16])
}

func (o *Order) check() error {
	switch {
	case o.Period < 0:
		return billing.Invalid("period", "want 0 or more, as receipt list shows it")
	case !o.Amount.IsZero() && !o.Amount.IsPositive():
		return billing.Invalid("amount", "must be more than zero")
	case o.Reason != "" && o.Reason != billing.Duplicate && o.Reason != billing.Fraudulent && o.Reason != billing.RequestedByCustomer:
		return billing.Invalid("reason", fmt.Sprintf("want %s, %s or %s", billing.Duplicate, billing.Fraudulent, billing.RequestedByCustomer))
	}
	if err := billing.CheckText("key", o.Key, billing.MaxID); err != nil {
		return err
	}
	return billing.CheckText("charge", o.Charge, billing.MaxID)
}

// Refund gives back what a period was charged, or a part of it, and records it. The same
// order again is the same refund: it goes on where the one before was cut off, and repeated
// tells that it had been answered already. With an error the record, if there is one, says
// how far it has come: failed when the processor has refused it (ErrState), requested when its
// answer was lost (the processor's error).
func (e *Service) Refund(ctx context.Context, o Order) (r *billing.ReversalRecord, repeated bool, err error) {
	if err := o.check(); err != nil {
		return nil, false, err
	}
	if _, ok := e.proc.(billing.Refunder); !ok {
		return nil, false, ErrNoRefunds
	}
	s, err := e.Subscription(ctx, o.Name)
	if err != nil {
		return nil, false, err
	}
	o.Name = s.Name
	charge, err := e.chargeOf(ctx, s, o)
	if err != nil {
		return nil, false, err
	}
	id := e.refundID(o, charge.Ref)
	for range store.MaxTries {
		if err := e.Live(ctx); err != nil {
			return nil, false, err
		}
		looked := e.Now()
		list, a, err := e.lookInto(ctx, s.Name, charge.Ref)
		if err != nil {
			return nil, false, err
		}
		if r = billing.FindReversalID(list, id); r == nil {
			r, err = e.recordRefund(ctx, o, charge, id, list, a)
		}
		switch {
		case store.Retryable(err):
			continue
		case err != nil:
			return nil, false, err
		case r.State == billing.ReversalRequested:
			r, err = e.send(ctx, r, looked)
		default:
			repeated = true
		}
		if err == nil && r.State == billing.ReversalFailed {
			err = fmt.Errorf("refund %s of %s was refused by the processor%s; asking again takes another key: %w", r.ReversalID, r.Amount, after(": ", r.Refusal), billing.ErrState)
		}
		return r, repeated, err
	}
	return nil, false, fmt.Errorf("account %s: overtaken by others %d times", o.Account, store.MaxTries)
}

func after(lead, text string) string {
	if text == "" {
		return ""
	}
	return lead + text
}

// chargeOf finds the charge of the period: by its receipt, or where that has expired by the
// reference that the order or the subscription has. The processor's word on it is what
// counts.
func (e *Service) chargeOf(ctx context.Context, s *billing.Subscription, o Order) (billing.Intent, error) {
	if o.Period >= s.Period {
		return billing.Intent{}, fmt.Errorf("subscription %s: period %d is not paid: %w", s.Name, o.Period, billing.ErrState)
	}
	ref := o.Charge
	for rec, err := range e.GetReceiptsByAccount(ctx, s.Account) {
		switch {
		case err != nil:
			return billing.Intent{}, err
		case rec.ID != s.ID || rec.Period != o.Period || rec.Kind == billing.Imported: // one that was imported may not say its period
		case rec.Kind == billing.External:
			return billing.Intent{}, fmt.Errorf("subscription %s: period %d was paid outside%s: give it back where it was paid: %w",
				s.Name, o.Period, after(", ", rec.Charge), billing.ErrState)
		case ref == "":
			ref = rec.Charge
		}
	}
	missing := fmt.Errorf("subscription %s: period %d has no receipt of a charge: it came with the data, did not end paid, or its receipt has expired; "+
		"in that case name the charge, as the processor shows it, with --charge: %w", s.Name, o.Period, billing.ErrState)
	lost := ref == ""
	if lost {
		ref = s.LastCharge
	}
	if ref == "" {
		return billing.Intent{}, missing
	}
	in, err := e.lookupCharge(ctx, ref)
	t := in.Tag
	ours := t.Installation == "" || t.Installation == e.Opened.Installation
	switch {
	case lost && (errors.Is(err, billing.ErrNoIntent) || err == nil && t.Period != o.Period):
		return billing.Intent{}, missing
	case err != nil:
		return billing.Intent{}, fmt.Errorf("subscription %s: charge %s cannot be looked up: %w", s.Name, ref, err)
	case !(ours && t.Account == s.Account && t.Subscription == s.ID && t.Period == o.Period):
		return billing.Intent{}, billing.Invalid("charge", fmt.Sprintf("%s is not of period %d of subscription %s", ref, o.Period, s.Name))
	case in.State != billing.Succeeded:
		return billing.Intent{}, fmt.Errorf("subscription %s: charge %s is %s at the processor, and nothing can go back: %w", s.Name, ref, in.State, billing.ErrState)
	}
	return in, nil
}

func (e *Service) lookupCharge(ctx context.Context, ref string) (in billing.Intent, err error) {
	for range billing.MaxSends {
		if in, err = e.proc.Lookup(ctx, ref); err == nil || billing.Definite(err) || ctx.Err() != nil {
			break
		}
	}
	return in, err
}

// recordRefund is RECORD (2).
func (e *Service) recordRefund(ctx context.Context, o Order, charge billing.Intent, id string, list []*billing.ReversalRecord, a *billing.Account) (*billing.ReversalRecord, error) {
	if a == nil {
		return nil, fmt.Errorf("account %s has no item in the store: make it with account create: %w", o.Account, billing.ErrState)
	}
	r := &billing.ReversalRecord{Name: o.Name, ReversalID: id, Kind: billing.Refunded, Period: o.Period, Generation: charge.Tag.Generation, Charge: charge.Ref,
		Amount: o.Amount, State: billing.ReversalRequested, Reason: string(o.Reason), Created: e.Now()}
	left, gone := charge.Amount.Minor(), ""
	for _, was := range list {
		if was.Charge != charge.Ref || !was.Counts() || was.Amount.Currency() != charge.Amount.Currency() {
			continue
		}
		left -= was.Amount.Minor()
		gone += fmt.Sprintf("; %s %s of %s is %s", was.Kind, was.ReversalID, was.Amount, was.State)
		if was.State == billing.ReversalRequested {
			gone += ", and the order that it was asked for with goes on with it"
		}
	}
	rest := money.New(max(0, left), charge.Amount.Currency())
	switch {
	case o.Amount.IsZero() && rest.IsZero():
		return nil, fmt.Errorf("subscription %s: nothing is left of the %s of period %d%s: %w", o.Name, charge.Amount, o.Period, gone, billing.ErrState)
	case o.Amount.IsZero():
		r.Amount = rest
	case o.Amount.Currency() != rest.Currency():
		return nil, billing.Invalid("amount", "want "+rest.Currency().Code()+", which was charged")
	case o.Amount.Minor() > rest.Minor():
		return nil, billing.Invalid("amount", fmt.Sprintf("%s of the %s is left, and that is less than %s%s", rest, charge.Amount, o.Amount, gone))
	}
	return r, e.Store.Commit(ctx, r.Create(e.Table, a)...)
}

// send is SEND and RECORD (4), of a request that the processor did not have when it was
// looked at. Its error leaves the request as it stands.
func (e *Service) send(ctx context.Context, r *billing.ReversalRecord, looked time.Time) (*billing.ReversalRecord, error) {
	proc := e.proc.(billing.Refunder)
	request := billing.RefundRequest{Key: refundKey(r.ReversalID), ID: r.ReversalID, Ref: r.Charge, Amount: r.Amount, Reason: billing.RefundReason(r.Reason),
		Tag: billing.Tag{Installation: e.Opened.Installation, Account: r.Account, Subscription: r.ID, SKU: r.SKU, Period: r.Period, Generation: r.Generation}}
	var err error
	for range billing.MaxSends {
		if age := e.Now().Sub(looked); age < 0 || age > lookAge {
			if now, lerr := e.look(ctx, r); lerr != nil || now.State != billing.ReversalRequested {
				return now, lerr
			}
		}
		var made billing.Reversal
		if made, err = proc.Refund(ctx, request); err == nil {
			now, _, err := e.settleReversal(ctx, r, func(r *billing.ReversalRecord) bool { return r.Apply(made, e.Now()) })
			return now, err
		}
		if errors.Is(err, billing.ErrRefused) || errors.Is(err, billing.ErrAccountRefused) || ctx.Err() != nil {
			break
		}
		looked = e.Now()
		if now, lerr := e.look(ctx, r); lerr != nil || now.State != billing.ReversalRequested {
			return now, lerr
		}
		if billing.Definite(err) {
			why := secret.MaskCards(err.Error())
			now, _, err := e.settleReversal(ctx, r, func(r *billing.ReversalRecord) bool { return r.Refuse(why, e.Now()) })
			return now, err
		}
	}
	return r, unfinished(r, err)
}

func unfinished(r *billing.ReversalRecord, err error) error {
	return fmt.Errorf("refund %s of %s is recorded, and not done yet: %w; the same command goes on with it, as does the next payment run", r.ReversalID, r.Amount, err)
}

func refundKey(id string) string { return "dd_" + id }

// settleReturn changes the record, deciding anew on it as it stands when others were faster,
// and returns it and whether it was changed.
func (e *Service) settleReversal(ctx context.Context, r *billing.ReversalRecord, change func(*billing.ReversalRecord) bool) (_ *billing.ReversalRecord, changed bool, err error) {
	for range store.MaxTries {
		was := *r
		if !change(r) {
			return r, changed, nil
		}
		if err = e.Store.Commit(ctx, r.Change(e.Table, &was)...); err == nil {
			return r, true, nil
		} else if !store.Retryable(err) {
			return &was, false, err
		}
		changed = errors.Is(err, store.ErrUnknown) // if nothing is left to change, it landed
		it, err := e.Store.Get(ctx, e.Table, was.Key())
		if err != nil {
			return &was, false, err
		}
		if r, err = billing.DecodeReversal(it); err != nil {
			return &was, false, err
		}
	}
	return r, false, fmt.Errorf("refund %s: overtaken by others %d times", r.ReversalID, store.MaxTries)
}

// look looks at the processor for the request, and records what it shows of the charge.
func (e *Service) look(ctx context.Context, r *billing.ReversalRecord) (*billing.ReversalRecord, error) {
	list, _, err := e.lookInto(ctx, r.Name, r.Charge)
	if err != nil {
		return r, unfinished(r, err)
	}
	if now := billing.FindReversalID(list, r.ReversalID); now != nil {
		return now, nil
	}
	return r, fmt.Errorf("refund %s is not in the store any more: %w", r.ReversalID, store.ErrNotFound)
}
