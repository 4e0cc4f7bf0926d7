package config_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/config"
)

func TestPolicy(t *testing.T) {
	env := map[string]string{config.EnvReceiptMonths: "0", config.EnvRetryDays: "1, 2,60", config.EnvCatchUp: "24"}
	got, err := config.New(config.Flags{}, environment(env))
	want := []billing.Given{{Source: "DUESDAY_RECEIPT_MONTHS", Name: "receipt-months", Text: "0"},
		{Source: "DUESDAY_RETRY_DAYS", Name: "retry-days", Text: "1,2,60"},
		{Source: "DUESDAY_CATCH_UP", Name: "catch-up", Text: "24"}}
	if err != nil || !reflect.DeepEqual(got.Given, want) {
		t.Errorf("environment: %+v, %v; want %+v", got.Given, err, want)
	}
	settings := billing.DefaultSettings()
	settings.ReceiptMonths, settings.RetryDays, settings.CatchUp = 0, []int{1, 2, 60}, 24
	if got := got.Settings(); !reflect.DeepEqual(got, settings) {
		t.Errorf("environment: %+v; want %+v", got, settings)
	}
	got, err = config.New(config.Flags{ReceiptMonths: "12", RetryDays: "none", CatchUp: "1"}, environment(env))
	settings.ReceiptMonths, settings.RetryDays, settings.CatchUp = 12, []int{}, 1
	if got := got.Settings(); err != nil || !reflect.DeepEqual(got, settings) {
		t.Errorf("flags: %+v, %v; want %+v: no retry must not be nil, which is billing's default", got, err, settings)
	}
	if got.Given[1].Source != "--retry-days" {
		t.Errorf("flags: %+v; want the flag, which wins", got.Given)
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
