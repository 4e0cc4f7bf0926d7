package pebblestore

import "time"

// These are the text forms of times in the published models. A string of exactly one of these
// forms is stored as a number: 24 bytes become 7. Half of the strings in a subscription are
// times, and half of the engine's work is compaction, which moves every byte several times.
const (
	dateLength   = len("2006-01-02")
	millisLength = len("2006-01-02T15:04:05.000Z")
	spacedLength = len("2006-01-02 15:04:05.000")

	millisPerDay = 24 * 60 * 60 * 1000
)

// The years 0000 to 9999, those of four digits, in days and milliseconds since 1970.
const (
	minDay    = -719528
	maxDay    = 2932896
	minMillis = minDay * millisPerDay
	maxMillis = (maxDay+1)*millisPerDay - 1
)

// packTime returns the tag of a string's form, and its days or milliseconds since 1970, UTC. A
// string is packed only if it formats back to the same bytes: "2023-02-30" and "24:00:00" stay
// text. Package time checks the digits: with the marks in their places it takes no other form.
func packTime(s string) (tag byte, n int64, ok bool) {
	whole := s // in RFC 3339, which package time reads and writes faster than any other form
	switch {
	case len(s) == dateLength && s[4] == '-' && s[7] == '-':
		tag, whole = tagDate, s+"T00:00:00Z"
	case len(s) == millisLength && s[10] == 'T' && s[19] == '.' && s[23] == 'Z':
		tag = tagMillis
	case len(s) == spacedLength && s[10] == ' ' && s[19] == '.':
		tag, whole = tagSpaced, s[:dateLength]+"T"+s[dateLength+1:]+"Z"
	default:
		return 0, 0, false
	}
	t, err := time.Parse(time.RFC3339, whole)
	if n = t.UnixMilli(); tag == tagDate {
		n /= millisPerDay
	}
	return tag, n, err == nil
}

// appendTime is the reverse of packTime, for n within the years above.
func appendTime(dst []byte, tag byte, n int64) []byte {
	start := len(dst)
	if tag == tagDate {
		n *= millisPerDay
	}
	t := time.UnixMilli(n).UTC()
	dst = t.AppendFormat(dst, time.RFC3339)
	if tag == tagDate {
		return dst[:start+dateLength]
	}
	ms := t.Nanosecond() / int(time.Millisecond)
	dst = append(dst[:start+len("2006-01-02T15:04:05")], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
	if tag == tagSpaced {
		dst[start+dateLength] = ' '
		return dst
	}
	return append(dst, 'Z')
}
