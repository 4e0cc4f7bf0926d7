// Package smtp sends messages to a mail server over TLS or STARTTLS, or without encryption to a server on
// the same machine.
//
// A Bounce means that the server permanently refused an address. Every other failure is retryable: a
// temporary refusal, a refused client or sender, or a lost or slow connection. If the connection is lost
// after the whole message was sent and before the reply, the message may have arrived. The outbox then
// sends it again with the same Message-ID.
//
// The package does not write messages, and does not decide when to send or retry them: packages mail
// and outbox do.
package smtp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"github.com/duesday/duesday/internal/secret"
)

// A Server is where mail is handed over.
type Server struct {
	Host     string
	Port     int
	User     string      // "": it asks for none
	Password secret.Text // of the user

	Implicit bool // TLS from the first byte; else by STARTTLS, or not at all on this machine
	TLS      *tls.Config
	Dial     func(ctx context.Context, network, address string) (net.Conn, error) // nil: the network's
}

// The ports of a Server whose address has none.
const (
	implicitPort = 465
	submitPort   = 587
)

// form is the right address, for errors, which never repeat a wrong one: it may hold a password.
const form = "must be smtps://USER@HOST:465, or smtp://USER@HOST:587 for a server with STARTTLS"

// Parse reads the address of a server. The errors say what would be right.
func Parse(text string) (*Server, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "smtps" && u.Scheme != "smtp") || u.Hostname() == "" || u.RawQuery != "" ||
		u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return nil, errors.New("the mail server address " + form)
	}
	if _, has := u.User.Password(); has {
		return nil, errors.New("the mail server address must not contain the password; it " + form)
	}
	s := &Server{Host: u.Hostname(), Port: submitPort, User: u.User.Username(), Implicit: u.Scheme == "smtps"}
	if s.Implicit {
		s.Port = implicitPort
	}
	if text := u.Port(); text != "" {
		if s.Port, err = strconv.Atoi(text); err != nil || s.Port < 1 || s.Port > 65535 {
			return nil, errors.New("the mail server address must have a port from 1 to 65535")
		}
	}
	return s, nil
}

// CheckPassword returns an error if there is a user without a password, or a password without a user.
func (s *Server) CheckPassword() error {
	switch {
	case s.User != "" && s.Password.IsZero():
		return fmt.Errorf("the password of the mail server's user %s is not set", s.User)
	case s.User == "" && !s.Password.IsZero():
		return errors.New("a password is set, but the mail server address has no user; it " + form)
	}
	return nil
}

// String returns the server's address, without the user.
func (s *Server) String() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// clear reports whether mail may go to the server without TLS: it is on this machine.
func (s *Server) clear() bool {
	ip, err := netip.ParseAddr(s.Host)
	return !s.Implicit && (s.Host == "localhost" || err == nil && ip.IsLoopback())
}

// The limits of the steps. A server may take its time to answer a whole message.
const (
	dialLimit    = 30 * time.Second // to connect, with the handshake and the log-in
	commandLimit = 30 * time.Second
	messageLimit = 2 * time.Minute
)

// A conn is a connection that takes messages. It is used by one goroutine at a time.
type conn struct {
	net    net.Conn
	client *smtp.Client
	used   bool // it has taken a message
}

// within does a step in at most the limit. At its end, or that of ctx, the connection is closed.
func within(ctx context.Context, limit time.Duration, c net.Conn, step func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	err := step()
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("the server did not answer within %s: %w", limit, ctx.Err())
	}
	return err
}

// connect makes a connection that is ready for messages of a client that calls itself by the name.
func (s *Server) connect(ctx context.Context, limit time.Duration, name string) (_ *conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dial := s.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	raw, err := dial(ctx, "tcp", s.String())
	if err != nil {
		return nil, err
	}
	c := &conn{net: raw}
	err = within(ctx, limit, raw, func() error { return s.greet(ctx, c, name) })
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return c, nil
}

// greet goes from a connection to one that is encrypted and logged in.
func (s *Server) greet(ctx context.Context, c *conn, name string) (err error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.TLS != nil {
		config = s.TLS.Clone()
	}
	config.ServerName = s.Host
	over := c.net
	if s.Implicit {
		encrypted := tls.Client(c.net, config)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return err
		}
		over = encrypted
	}
	if c.client, err = smtp.NewClient(over, s.Host); err != nil {
		return err
	}
	if err := c.client.Hello(name); err != nil {
		return err
	}
	if !s.Implicit && !s.clear() {
		if offered, _ := c.client.Extension("STARTTLS"); !offered {
			return errors.New("the server does not offer STARTTLS, and Duesday sends unencrypted mail only within this machine")
		}
		if err := c.client.StartTLS(config); err != nil {
			return err
		}
	}
	if s.User == "" {
		return nil
	}
	err = c.client.Auth(s.auth(c.client))
	if reply, ok := errors.AsType[*textproto.Error](err); ok { // its text may repeat what it was sent
		return fmt.Errorf("the server rejected the login with code %d", reply.Code)
	}
	return err
}

// auth returns the best way to log in that the server offers, or PLAIN.
func (s *Server) auth(c *smtp.Client) smtp.Auth {
	_, list := c.Extension("AUTH")
	offered := strings.Fields(strings.ToUpper(list))
	password := s.Password.Reveal()
	switch {
	case slices.Contains(offered, "SCRAM-SHA-256"):
		return smtp.ScramSHA256Auth(s.User, password)
	case slices.Contains(offered, "LOGIN") && !slices.Contains(offered, "PLAIN"):
		return smtp.LoginAuth(s.User, password, s.Host, s.clear())
	}
	return smtp.PlainAuth("", s.User, password, s.Host, s.clear())
}

// A Bounce is the server's refusal of an address for good. It is an outbox.ErrPermanent.
type Bounce struct{ Code string } // 550 5.1.1

// bounce returns the Bounce of a refused recipient, or nil if the refusal may be of us, of our sender
// or of this moment. A bare 550 says nothing of what it refuses: it is of the address only if the
// server takes mail from us for others.
func bounce(err error, takesOthers bool) *Bounce {
	reply, ok := errors.AsType[*textproto.Error](err)
	if !ok || reply.Code < 500 {
		return nil
	}
	enhanced, _, _ := strings.Cut(reply.Msg, " ")
	switch parts := strings.Split(enhanced, "."); {
	case len(parts) != 3 || parts[0] != "5":
		if reply.Code != 550 || !takesOthers {
			return nil
		}
		enhanced = ""
	case enhanced == "5.1.7" || enhanced == "5.1.8": // the sender's address
		return nil
	case parts[1] != "1" && enhanced != "5.2.1" && enhanced != "5.4.1":
		return nil
	}
	return &Bounce{strings.TrimSpace(strconv.Itoa(reply.Code) + " " + enhanced)}
}
