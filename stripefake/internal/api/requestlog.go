package api

import (
	"net/url"
	"regexp"
	"strings"
	"time"
)

// A Request is stripefake.Request.
type Request struct {
	ID, Method, Path, Endpoint string
	Form                       url.Values
	IdempotencyKey, Account    string
	Live                       bool
	Version                    string
	Status                     int
	Replayed                   bool
	At                         time.Time
}

const maxLogged = 10_000 // requests

// log notes the answer to a request. The caller holds Mu.
func (x *exchange) log(status int) {
	f, c := x.f, x.call
	r := Request{ID: c.id, Method: x.r.Method, Path: c.url, Endpoint: x.name, Form: redacted(x.text),
		IdempotencyKey: c.key, Version: c.Version, Status: status, Replayed: x.replay != nil, At: f.time().UTC()}
	if x.entered {
		r.Account, r.Live = c.Space.Account, c.Space.Live
	}
	if len(f.requests) < maxLogged {
		f.requests = append(f.requests, r)
		return
	}
	f.requests[f.oldest] = r
	f.oldest = (f.oldest + 1) % maxLogged
}

// Requests returns the last requests, oldest first. No caller changes their forms.
func (f *Fake) Requests() []Request {
	defer f.lock()()
	return append(append([]Request{}, f.requests[f.oldest:]...), f.requests[:f.oldest]...)
}

// redacted returns the parameters of a form without secrets. A text that is no form has none.
func redacted(text string) url.Values {
	form, _ := url.ParseQuery(text) // the readable parameters
	for name, values := range form {
		for i, v := range values {
			if isSecret(name, v) {
				values[i] = "[redacted]"
			}
		}
	}
	return form
}

// isSecret reports whether a parameter has a card or account number, a key or a client secret.
func isSecret(name, value string) bool {
	for _, part := range [...]string{"[number]", "[cvc]", "[account_number]", "[iban]", "client_secret", "password"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	for _, part := range [...]string{"sk_test_", "sk_live_", "rk_test_", "rk_live_", "whsec_", "_secret_"} {
		if strings.Contains(value, part) {
			return true
		}
	}
	return len(value) >= 13 && hasCard(value)
}

// cardForm is the form of a card number: 13 to 19 digits, in groups or not.
var cardForm = regexp.MustCompile(`\b[2-6](?:[ -]?[0-9]){12,18}\b`)

// hasCard reports whether the text contains a card number, by its check digit.
func hasCard(text string) bool {
	digits := 0
	for _, r := range text {
		if r >= '0' && r <= '9' {
			digits++
		}
	}
	if digits < 13 { // most texts
		return false
	}
	for _, digits := range cardForm.FindAllString(text, -1) {
		digits = strings.NewReplacer(" ", "", "-", "").Replace(digits)
		sum := 0
		for i := range len(digits) {
			d := int(digits[len(digits)-1-i] - '0')
			if i%2 == 1 {
				if d *= 2; d > 9 {
					d -= 9
				}
			}
			sum += d
		}
		if sum%10 == 0 {
			return true
		}
	}
	return false
}
