package processor

import "errors"

var (
	// ErrUnknown: the answer was lost. The processor may have done it.
	ErrUnknown = errors.New("the processor's answer was lost")
	// ErrNotExecuted: refused before anything happened (rate limit, lock). It may be sent again.
	ErrNotExecuted = errors.New("the processor is busy")
	// ErrInvalid: the processor refuses the request itself. A person must look.
	ErrInvalid = errors.New("the processor refused the request as invalid")
	// ErrRefused: the processor refuses our credentials. The job stops.
	ErrRefused = errors.New("the processor refused the API key")
	// ErrAccountRefused: the processor refuses this account alone.
	ErrAccountRefused = errors.New("the processor refused this account")
	// ErrNoIntent: there is no such intent.
	ErrNoIntent = errors.New("the processor has no such payment intent")
)
