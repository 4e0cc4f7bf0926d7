// Package apitest has the scripted and the faked Stripe that the tests of internal/stripe share. It
// does not judge answers: the tests do.
package apitest
