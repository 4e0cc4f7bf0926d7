package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// DefaultKeyLife is how long the sandbox remembers an idempotency key, which is what Stripe
// promises.
const DefaultKeyLife = 24 * time.Hour

// Options configure the sandbox. The zero value configures no faults. Each rate is a probability
// per call, from 0 to 1. Their sum is at most 1, because a call has at most one fault.
type Options struct {
	Now     func() time.Time // clock of the ledger and its keys; nil: time.Now
	Latency time.Duration    // of every call, before it is executed; passes on the real clock
	KeyLife time.Duration    // 0: DefaultKeyLife

	UnknownRate float64 // done, but the answer is lost: ErrUnknown
	LostRate    float64 // not done, ErrUnknown
	BusyRate    float64 // not done, ErrNotExecuted
	CachedRate  float64 // not done, ErrUnknown, and the key answers ErrUnknown for KeyLife
	Seed        uint64  // the same seed and order of calls give the same fates
}

const scheme = "sandbox:"

// Parse reads sandbox:FILE?PARAMETERS. FILE is a path as it stands, empty for a ledger
// in memory. The parameters are latency and keylife (durations such as 200ms), unknown,
// lost, busy and cached500 (rates from 0 to 1), and seed (a whole number).
func Parse(text string) (file string, o Options, err error) {
	rest, ok := strings.CutPrefix(text, scheme)
	if !ok || strings.Contains(rest, "://") || strings.HasPrefix(rest, "//") {
		return "", Options{}, fmt.Errorf("processor %q: must be sandbox:FILE, where FILE is a path, or sandbox: for a "+
			"ledger in memory", text)
	}
	file, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	for name, list := range values {
		if len(list) > 1 {
			err = cmp.Or(err, fmt.Errorf("parameter %s is given %d times", name, len(list)))
		}
		err = cmp.Or(err, o.set(name, list[0]))
	}
	if err = cmp.Or(err, o.check()); err != nil {
		return "", Options{}, fmt.Errorf("processor %q: %w", text, err)
	}
	return file, o, nil
}

const knownParameters = "busy, cached500, keylife, latency, lost, seed, unknown"

func (o *Options) set(name, value string) (err error) {
	want := "a rate from 0 to 1, such as 0.01"
	switch name {
	case "unknown", "lost", "busy", "cached500":
		for _, r := range o.rates() {
			if r.name == name {
				*r.p, err = strconv.ParseFloat(value, 64)
			}
		}
	case "latency":
		want = "a duration such as 200ms"
		o.Latency, err = time.ParseDuration(value)
	case "keylife":
		want = "a duration such as 24h"
		o.KeyLife, err = time.ParseDuration(value)
	case "seed":
		want = "a whole number from 0"
		o.Seed, err = strconv.ParseUint(value, 10, 64)
	default:
		return fmt.Errorf("unknown parameter %q; known: %s", name, knownParameters)
	}
	if err != nil {
		return fmt.Errorf("parameter %s: must be %s (got %q); known parameters: %s", name, want, value, knownParameters)
	}
	return nil
}

// A rate is one fault's.
type rate struct {
	name string
	p    *float64
	fate fate
}

func (o *Options) rates() [4]rate {
	return [...]rate{{"busy", &o.BusyRate, busy}, {"lost", &o.LostRate, lost}, {"cached500", &o.CachedRate, cached},
		{"unknown", &o.UnknownRate, unknown}}
}

func (o *Options) check() error {
	sum := 0.0
	for _, r := range o.rates() {
		if !(*r.p >= 0 && *r.p <= 1) { // NaN fails too
			return fmt.Errorf("parameter %s: must be a rate from 0 to 1 (got %v)", r.name, *r.p)
		}
		sum += *r.p
	}
	switch {
	case sum > 1+1e-9:
		return fmt.Errorf("parameters unknown, lost, busy and cached500 must add up to at most 1 (got %v)", sum)
	case o.Latency < 0:
		return errors.New("parameter latency: must not be negative")
	case o.KeyLife < 0:
		return errors.New("parameter keylife: must not be negative")
	}
	return nil
}
