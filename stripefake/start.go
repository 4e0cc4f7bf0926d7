package stripefake

import (
	"net"
	"net/http"
	"time"
)

// TB is Start's part of testing.TB.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// A Server is a Fake on a port of its own, with the values for a Stripe library.
type Server struct {
	*Fake
	URL           string // for the library's base address: http://127.0.0.1:PORT
	Key           string // the API key, in test mode
	WebhookSecret string // signs the webhooks of SendWebhooks
}

// The values of every Server. None of them is a secret.
const (
	startKey           = "sk_test_duesday"
	startWebhookSecret = "whsec_stripefake"
)

// Start starts a fake for one test, which stops when the test ends.
func Start(t TB) *Server {
	t.Helper()
	return StartWith(t, Options{})
}

// StartWith is Start with options. If they have keys, Server.Key is the first of them.
func StartWith(t TB, o Options) *Server {
	t.Helper()
	if err := o.Check(); err != nil {
		t.Fatalf("stripefake: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("stripefake: %v", err)
	}
	s := &Server{Fake: New(o), URL: "http://" + l.Addr().String(), Key: startKey, WebhookSecret: startWebhookSecret}
	if len(o.Keys) > 0 {
		s.Key = o.Keys[0].Secret
	}
	server := &http.Server{Handler: s.Fake, ReadHeaderTimeout: time.Minute}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = server.Serve(l) // it ends by Close
	}()
	t.Cleanup(func() {
		_ = server.Close() // the test has ended
		<-stopped
		_ = s.Close()
	})
	return s
}

// SendWebhooks sends the events of DefaultAccount, of every type and in both modes, to the
// URL from now on. They are signed with s.WebhookSecret. It may be called before the receiver
// listens: a refused webhook is sent again.
func (s *Server) SendWebhooks(url string) error {
	if err := CheckURL(url); err != nil {
		return err
	}
	s.api.AddWebhook(url, s.WebhookSecret, false)
	return nil
}
