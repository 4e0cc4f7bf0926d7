package session

import (
	"reflect"
	"testing"

	"github.com/duesday/duesday/internal/billing/recipient"
	"github.com/duesday/duesday/internal/config"
)

func TestRecipients_DefaultIsTheProcessorsPages(t *testing.T) {
	if got, want := recipients(&config.Config{}, nil), (&recipient.Directory{}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
