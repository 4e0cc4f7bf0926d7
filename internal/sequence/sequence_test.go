package sequence

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
)

var errBroken = errors.New("broken")

// broken yields the values, and then an error.
func broken(all ...int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
		yield(0, errBroken)
	}
}

// TestSequences: each kind yields its values in order, up to the first error, and ends where the reader does.
func TestSequences(t *testing.T) {
	double := func(v int) (int, error) {
		switch {
		case v == 3:
			return 0, ErrSkip
		case v > 8:
			return 0, errBroken
		}
		return 2 * v, nil
	}
	lists := func(all ...iter.Seq2[int, error]) []iter.Seq2[int, error] { return all }
	itself := func(part iter.Seq2[int, error]) iter.Seq2[int, error] { return part }
	for name, tt := range map[string]struct {
		all  iter.Seq2[int, error]
		want string
	}{
		"of":                {Of([]int{1, 2}), "[1 2] <nil>"},
		"of nothing":        {Of[int](nil), "[] <nil>"},
		"fail":              {Fail[int](errBroken), "[] broken"},
		"filter":            {Filter(broken(1, 2, 3), func(v int) bool { return v != 2 }), "[1 3] broken"},
		"map skips":         {Map(Of([]int{1, 3, 4}), double), "[2 8] <nil>"},
		"map ends":          {Map(Of([]int{1, 9, 4}), double), "[2] broken"},
		"map of an error":   {Map(broken(1), double), "[2] broken"},
		"flat":              {Flat(slices.Values(lists(Of([]int{1}), Of([]int{0, 5}))), itself), "[1 0 5] <nil>"},
		"flat ends":         {Flat(slices.Values(lists(broken(1), Of([]int{0}))), itself), "[1] broken"},
		"merge":             {Merge(lists(Of([]int{1, 4, 4}), Of([]int{2, 4}), Of[int](nil)), cmp.Compare[int]), "[1 2 4 4 4] <nil>"},
		"merge of one":      {Merge(lists(broken(2, 1)), cmp.Compare[int]), "[2 1] broken"},
		"merge of an error": {Merge(lists(Of([]int{1, 2, 9}), broken(2)), cmp.Compare[int]), "[1 2 2] broken"},
	} {
		read := func(most int) (got []int, failed error) {
			for v, err := range tt.all {
				if failed = err; err != nil || len(got) == most {
					break
				}
				got = append(got, v)
			}
			return got, failed
		}
		got, err := read(100)
		if fmt.Sprint(got, " ", err) != tt.want {
			t.Errorf("%s: got %v %v, want %s", name, got, err, tt.want)
		}
		for most := range got {
			if first, err := read(most); err != nil || !slices.Equal(first, got[:most]) {
				t.Errorf("%s: the first %d are %v %v", name, most, first, err)
			}
		}
	}
}
