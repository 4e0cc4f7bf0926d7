package capacity

import (
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/store"
)

// ItemBytes returns the size of an item or of an index row, in bytes, as units are computed
// from it: the names and values of its attributes. It differs from store.Size, which is an
// engine's limit and may be generous, in numbers alone. The hundred bytes of overhead of an
// index row are storage, and consume no units.
func ItemBytes(it store.Item) int {
	n := 0
	for i := range it {
		n += len(it[i].Name) + valueBytes(it[i].Value)
	}
	return n
}

func valueBytes(v store.Value) int {
	switch v.Kind() {
	case store.KindString:
		return len(v.Str())
	case store.KindBinary:
		return len(v.Raw())
	case store.KindNumber:
		return numberBytes(v.Num())
	case store.KindMap:
		return 3 + len(v.Map()) + ItemBytes(v.Map())
	case store.KindList:
		n := 3 + len(v.List())
		for _, e := range v.List() {
			n += valueBytes(e)
		}
		return n
	}
	return 1 // a boolean
}

// numberBytes: one byte, one for a sign, and one for every two digits, paired from the decimal
// point, but for pairs of zeros at either end: 1000 and 0.01 have one pair, 1.5 has two.
func numberBytes(text string) int {
	text, negative := strings.CutPrefix(text, "-")
	mantissa, e, _ := strings.Cut(text, "E")
	exponent, _ := strconv.Atoi(e) // none is 0
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if (len(whole)+exponent)%2 != 0 { // the point is in the middle of a pair
		digits = "0" + digits
	}
	if len(digits)%2 != 0 {
		digits += "0"
	}
	first, last := len(digits), 0
	for i := 0; i < len(digits); i += 2 {
		if digits[i:i+2] != "00" {
			first, last = min(first, i), i+2
		}
	}
	if last == 0 {
		return 1 // zero
	}
	n := 1 + (last-first)/2
	if negative {
		n++
	}
	return n
}
