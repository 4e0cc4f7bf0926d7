package screen

import "fmt"

// A UsageError reports invalid usage of a command.
type UsageError struct{ err error }

func (e *UsageError) Error() string { return e.err.Error() }

// Unwrap returns the error that describes what is invalid.
func (e *UsageError) Unwrap() error { return e.err }

// Invalid returns the error as a UsageError. It returns nil if the error is nil.
func Invalid(err error) error {
	if err == nil {
		return nil
	}
	return &UsageError{err}
}

// Usagef formats its arguments like fmt.Errorf and returns a UsageError.
func Usagef(format string, args ...any) error { return Invalid(fmt.Errorf(format, args...)) }
