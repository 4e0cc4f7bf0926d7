package smtp

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/mail"
	"github.com/duesday/duesday/internal/secret"
)

const host = "mail.example.com"

// certificates are of the host, for the server and for who trusts it.
var certificates = sync.OnceValues(func() (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	if c, err = x509.ParseCertificate(der); err != nil {
		panic(err)
	}
	pool.AddCert(c)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
})

// A received is a message that the mailServer has taken.
type received struct {
	from, to string
	message  string
}

// A mailServer is a real mail server whose answers a test scripts. A hook may return an error, block,
// or close the connection.
type mailServer struct {
	address string
	implicit, noTLS,
	noPlain bool

	mu    sync.Mutex
	mail  []received // guarded by mu, as are the others
	conns int
	users []string
	hook  func(c *smtp.Conn, step, address string) error
}

// start serves until the end of the test.
func (m *mailServer) start(t *testing.T) *mailServer {
	t.Helper()
	certificate, _ := certificates()
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.address = l.Addr().String()
	s := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		if err := m.do(c, "greeting", ""); err != nil {
			return nil, err
		}
		return &session{mailServer: m, conn: c}, nil
	}))
	s.Domain, s.AllowInsecureAuth, s.EnableSMTPUTF8 = host, true, true
	s.ErrorLog = log.New(io.Discard, "", 0)
	switch {
	case m.implicit:
		l = tls.NewListener(l, config)
	case !m.noTLS:
		s.TLSConfig = config
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(&counter{l, m}) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return m
}

// A counter counts the connections.
type counter struct {
	net.Listener
	m *mailServer
}

func (l *counter) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.m.mu.Lock()
		l.m.conns++
		l.m.mu.Unlock()
	}
	return c, err
}

// at returns the server as a setting names it.
func (m *mailServer) at(t *testing.T, url string) *Server {
	t.Helper()
	s, err := Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	_, pool := certificates()
	s.TLS = &tls.Config{RootCAs: pool}
	s.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, m.address)
	}
	return s
}

func (m *mailServer) do(c *smtp.Conn, step, address string) error {
	m.mu.Lock()
	hook := m.hook
	m.mu.Unlock()
	if hook == nil {
		return nil
	}
	return hook(c, step, address)
}

func (m *mailServer) script(hook func(c *smtp.Conn, step, address string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hook = hook
}

func (m *mailServer) got() ([]received, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.mail), m.conns
}

type session struct {
	*mailServer
	conn     *smtp.Conn
	from, to string
}

func (s *session) Reset()        { s.from, s.to = "", "" }
func (s *session) Logout() error { return nil }

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.from != "" {
		return &smtp.SMTPError{Code: 503, EnhancedCode: smtp.EnhancedCode{5, 5, 1}, Message: "a mail within a mail"}
	}
	if err := s.do(s.conn, "MAIL", from); err != nil {
		return err
	}
	s.from = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	return s.do(s.conn, "RCPT", to)
}

