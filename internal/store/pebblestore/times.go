package pebblestore

// These are the text forms of times in the published models. A string of exactly one of these
// forms is stored as a number: 24 bytes become 7. Half of the strings in a subscription are
// times, and half of the engine's work is compaction, which moves every byte several times.
//
// A string is packed only if it formats back to the same bytes: "2023-02-30" and "24:00:00"
// stay text.

const (
	dateLength   = len("2006-01-02")
	millisLength = len("2006-01-02T15:04:05.000Z")
	spacedLength = len("2006-01-02 15:04:05.000")

	millisPerDay = 24 * 60 * 60 * 1000
)

// parseDate reads "2006-01-02" as days since 1970-01-01.
func parseDate(s string) (days int64, ok bool) {
	if len(s) != dateLength || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	y1, ok1 := twoDigits(s[0:])
	y2, ok2 := twoDigits(s[2:])
	m, ok3 := twoDigits(s[5:])
	d, ok4 := twoDigits(s[8:])
	y := y1*100 + y2
	if !ok1 || !ok2 || !ok3 || !ok4 || m < 1 || m > 12 || d < 1 || d > daysIn(y, m) {
		return 0, false
	}
	return daysFromCivil(y, m, d), true
}

// parseMillis reads "2006-01-02T15:04:05.000Z" as milliseconds since 1970, UTC.
func parseMillis(s string) (millis int64, ok bool) {
	if len(s) != millisLength || s[10] != 'T' || s[23] != 'Z' {
		return 0, false
	}
	return parseDateTime(s)
}

// parseSpaced reads "2006-01-02 15:04:05.000" as milliseconds since 1970, UTC.
func parseSpaced(s string) (millis int64, ok bool) {
	if len(s) != spacedLength || s[10] != ' ' {
		return 0, false
	}
	return parseDateTime(s)
}

func parseDateTime(s string) (millis int64, ok bool) {
	if s[13] != ':' || s[16] != ':' || s[19] != '.' || s[20]-'0' > 9 {
		return 0, false
	}
	days, ok0 := parseDate(s[:dateLength])
	hour, ok1 := twoDigits(s[11:])
	minute, ok2 := twoDigits(s[14:])
	second, ok3 := twoDigits(s[17:])
	cents, ok4 := twoDigits(s[21:])
	if !ok0 || !ok1 || !ok2 || !ok3 || !ok4 || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	return days*millisPerDay + ((hour*60+minute)*60+second)*1000 + int64(s[20]-'0')*100 + cents, true
}

func twoDigits(s string) (int64, bool) {
	a, b := s[0]-'0', s[1]-'0'
	return int64(a)*10 + int64(b), a <= 9 && b <= 9
}

// The years 0000 to 9999, those of four digits, in days and milliseconds since 1970.
const (
	minDay    = -719528
	maxDay    = 2932896
	minMillis = minDay * millisPerDay
	maxMillis = (maxDay+1)*millisPerDay - 1
)

// appendDate is the reverse of parseDate; days is within minDay and maxDay.
func appendDate(dst []byte, days int64) []byte {
	y, m, d := civilFromDays(days)
	dst = appendTwo(appendTwo(dst, y/100), y%100)
	dst = appendTwo(append(dst, '-'), m)
	return appendTwo(append(dst, '-'), d)
}

// appendDateTime is the reverse of parseDateTime; millis is within minMillis and
// maxMillis.
func appendDateTime(dst []byte, millis int64, between byte) []byte {
	days := millis / millisPerDay
	if millis%millisPerDay < 0 {
		days--
	}
	rest := millis - days*millisPerDay
	dst = append(appendDate(dst, days), between)
	dst = append(appendTwo(dst, rest/3_600_000), ':')
	dst = append(appendTwo(dst, rest/60_000%60), ':')
	dst = append(appendTwo(dst, rest/1000%60), '.')
	return appendTwo(append(dst, byte('0'+rest%1000/100)), rest%100)
}

func appendTwo(dst []byte, n int64) []byte {
	return append(dst, byte('0'+n/10), byte('0'+n%10))
}

func daysIn(year, month int64) int64 {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// daysFromCivil and civilFromDays are Howard Hinnant's algorithms ("chrono-compatible
// low-level date algorithms"), proleptic Gregorian, as package time counts.
func daysFromCivil(y, m, d int64) int64 {
	if m <= 2 {
		y--
		m += 12
	}
	era := floorDiv(y, 400)
	yearOfEra := y - era*400
	dayOfYear := (153*(m-3)+2)/5 + d - 1
	return era*146097 + yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear - 719468
}

func civilFromDays(days int64) (y, m, d int64) {
	days += 719468
	era := floorDiv(days, 146097)
	dayOfEra := days - era*146097
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/146096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	mp := (5*dayOfYear + 2) / 153
	d = dayOfYear - (153*mp+2)/5 + 1
	y = yearOfEra + era*400
	if m = mp + 3; m > 12 {
		m, y = m-12, y+1
	}
	return y, m, d
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
