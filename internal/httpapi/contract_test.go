package httpapi_test

import (
	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/tracking"
)

// What the server needs a tracking.Service has; and a Client is used in its place.
var (
	_ httpapi.Inbox    = (*tracking.Service)(nil)
	_ httpapi.Shop     = (*tracking.Service)(nil)
	_ httpapi.Ledger   = (*tracking.Service)(nil)
	_ httpapi.Registry = (*tracking.Service)(nil)
	_ httpapi.Shop     = (*httpapi.Client)(nil)
	_ httpapi.Ledger   = (*httpapi.Client)(nil)
	_ httpapi.Registry = (*httpapi.Client)(nil)
	_ httpapi.Backlog  = (*tracking.Service)(nil)
	_ httpapi.Backlog  = (*httpapi.Client)(nil)
)
