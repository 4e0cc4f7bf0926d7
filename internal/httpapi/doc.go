// Package httpapi serves package tracking over HTTP: the endpoints for Stripe's events, and the JSON
// API for purchases and payments.
//
// It decides nothing about purchases and events: each request is one call of package tracking, and
// each error has its status in one table, in fault.go. It does not know how Stripe signs
// (Options.Verify does), speaks no TLS, and limits no rates: those are for the proxy in front of it.
package httpapi
