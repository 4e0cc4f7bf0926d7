package billing

import "errors"

var (
	// ErrUnknown: the answer was lost; the processor may have done it or not.
	ErrUnknown = errors.New("the processor's answer was lost")
	// ErrNotExecuted: refused before anything happened (rate limit, lock); the same
	// request may be sent again.
	ErrNotExecuted = errors.New("the processor is busy")
	// ErrInvalid: the processor calls the request wrong. A person has to look.
	ErrInvalid = errors.New("the processor refused the request as invalid")
	// ErrRefused: the processor refuses our credentials. The job stops.
	ErrRefused = errors.New("the processor refused our credentials")
	// ErrAccountRefused: the processor refuses this account alone.
	ErrAccountRefused = errors.New("the processor refused this account")
	// ErrNoIntent: there is no such intent.
	ErrNoIntent = errors.New("the processor has no such payment intent")
)

var (
	// ErrExists: there is one already.
	ErrExists = errors.New("exists already")
	// ErrState: what was asked does not fit the state it is in.
	ErrState = errors.New("not possible now")
)
