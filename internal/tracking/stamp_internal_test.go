package tracking

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestStamp checks that stamp and parseStamp agree with package time and the layout, for any time
// and any text.
func TestStamp(t *testing.T) {
	years := rapid.Int64Range(-62_135_596_800, 253_402_300_799) // 1 to 9999
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(years.Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds"))
		want := at.UTC().Format(stampLayout)
		if got := stamp(at); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		text := []byte(want)
		if rapid.Bool().Draw(t, "spoilt") {
			text[rapid.IntRange(0, len(text)-1).Draw(t, "at")] = rapid.SampledFrom([]byte("09:.TZx")).Draw(t, "by") // package time takes some spaces and signs
		}
		back, _ := time.Parse(stampLayout, string(text))
		if got := parseStamp(string(text)); !got.Equal(back) {
			t.Fatalf("%q: got %v, want %v", text, got, back)
		}
	})
	for _, text := range []string{"", "2020-01-01", "2020-01-01 01:02:03", "2020-01-01 01:02:03.4567"} {
		if got := parseStamp(text); !got.IsZero() {
			t.Errorf("%q: got %v, want none", text, got)
		}
	}
}
