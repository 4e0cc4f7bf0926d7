// Package sequence makes sequences of values with errors from lists and from other sequences.
//
// It knows nothing about the values, and starts no goroutines.
package sequence

import (
	"errors"
	"iter"
	"slices"
)

// Of yields the values of a list.
func Of[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// Fail yields only the error.
func Fail[T any](err error) iter.Seq2[T, error] {
	return func(yield func(v T, err error) bool) { yield(*new(T), err) }
}

// Filter yields every error, and the values for which keep returns true.
func Filter[T any](all iter.Seq2[T, error], keep func(T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range all {
			if (err != nil || keep(v)) && !yield(v, err) {
				return
			}
		}
	}
}

// ErrSkip is returned by a function of Map for a value that the new sequence leaves out.
var ErrSkip = errors.New("skip this value")

// Map yields what to returns for each value. It ends after the first error, which it yields.
func Map[S, T any](all iter.Seq2[S, error], to func(S) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for one, err := range all {
			var v T
			if err == nil {
				v, err = to(one)
			}
			if !errors.Is(err, ErrSkip) && (!yield(v, err) || err != nil) {
				return
			}
		}
	}
}

// Flat yields the values of each element's sequence, one sequence after the other. It ends after the first
// error, which it yields.
func Flat[K, T any](elements iter.Seq[K], of func(K) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for k := range elements {
			for v, err := range of(k) {
				if !yield(v, err) || err != nil {
					return
				}
			}
		}
	}
}

// Merge yields the values of sequences that are in the order of compare, in that order. It ends after the
// first error, which it yields before other values.
func Merge[T any](each []iter.Seq2[T, error], compare func(a, b T) int) iter.Seq2[T, error] {
	if len(each) == 1 {
		return each[0]
	}
	return func(yield func(T, error) bool) {
		type head struct {
			value T
			err   error
			next  func() (T, error, bool)
		}
		var heads []*head
		for _, all := range each {
			next, stop := iter.Pull2(all)
			defer stop()
			if v, err, ok := next(); ok {
				heads = append(heads, &head{v, err, next})
			}
		}
		for len(heads) > 0 {
			first := slices.MinFunc(heads, func(a, b *head) int {
				switch {
				case a.err != nil:
					return -1
				case b.err != nil:
					return 1
				}
				return compare(a.value, b.value)
			})
			if !yield(first.value, first.err) || first.err != nil {
				return
			}
			var ok bool
			if first.value, first.err, ok = first.next(); !ok {
				heads = slices.DeleteFunc(heads, func(h *head) bool { return h == first })
			}
		}
	}
}
