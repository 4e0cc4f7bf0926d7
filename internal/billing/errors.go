package billing

import "errors"

var (
	// ErrExists: it exists already.
	ErrExists = errors.New("already exists")
	// ErrState: the request does not fit the present state.
	ErrState = errors.New("not possible now")
)