func (s *session) Data(r io.Reader) error {
	if err := s.do(s.conn, "DATA", s.to); err != nil {
		return err
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.mail = append(s.mail, received{s.from, s.to, string(b)})
	s.mu.Unlock()
	return s.do(s.conn, "taken", s.to)
}

func (s *session) AuthMechanisms() []string {
	if s.noPlain {
		return []string{sasl.Login}
	}
	return []string{sasl.Plain, sasl.Login}
}

func (s *session) Auth(mechanism string) (sasl.Server, error) {
	check := func(user, password string) error {
		if user != "ada" || password != "s3cret" {
			return smtp.ErrAuthFailed
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.users = append(s.users, mechanism+" "+user)
		return nil
	}
	if mechanism == sasl.Login {
		return &loginServer{check: check}, nil
	}
	return sasl.NewPlainServer(func(_, user, password string) error { return check(user, password) }), nil
}

// loginServer is the server's side of LOGIN, which go-sasl has no more.
type loginServer struct {
	check func(user, password string) error
	user  *string
}

func (l *loginServer) Next(response []byte) (challenge []byte, done bool, err error) {
	switch {
	case response == nil:
		return []byte("Username:"), false, nil
	case l.user == nil:
		l.user = new(string(response))
		return []byte("Password:"), false, nil
	}
	return nil, true, l.check(*l.user, string(response))
}

func writer(t *testing.T) *mail.Writer {
	t.Helper()
	templates, err := mail.NewTemplates("")
	if err != nil {
		t.Fatal(err)
	}
	w, err := mail.NewWriter(templates, settings.Settings{Sender: "Ada's Gym <billing@gym.example>"})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func sender(t *testing.T, s *Server) *Sender {
	t.Helper()
	out := NewSender(s, writer(t))
	t.Cleanup(out.Close)
	return out
}

func TestParse(t *testing.T) {
	for text, want := range map[string]Server{
		"smtps://ada@mail.example.com:465":              {Host: host, Port: 465, User: "ada", Implicit: true},
		"smtps://mail.example.com":                      {Host: host, Port: 465, Implicit: true},
		"smtp://mail.example.com":                       {Host: host, Port: 587},
		"smtp://ada%40gym.example@mail.example.com:25/": {Host: host, Port: 25, User: "ada@gym.example"},
		"smtp://[::1]:1025":                             {Host: "::1", Port: 1025},
	} {
		got, err := Parse(text)
		if err != nil || got.Host != want.Host || got.Port != want.Port || got.User != want.User ||
			got.Implicit != want.Implicit {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "mail.example.com", "http://mail.example.com", "smtp://", "smtp://h:0", "smtp://h:99999",
		"smtp://h/path", "smtp://h?x=1", "smtp://h#x", "smtps://ada:hunter2@mail.example.com", "smtps://ada:hunter2@%zz",
		"smtps://ada:@mail.example.com"} {
		if s, err := Parse(text); err == nil {
			t.Errorf("%q is taken: %+v", text, s)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
	for _, s := range []Server{{User: "ada"}, {Password: secret.New("x")}} {
		if s.CheckPassword() == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}

func TestClearOnThisMachineAlone(t *testing.T) {
	for name, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "127.8.0.1": true, "::1": true,
		host: false, "10.0.0.1": false, "localhost.example.com": false, "192.0.2.1": false, "0.0.0.0": false} {
		if got := (&Server{Host: name}).clear(); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}

func TestWaysIn(t *testing.T) {
	tests := map[string]struct {
		server   *mailServer
		url      string
		password string
		user     string
		want     string // in the error; "": the mail arrives
	}{
		"TLS":                    {&mailServer{implicit: true}, "smtps://ada@" + host, "s3cret", "PLAIN ada", ""},
		"TLS, no user":           {&mailServer{implicit: true}, "smtps://" + host, "", "", ""},
		"STARTTLS":               {&mailServer{}, "smtp://ada@" + host, "s3cret", "PLAIN ada", ""},
		"LOGIN alone":            {&mailServer{noPlain: true}, "smtp://ada@" + host, "s3cret", "LOGIN ada", ""},
		"clear on this machine":  {&mailServer{noTLS: true}, "smtp://127.0.0.1", "", "", ""},
		"clear, with a user":     {&mailServer{noTLS: true}, "smtp://ada@localhost", "s3cret", "PLAIN ada", ""},
		"clear elsewhere":        {&mailServer{noTLS: true}, "smtp://ada@" + host, "s3cret", "", "STARTTLS"},
		"wrong password":         {&mailServer{}, "smtp://ada@" + host, "hunter2", "", "535"},
		"name of another":        {&mailServer{implicit: true}, "smtps://other.example.com", "", "", "certificate"},
		"name behind STARTTLS":   {&mailServer{}, "smtp://other.example.com", "", "", "certificate"},
		"TLS where there is no":  {&mailServer{noTLS: true}, "smtps://" + host, "", "", "tls"},
		"nobody trusts the cert": {&mailServer{}, "smtp://" + host, "", "", "certificate"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.server.start(t)
			at := tt.server.at(t, tt.url)
			if name == "nobody trusts the cert" {
				at.TLS = nil
			}
			if tt.password != "" {
				at.Password = secret.New(tt.password)
			}
			e := mail.Sample("receipt", "en", "ada@example.com", time.Now())
			err := sender(t, at).Deliver(t.Context(), e)
			got, _ := tt.server.got()
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) || len(got) > 0 || len(tt.server.users) > 0 {
					t.Errorf("%v, and %d mails; want an error with %q", err, len(got), tt.want)
				}
				if _, bounced := errors.AsType[*Bounce](err); bounced || (err != nil && tt.password != "" && strings.Contains(
					err.Error(), tt.password)) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || len(got) != 1 || got[0].from != "billing@gym.example" || got[0].to != "ada@example.com" {
				t.Fatalf("%v, %+v", err, got)
			}
			m, err := writer(t).Message(e)
			if err != nil || !bytes.Equal([]byte(got[0].message), m.Bytes) {
				t.Errorf("%v: arrived as\n%s\nwant\n%s", err, got[0].message, m.Bytes)
			}
			if users := strings.Join(tt.server.users, ","); users != tt.user {
				t.Errorf("logged in as %q, want %q", users, tt.user)
			}
		})
	}
}
