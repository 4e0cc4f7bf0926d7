package session

import (
	"reflect"
	"testing"

	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/config"
)

func TestPolicy_DefaultIsBillings(t *testing.T) {
	if got, want := policy(&config.Config{}),
		engine.DefaultConfig(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
