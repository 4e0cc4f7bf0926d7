package api

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/test/apitest"
)

// A flaky transport answers with its status and page; with neither it hangs until the request is given up.
type flaky struct {
	status int
	page   string // "": as Stripe answers
}

func (f *flaky) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.status == 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	page := f.page
	if page == "" {
		page = `{"object":"account","id":"acct_1","error":{"type":"invalid_request_error"}}`
	}
	return &http.Response{StatusCode: f.status, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(page))}, nil
}

// TestClient_Silent: Stripe is silent since the first request that hung, or that it answered with
// an error of its own, or that something else answered; a refusal is an answer.
func TestClient_Silent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(flaky)
		c, err := New(Options{Key: secret.New(apitest.Key), Transport: f, Rate: MaxRate, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		ask := func(status int, silent bool) {
			t.Helper()
			f.status = status
			_, _, _ = c.Own(t.Context())
			want := time.Time{}
			if silent {
				want = begun
			}
			if got := c.Silent(); got.IsZero() != want.IsZero() || got.Sub(want).Abs() > time.Second {
				t.Errorf("status %d: silent since %s, want %s", status, got, want)
			}
		}
		ask(http.StatusOK, false)
		begun = time.Now()
		ask(0, true)
		ask(http.StatusServiceUnavailable, true)
		ask(http.StatusUnauthorized, false)
		begun = time.Now()
		ask(http.StatusInternalServerError, true)
		ask(http.StatusOK, false)
		begun, f.page = time.Now(), "<html>Please log in to this network</html>"
		ask(http.StatusOK, true)
		ask(http.StatusForbidden, true)
		f.page = ""
		ask(http.StatusForbidden, false)
		c.Close()
	})
}
