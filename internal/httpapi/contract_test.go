package httpapi_test

import (
	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/tracking"
)

// What the server needs a tracking.Service has.
var (
	_ httpapi.Inbox = (*tracking.Service)(nil)
	_ httpapi.Shop  = (*tracking.Service)(nil)

	_ httpapi.Record  = (*tracking.Service)(nil)
	_ httpapi.Backend = (*tracking.Service)(nil)
)
