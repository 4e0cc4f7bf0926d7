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
func (p *Processor) leaveNote(ctx context.Context, r ref, n note, seen *sdk.PaymentIntent) (billing.Intent, error) {
	n.after, n.code = chargeOf(seen), strings.Join(strings.Fields(n.code), "_")
	held, _ := noteOf(seen)
	if n.before = held.id; held.id == n.id {
		n.before = held.before
	}
	params := &sdk.PaymentIntentUpdateParams{Params: api.Params(r.at, ""), Expand: expandCharge(),
		Metadata: map[string]string{metaAttempt: n.String()}}
	pi, err := p.client.V1PaymentIntents.Update(ctx, r.id, params)
	if f, final := api.Is(err, api.Moved, api.Invalid, api.Declined, api.Action, api.PayerGone); final {
		return billing.Intent{}, api.Unusable("a note", "%s takes none of an attempt that made no charge: %s", r, f.Text)
	}
	if err != nil {
		return billing.Intent{}, noIntent(r, err)
	}
	if pi.Metadata[metaAttempt] != n.String() {
		return billing.Intent{}, api.Unusable("a note",
			"%s has none of an attempt that made no charge, after it was written", r)
	}
	return p.sameIntent(r, pi)
}
