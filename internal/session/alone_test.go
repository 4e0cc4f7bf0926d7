package session

import (
	"context"
	"errors"
	"testing"

	"github.com/duesday/duesday/internal/status"
	"github.com/duesday/duesday/internal/store"
)

// A folder is a store whose claims are these, or cannot be asked for.
type folder struct {
	store.Store
	*store.Claims
	broken error
}

func (f *folder) Claim(ctx context.Context, name, by string) (<-chan struct{}, func(), error) {
	if f.broken != nil {
		return nil, nil, f.broken
	}
	return f.Claims.Claim(ctx, name, by)
}

// TestAlone: beside a serve, on a shared store, and if it is not known, a session is not alone. Asking claims nothing.
func TestAlone(t *testing.T) {
	f := &folder{Claims: new(store.Claims)}
	s := &Session{Store: f}
	for range 2 {
		if !s.Alone(t.Context()) {
			t.Error("not alone on a folder that nobody serves")
		}
	}
	s.Shared = true
	if s.Alone(t.Context()) {
		t.Error("alone on a shared store")
	}
	s.Shared, f.broken = false, errors.New("the socket does not reply")
	if s.Alone(t.Context()) {
		t.Error("alone, and it is not known")
	}
	f.broken = nil
	if _, _, err := f.Claim(t.Context(), status.ClaimName, "1 on here"); err != nil {
		t.Fatal(err)
	}
	if s.Alone(t.Context()) {
		t.Error("alone beside a serve")
	}
}
