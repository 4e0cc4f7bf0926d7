package api

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// momentOf reads a time of API v2. Libraries send the seconds of v1 too.
func momentOf(v any, param string) (int64, error) {
	s, _ := v.(string)
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.Unix(), nil
	}
	return shape.WholeOf(v, param)
}

// isV2 reports whether the path is of API v2.
func isV2(path string) bool { return strings.HasPrefix(path, "/v2/") }

// v2Codes are the codes of v2 errors, by status; the others have their kind.
var v2Codes = map[int]string{400: "invalid_fields", 401: "unauthenticated", 403: "forbidden", 404: "not_found",
	409: "idempotency_error", 429: "rate_limit_exceeded"}

// v2Error returns the error in the form of API v2.
func v2Error(e *shape.Error) object {
	message := e.Message
	if e.Status == http.StatusBadRequest && e.Param != "" {
		message = "Some fields in the request were invalid: '" + e.Param + ": " + e.Message + "'"
	}
	return object{"error": object{"code": cmp.Or(v2Codes[e.Status], e.Kind), "message": message}}
}
