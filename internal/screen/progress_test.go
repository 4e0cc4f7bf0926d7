package screen

import (
	"testing"
	"time"
)

func TestProgress_Line(t *testing.T) {
	for _, x := range []struct {
		done, total int64
		want        string
	}{
		{500, 0, "500 rows, 250/s"},
		{0, 1000, "0 rows, 0/s"},
		{500, 1000, "[###############...............]  50%  500 rows, 250/s, 2s left"},
		{1500, 1000, "[##############################] 100%  1500 rows, 750/s, 0s left"},
	} {
		b := &Progress{what: "rows"}
		b.Done.Store(x.done)
		b.Total.Store(x.total)
		if got := b.line(2 * time.Second); got != x.want {
			t.Errorf("%d of %d: %q, want %q", x.done, x.total, got, x.want)
		}
	}
}

func TestProgress_NoneWithoutATerminal(t *testing.T) {
	if b := New(nil, nil, nil).Progress("rows", 1, nil); b.out != nil {
		t.Error("a bar without a terminal")
	}
	var none Progress
	none.Done.Store(1)
	none.Total.Store(1)
	none.End()
}
