package book

import (
	"fmt"
	"strings"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/secret"
)

func (c *checker) amount(text, code string) money.Amount {
	var cur money.Currency
	var err error
	if code == "" {
		c.fault(currency, "is missing")
	} else if !c.card(currency, code) {
		if cur, err = c.currencies.get(code); err != nil {
			c.fault(currency, err.Error())
		}
	}
	switch {
	case text == "":
		c.fault(amount, "is missing")
	case c.card(amount, text):
	case c.bad.has(currency):
		if !isNumber(text) {
			c.fault(amount, fmt.Sprintf("want a number such as 12.99, not %.40q", text))
		}
	default:
		a, err := money.Parse(text, cur)
		if err == nil {
			return a
		}
		c.fault(amount, err.Error())
	}
	return c.usual
}

// number reads a small count. absent stands for an empty or unreadable field.
func (c *checker) number(col column, text string, absent int) int {
	if text == "" || c.card(col, text) {
		return absent
	}
	n := 0
	for i := range len(text) {
		d := text[i] - '0'
		if d > 9 || i > 8 {
			c.fault(col, fmt.Sprintf("want a whole number, not %.40q", text))
			return absent
		}
		n = 10*n + int(d)
	}
	return n
}

func (c *checker) date(col column, text string) civil.Date {
	if text == "" || c.card(col, text) {
		return civil.Date{}
	}
	d, err := civil.Parse(text)
	if err != nil {
		c.fault(col, err.Error())
	}
	return d
}

// shortestCard is the length of the shortest card number.
const shortestCard = 13

// card reports, and notes, a text like a card number. It must come before the field is read: a long
// amount can be a card number, and an error would quote a part of it.
func (c *checker) card(col column, text string) bool {
	switch {
	case len(text) < shortestCard:
		return false
	case col == paymentMethod && secret.HasCardInMethod(text):
		c.fault(col, maskedReason(secret.MaskMethod(text)))
	case secret.HasCardNumber(text):
		c.fault(col, cardReason(text))
	default:
		return false
	}
	return true
}

// masked refuses a masked card number: an uncorrected row of FILE.rejected must not count as good.
func (c *checker) masked(t *texts) {
	for col, text := range t {
		if strings.Count(text, "*") >= shortestCard-4 {
			c.fault(column(col), "holds a masked card number: give the processor's token")
		}
	}
}

func cardReason(text string) string { return maskedReason(secret.MaskCards(text)) }

func maskedReason(masked string) string {
	return fmt.Sprintf("looks like a card number (%.40s): Duesday never takes one; give the processor's token", masked)
}

// isNumber reports whether the text is an amount in some currency.
func isNumber(text string) bool {
	digits, point := 0, false
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '.' && !point && i > 0:
			point = true
		default:
			return false
		}
	}
	return digits > 0 && text[len(text)-1] != '.'
}

// A memo keeps the parsed values of texts. It learns no more when it is full: a file can write the
// same interval in any number of ways.
type memo[T any] struct {
	parse func(string) (T, error)
	known map[string]T
	last  string
	value T
}

const memoSize = 512

func (m *memo[T]) get(text string) (T, error) {
	if text == m.last && text != "" {
		return m.value, nil
	}
	v, ok := m.known[text]
	if !ok {
		var err error
		if v, err = m.parse(text); err != nil {
			return v, err
		}
		text = strings.Clone(text) // not the row it is a part of
		if m.known == nil {
			m.known = make(map[string]T)
		}
		if len(m.known) < memoSize {
			m.known[text] = v
		}
	}
	m.last, m.value = text, v
	return v, nil
}
