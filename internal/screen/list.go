package screen

import (
	"errors"
	"iter"

	"github.com/duesday/duesday/internal/billing"
)

// Readable yields what can be read. It names each unreadable item in a warning; the command then exits
// with ExitPerson.
func Readable[T any](s *Screen, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range seq {
			if _, bad := errors.AsType[*billing.ItemError](err); bad {
				s.Warn("left out: %v; correct the item with the tool that wrote it", err)
				s.Code = ExitPerson
			} else if !yield(v, err) {
				return
			}
		}
	}
}

// List prints a sequence as a JSON array, or as a table with the columns, and returns the number
// of rows. Its memory does not grow with that number.
func List[T, V any](s *Screen, seq iter.Seq2[T, error], view func(T) V, columns []string,
	cells func(T) []any) (n int, err error) {
	t, a := s.Table(columns...), ListWriter{Out: s.Out}
	for v, err := range Readable(s, seq) {
		if err == nil && s.AsJSON {
			err = a.Add(view(v))
		} else if err == nil {
			t.Row(cells(v)...)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	if s.AsJSON {
		return n, a.End(nil)
	}
	return n, t.Flush()
}

// ListAll is list with the number of rows at its end, for people.
func ListAll[T, V any](s *Screen, noun string, seq iter.Seq2[T, error], view func(T) V, columns []string,
	cells func(T) []any) error {
	n, err := List(s, seq, view, columns, cells)
	if err == nil {
		s.Say("\n%s", Plural(n, noun))
	}
	return err
}

// Each yields the elements.
func Each[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// Filtered yields the elements to keep, and every error.
func Filtered[T any](seq iter.Seq2[T, error], keep func(T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range seq {
			if (err != nil || keep(v)) && !yield(v, err) {
				return
			}
		}
	}
}
