// Package api sends requests to Stripe and says what its answers mean. The packages of
// internal/stripe share one Client: its key, its connections and its budget of requests a second.
//
// It knows no periods, purchases or events, keeps nothing on disk, and decides nothing after an
// answer but whether the same request may be sent again at once.
//
//   - client.go: options, the Client and its key; ask.go: a request whose answer is read as it was written
//   - sender.go, transport.go: one request, and the one loop that sends it again; budget.go: how many a second
//   - classify.go, decline.go: the meaning of an answer; error.go: how it is told
//   - currency.go: amounts as Stripe writes them, and their limits
//   - id.go: ids, addresses and times as Stripe writes them
package api
