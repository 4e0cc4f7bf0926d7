// Package httpapi is what others see of package tracking over HTTP: the endpoints that Stripe
// sends its events to, the JSON API that sells and shows purchases, and the internal API that
// the poller and the commands read through, because one process holds the embedded store.
// It has the other side, too: a Client that is used like a tracking.Service, and a Sender that
// puts an event to an endpoint as Stripe would.
//
// It decides nothing about purchases and events: each request is one call of package tracking,
// and each error has its status in one table, in fault.go. It does not know how Stripe signs
// (Options.Verify does), speaks no TLS, and limits nobody's rate: that is for the proxy in
// front of it.
package httpapi
