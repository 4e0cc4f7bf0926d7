package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The bounds of the policy. They keep sums of dates within a calendar and a retry within
// the patience of card networks; nobody is known to want more.
const (
	maxReceiptMonths = 1200
	maxRetries       = 8
	maxRetryDay      = 60
	maxCatchUp       = 24
	maxActionDays    = 365
)

// noRetry is the word for no retry days: an empty text is no text at all.
const noRetry = "none"

// A Policy is how an installation charges: the retries, the catching up, how long receipts
// are kept. It has been checked; package billing takes it as it is.
type Policy struct {
	ReceiptMonths int   // until a receipt expires; 0: never
	RetryDays     []int // days after the first decline, ascending; empty and not nil: no retry
	CatchUp       int   // missed periods charged in one run before a subscription is parked
	ActionDays    int   // that a customer has to authenticate a payment before it has failed; 0: no end
}

// DefaultPolicy returns the policy of an installation that says nothing.
func DefaultPolicy() Policy {
	return Policy{ReceiptMonths: 6, RetryDays: []int{1, 3, 5, 7}, CatchUp: 3, ActionDays: 14}
}

// Flags returns the flags and their values that make this policy, without those that are
// the default.
func (p *Policy) Flags() []string {
	usual := DefaultPolicy()
	var flags []string
	if p.ReceiptMonths != usual.ReceiptMonths {
		flags = append(flags, "--receipt-months", strconv.Itoa(p.ReceiptMonths))
	}
	if !slices.Equal(p.RetryDays, usual.RetryDays) {
		days := make([]string, len(p.RetryDays))
		for i, d := range p.RetryDays {
			days[i] = strconv.Itoa(d)
		}
		text := strings.Join(days, ",")
		if text == "" {
			text = noRetry
		}
		flags = append(flags, "--retry-days", text)
	}
	if p.CatchUp != usual.CatchUp {
		flags = append(flags, "--catch-up", strconv.Itoa(p.CatchUp))
	}
	if p.ActionDays != usual.ActionDays {
		flags = append(flags, "--action-days", strconv.Itoa(p.ActionDays))
	}
	return flags
}

// newPolicy makes the policy of flags, environment and defaults. Its errors name the flag
// or the variable that is wrong, since a person may have forgotten that there is one.
func newPolicy(f Flags, env func(string) string) (Policy, error) {
	p := DefaultPolicy()
	for _, setting := range []struct {
		given, flag, name, want string
		set                     func(text string) bool
	}{
		{f.ReceiptMonths, "--receipt-months", EnvReceiptMonths, "0 (kept for ever) to " + strconv.Itoa(maxReceiptMonths),
			func(text string) bool { return number(&p.ReceiptMonths, text, 0, maxReceiptMonths) }},
		{f.RetryDays, "--retry-days", EnvRetryDays,
			fmt.Sprintf("at most %d ascending days from 1 to %d such as 1,3,5,7, or %s", maxRetries, maxRetryDay, noRetry), p.setRetryDays},
		{f.CatchUp, "--catch-up", EnvCatchUp, "1 to " + strconv.Itoa(maxCatchUp),
			func(text string) bool { return number(&p.CatchUp, text, 1, maxCatchUp) }},
		{f.ActionDays, "--action-days", EnvActionDays, "0 (for ever) to " + strconv.Itoa(maxActionDays),
			func(text string) bool { return number(&p.ActionDays, text, 0, maxActionDays) }},
	} {
		text, source := setting.given, setting.flag
		if text == "" {
			text, source = env(setting.name), setting.name
		}
		if text != "" && !setting.set(text) {
			return p, fmt.Errorf("%s %q: want %s", source, text, setting.want)
		}
	}
	return p, nil
}

func number(into *int, text string, least, most int) bool {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < least || n > most {
		return false
	}
	*into = n
	return true
}

func (p *Policy) setRetryDays(text string) bool {
	p.RetryDays = []int{}
	if strings.TrimSpace(text) == noRetry {
		return true
	}
	last := 0
	for part := range strings.SplitSeq(text, ",") {
		if !number(&last, part, last+1, maxRetryDay) || len(p.RetryDays) == maxRetries {
			return false
		}
		p.RetryDays = append(p.RetryDays, last)
	}
	return true
}
