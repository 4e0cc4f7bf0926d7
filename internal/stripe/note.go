package stripe

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/stripe/api"
)

// An attempt that Stripe refuses before it makes a charge (the payment method is gone, the
// card was declined too often today) leaves nothing on the intent that tells it from the
// attempt before: seen later, it did not happen, and it would be made again for ever or
// counted twice. So it is noted in the intent's metadata, and holds until a charge follows.
type note struct {
	id     string // of the attempt
	hard   bool
	action bool   // the customer has to authenticate
	code   string // decline code
	after  string // the latest charge when it was refused, or ""
	before string // id of the attempt whose note it took the place of, or ""
}

const (
	noteSoft   = "soft"
	noteHard   = "hard"
	noteAction = "action"
	noneNoted  = "-" // no charge, or no attempt
)

// newNote notes the attempt that was sent under the key.
func newNote(key, code string, hard bool) note {
	return note{id: noteID(key), code: code, hard: hard}
}

func noteID(key string) string { return "none_" + digest(key) }

// digest names what was asked under a key, without telling the key.
func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:12])
}

func (n note) String() string {
	kind := noteSoft
	switch {
	case n.action:
		kind = noteAction
	case n.hard:
		kind = noteHard
	}
	return strings.Join([]string{n.id, kind, n.code, cmp.Or(n.after, noneNoted), cmp.Or(n.before, noneNoted)}, " ")
}

// noteOf returns the note on the intent, and whether it is about the latest attempt.
func noteOf(pi *sdk.PaymentIntent) (n note, latest bool) {
	f := strings.Split(pi.Metadata[metaAttempt], " ")
	if len(f) != 5 || f[0] == "" {
		return note{}, false
	}
	n = note{id: f[0], hard: f[1] == noteHard, action: f[1] == noteAction, code: f[2]}
	if f[3] != noneNoted {
		n.after = f[3]
	}
	if f[4] != noneNoted {
		n.before = f[4]
	}
	return n, n.after == chargeOf(pi)
}

// isEarlier reports whether the answer is one that Stripe repeats, of an attempt under the key
// that another has followed, as far as the intent tells: then nothing is told or noted of it,
// which would hide the other one.
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

// leave writes the note on the intent and returns the intent as the note has it. While the
// note is not known to be written the attempt is not told either, but ErrUnknown: to make it
// once more changes nothing, and what the next look does not show would be counted and not
// have happened.
func (p *Processor) leave(ctx context.Context, r ref, n note, seen *sdk.PaymentIntent) (billing.Intent, error) {
	n.after, n.code = chargeOf(seen), strings.Join(strings.Fields(n.code), "_")
	held, _ := noteOf(seen)
	if n.before = held.id; held.id == n.id {
		n.before = held.before
	}
	params := &sdk.PaymentIntentUpdateParams{Expand: expandCharge(), Metadata: map[string]string{metaAttempt: n.String()}}
	params.StripeAccount = api.Account(r.at)
	pi, err := p.client.V1PaymentIntents.Update(ctx, r.id, params)
	if f, final := api.Is(err, api.Moved, api.Invalid, api.Declined, api.Action, api.PayerGone); final {
		return billing.Intent{}, api.Unusable("a note", "%s takes none of an attempt that made no charge: %s", r, f.Text)
	}
	if err != nil {
		return billing.Intent{}, noIntent(r, err)
	}
	if pi.Metadata[metaAttempt] != n.String() {
		return billing.Intent{}, api.Unusable("a note", "%s has none of an attempt that made no charge, after it was written", r)
	}
	return p.same(r, pi)
}
