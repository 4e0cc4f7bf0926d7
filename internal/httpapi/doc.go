// Package httpapi implements the HTTP API of package tracking: the webhook endpoints for Stripe's events,
// and the JSON API for purchases and payments.
//
// It decides nothing about purchases and events: each request is one call to package tracking, and the
// table in fault.go maps errors to status codes. It does not know how Stripe signs webhooks
// (Options.Verify does). It has no TLS and no rate limits, which a proxy in front of it can provide.
package httpapi
