package screen

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/sequence"
)

// Readable yields every readable item. It prints a warning about each unreadable item, and sets the
// command's exit code to ExitPerson.
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

// List prints a sequence as a JSON array or as a table with the given columns, and returns the
// number of rows. It does not keep the rows in memory.
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

// ListAll prints a list in the order o. In text mode, it also prints the number of rows at the end.
func ListAll[T, V any](s *Screen, o ListOrder, noun string, seq iter.Seq2[T, error], view func(T) V, columns []string,
	cells func(T) []any) error {
	more := false
	if o.sort != "" {
		seq = sorted(o.sort, Readable(s, seq), columns, cells)
	}
	n, err := List(s, FirstOf(o.limit, seq, &more), view, columns, cells)
	switch {
	case err != nil:
		return err
	case more:
		s.Say("\n%s, and there are more; use a larger --limit to show them", Plural(n, noun))
	default:
		s.Say("\n%s", Plural(n, noun))
	}
	return nil
}

// A ListOrder holds the flags --limit and --sort of a list. The zero value means all rows in the
// store's order.
type ListOrder struct {
	limit int
	sort  string   // a column, or -COLUMN for descending order; "" for the store's order
	by    []string // the columns that sort accepts
}

// Flags adds --limit and --sort to a list command. by names the columns that users can sort by.
func (o *ListOrder) Flags(c *cobra.Command, by ...string) {
	o.by = by
	c.Flags().IntVar(&o.limit, "limit", 0, "maximum `NUMBER` of rows; 0 for all")
	c.Flags().StringVar(&o.sort, "sort", "", "`COLUMN` to sort by, one of "+strings.Join(by, ", ")+"; -COLUMN for descending order")
}

// Check returns a UsageError if the limit is negative or the list cannot be sorted by the column.
func (o *ListOrder) Check() error {
	switch {
	case o.limit < 0:
		return Usagef("--limit must be 0 or more (got %d)", o.limit)
	case o.sort != "" && !slices.Contains(o.by, strings.TrimPrefix(o.sort, "-")):
		return Usagef("--sort must be one of %s, or one of them after a - (got %q)", strings.Join(o.by, ", "), o.sort)
	}
	return nil
}

// sorted reads all rows and yields them sorted by a column. A - before the column's name sorts in
// descending order.
func sorted[T any](by string, seq iter.Seq2[T, error], columns []string, cells func(T) []any) iter.Seq2[T, error] {
	name, descending := strings.CutPrefix(by, "-")
	at := slices.Index(columns, strings.ToUpper(strings.ReplaceAll(name, "-", " ")))
	return func(yield func(T, error) bool) {
		var rows []T
		for v, err := range seq {
			if err != nil {
				yield(v, err)
				return
			}
			rows = append(rows, v)
		}
		slices.SortStableFunc(rows, func(a, b T) int {
			if descending {
				a, b = b, a
			}
			return compareCells(cells(a)[at], cells(b)[at])
		})
		sequence.Of(rows)(yield)
	}
}

// compareCells compares two values of a column. It compares dates and numbers by value, and amounts
// by currency and then by value.
func compareCells(a, b any) int {
	switch x := a.(type) {
	case civil.Date:
		return x.Compare(b.(civil.Date))
	case time.Time:
		return x.Compare(b.(time.Time))
	case int:
		return cmp.Compare(x, b.(int))
	case money.Amount:
		y := b.(money.Amount)
		return cmp.Or(strings.Compare(x.Currency().Code(), y.Currency().Code()), cmp.Compare(x.Minor(), y.Minor()))
	}
	return strings.Compare(Cell(a), Cell(b))
}

// FirstOf yields at most n elements, or all elements if n is 0. It sets more if further elements
// exist.
func FirstOf[T any](n int, all iter.Seq2[T, error], more *bool) iter.Seq2[T, error] {
	if n == 0 {
		return all
	}
	return func(yield func(T, error) bool) {
		left := n
		for v, err := range all {
			if left == 0 && err == nil {
				*more = true
				return
			}
			left--
			if !yield(v, err) {
				return
			}
		}
	}
}

// Itself returns v. It is the view of a type that is already its own JSON form.
func Itself[T any](v T) T { return v }
