package config_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/config"
)

func TestPolicy(t *testing.T) {
	env := map[string]string{config.EnvReceiptMonths: "0", config.EnvRetryDays: "1, 2,60", config.EnvCatchUp: "24"}
	got, err := config.New(config.Flags{}, environment(env))
	want := config.Policy{ReceiptMonths: 0, RetryDays: []int{1, 2, 60}, CatchUp: 24, ActionDays: 14}
	if err != nil || !reflect.DeepEqual(got.Policy, want) {
		t.Errorf("environment: %+v, %v; want %+v", got.Policy, err, want)
	}
	got, err = config.New(config.Flags{ReceiptMonths: "12", RetryDays: "none", CatchUp: "1"}, environment(env))
	want = config.Policy{ReceiptMonths: 12, RetryDays: []int{}, CatchUp: 1, ActionDays: 14}
	if err != nil || !reflect.DeepEqual(got.Policy, want) {
		t.Errorf("flags: %+v, %v; want %+v: no retry must not be nil, which is billing's default", got.Policy, err, want)
	}
}

func TestPolicy_Refuses(t *testing.T) {
	for _, c := range []struct {
		flags config.Flags
		env   map[string]string
		want  string
	}{
		{config.Flags{ReceiptMonths: "-1"}, nil, `--receipt-months "-1": want 0 (kept for ever) to 1200`},
		{config.Flags{ReceiptMonths: "1201"}, nil, "--receipt-months"},
		{config.Flags{ReceiptMonths: "six"}, nil, "--receipt-months"},
		{config.Flags{RetryDays: "1,3,3"}, nil,
			`--retry-days "1,3,3": want at most 8 ascending days from 1 to 60 such as 1,3,5,7, or none`},
		{config.Flags{RetryDays: "0,1"}, nil, "--retry-days"},
		{config.Flags{RetryDays: "1,,2"}, nil, "--retry-days"},
		{config.Flags{RetryDays: "61"}, nil, "--retry-days"},
		{config.Flags{RetryDays: "none,1"}, nil, "--retry-days"},
		{config.Flags{RetryDays: "1,2,3,4,5,6,7,8,9"}, nil, "--retry-days"},
		{config.Flags{CatchUp: "0"}, nil, `--catch-up "0": want 1 to 24`},
		{config.Flags{CatchUp: "25"}, nil, "--catch-up"},
		{config.Flags{}, map[string]string{config.EnvReceiptMonths: "x"}, `DUESDAY_RECEIPT_MONTHS "x"`},
		{config.Flags{}, map[string]string{config.EnvRetryDays: "x"}, `DUESDAY_RETRY_DAYS "x"`},
		{config.Flags{}, map[string]string{config.EnvCatchUp: "x"}, `DUESDAY_CATCH_UP "x"`},
	} {
		if _, err := config.New(c.flags, environment(c.env)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v %v: %v, want %q first", c.flags, c.env, err, c.want)
		}
	}
	if _, err := config.New(config.Flags{RetryDays: "1,2,3,4,5,6,7,8"}, environment(nil)); err != nil {
		t.Errorf("eight retry days: %v", err)
	}
}

// TestPolicy_Flags holds that the flags make the policy again.
func TestPolicy_Flags(t *testing.T) {
	usual := config.DefaultPolicy()
	if got := usual.Flags(); len(got) != 0 {
		t.Errorf("flags of the default: %q", got)
	}
	p := config.Policy{ReceiptMonths: 0, RetryDays: []int{2, 4}, CatchUp: 9, ActionDays: 30}
	want := []string{"--receipt-months", "0", "--retry-days", "2,4", "--catch-up", "9", "--action-days", "30"}
	if got := p.Flags(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	p.RetryDays = []int{}
	if got := p.Flags(); got[3] != "none" {
		t.Errorf("no retry: %q", got)
	}
}
