package memstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/test/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T, tables []store.Table, now func() time.Time) store.Store {
		s, err := memstore.Open(tables, now)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

func TestOpen_BadTables(t *testing.T) {
	if s, err := memstore.Open([]store.Table{{Name: "t"}}, time.Now); !errors.Is(err, store.ErrInvalid) || s != nil {
		t.Fatalf("Open = %v, %v; want ErrInvalid", s, err)
	}
}
