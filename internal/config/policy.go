package config

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// The bounds of the policy. They keep dates within the calendar, and retries within the time
// that card networks allow.
const (
	maxReceiptMonths = 1200
	maxRetries       = 8
	maxRetryDay      = 60
	maxCatchUp       = 24
	maxActionDays    = 365
)

// noRetry is the value for no retry days: an empty text means the default.
const noRetry = "none"

// A Policy has the rules of an installation for retries, missed periods and receipts. New has
// checked it; package billing does not check it again.
type Policy struct {
	ReceiptMonths int   // until a receipt expires; 0: never
	RetryDays     []int // days after the first decline, ascending; empty and not nil: no retry
	CatchUp       int   // missed periods charged in one run before a subscription is parked
	ActionDays    int   // a customer has to authenticate a payment; 0: no limit
}

// DefaultPolicy returns the policy of an installation without settings of its own.
func DefaultPolicy() Policy {
	return Policy{ReceiptMonths: 6, RetryDays: []int{1, 3, 5, 7}, CatchUp: 3, ActionDays: 14}
}

// Flags returns the flags, with their values, for the settings other than the default.
func (p *Policy) Flags() []string {
	var flags []string
	given, usual := p.texts(), new(DefaultPolicy()).texts()
	for i, flag := range [...]string{"--receipt-months", "--retry-days", "--catch-up", "--action-days"} {
		if given[i] != usual[i] {
			flags = append(flags, flag, given[i])
		}
	}
	return flags
}

// texts returns the settings as they are given.
func (p *Policy) texts() [4]string {
	days := make([]string, len(p.RetryDays))
	for i, d := range p.RetryDays {
		days[i] = strconv.Itoa(d)
	}
	return [...]string{strconv.Itoa(p.ReceiptMonths), cmp.Or(strings.Join(days, ","), noRetry), strconv.Itoa(p.CatchUp),
		strconv.Itoa(p.ActionDays)}
}

// newPolicy returns the policy of flags, environment and defaults. Its errors name the wrong
// flag or variable, because a person may have forgotten that a variable is set.
func newPolicy(f Flags, env func(string) string) (Policy, error) {
	p := DefaultPolicy()
	for _, setting := range []struct {
		given, flag, name, want string
		set                     func(text string) bool
	}{
		{f.ReceiptMonths, "--receipt-months", EnvReceiptMonths, "0 (kept for ever) to " + strconv.Itoa(maxReceiptMonths),
			func(text string) bool { return number(&p.ReceiptMonths, text, 0, maxReceiptMonths) }},
		{f.RetryDays, "--retry-days", EnvRetryDays,
			fmt.Sprintf("at most %d ascending days from 1 to %d such as 1,3,5,7, or %s", maxRetries, maxRetryDay,
				noRetry), p.setRetryDays},
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
