package price

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/store"
)

// maxText is the most characters of a metadata value at Stripe.
const maxText = 500

// Text returns the price as a text that the processor keeps with the charge and ReadText reads. It is
// empty for a plain price, and for a price whose text would be too long.
func (p *Price) Text() string {
	if p.IsPlain() {
		return ""
	}
	members := map[string]string{}
	for _, a := range p.Item() {
		members[a.Name] = a.Value.Str() + a.Value.Num() // one of both
	}
	var text strings.Builder
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false) // to six bytes
	if err := out.Encode(members); err != nil || text.Len() > maxText+1 {
		return ""
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// ReadText returns the price, or nil unless the text is a price that explains the amount that was
// charged for the period.
func ReadText(text string, period int, charged money.Amount) *Price {
	var members map[string]string
	if json.Unmarshal([]byte(text), &members) != nil {
		return nil
	}
	var it store.Item
	for name, value := range members {
		v := store.S(value)
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && slices.Contains([]string{quantity, discountFrom, discountPeriods}, name) {
			v = store.Int(n)
		}
		it.Set(name, v)
	}
	p, err := Decode(it, charged.Currency())
	if err != nil || p.IsPlain() || p.Explain(period, charged) != nil {
		return nil
	}
	return &p
}
