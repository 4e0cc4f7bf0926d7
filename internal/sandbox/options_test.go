package sandbox

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]struct {
		file string
		o    Options
	}{
		"sandbox:":                         {},
		"sandbox:?seed=7":                  {"", Options{Seed: 7}},
		"sandbox:/var/lib/a b/ledger":      {"/var/lib/a b/ledger", Options{}},
		"sandbox:l.jsonl?latency=200ms":    {"l.jsonl", Options{Latency: 200 * time.Millisecond}},
		"sandbox:l?cached500=1&keylife=1h": {"l", Options{CachedRate: 1, KeyLife: time.Hour}},
		"sandbox:l?latency=1s&unknown=0.01&lost=0.02&busy=0.03&seed=9": {"l",
			Options{Latency: time.Second, UnknownRate: 0.01, LostRate: 0.02, BusyRate: 0.03, Seed: 9}},
	} {
		file, o, err := Parse(text)
		if err != nil || file != want.file || !reflect.DeepEqual(o, want.o) {
			t.Errorf("%s: %q, %+v, %v", text, file, o, err)
		}
	}
}

func TestParse_Wrong(t *testing.T) {
	for text, want := range map[string]string{
		"stripe:":                        "must be sandbox:FILE",
		"sandbox://ledger":               "must be sandbox:FILE",
		"sandbox:l?colour=red":           `unknown parameter "colour"; known: ` + knownParameters,
		"sandbox:l?lost=often":           "parameter lost: must be a rate",
		"sandbox:l?lost=":                "known parameters: " + knownParameters,
		"sandbox:l?lost=NaN":             "parameter lost: must be a rate from 0 to 1",
		"sandbox:l?busy=1.1":             "parameter busy: must be a rate from 0 to 1",
		"sandbox:l?unknown=-1":           "parameter unknown",
		"sandbox:l?unknown=0.6&lost=0.6": "must add up to at most 1",
		"sandbox:l?latency=200":          "parameter latency: must be a duration",
		"sandbox:l?latency=-1s":          "parameter latency: must not be negative",
		"sandbox:l?keylife=-1s":          "parameter keylife: must not be negative",
		"sandbox:l?seed=-1":              "parameter seed: must be a whole number",
		"sandbox:l?seed=1&seed=2":        "seed is given 2 times",
		"sandbox:l?%zz":                  "invalid URL escape",
	} {
		_, _, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(want, "FILE")) {
			t.Errorf("%s: %v, want %q in it", text, err, want)
		}
	}
}

func TestOpen_WrongOptions(t *testing.T) {
	for _, o := range []Options{{LostRate: 2}, {BusyRate: math.NaN()}, {Latency: -1}, {KeyLife: -1}} {
		if _, err := Open("", o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("sandbox:FILE?latency=200ms&unknown=0.01&lost=0.01&busy=0.02&seed=7")
	f.Fuzz(func(t *testing.T, text string) {
		if _, o, err := Parse(text); err == nil && o.check() != nil {
			t.Errorf("%q gives options that Open refuses", text)
		}
	})
}
