package secret

import (
	"iter"
	"strings"
)

// HasCardNumber reports whether the text contains what looks like a card number: 13 to
// 19 digits, possibly in groups joined by single spaces, hyphens or dots, that pass the Luhn
// check, or sixteen digits in a row, which are refused whether they pass or not: a field with
// them is meant as a card number.
func HasCardNumber(text string) bool { return MaskCards(text) != text }

// MaskCards replaces the digits of everything that looks like a card number by stars,
// but for the last four. Texts that a person typed go through it before they are shown,
// logged or written anywhere. What it returns has no card number, not even one that the
// digits left over happen to make.
func MaskCards(text string) string {
	for {
		masked := maskOnce(text)
		if masked == text {
			return text
		}
		text = masked
	}
}

func maskOnce(text string) string {
	var out []byte
	for i := 0; i < len(text); {
		groups, end := digitGroups(text, i)
		if len(groups) == 0 {
			i++
			continue
		}
		for from, to := range cards(text, groups) {
			if out == nil {
				out = []byte(text)
			}
			mask(out[from:to], digitsIn(text[from:to])-4)
		}
		i = end
	}
	if out == nil {
		return text
	}
	return string(out)
}

// A group is a run of digits in a text: text[from:to].
type group struct{ from, to int }

// digitGroups returns the groups of digits that begin at i and follow each other with one
// space, hyphen or dot between them, and where they end.
func digitGroups(text string, i int) (groups []group, end int) {
	for i < len(text) {
		j := i
		for j < len(text) && text[j] >= '0' && text[j] <= '9' {
			j++
		}
		if j == i {
			break
		}
		groups, end = append(groups, group{i, j}), j
		if j == len(text) || !strings.ContainsRune(" -.", rune(text[j])) {
			break
		}
		i = j + 1
	}
	return groups, end
}

// cards yields the places of card numbers that consist of whole groups. Whatever else stands
// beside them, joined by a space or not, hides none.
func cards(text string, groups []group) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		for i := range groups {
			for j := i; j < len(groups); j++ {
				from, to := groups[i].from, groups[j].to
				n := digitsIn(text[from:to])
				if n > 19 {
					break
				}
				if n >= 13 && (luhn(text[from:to]) || (i == j && n == 16) || (n == 16 && j == i+3)) && !yield(from, to) {
					return
				}
			}
		}
	}
}

func digitsIn(text string) int {
	n := 0
	for i := range len(text) {
		if text[i] >= '0' && text[i] <= '9' {
			n++
		}
	}
	return n
}

// luhn reports whether the digits of the text pass the check that card numbers pass.
func luhn(text string) bool {
	sum, double := 0, false
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] < '0' || text[i] > '9' {
			continue
		}
		d := int(text[i] - '0')
		if double {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum, double = sum+d, !double
	}
	return sum%10 == 0
}

func mask(text []byte, digits int) {
	for i := range text {
		if digits > 0 && text[i] >= '0' && text[i] <= '9' {
			text[i] = '*'
			digits--
		}
	}
}
