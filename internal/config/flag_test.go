package config_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/config"
)

func TestPolicy(t *testing.T) {
	env := map[string]string{"DUESDAY_RECEIPT_MONTHS": "0", "DUESDAY_RETRY_DAYS": "1, 2,60", "DUESDAY_CATCH_UP": "24"}
	got, err := config.New(environment(nil), environment(env))
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
	got, err = config.New(environment(map[string]string{"receipt-months": "12", "retry-days": "none", "catch-up": "1"}), environment(env))
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
		flags map[string]string
		env   map[string]string
		want  string
	}{
		{map[string]string{"receipt-months": "-1"}, nil, `--receipt-months "-1": want 0 (kept for ever) to 1200`},
		{map[string]string{"receipt-months": "1201"}, nil, "--receipt-months"},
		{map[string]string{"receipt-months": "six"}, nil, "--receipt-months"},
		{map[string]string{"retry-days": "1,3,3"}, nil,
			`--retry-days "1,3,3": want at most 8 ascending days from 1 to 60 such as 1,3,5,7, or none`},
		{map[string]string{"retry-days": "0,1"}, nil, "--retry-days"},
		{map[string]string{"retry-days": "1,,2"}, nil, "--retry-days"},
		{map[string]string{"retry-days": "61"}, nil, "--retry-days"},
		{map[string]string{"retry-days": "none,1"}, nil, "--retry-days"},
		{map[string]string{"retry-days": "1,2,3,4,5,6,7,8,9"}, nil, "--retry-days"},
		{map[string]string{"catch-up": "0"}, nil, `--catch-up "0": want 1 to 24`},
		{map[string]string{"catch-up": "25"}, nil, "--catch-up"},
		{nil, map[string]string{"DUESDAY_RECEIPT_MONTHS": "x"}, `DUESDAY_RECEIPT_MONTHS "x"`},
		{nil, map[string]string{"DUESDAY_RETRY_DAYS": "x"}, `DUESDAY_RETRY_DAYS "x"`},
		{nil, map[string]string{"DUESDAY_CATCH_UP": "x"}, `DUESDAY_CATCH_UP "x"`},
	} {
		if _, err := config.New(environment(c.flags), environment(c.env)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v %v: %v, want %q first", c.flags, c.env, err, c.want)
		}
	}
	if _, err := config.New(environment(map[string]string{"retry-days": "1,2,3,4,5,6,7,8"}), environment(nil)); err != nil {
		t.Errorf("eight retry days: %v", err)
	}
}
