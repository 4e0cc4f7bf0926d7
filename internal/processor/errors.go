package processor

import "errors"

var (
	// ErrUnknown means that the answer was lost. The processor may have executed the request.
	ErrUnknown = errors.New("the processor's answer was lost")
	// ErrNotExecuted means that the processor did not execute the request (rate limit, lock). The
	// caller may send it again.
	ErrNotExecuted = errors.New("the processor is busy")
	// ErrInvalid means that the processor refuses the request itself, so an operator must act.
	ErrInvalid = errors.New("the processor refused the request as invalid")
	// ErrRefused means that the processor refuses the credentials, so the job stops.
	ErrRefused = errors.New("the processor refused the API key")
	// ErrAccountRefused means that the processor refuses requests only for this account.
	ErrAccountRefused = errors.New("the processor refused this account")
	// ErrNoIntent means that the processor does not have the intent.
	ErrNoIntent = errors.New("the processor has no such payment intent")
)
