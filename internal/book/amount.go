package book

import (
	"fmt"
	"regexp"
	"strings"
)

// someAmount is the form of an amount in some currency.
var someAmount = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

// dotted is a date whose day comes first: no language writes the month before it, with dots.
var dotted = regexp.MustCompile(`^([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})$`)

// grouped is a number with a separator of thousands, and perhaps decimals. The comma of threes can
// be either.
var (
	grouped = regexp.MustCompile(`^([1-9][0-9]{0,2})((?:,[0-9]{3})+|(?:\.[0-9]{3})+|(?:'[0-9]{3})+|(?: [0-9]{3})+)(?:([.,])([0-9]+))?$`)
	threes  = regexp.MustCompile(`^([1-9][0-9]{0,2}),([0-9]{3})$`)
	comma   = regexp.MustCompile(`^[0-9]+,[0-9]+$`)
	signed  = regexp.MustCompile(`^((\p{Sc}|[A-Za-z]{3}) ?[0-9][0-9.,' ]*|[0-9][0-9.,' ]*(\p{Sc}|[A-Za-z]{3}))$`)
)

// plainAmount returns an amount of a spreadsheet with a decimal point and without separators of
// thousands. It returns another text as it is, and the problem of one that can be read in two ways.
func plainAmount(text string, decimals int) (plain, problem string) {
	text = strings.NewReplacer("\u00a0", " ", "\u202f", " ", "’", "'").Replace(text)
	if m := threes.FindStringSubmatch(text); m != nil && decimals > 0 {
		return text, fmt.Sprintf("must be %s%s.%s or %s.%s, because the comma can separate thousands or decimals (got %q)", m[1], m[2],
			strings.Repeat("0", decimals), m[1], m[2][:min(3, decimals)], text)
	}
	if signed.MatchString(text) {
		return text, fmt.Sprintf("must not contain the currency, which has its own column (got %.40q)", text)
	}
	switch m := grouped.FindStringSubmatch(text); {
	case m != nil && m[3] != m[2][:1] && !(m[2][:1] == "." && len(m[2]) == 4 && m[3] == "" && decimals > 0):
		return strings.TrimSuffix(m[1]+strings.Map(digit, m[2])+"."+m[4], "."), ""
	case comma.MatchString(text):
		return strings.Replace(text, ",", ".", 1), ""
	}
	return text, ""
}

func digit(r rune) rune {
	if r < '0' || r > '9' {
		return -1
	}
	return r
}
