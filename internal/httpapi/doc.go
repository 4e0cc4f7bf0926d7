// Package httpapi serves package tracking over HTTP: the endpoints for Stripe's events, the JSON
// API for purchases, and the internal API for the poller and the commands, since one process
// holds the embedded store. It has the other side, too: a Client with the methods of a
// tracking.Service, and a Sender of events to an endpoint.
//
// It decides nothing about purchases and events: each request is one call of package tracking,
// and each error has its status in one table, in fault.go. It does not know how Stripe signs
// (Options.Verify does), speaks no TLS, and limits no rates: those are for the proxy in
// front of it.
package httpapi
