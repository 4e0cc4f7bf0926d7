package billing

import "errors"

var (
	// ErrExists: it exists already.
	ErrExists = errors.New("exists already")
	// ErrState: the request does not fit the present state.
	ErrState = errors.New("not possible now")
)
