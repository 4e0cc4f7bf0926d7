package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
)

// everyCall makes each call of a processor once and yields its error.
func everyCall(t *testing.T, p billing.Processor, each func(op string, err error)) {
	t.Helper()
	_, err := p.Open(t.Context(), request(t, 1, 0, "pm_card_visa"))
	each(OpOpen, err)
	_, err = p.Confirm(t.Context(), billing.ConfirmRequest{Key: "k", Ref: "pi_x", Method: "pm_card_visa"})
	each(OpConfirm, err)
	_, err = p.Lookup(t.Context(), "pi_x")
	each(OpLookup, err)
	_, err = p.Cancel(t.Context(), "pi_x")
	each(OpCancel, err)
	err = nil
	for _, err = range p.List(t.Context(), billing.ListRequest{}) {
		continue
	}
	each(OpList, err)
}

func TestServer_EveryErrorIsItself(t *testing.T) {
	for _, want := range []error{billing.ErrUnknown, billing.ErrNotExecuted, billing.ErrInvalid, billing.ErrRefused,
		billing.ErrAccountRefused, billing.ErrNoIntent} {
		s := served(t, openSandbox(t, "", Options{Hook: func(string, Phase) error { return want }}))
		everyCall(t, s, func(op string, err error) {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", op, err, want)
			}
		})
	}
	s := served(t, openSandbox(t, "", Options{Hook: func(string, Phase) error { return errors.New("odd") }}))
	everyCall(t, s, func(op string, err error) {
		if !errors.Is(err, billing.ErrUnknown) || !strings.Contains(err.Error(), "odd") {
			t.Errorf("%s: %v, want ErrUnknown", op, err)
		}
	})
}

func TestServer_Faults(t *testing.T) {
	for _, x := range []struct {
		o    Options
		want error
		done string
	}{
		{Options{UnknownRate: 1}, billing.ErrUnknown, "opened"},
		{Options{LostRate: 1}, billing.ErrUnknown, ""},
		{Options{CachedRate: 1}, billing.ErrUnknown, ""},
		{Options{BusyRate: 1}, billing.ErrNotExecuted, ""},
	} {
		s := served(t, openSandbox(t, "", x.o))
		everyCall(t, s, func(op string, err error) {
			if !errors.Is(err, x.want) {
				t.Errorf("%+v, %s: %v, want %v", x.o, op, err, x.want)
			}
		})
		wantOutcomes(t, s, x.done)
	}
}

// A list whose answer is lost has a part and then the error, as without a server.
func TestServer_ListLostHalfway(t *testing.T) {
	box := openSandbox(t, "", Options{})
	for period := range 4 {
		pay(t, box, period)
	}
	box.fates = newFates(&Options{UnknownRate: 1})
	var errs []error
	for _, err := range served(t, box).List(t.Context(), billing.ListRequest{}) {
		errs = append(errs, err)
	}
	if len(errs) != 3 || errs[0] != nil || errs[1] != nil || !errors.Is(errs[2], billing.ErrUnknown) {
		t.Errorf("%v, want two charges and ErrUnknown", errs)
	}
}

func TestServer_RefusesWhatIsNoRequest(t *testing.T) {
	box := openSandbox(t, "", Options{})
	server := httptest.NewServer(Handler(box))
	defer server.Close()
	form, err := json.Marshal(formOfOpen(request(t, 1, 0, "pm_card_visa")))
	if err != nil {
		t.Fatal(err)
	}
	good := string(form)
	for _, x := range []struct {
		name, method, path, kind, body string
		status                         int
		want                           string
	}{
		{"another member", "POST", pathOpen, jsonType, strings.Replace(good, `{`, `{"color":"red",`, 1), 400,
			`unknown field \"color\"`},
		{"two objects", "POST", pathOpen, jsonType, good + good, 400, "more follows"},
		{"a half", "POST", pathOpen, jsonType, good[:20], 400, "one JSON object"},
		{"nothing", "POST", pathOpen, jsonType, "", 400, "one JSON object"},
		{"no UTF-8", "POST", pathOpen, jsonType, strings.Replace(good, "pm_", "\xff", 1), 400, "UTF-8"},
		{"too much", "POST", pathOpen, jsonType, good + strings.Repeat(" ", maxBody), 400, "too large"},
		{"no content type", "POST", pathOpen, "", good, 400, jsonType},
		{"a page's content type", "POST", pathOpen, "text/plain", good, 400, jsonType},
		{"no such currency", "POST", pathOpen, jsonType, strings.Replace(good, "EUR", "XXX", 1), 400, "no currency"},
		{"no such amount", "POST", pathOpen, jsonType, strings.Replace(good, "12.99", "12.999", 1), 400, "12.999"},
		{"nothing to pay", "POST", pathOpen, jsonType, strings.Replace(good, "12.99", "0", 1), 400, "more than zero"},
		{"no key", "POST", pathConfirm, jsonType, `{"ref":"pi","method":"pm"}`, 400, "idempotency key"},
		{"no such intent", "POST", pathCancel, jsonType, `{"ref":"pi"}`, 404, "no_intent"},
		{"no instant", "GET", pathSuccesses + "?since=yesterday", "", "", 400, "since must be"},
		{"no since", "GET", pathSuccesses, "", "", 400, "since must be"},
		{"another method", "GET", pathOpen, "", "", 405, ""},
		{"another path", "GET", "/", "", "", 404, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), x.method, server.URL+x.path, strings.NewReader(x.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", x.kind)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != x.status || !strings.Contains(string(text), x.want) {
			t.Errorf("%s: %s, %q, %v; want %d and %q", x.name, response.Status, text, err, x.status, x.want)
		}
	}
	wantOutcomes(t, box, "")
}

// A watched listener tells that it was closed.
type watched struct {
	net.Listener
	closed chan struct{}
}

func (l *watched) Close() error {
	defer close(l.closed)
	return l.Listener.Close()
}

func listenLocal(t *testing.T) *watched {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &watched{l, make(chan struct{})}
}

func TestServe_FinishesWhatHasBegun(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	box := openSandbox(t, "", Options{Hook: func(op string, p Phase) error {
		if op == OpOpen && p == Before {
			close(begun)
			<-goOn
		}
		return nil
	}})
	l := listenLocal(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	var log bytes.Buffer
	go func() { served <- Serve(ctx, l, box, slog.New(slog.NewTextHandler(&log, nil))) }()
	client := Connect("http://" + l.Addr().String())
	defer client.Close()
	opened := make(chan error, 1)
	go func() {
		_, err := client.Open(t.Context(), request(t, 1, 0, "pm_card_visa"))
		opened <- err
	}()
	<-begun
	stop()
	<-l.closed
	if _, err := client.Lookup(t.Context(), "pi"); !errors.Is(err, billing.ErrNotExecuted) {
		t.Errorf("after the stop: %v, want ErrNotExecuted", err)
	}
	close(goOn)
	if err := <-opened; err != nil {
		t.Errorf("what had begun: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	wantOutcomes(t, box, "opened")
	if log.Len() > 0 {
		t.Errorf("log: %s", &log)
	}
}

func TestServe_ListenerFails(t *testing.T) {
	l := listenLocal(t)
	l.Listener.Close()
	if err := Serve(t.Context(), l, openSandbox(t, "", Options{}), slog.New(slog.DiscardHandler)); !errors.Is(err,
		net.ErrClosed) {
		t.Errorf("%v, want the listener's error", err)
	}
}
