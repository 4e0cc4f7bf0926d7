package billing

import (
	"errors"
	"fmt"
)

var (
	// ErrExists means that the account or subscription already exists.
	ErrExists = errors.New("already exists")
	// ErrState means that the current state does not allow the request.
	ErrState = errors.New("not possible now")
	// ErrErased means that the data of the account's person was erased. It is an ErrState.
	ErrErased = fmt.Errorf("the data of the account's person was erased, so the account cannot be changed and gets no subscription; "+
		"use another account: %w", ErrState)
)
