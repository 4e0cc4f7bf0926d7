package stripefake

import (
	"net/url"
	"time"
)

// A Request is a request to Stripe's API that the fake has answered.
type Request struct {
	ID       string `json:"id"`       // the answer's Request-Id header
	Method   string `json:"method"`   // POST
	Path     string `json:"path"`     // /v1/payment_intents/pi_1/confirm
	Endpoint string `json:"endpoint"` // POST /v1/payment_intents/{intent}/confirm, or unknown
	// Form contains the parameters of the URL and the body under their full names, such as
	// items[0][price]. The fake replaces card and account numbers, keys and client secrets with
	// [redacted].
	Form           url.Values `json:"form"`
	IdempotencyKey string     `json:"idempotency_key"` // "" for a GET or DELETE
	Account        string     `json:"account"`         // the account that the request was for; "" if its key was refused
	Live           bool       `json:"livemode"`
	Version        string     `json:"api_version"`
	Status         int        `json:"status"`   // 0 if the connection broke
	Replayed       bool       `json:"replayed"` // whether the answer repeats an earlier one with the same key
	At             time.Time  `json:"at"`       // by the fake's clock
}

// Requests returns the last 10,000 requests that the fake has answered, oldest first.
func (f *Fake) Requests() []Request {
	list := []Request{}
	for _, r := range f.api.Requests() {
		list = append(list, Request(r))
	}
	return list
}

// A Count says how often the fake has answered an endpoint's requests with a status.
type Count struct {
	Endpoint string `json:"endpoint"` // POST /v1/payment_intents/{intent}/confirm, or unknown
	Status   int    `json:"status"`   // 0 if the connection broke
	Requests int64  `json:"requests"`
	Replays  int64  `json:"replays"` // how many of Requests were answered again from their idempotency key
}

// Counts returns the number of answers to all requests, sorted by endpoint and status.
func (f *Fake) Counts() []Count {
	list := []Count{}
	for _, n := range f.api.Counts() {
		list = append(list, Count(n))
	}
	return list
}
