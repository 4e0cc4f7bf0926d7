package openapi_test

import (
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/billingapi"
	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/test/spectest"
	"github.com/duesday/duesday/internal/web"
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
	for _, id := range []string{"createEndpoint", "listEndpoints", "updateEndpoint", "deleteEndpoint", "rotateEndpoint", "listDeliveries",
		"replayDeliveries", "listAccounts", "listSubscriptions", "listHistory"} { // may be without a route yet
		if !slices.ContainsFunc(routes, func(r web.Route) bool { return r.Operation == id }) {
			routes = append(routes, spectest.New(t).Route(id))
		}
	}
	spectest.New(t).Routes(t, routes, true)
}
