// Package field defines the error for an invalid input field, which names the field and its problem in
// files, JSON and command lines. It does not validate fields: its callers do.
package field

// Error names the wrong field of an input, and its problem.
type Error struct {
	Field   string // by its name in files and JSON: payment_day
	Problem string // without the digits of a card number
}

func (e *Error) Error() string { return e.Field + ": " + e.Problem }

// Wrong returns an Error.
func Wrong(name, problem string) error { return &Error{name, problem} }
