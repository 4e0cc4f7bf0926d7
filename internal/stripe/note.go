package stripe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/billing"
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
}

const (
	noteSoft   = "soft"
	noteHard   = "hard"
	noteAction = "action"
	noCharge   = "-"
)

// newNote notes the attempt that was sent under the key.
func newNote(key, code string, hard bool) note {
	return note{id: "none_" + digest(key), code: code, hard: hard}
}

// digest names what was asked under a key, without telling the key.
func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:12])
}

func (n note) String() string {
	kind, after := noteSoft, n.after
	switch {
	case n.action:
		kind = noteAction
	case n.hard:
		kind = noteHard
	}
	if after == "" {
		after = noCharge
	}
	return strings.Join([]string{n.id, kind, n.code, after}, " ")
}

// noteOf returns the note on the intent, if it is about the latest attempt.
func noteOf(pi *sdk.PaymentIntent) (note, bool) {
	f := strings.Split(pi.Metadata[metaAttempt], " ")
	if len(f) != 4 || f[0] == "" {
		return note{}, false
	}
	n := note{id: f[0], hard: f[1] == noteHard, action: f[1] == noteAction, code: f[2], after: f[3]}
	if n.after == noCharge {
		n.after = ""
	}
	return n, n.after == chargeOf(pi)
}

// leave writes the note on the intent and returns the intent as the note has it. While the
// note is not known to be written the attempt is not told either: to make it once more
// changes nothing.
func (p *Processor) leave(ctx context.Context, r ref, n note, seen *sdk.PaymentIntent) (billing.Intent, error) {
	n.after, n.code = chargeOf(seen), strings.Join(strings.Fields(n.code), "_")
	params := &sdk.PaymentIntentUpdateParams{Expand: expandCharge(), Metadata: map[string]string{metaAttempt: n.String()}}
	params.StripeAccount = account(r.at)
	pi, err := p.client.V1PaymentIntents.Update(ctx, r.id, params)
	if _, final := is(err, moved, invalid, declined); final {
		// It takes no notes: the intent is as it was, and the attempt is told without.
		if seen.Metadata == nil {
			seen.Metadata = map[string]string{}
		}
		seen.Metadata[metaAttempt] = n.String()
		return p.intent(r.at, seen)
	}
	if err != nil {
		return billing.Intent{}, noIntent(r, err)
	}
	return p.intent(r.at, pi)
}
