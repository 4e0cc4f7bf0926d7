package event

import "math"

// quoted skips a text. plain reports a text without escapes.
func (r *jsonReader) quoted() (plain bool) {
	text, i := r.text, r.at+1
	for plain = true; ; plain = false {
		for i < len(text) && text[i] >= ' ' && text[i] != '"' && text[i] != '\\' {
			i++
		}
		if i < len(text) && text[i] == '"' {
			r.at = i + 1
			return plain
		}
		n := escaped(text[i:])
		if n == 0 {
			r.fail()
			return false
		}
		i += n
	}
}

// escaped returns the length of the escape at the beginning of the text; 0 if there is none.
func escaped(text []byte) int {
	if len(text) < 2 || text[0] != '\\' {
		return 0
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(text) >= 6 && isHex(text[2]) && isHex(text[3]) && isHex(text[4]) && isHex(text[5]) {
			return 6
		}
	}
	return 0
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// whole reads a JSON number without fraction and exponent, or 0 if it does not fit.
func whole(digits []byte) (n int64) {
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	for _, c := range digits {
		if c < '0' || c > '9' || n > (math.MaxInt64-9)/10 {
			return 0
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		return -n
	}
	return n
}

// digits skips a number.
func (r *jsonReader) digits() {
	i := r.at
	at := func() byte {
		if i < len(r.text) {
			return r.text[i]
		}
		return 0
	}
	run := func() bool {
		begin := i
		for c := at(); '0' <= c && c <= '9'; c = at() {
			i++
		}
		return i > begin
	}
	if at() == '-' {
		i++
	}
	ok := true
	if at() == '0' {
		i++
	} else {
		ok = run()
	}
	if ok && at() == '.' {
		i++
		ok = run()
	}
	if c := at(); ok && (c == 'e' || c == 'E') {
		i++
		if c := at(); c == '+' || c == '-' {
			i++
		}
		ok = run()
	}
	if r.at = i; !ok {
		r.fail()
	}
}
