package event

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/test/apitest"
	"github.com/duesday/duesday/stripefake"
)

const (
	hookKey  = "whsec_current"
	otherKey = "whsec_other"
)

var hookSecrets = []secret.Text{{}, secret.New("whsec_old"), secret.New(hookKey)}

// verify is Verify and the check of the body.
func verify(header string, body []byte, secrets []secret.Text, now time.Time) (int, error) {
	check, err := Verify(header, secrets, now)
	if err != nil {
		return 0, err
	}
	return check(body)
}

func TestVerifySignature(t *testing.T) {
	body := []byte(`{"id":"evt_1"}`)
	now := apitest.Now.Truncate(time.Second)
	at := fmt.Sprint(now.Unix())
	mac := func(t string, body []byte, key string) string {
		return hex.EncodeToString(signature(t, body, secret.New(key)))
	}
	good := mac(at, body, hookKey)
	bad := mac(at, body, otherKey)
	empty := hex.EncodeToString(signature(at, body, secret.Text{}))
	sign := func(age time.Duration) string { return stripefake.Signature(now.Add(-age), body, hookKey) }
	for header, want := range map[string]error{
		"t=" + at + ",v1=" + good:                                   nil,
		" t=" + at + " , v1=" + good + " ":                          nil,
		"v1=" + good + ",t=" + at:                                   nil,
		"t=" + at + ",v1=" + bad + ",v1=" + good:                    nil,
		"t=" + at + ",v1=zz,v0=" + bad + ",v1=" + good:              nil,
		"t=" + at + ",v2=x,v1=" + strings.ToUpper(good):             nil, // the same bytes
		stripefake.Signature(now, body, otherKey, hookKey):          nil,
		Sign(body, secret.New(hookKey), now):                        nil,
		sign(300 * time.Second):                                     nil,
		sign(-300 * time.Second):                                    nil,
		sign(301 * time.Second):                                     ErrStale,
		sign(-301 * time.Second):                                    ErrFuture,
		sign(20 * 365 * 24 * time.Hour):                             ErrStale,
		"t=1099511627775,v1=" + mac("1099511627775", body, hookKey): ErrFuture,
		"":                                     ErrSignature,
		"x":                                    ErrSignature,
		",":                                    ErrSignature,
		"t=" + at:                              ErrSignature,
		"v1=" + good:                           ErrSignature,
		"t=,v1=" + good:                        ErrSignature,
		"t=" + at + ",v1=" + bad:               ErrSignature,
		"t=" + at + ",v1=" + empty:             ErrSignature,
		"t=" + at + ",v1=":                     ErrSignature,
		"t=" + at + ",v1=" + good[:62]:         ErrSignature,
		"t=" + at + ",v1=" + good + "00":       ErrSignature,
		"t=" + at + ",v0=" + good:              ErrSignature,
		"t=" + at + ",V1=" + good:              ErrSignature,
		"t=" + at + ",v1=" + good + ",x":       ErrSignature,
		"t=" + at + ",t=" + at + ",v1=" + good: ErrSignature,
		"t=+" + at + ",v1=" + mac("+"+at, body, hookKey):               ErrSignature,
		"t=-5,v1=" + mac("-5", body, hookKey):                          ErrSignature,
		"t=1_0,v1=" + mac("1_0", body, hookKey):                        ErrSignature,
		"t=" + at + "0000,v1=" + mac(at+"0000", body, hookKey):         ErrSignature, // no time at all
		"t=" + at + strings.Repeat(",v1="+bad, 15) + ",v1=" + good:     nil,
		"t=" + at + strings.Repeat(",v1="+bad, 16) + ",v1=" + good:     ErrSignature,
		"t=" + at + ",v1=" + good + ",v0=" + strings.Repeat("0", 4096): ErrSignature,
	} {
		which, err := verify(header, body, hookSecrets, now)
		if want == nil && (err != nil || which != 2) || want != nil && !errors.Is(err, want) {
			t.Errorf("%.150s: got %d, %v, want %v", header, which, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "whsec") || strings.Contains(err.Error(), good[:8])) {
			t.Errorf("%.150s: the error tells %v", header, err)
		}
	}
}

