package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/event"
)

// The paths of the webhook endpoints.
const (
	HookPath    = "/hooks/stripe"         // for events of the key's own account
	ConnectPath = "/hooks/stripe/connect" // for events of connected accounts
)

// pollLabel is fixed: every process with the same API key derives the same secret.
const pollLabel = "duesday: the poller's webhook secret"

// addHook opens an endpoint for Stripe if there are secrets, and for the poller if poll is set.
func (s *Server) addHook(path string, connect bool, secrets []secret.Text, poll secret.Text) {
	if len(secrets) > 0 {
		s.open = append(s.open, path)
	}
	if !poll.IsZero() {
		secrets = append(slices.Clone(secrets), poll)
	}
	if len(secrets) > 0 {
		s.hooks = append(s.hooks, httpapi.Hook{Path: path, Connect: connect, Secrets: secrets, Poll: poll})
	}
}

// NewSender returns the sender of a poller in another process than the server. It sends events to
// the server at the base, signed with the secret that both derive from the API key.
func NewSender(base string, apiKey secret.Text, now func() time.Time) (*httpapi.Sender, error) {
	return newSender(base, pollSecret(apiKey), now)
}

func newSender(base string, poll secret.Text, now func() time.Time) (*httpapi.Sender, error) {
	return httpapi.NewSender(httpapi.SenderOptions{Platform: base + HookPath, Connect: base + ConnectPath,
		Sign: func(_ bool, body []byte) string { return event.Sign(body, poll, now()) }})
}

// pollSecret derives the poller's signing secret from the API key. Without a key it is random.
func pollSecret(apiKey secret.Text) secret.Text {
	if apiKey.IsZero() {
		return secret.New("whsec_" + rand.Text())
	}
	mac := hmac.New(sha256.New, []byte(apiKey.Reveal()))
	mac.Write([]byte(pollLabel)) // a hash returns no error
	return secret.New("whsec_" + hex.EncodeToString(mac.Sum(nil)))
}

// LocalBase returns the URL at which this machine reaches a server at the address.
func LocalBase(at net.Addr) (string, error) {
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); ip.IsUnspecified() { // every address of this machine: localhost always works
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}
