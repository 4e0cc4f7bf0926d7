// Package api sends requests to Stripe and classifies its answers. The packages of internal/stripe
// share one Client: its key, its connections and its budget of requests a second.
//
// It knows no periods, purchases or events, and stores nothing on disk. After an answer it decides
// only whether to send the same request again at once.
//
//   - client.go: options, the Client and its key; ask.go: requests with raw answers
//   - sender.go, transport.go: one request, and when it is sent again
//   - budget.go: the number of requests a second
//   - classify.go: the meaning of an answer, and its error
//   - currency.go: amounts as Stripe writes them, and their limits
//   - id.go: ids, addresses and times as Stripe writes them
package api
