package openapi_test

import (
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/billingapi"
	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/test/spectest"
)

// The routes of both halves and openapi.json have the same operations, with the same scopes.
func TestRoutes(t *testing.T) {
	none := struct {
		httpapi.Shop
		httpapi.Record
		httpapi.Backend
	}{}
	tracking := httpapi.New(httpapi.Options{Shop: none, Record: none, Backend: none}).Routes()
	routes := slices.Concat(billingapi.Routes(billingapi.Options{}), tracking)
	spectest.New(t).Routes(t, routes, true)
}
