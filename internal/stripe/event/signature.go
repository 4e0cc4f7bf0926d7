package event

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/secret"
)

// The errors of a header Stripe-Signature.
var (
	// ErrSignature means a header that is missing, malformed, or not made with one of the secrets.
	ErrSignature = errors.New("the webhook signature is not valid")
	// ErrStale means a time too long ago: somebody sends an old webhook again.
	ErrStale = errors.New("the webhook signature is too old")
	// ErrFuture means a time too far in the future: one of the clocks is wrong.
	ErrFuture = errors.New("the webhook signature is from the future")
)

const (
	// signatureTolerance is the greatest distance, either way, of a signature's time from ours.
	// Stripe signs anew at each delivery.
	signatureTolerance = 300 * time.Second
	// maxSignatures is the most v1 of a header, which has one for every live secret.
	maxSignatures = 16
	maxHeader     = 4096 // bytes
)

// Verify reads the header Stripe-Signature of a webhook before its body is read: a time t at most 300
// seconds before or after now, and one or more signatures v1 of 64 hexadecimal digits. It ignores
// other schemes, malformed v1, and a zero secret, which signs nothing. Its errors are ErrSignature,
// ErrStale and ErrFuture.
//
// check returns the place of the first secret that signed the body, as it came, or ErrSignature. Its
// running time depends on the lengths of the body and of the lists, and not on the secret or
// signature that matches, or on how nearly one does. No error repeats a signature or a secret.
func Verify(header string, secrets []secret.Text, now time.Time) (check func(body []byte) (which int, err error),
	err error) {
	h, err := parseSignature(header)
	age := now.Sub(h.at)
	switch {
	case err != nil:
		return nil, err
	case !slices.ContainsFunc(secrets, func(key secret.Text) bool { return !key.IsZero() }):
		return nil, fmt.Errorf("%w: this endpoint has no signing secret", ErrSignature)
	case age > signatureTolerance:
		return nil, fmt.Errorf("%w: it must be at most %v old", ErrStale, signatureTolerance)
	case age < -signatureTolerance:
		return nil, fmt.Errorf("%w: it must be at most %v ahead; check this machine's clock", ErrFuture, signatureTolerance)
	}
	return func(body []byte) (int, error) { return h.check(body, secrets) }, nil
}

func (h *signatureHeader) check(body []byte, secrets []secret.Text) (which int, err error) {
	which = -1
	for i, key := range secrets {
		if key.IsZero() {
			continue
		}
		want := signature(h.t, body, key)
		for _, got := range h.v1 {
			if hmac.Equal(got, want) && which < 0 {
				which = i
			}
		}
	}
	if which < 0 {
		return 0, fmt.Errorf("%w: it does not match this body and any of this endpoint's signing secrets", ErrSignature)
	}
	return which, nil
}

// A signatureHeader is a parsed header Stripe-Signature.
type signatureHeader struct {
	t  string // as written, since it is signed so
	at time.Time
	v1 [][]byte
}

func parseSignature(header string) (h signatureHeader, err error) {
	wrong := func(format string, args ...any) (signatureHeader, error) {
		return signatureHeader{}, fmt.Errorf("%w: "+format, append([]any{ErrSignature}, args...)...)
	}
	switch {
	case header == "":
		return wrong("the Stripe-Signature header is missing")
	case len(header) > maxHeader:
		return wrong("the header must have at most %d bytes", maxHeader)
	}
	times := 0
	for part := range strings.SplitSeq(header, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case !ok:
			return wrong("the header must be t=…,v1=…")
		case name == "t":
			h.t = value
			times++
		case name == "v1":
			if mac, err := hex.DecodeString(value); err == nil && len(mac) == sha256.Size {
				h.v1 = append(h.v1, mac)
			}
		}
	}
	seconds, err := strconv.ParseUint(h.t, 10, 40)
	switch {
	case times != 1:
		return wrong("the header must have exactly one time t") // the log is sampled by the text
	case err != nil:
		return wrong("t must be a Unix time")
	case len(h.v1) == 0:
		return wrong("the header must have a v1 with 64 hexadecimal digits")
	case len(h.v1) > maxSignatures:
		return wrong("the header must have at most %d v1", maxSignatures)
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

// Sign returns the header Stripe-Signature of a body sent now. Verify takes it if there is a key.
func Sign(body []byte, key secret.Text, now time.Time) string {
	t := strconv.FormatInt(now.Unix(), 10)
	return "t=" + t + ",v1=" + hex.EncodeToString(signature(t, body, key))
}
