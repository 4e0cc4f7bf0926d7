// Package httpapi implements tracking's HTTP API: the webhook endpoints for Stripe's events, and the JSON API
// for purchases and payments.
//
// It decides nothing about purchases and events. Each request calls package tracking, and kind.go maps errors
// to status codes. It does not know how Stripe signs webhooks (Options.Verify does).
package httpapi
