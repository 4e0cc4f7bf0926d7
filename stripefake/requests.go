package stripefake

import (
	"net/url"
	"time"
)

// A Request is a request to Stripe's API that the fake has answered.
type Request struct {
	ID       string `json:"id"`       // the Request-Id header of the response
	Method   string `json:"method"`   // POST
	Path     string `json:"path"`     // /v1/payment_intents/pi_1/confirm
	Endpoint string `json:"endpoint"` // POST /v1/payment_intents/{intent}/confirm, or unknown
	// Form contains the parameters of the URL and the body by full name, such as items[0][price]. The
	// fake replaces card and account numbers, keys and client secrets with [redacted].
	Form           url.Values `json:"form"`
	IdempotencyKey string     `json:"idempotency_key"` // always empty for a GET or DELETE
	Account        string     `json:"account"`         // the account that the request applied to; empty if the key was refused
	Live           bool       `json:"livemode"`
	Version        string     `json:"api_version"`
	Status         int        `json:"status"`   // 0 if the connection broke
	Replayed       bool       `json:"replayed"` // whether the response was replayed for an idempotency key
	At             time.Time  `json:"at"`       // when the fake answered, on the fake's clock
}

// Requests returns the last 10,000 requests that the fake has answered, oldest first.
func (f *Fake) Requests() []Request {
	list := []Request{}
	for _, r := range f.api.Requests() {
		list = append(list, Request(r))
	}
	return list
}

// A Count is the number of responses that the fake has sent for one endpoint with one status.
type Count struct {
	Endpoint string `json:"endpoint"` // POST /v1/payment_intents/{intent}/confirm, or unknown
	Status   int    `json:"status"`   // 0 if the connection broke
	Requests int64  `json:"requests"`
	Replays  int64  `json:"replays"` // the number of these responses that were replayed for an idempotency key
}

// Counts returns the number of responses for each endpoint and status, sorted by both.
func (f *Fake) Counts() []Count {
	list := []Count{}
	for _, n := range f.api.Counts() {
		list = append(list, Count(n))
	}
	return list
}
