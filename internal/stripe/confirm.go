package stripe

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/stripe/api"
)

// Confirm implements processor.Charger. It reports a decline only for the codes that the table in
// api/classify.go lists as declines. If the customer must authenticate, Confirm confirms the intent
// once more as if the customer were present, so that Stripe creates the page.
func (p *Processor) Confirm(ctx context.Context, r processor.ConfirmRequest) (processor.Intent, error) {
	at, err := parseRef(r.Ref)
	if err != nil {
		return processor.Intent{}, err
	}
	if r.Key == "" || r.Method == "" {
		return processor.Intent{}, api.Unsent("the confirmation has no idempotency key or no payment method")
	}
	params := &sdk.PaymentIntentConfirmParams{Params: api.Params(at.at, r.Key), PaymentMethod: &r.Method,
		OffSession: new(true), Expand: expandCharge()}
	pi, err := p.client.V1PaymentIntents.Confirm(ctx, at.id, params)
	if err == nil {
		return p.confirmed(ctx, at, pi)
	}
	if f, ok := api.Is(err, api.Action); ok {
		return p.authenticate(ctx, at, r, f)
	}
	return p.confirmFailed(ctx, at, r.Key, err)
}

// confirmed returns the intent after a confirm. One of a repeated, not final answer is looked up.
func (p *Processor) confirmed(ctx context.Context, at ref, pi *sdk.PaymentIntent) (processor.Intent, error) {
	in, err := p.sameIntent(at, pi)
	if err == nil && in.State != processor.Succeeded && pi.LastResponse != nil && api.IsReplay(pi.LastResponse.Header) {
		return p.Lookup(ctx, at.String())
	}
	return in, err
}

// confirmFailed returns the intent after a confirm that was answered by an error.
func (p *Processor) confirmFailed(ctx context.Context, at ref, key string, err error) (processor.Intent, error) {
	if _, ok := api.Is(err, api.Moved); ok {
		return p.Lookup(ctx, at.String())
	}
	f, ok := api.Is(err, api.Declined, api.PayerGone, api.Gone) // Gone may mean a mandate: look it up
	if !ok {
		return processor.Intent{}, err
	}
	pi, in, over, err := p.afterFailure(ctx, at, key, f)
	if over {
		return in, err
	}
	a := f.Answer
	code, hard := cmp.Or(a.Decline, a.Code, a.Kind), api.IsHard(a.Code, a.Decline, a.Advice)
	stop := api.IsStop(a.Decline, a.Advice)
	if f.Charge == "" || f.Charge != chargeOf(pi) {
		kind := map[bool]string{true: noteHard, false: noteSoft}[hard]
		if stop {
			kind = noteStop
		}
		if in, err = p.leaveNote(ctx, at, newNote(key, kind, code), pi); err != nil {
			return processor.Intent{}, err
		}
	} else {
		in.State, in.Latest, in.Code, in.Hard, in.Link = processor.Declined, f.Charge, code, hard, ""
		in.Stop = stop
	}
	if pi.LatestCharge == nil || pi.LatestCharge.Created == 0 || pi.LatestCharge.ID != f.Charge {
		in.Changed = p.api.Now() // the attempt was answered now
	}
	return in, nil
}

// afterFailure returns the intent after a failed attempt under the key: from the error, or by a
// look-up if the error has none or repeats an earlier one. over reports whether the intent has
// moved on since, another attempt has followed, or there is an error.
func (p *Processor) afterFailure(ctx context.Context, at ref, key string, f *api.Error) (pi *sdk.PaymentIntent,
	in processor.Intent, over bool, err error) {
	pi = f.Intent
	if pi == nil || pi.ID != at.id || pi.Status == "" || f.Replayed {
		if pi, err = p.retrieve(ctx, at); err != nil {
			return nil, processor.Intent{}, true, err
		}
	}
	in, err = p.intent(at.at, pi)
	over = err != nil || in.State == processor.Succeeded || in.State == processor.Processing ||
		in.State == processor.Canceled || isEarlier(f, key, pi)
	return pi, in, over, err
}