// TestVerifySignature_secrets: which of them it was, and that no secret matches nothing.
func TestVerifySignature_secrets(t *testing.T) {
	body := []byte("{}")
	for key, want := range map[string]int{"whsec_old": 1, hookKey: 2} {
		if which, err := verify(Sign(body, secret.New(key), apitest.Now), body, hookSecrets, apitest.Now); err != nil ||
			which != want {
			t.Errorf("got %d, %v, want %d", which, err, want)
		}
	}
	both := stripefake.Signature(apitest.Now, body, hookKey, "whsec_old")
	if which, err := verify(both, body, hookSecrets, apitest.Now); err != nil || which != 1 {
		t.Errorf("signed with two: got %d, %v, want the first of ours", which, err)
	}
	for _, none := range [][]secret.Text{nil, {}, {{}}, {secret.New("")}} {
		for _, key := range []secret.Text{{}, secret.New(hookKey)} {
			if _, err := verify(Sign(body, key, apitest.Now), body, none, apitest.Now); !errors.Is(err, ErrSignature) {
				t.Errorf("%d secrets: got %v", len(none), err)
			}
		}
	}
}

// TestSignBody_any: what is signed is verified within the tolerance; with any bit of the body
// changed, or another time, it is not.
func TestSignBody_any(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "body")
		key := secret.New(rapid.StringN(1, 40, -1).Draw(t, "key"))
		at := time.Unix(rapid.Int64Range(0, 1<<35).Draw(t, "at"), rapid.Int64Range(0, 1e9-1).Draw(t, "nanosecond"))
		off := time.Duration(rapid.Int64Range(-600, 600).Draw(t, "off")) * time.Second
		header := Sign(body, key, at)
		want := error(nil)
		switch now := at.Truncate(time.Second); {
		case at.Add(off).Sub(now) > 300*time.Second:
			want = ErrStale
		case at.Add(off).Sub(now) < -300*time.Second:
			want = ErrFuture
		}
		check := func(header string, body []byte, want error) {
			_, err := verify(header, body, []secret.Text{key}, at.Add(off))
			if want == nil != (err == nil) || want == ErrStale && !errors.Is(err, want) || want == ErrFuture && !errors.Is(err, want) {
				t.Fatalf("%s %x: got %v, want %v", header, body, err, want)
			}
		}
		check(header, body, want)
		bit := rapid.IntRange(0, len(body)*8-1).Draw(t, "bit")
		body[bit/8] ^= 1 << (bit % 8)
		check(header, body, ErrSignature)
		body[bit/8] ^= 1 << (bit % 8)
		seconds, rest, _ := strings.Cut(strings.TrimPrefix(header, "t="), ",")
		digits := []byte(seconds)
		bit = rapid.IntRange(0, len(digits)*8-1).Draw(t, "bit of t")
		digits[bit/8] ^= 1 << (bit % 8)
		check("t="+string(digits)+","+rest, body, ErrSignature)
	})
}

func FuzzVerifySignature(f *testing.F) {
	f.Add("t=5,v1=00", []byte("{}"), int64(5))
	f.Add(Sign([]byte("{}"), secret.New(otherKey), time.Unix(5, 0)), []byte("{}"), int64(5))
	f.Add("t=5,v0=1,v1=,v1=zz, v1 = 0", []byte(nil), int64(-5))
	f.Fuzz(func(t *testing.T, header string, body []byte, now int64) {
		key, at := secret.New(hookKey), time.Unix(now, 0)
		_, err := verify(header, body, []secret.Text{key}, at)
		if err == nil {
			t.Error("somebody who does not know the secret has signed")
		}
		if _, err := verify(Sign(body, key, at), body, []secret.Text{key}, at); err != nil && now >= 0 && now < 1<<40 {
			t.Errorf("signed at %d: %v", now, err)
		}
	})
}
