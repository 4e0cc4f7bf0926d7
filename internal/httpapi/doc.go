// Package httpapi implements the HTTP API of package tracking: the webhook endpoints for Stripe's events,
// and the JSON API for purchases and payments.
//
// It decides nothing about purchases and events: each request is one call to package tracking, and the
// table in kind.go maps errors to status codes. Package web has the conventions of HTTP. It does not know
// how Stripe signs webhooks (Options.Verify does).
package httpapi
