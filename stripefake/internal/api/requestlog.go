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

// secretName matches the names of parameters whose values are secrets.
var secretName = regexp.MustCompile(`\[(number|cvc|account_number|iban)\]$|client_secret|password`)

// secretValue matches API keys, signing secrets and client secrets.
var secretValue = regexp.MustCompile(`\b[srp]k_(test|live)_\w+|\bwhsec_\w+|_secret_\w+`)

// redacted returns the parameters of a form without secrets. A text that is no form has none.
func redacted(text string) url.Values {
	form, _ := url.ParseQuery(text) // the readable parameters
	for name, values := range form {
		for i, v := range values {
			if secretName.MatchString(name) || secretValue.MatchString(v) || hasCard(v) {
				values[i] = "[redacted]"
			}
		}
	}
	return form
}

// cardForm is the form of a card number: 13 to 19 digits, in groups or not.
var cardForm = regexp.MustCompile(`\b[2-6](?:[ -]?[0-9]){12,18}\b`)

// hasCard reports whether the text contains a card number, by its check digit.
func hasCard(text string) bool {
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
