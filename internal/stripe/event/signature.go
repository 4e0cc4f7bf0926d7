package event

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/secret"
)

// What is wrong with the header Stripe-Signature of a webhook.
var (
	// ErrSignature: it is not there, cannot be read, or was not made with one of the secrets.
	ErrSignature = errors.New("webhook signature")
	// ErrStale: it is right, and was made too long ago: an old webhook is sent once more.
	ErrStale = errors.New("webhook signature is too old")
	// ErrFuture: it is right, and was made too far in the future: one of the clocks is wrong.
	ErrFuture = errors.New("webhook signature is from the future")
)

const (
	// signatureTolerance is how far, either way, a signature's time may be from ours. Stripe signs
	// anew whenever it tries again.
	signatureTolerance = 300 * time.Second
	// maxSignatures is how many v1 a header may have: one for every secret that is not expired.
	maxSignatures = 16
	maxHeader     = 4096 // bytes
)

// Verify checks that the body of a webhook was signed with one of the secrets, at
// most 300 seconds before or after now: header is its Stripe-Signature, with a time t and one
// signature v1 or more; other schemes are passed over. It returns which of the secrets it
// was. A zero secret signs nothing. The body has to be as it came, to the byte.
//
// Errors are ErrSignature, ErrStale and ErrFuture. The last two are told only of what is
// signed rightly. None repeats a signature or a secret. How long it takes depends on the
// lengths of what it was given, and not on which secret or signature is right, or how nearly.
func Verify(header string, body []byte, secrets []secret.Text, now time.Time) (which int, err error) {
	h, err := parseSignature(header)
	if err != nil {
		return 0, err
	}
	which = -1
	some := false
	for i, key := range secrets {
		if key.IsZero() {
			continue
		}
		some = true
		want := signature(h.t, body, key)
		for _, got := range h.v1 {
			if hmac.Equal(got, want) && which < 0 {
				which = i
			}
		}
	}
	switch age := now.Sub(h.at); {
	case !some:
		return 0, fmt.Errorf("%w: there is no secret to check it with", ErrSignature)
	case which < 0:
		return 0, fmt.Errorf("%w: it was not made with a secret of this endpoint, or not of this body", ErrSignature)
	case age > signatureTolerance:
		return 0, fmt.Errorf("%w: at most %v are allowed", ErrStale, signatureTolerance)
	case age < -signatureTolerance:
		return 0, fmt.Errorf("%w: at most %v are allowed; is this machine's clock right", ErrFuture, signatureTolerance)
	}
	return which, nil
}

// A signatureHeader is what a header Stripe-Signature says.
type signatureHeader struct {
	t  string // as it is written, since it is signed so
	at time.Time
	v1 [][]byte // nil for one that is not hexadecimal: it matches nothing, and another one may
}

func parseSignature(header string) (h signatureHeader, err error) {
	wrong := func(format string, args ...any) (signatureHeader, error) {
		return signatureHeader{}, fmt.Errorf("%w: "+format, append([]any{ErrSignature}, args...)...)
	}
	switch {
	case header == "":
		return wrong("there is none: want the header Stripe-Signature")
	case len(header) > maxHeader:
		return wrong("the header has more than %d bytes", maxHeader)
	}
	times := 0
	for part := range strings.SplitSeq(header, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case !ok:
			return wrong("the header cannot be read: want t=…,v1=…")
		case name == "t":
			h.t = value
			times++
		case name == "v1":
			mac, err := hex.DecodeString(value)
			if err != nil {
				mac = nil
			}
			h.v1 = append(h.v1, mac)
		}
	}
	seconds, err := strconv.ParseUint(h.t, 10, 40)
	switch {
	case times != 1:
		return wrong("the header has %d times t: want one", times)
	case err != nil:
		return wrong("t is no Unix time")
	case len(h.v1) == 0:
		return wrong("the header has no v1")
	case len(h.v1) > maxSignatures:
		return wrong("the header has more than %d v1", maxSignatures)
	}
	h.at = time.Unix(int64(seconds), 0)
	return h, nil
}

func signature(t string, body []byte, key secret.Text) []byte {
	mac := hmac.New(sha256.New, []byte(key.Reveal()))
	mac.Write([]byte(t)) // a hash returns no error
	mac.Write([]byte{'.'})
	mac.Write(body)
	return mac.Sum(nil)
}

// Sign returns the header Stripe-Signature of a body that is sent at that time: the body
// then passes VerifySignature with the key. With a zero key it does not.
func Sign(body []byte, key secret.Text, now time.Time) string {
	t := strconv.FormatInt(now.Unix(), 10)
	return "t=" + t + ",v1=" + hex.EncodeToString(signature(t, body, key))
}
