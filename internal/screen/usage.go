package screen

import "fmt"

// A UsageError is invalid usage.
type UsageError struct{ err error }

func (e *UsageError) Error() string { return e.err.Error() }

// Unwrap returns what is invalid.
func (e *UsageError) Unwrap() error { return e.err }

// Invalid returns the error as a UsageError, or nil for nil.
func Invalid(err error) error {
	if err == nil {
		return nil
	}
	return &UsageError{err}
}

// Usagef returns a UsageError of the text.
func Usagef(format string, args ...any) error { return Invalid(fmt.Errorf(format, args...)) }