// authenticate asks for the page on which the customer can authenticate the attempt that failed
// with f. The page completes the same intent, so there is no second charge.
func (p *Processor) authenticate(ctx context.Context, at ref, r processor.ConfirmRequest,
	f *api.Error) (processor.Intent, error) {
	pi, first, over, err := p.afterFailure(ctx, at, r.Key, f)
	if over {
		return first, err
	}
	if pi.Metadata[metaAttempt] != "" { // of an earlier attempt; it would hide this one
		n := newNote(r.Key, noteAction, "authentication_required")
		if first, err = p.leaveNote(ctx, at, n, pi); err != nil {
			return processor.Intent{}, err
		}
	} else {
		first.State, first.Latest, first.Code, first.Hard = processor.RequiresAction, waiting(pi), "authentication_required",
			false
	}
	first.Changed = p.api.Now()
	if p.returnURL == "" || first.Link != "" {
		return first, nil
	}
	key := "dd_" + digest(r.Key, "action", p.returnURL) // the address is a setting, and may change
	params := &sdk.PaymentIntentConfirmParams{Params: api.Params(at.at, key), PaymentMethod: &r.Method,
		ReturnURL: &p.returnURL, Expand: expandCharge()}
	pi, err = p.client.V1PaymentIntents.Confirm(ctx, at.id, params)
	if err == nil {
		return p.confirmed(ctx, at, pi)
	}
	// After a decline the customer has nothing to authenticate any more. After an unknown outcome
	// the money may have been taken, so the customer must not be asked.
	if _, news := api.Is(err, api.Declined, api.PayerGone, api.Moved, api.Unknown); news {
		return p.confirmFailed(ctx, at, key, err)
	}
	p.api.Log.Warn("Stripe created no page on which the customer can authenticate the payment", "intent", at.String(), "error", err.Error())
	return first, nil
}

// A note records an attempt that Stripe refused without a charge: the payment method is gone, or
// the card was declined too often today. Such an attempt leaves no trace on the intent. Seen later
// it did not happen, and would be made again for ever or counted twice. The note is in the intent's
// metadata, and holds until a charge follows.
type note struct {
	id     string // of the attempt
	kind   string // one of those below
	code   string // decline code
	after  string // the latest charge before it, or ""
	before string // id of the attempt in the note it replaced, or ""
}

const (
	noteSoft   = "soft"
	noteHard   = "hard"
	noteStop   = "stop"   // hard, and no other method is to be tried
	noteAction = "action" // the customer must authenticate
	noneNoted  = "-"      // no charge, or no attempt
)

func newNote(key, kind, code string) note { return note{id: noteID(key), kind: kind, code: code} }

func noteID(key string) string { return "none_" + digest(key) }

// digest names a request under a key, without the key.
func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:12])
}

func (n note) String() string {
	return strings.Join([]string{n.id, n.kind, n.code, cmp.Or(n.after, noneNoted), cmp.Or(n.before, noneNoted)}, " ")
}

// noteOf returns the note on the intent. latest reports whether it is of the latest attempt.
func noteOf(pi *sdk.PaymentIntent) (n note, latest bool) {
	f := strings.Split(pi.Metadata[metaAttempt], " ")
	if len(f) != 5 || f[0] == "" {
		return note{}, false
	}
	n = note{id: f[0], kind: f[1], code: f[2]}
	if f[3] != noneNoted {
		n.after = f[3]
	}
	if f[4] != noneNoted {
		n.before = f[4]
	}
	return n, n.after == chargeOf(pi)
}

// isEarlier reports whether Stripe repeats the answer to an attempt under the key that another
// attempt has followed, as far as the intent tells. Such an answer must not be told or noted: it
// would hide the later attempt.
func isEarlier(f *api.Error, key string, pi *sdk.PaymentIntent) bool {
	if !f.Replayed {
		return false
	}
	n, latest := noteOf(pi)
	if f.Charge != "" {
		return f.Charge != chargeOf(pi) || latest && n.id != noteID(key)
	}
	if was := f.Intent; was != nil && was.ID == pi.ID && chargeOf(was) != chargeOf(pi) {
		return true
	}
	return n.before == noteID(key) || n.id == noteID(key) && !latest
}

// leaveNote writes the note on the intent and returns the intent with it. Until the note is known
// to be written the result is ErrUnknown. To make the attempt once more then changes nothing, while
// an attempt told but not noted would be counted and, at the next look-up, not have happened.
func (p *Processor) leaveNote(ctx context.Context, r ref, n note, seen *sdk.PaymentIntent) (processor.Intent, error) {
	n.after, n.code = chargeOf(seen), strings.Join(strings.Fields(n.code), "_")
	held, _ := noteOf(seen)
	if n.before = held.id; held.id == n.id {
		n.before = held.before
	}
	params := &sdk.PaymentIntentUpdateParams{Params: api.Params(r.at, ""), Expand: expandCharge(),
		Metadata: map[string]string{metaAttempt: n.String()}}
	pi, err := p.client.V1PaymentIntents.Update(ctx, r.id, params)
	if f, final := api.Is(err, api.Moved, api.Invalid, api.Declined, api.Action, api.PayerGone); final {
		return processor.Intent{}, api.Unusable("note", "Stripe rejected the note on %s about an attempt without a charge: %s", r, f.Text)
	}
	if err != nil {
		return processor.Intent{}, noIntent(r, err)
	}
	if pi.Metadata[metaAttempt] != n.String() {
		return processor.Intent{}, api.Unusable("note",
			"%s lacks the note about an attempt without a charge, although it was written", r)
	}
	return p.sameIntent(r, pi)
}
