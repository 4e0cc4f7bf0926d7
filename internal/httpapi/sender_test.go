package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
)

var _ poller.Sender = (*httpapi.Sender)(nil)

func TestSender(t *testing.T) {
	w := newWorld()
	server := w.serve(t)
	key := pollSecret
	o := httpapi.SenderOptions{Platform: server.URL + platformPath, Connect: server.URL + connectPath,
		Sign: func(_ bool, body []byte) string { return event.Sign(body, key, w.now) }}
	s, err := httpapi.NewSender(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, connect := range []bool{false, true} {
		if err := s.Send(t.Context(), connect, []byte(eventBody)); err != nil {
			t.Fatal(err)
		}
		all := w.origins()
		if got, want := all[len(all)-1], (tracking.Origin{Connect: connect, Source: tracking.FromPoll}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	fails := func(name string, status int, want string) {
		t.Helper()
		err := s.Send(t.Context(), false, []byte(eventBody))
		e, ok := errors.AsType[*httpapi.StatusError](err)
		if !ok || e.Status != status || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %d and %q", name, err, status, want)
		}
	}
	key = connectSecret
	fails("another secret", 400, "signature")
	key = pollSecret
	w.take = func(context.Context, []byte, tracking.Origin) (tracking.Verdict, error) {
		return tracking.Verdict{}, errors.New("down")
	}
	fails("down", 503, "try again")
	server.Close()
	if err := s.Send(t.Context(), false, []byte(eventBody)); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("no server: got %v", err)
	}
	o.Connect = ""
	if s, err = httpapi.NewSender(o); err != nil {
		t.Fatal(err)
	}
	if err := s.Send(t.Context(), true, nil); err == nil || !strings.Contains(err.Error(), "connected accounts") {
		t.Errorf("no endpoint: got %v", err)
	}
	for _, wrong := range []httpapi.SenderOptions{{}, {Platform: o.Platform}, {Sign: o.Sign},
		{Sign: o.Sign, Platform: "here"}, {Sign: o.Sign, Connect: "http://u:p@here"}} {
		if _, err := httpapi.NewSender(wrong); err == nil {
			t.Errorf("%+v was taken", wrong)
		}
	}
}

func TestSender_OtherServers(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		text   string
		want   string
	}{
		"html":     {502, "<html>bad\ngateway</html>", "the server answered 502 Bad Gateway"},
		"long":     {500, `{"error":"` + strings.Repeat("é", 1000) + `"}`, "é…"},
		"redirect": {301, "", "301"},
		"lines":    {400, `{"error":"a\nb whsec_abc"}`, "a b whsec_***"},
		"fine":     {204, "", ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(tt.status)
			if tt.text != "" {
				_, _ = w.Write([]byte(tt.text))
			}
		}))
		s, err := httpapi.NewSender(httpapi.SenderOptions{Platform: server.URL,
			Sign: func(bool, []byte) string { return "t=1,v1=00" }})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Send(t.Context(), false, nil)
		if (err == nil) != (tt.want == "") ||
			(err != nil && (!strings.Contains(err.Error(), tt.want) || len(err.Error()) > 400)) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
		server.Close()
	}
}
