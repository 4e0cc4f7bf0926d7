package main

import (
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/status"
	"github.com/duesday/duesday/internal/store"
)

// A sink is a mail server that refuses the addresses of nobody@ and keeps all other mail.
type sink struct {
	address string

	mu   sync.Mutex
	mail []string // guarded by mu

	held    chan struct{} // closed when the first mail has come; nil: none is held
	release chan struct{} // until then it has no answer
	first   sync.Once
}

func newSink(t *testing.T) *sink {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &sink{address: "smtp://" + l.Addr().String()}
	s := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return sinkSession{k}, nil }))
	s.ErrorLog = log.New(io.Discard, "", 0)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return k
}

type sinkSession struct{ *sink }

func (sinkSession) Reset()                               {}
func (sinkSession) Logout() error                        { return nil }
func (sinkSession) Mail(string, *smtp.MailOptions) error { return nil }
func (s sinkSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if strings.HasPrefix(to, "nobody@") {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "<" + to + "> unknown"}
	}
	return nil
}

func (s sinkSession) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if s.held != nil {
		if mine := false; true {
			s.first.Do(func() { mine = true })
			if mine {
				close(s.held)
				<-s.release
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mail = append(s.mail, strings.ReplaceAll(string(b), "=\r\n", ""))
	return err
}

// got returns the mail since the last call.
func (k *sink) got() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := k.mail
	k.mail = nil
	return list
}

func TestMail_BySMTP(t *testing.T) {
	c, k := newCLI(t), newSink(t)
	c.env["DUESDAY_SMTP"] = k.address
	c.create("1/1", "pm_card_visa", "--next-payment-date", today, "--payment-day", "15")
	c.must("account", "update", "1", "--email", "nobody@example.com", "--locale", "pt-BR")
	c.must("settings", "set", "sender=Ada's Gym <billing@gym.example>", "reply-to=help@gym.example")

	// The address is refused for good: the mail is given up at once, and the account shows it.
	r := c.run("run", "payments")
	contains(t, r.errors, "can never be delivered")
	dead := c.object(exitDone, "outbox", "list")["dead_letters"].([]any)
	if len(dead) != 1 || len(k.got()) > 0 {
		t.Fatalf("dead letters: %v", dead)
	}
	contains(t, c.must("account", "show", "1"), "nobody@example.com on 2026-03-15 (550 5.1.1)", "pt-BR")
	equal(t, "bounced", c.object(exitDone, "account", "show", "1")["bounced"], map[string]any{"email": "nobody@example.com",
		"code": "550 5.1.1", "at": "2026-03-15T10:30:00.000Z"})

	// Nothing is tried to a marked address.
	id := dead[0].(map[string]any)["id"].(string)
	c.must("outbox", "replay", id)
	c.run("outbox", "send")
	dead = c.object(exitDone, "outbox", "list")["dead_letters"].([]any)
	contains(t, dead[0].(map[string]any)["detail"].(string), "permanently refused the address of account 1 on 2026-03-15")

	// A new address takes the mark away.
	c.must("account", "update", "1", "--email", "ada@example.com")
	if b := c.object(exitDone, "account", "show", "1")["bounced"]; b != nil {
		t.Errorf("still marked: %v", b)
	}
	c.must("receipt", "refund", "1/1", "--period", "0")
	c.must("outbox", "send")
	mails := k.got()
	if len(mails) != 1 {
		t.Fatalf("mails: %q", mails)
	}
	contains(t, mails[0], "From: \"Ada's Gym\" <billing@gym.example>", "Reply-To: <help@gym.example>",
		"To: <ada@example.com>", "Reembolsamos US$=C2=A012,99", "text/html")
	if _, err := os.Stat(c.path("duesday-mail")); err == nil {
		t.Error("mail was written to the folder, too")
	}
	number := c.list("receipt", "list", "1")[0].(map[string]any)["number"].(string)
	contains(t, c.must("receipt", "list", "1"), number)
}

func TestMail_SettingsAreChecked(t *testing.T) {
	c, k := newCLI(t), newSink(t)
	c.create("1/1", "pm_card_visa", "--next-payment-date", today, "--payment-day", "15")
	secretFile := c.file("password", "hunter2\n")
	if err := os.Chmod(c.path(secretFile), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		env, args []string
		want      string
	}{
		"password in the address": {nil, []string{"--smtp", "smtps://ada:hunter2@mail.example.com"}, "must not contain the password"},
		"no password":             {nil, []string{"--smtp", "smtps://ada@mail.example.com"}, "DUESDAY_SMTP_PASSWORD"},
		"no user":                 {[]string{"DUESDAY_SMTP_PASSWORD=hunter2"}, []string{"--smtp", "smtps://mail.example.com"}, "has no user"},
		"both":                    {[]string{"DUESDAY_SMTP_PASSWORD=hunter2", "DUESDAY_SMTP_PASSWORD_FILE=" + secretFile}, nil, "both set"},
		"no such file": {[]string{"DUESDAY_SMTP_PASSWORD_FILE=nothing"}, []string{"--smtp", "smtps://ada@mail.example.com"},
			"DUESDAY_SMTP_PASSWORD_FILE"},
		"not an address": {nil, []string{"--smtp", "mail.example.com"}, "must be smtps://"},
		"no templates":   {nil, []string{"--templates", "nothing"}, "nothing"},
	} {
		c.env = map[string]string{}
		for _, pair := range tt.env {
			key, value, _ := strings.Cut(pair, "=")
			c.env[key] = value
		}
		r := c.run(append([]string{"run", "payments"}, tt.args...)...)
		if r.code != exitUsage || !strings.Contains(r.errors, tt.want) || strings.Contains(r.out+r.errors, "hunter2") {
			t.Errorf("%s: exit %d\n%s%s", name, r.code, r.out, r.errors)
		}
	}
	c.env = map[string]string{}
	if paid := c.object(exitDone, "run", "payments", "--dry-run")["would_charge"].([]any); len(paid) != 1 {
		t.Error("a run with wrong settings of mail has charged")
	}

	// Without a sender the mail waits, and the run says so.
	r := c.run("run", "payments", "--smtp", k.address)
	contains(t, r.errors, "mail has no sender", "settings set 'sender=")
	equal(t, "exit", r.code, exitPerson)
	equal(t, "waiting", c.object(exitDone, "outbox", "list")["due"], 1)
	c.must("settings", "set", "sender=billing@gym.example")
	contains(t, c.must("outbox", "send", "--smtp", k.address), "1 mail sent through 127.0.0.1:")
	if got := k.got(); len(got) != 1 {
		t.Errorf("mails: %q", got)
	}
}

// TestMail_SenderWithoutServer: mail that is to be sent is not written into a folder that nobody named.
func TestMail_SenderWithoutServer(t *testing.T) {
	c, k := newCLI(t), newSink(t)
	c.create("1/1", "pm_card_visa", "--next-payment-date", today, "--payment-day", "15")
	c.must("settings", "set", "sender=billing@gym.example")
	r := c.run("run", "payments", "--json")
	contains(t, r.errors, "stays in the outbox for a process with a mail server")
	m := decode(t, r.out).(map[string]any)["mail"].(map[string]any)
	equal(t, "mail", append(members(m, "written", "left"), r.code), []any{0, 1, exitPerson})
	contains(t, m["detail"].(string), "this command has no mail server")
	p := newProgram(c.getenv(nil), nil, nil, nil, c.clock.Now)
	p.Dir = c.dir
	p.Config = config.Config{Store: config.DefaultStore}
	if err := p.With(t.Context(), session.Need{Read: true}, func(s *session.Session) error {
		_, release, err := s.Store.(store.Claimer).Claim(t.Context(), status.ClaimName, "1@here")
		if err == nil { // a serve beside this run takes the mail
			defer release()
			equal(t, "beside serve", c.run("run", "payments").code, exitDone)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if r := c.run("outbox", "send"); r.code == exitDone || !strings.Contains(r.errors, "--smtp URL, or --mail FOLDER") {
		t.Errorf("outbox send: exit %d, %s", r.code, r.errors)
	}
	if r := c.run("serve", "--listen", "127.0.0.1:0", "--api=", "--pages="); r.code == exitDone ||
		!strings.Contains(r.errors, "--smtp URL, or --mail FOLDER") {
		t.Errorf("serve: exit %d, %s", r.code, r.errors)
	}
	if _, err := os.Stat(c.path("duesday-mail")); err == nil {
		t.Error("mail was written to the folder")
	}
	contains(t, c.must("outbox", "send", "--smtp", k.address), "1 mail sent through 127.0.0.1:")
	c.must("settings", "set", "sender=")
	if r := c.run("serve", "--listen", "127.0.0.1:0", "--api=", "--pages=", "--smtp", k.address); r.code == exitDone ||
		!strings.Contains(r.errors, "mail has no sender") {
		t.Errorf("serve without a sender: exit %d, %s", r.code, r.errors)
	}
	c.must("settings", "set", "sender=billing@gym.example")
	c.must("receipt", "refund", "1/1", "--period", "0")
	contains(t, c.must("outbox", "send", "--mail", "here"), "1 mail written to here")
}

// TestMail_OnceByTwoProcesses delivers an outbox while another process waits for the server's answer
// to one of its mails.
func TestMail_OnceByTwoProcesses(t *testing.T) {
	c, k := newCLI(t), newSink(t)
	for i := range 12 {
		c.create(strconv.Itoa(i)+"/1", "pm_card_visa", "--next-payment-date", today, "--payment-day", "15")
	}
	c.file("no-folder", "")
	c.run("run", "payments", "--mail", "no-folder")
	c.must("settings", "set", "sender=billing@gym.example")
	c.clock.Set(c.clock.Now().Add(time.Hour))
	k.held, k.release = make(chan struct{}), make(chan struct{})
	var other sync.WaitGroup
	other.Go(func() { c.run("outbox", "send", "--smtp", k.address) })
	<-k.held
	c.must("outbox", "send", "--smtp", k.address)
	close(k.release)
	other.Wait()
	if got := k.got(); len(got) != 12 {
		t.Errorf("%d mails, want 12", len(got))
	}
	// The server is away: the warning says why the mail waits.
	c.must("receipt", "refund", "1/1", "--period", "0")
	r := c.run("outbox", "send", "--smtp", "smtp://127.0.0.1:1")
	contains(t, r.errors, "; first error: ", "127.0.0.1:1, connect")
}

func TestMail_DemoSendsNone(t *testing.T) {
	c, k := newCLI(t), newSink(t)
	c.env["DUESDAY_SMTP"] = k.address
	c.must("demo", "--accounts", "5", "--months", "1")
	if got := k.got(); len(got) > 0 {
		t.Errorf("%d mails to made-up customers", len(got))
	}
}

func TestMail_Commands(t *testing.T) {
	c, k := newCLI(t), newSink(t)
	contains(t, c.must("mail", "preview", "receipt"), "Subject: Receipt: $1,299.50", "28 June 2026")
	contains(t, c.must("mail", "preview", "action-required", "--locale", "ko", "--html"), `<html lang="ko">`, "결제 확인")
	contains(t, c.must("mail", "test", "ada@example.com"), "accepted by ./duesday-mail")
	mails, err := filepath.Glob(c.path("duesday-mail/") + today + "/receipt-*.eml")
	if err != nil || len(mails) != 1 {
		t.Errorf("mails: %q, %v", mails, err)
	}
	contains(t, c.must("mail", "templates", "export", "own"), "57 templates")
	if r := c.run("mail", "templates", "export", "own"); r.code != exitFailed {
		t.Errorf("exported twice: %s", r.out)
	}
	if err := os.WriteFile(c.path("own/layout.txt"), []byte("Ours: {{template \"opening\" .}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	contains(t, c.must("mail", "preview", "refund", "--templates", "own"), "Ours: We have refunded")
	if err := os.WriteFile(c.path("own/pt/refund.txt"), []byte("{{define \"subject\"}}\n{{.Price}}{{end}}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := c.run("mail", "preview", "receipt", "--templates", "own"); r.code != exitUsage ||
		!strings.Contains(r.errors, "pt/refund.txt:") {
		t.Errorf("exit %d, %s", r.code, r.errors)
	}
	for _, wrong := range [][]string{{"mail", "preview", "telegram"}, {"mail", "preview", "receipt", "--locale", "Klingon"},
		{"mail", "test", "nobody"}, {"account", "create", "1", "--email", "a@example.com", "--locale", "english"}} {
		if r := c.run(wrong...); r.code != exitUsage {
			t.Errorf("%q: exit %d, %s", wrong, r.code, r.errors)
		}
	}
	c.must("account", "create", "1", "--email", "a@example.com", "--locale", "zh")
	equal(t, "locale", c.object(exitDone, "account", "update", "1", "--locale", "ko")["locale"], "ko")
	c.must("settings", "set", "sender=billing@gym.example")
	c.must("settings", "set", "merchant-name=Ada's Gym")
	c.clock.Set(c.clock.Now().Add(time.Second))
	c.must("mail", "test", "ada@example.com", "--smtp", k.address)
	if got := k.got(); len(got) != 1 || !strings.Contains(got[0], "Ada's Gym") {
		t.Errorf("mails: %q", got)
	}
}
