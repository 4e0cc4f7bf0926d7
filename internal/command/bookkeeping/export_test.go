package bookkeeping

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/view"
)

// TestExportRows checks the bytes of a row in both formats, and of an export without rows.
func TestExportRows(t *testing.T) {
	rows := []view.Object{{"account", "1", "address", `a "b", c`, "count", 1}, {"account", "=2", "address", "'@b", "count", 0}, {"account", "-2.50", "address", "-2.50+1"},
		{"account", "3", "address?", ""}}
	for _, x := range []struct {
		asJSON bool
		rows   []view.Object
		want   string
	}{
		{false, rows, "account,address\n1,\"a \"\"b\"\", c\"\n'=2,''@b\n-2.50,'-2.50+1\n3,\n"},
		{true, rows, `{"account":"1","address":"a \"b\", c","count":1}` + "\n" + `{"account":"=2","address":"'@b","count":0}` +
			"\n" + `{"account":"-2.50","address":"-2.50+1"}` + "\n" + `{"account":"3"}` + "\n"},
		{false, nil, "account,address\n"},
		{true, nil, ""},
	} {
		var b strings.Builder
		all := func(yield func(view.Object, error) bool) {
			for _, row := range x.rows {
				if !yield(row, nil) {
					return
				}
			}
		}
		err := exportRows(&b, x.asJSON, new(screen.Progress), []string{"account", "address"}, all, screen.Itself[view.Object])
		if err != nil || b.String() != x.want {
			t.Errorf("JSON %v: got %q, %v, want %q", x.asJSON, b.String(), err, x.want)
		}
	}
	failing := errors.New("the disk is full")
	for _, asJSON := range []bool{false, true} {
		rows := func(yield func(view.Object, error) bool) { _ = yield(rows[0], nil) && yield(nil, failing) }
		if err := exportRows(io.Discard, asJSON, new(screen.Progress), []string{"account"}, rows, screen.Itself[view.Object]); !errors.Is(err,
			failing) {
			t.Errorf("JSON %v: a failed read gives %v", asJSON, err)
		}
	}
}
