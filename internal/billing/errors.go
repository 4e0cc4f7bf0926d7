package billing

import "errors"

var (
	// ErrExists means that the account or subscription already exists.
	ErrExists = errors.New("already exists")
	// ErrState means that the current state does not allow the request.
	ErrState = errors.New("not possible now")
)
