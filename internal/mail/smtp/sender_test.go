package smtp

import (
	"context"
	"errors"
	"fmt"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/duesday/duesday/internal/mail"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

func sample(i int, to string) outbox.Effect {
	return mail.Sample("receipt", "en", to, time.Date(2026, 6, 28, 0, 0, i, 0, time.UTC))
}

func reply(code int, a, b, c int, text string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{a, b, c}, Message: text}
}

// TestAnswers goes through every answer at every step: of a refused address alone the customer's
// address is blamed, and after each the next mail arrives on the same connection.
func TestAnswers(t *testing.T) {
	tests := []struct {
		step   string
		answer error
		bounce string // its code
		conns  int    // with the next mail
	}{
		{"RCPT", reply(550, 5, 1, 1, "<ada@example.com> no such user"), "550 5.1.1", 1},
		{"RCPT", reply(553, 5, 1, 3, "bad address"), "553 5.1.3", 1},
		{"RCPT", reply(556, 5, 1, 10, "null MX"), "556 5.1.10", 1},
		{"RCPT", reply(550, 5, 4, 1, "access denied"), "550 5.4.1", 1},
		{"RCPT", &smtp.SMTPError{Code: 550, EnhancedCode: smtp.NoEnhancedCode, Message: "unknown"}, "", 1},
		{"RCPT", reply(550, 5, 2, 1, "disabled"), "550 5.2.1", 1},
		{"RCPT", reply(550, 5, 2, 2, "mailbox full"), "", 1},
		{"RCPT", reply(550, 5, 4, 5, "too much mail"), "", 1},
		{"RCPT", reply(550, 5, 5, 1, "out of order"), "", 1},
		{"RCPT", reply(550, 5, 1, 7, "bad sender"), "", 1},
		{"RCPT", reply(554, 5, 7, 1, "<ada@example.com>: relay access denied"), "", 1},
		{"RCPT", reply(550, 5, 7, 1, "your address is on a list"), "", 1},
		{"RCPT", reply(550, 5, 1, 8, "bad sender"), "", 1},
		{"RCPT", reply(530, 5, 7, 0, "authenticate first"), "", 1},
		{"RCPT", reply(552, 5, 2, 2, "mailbox full"), "", 1},
		{"RCPT", reply(450, 4, 2, 1, "greylisted"), "", 1},
		{"RCPT", reply(421, 4, 7, 0, "too many"), "", 2},
		{"MAIL", reply(550, 5, 1, 1, "no such user"), "", 1},
		{"MAIL", reply(553, 5, 7, 1, "sender not owned"), "", 1},
		{"MAIL", reply(451, 4, 3, 0, "later"), "", 1},
		{"DATA", reply(554, 5, 6, 0, "refused content"), "", 1},
		{"DATA", reply(550, 5, 1, 1, "too late to say so"), "", 1},
		{"taken", reply(451, 4, 3, 0, "disk full"), "", 1},
		{"greeting", reply(421, 4, 3, 2, "not now"), "", 2},
		{"greeting", reply(554, 5, 7, 1, "not you"), "", 2},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.step, " ", tt.answer), func(t *testing.T) {
			m := (&mailServer{implicit: true}).start(t)
			m.script(func(_ *smtp.Conn, step, to string) error {
				if step == tt.step {
					return tt.answer
				}
				return nil
			})
			out := sender(t, m.at(t, "smtps://"+host))
			err := out.Deliver(t.Context(), sample(1, "ada@example.com"))
			b, bounced := errors.AsType[*Bounce](err)
			if err == nil || bounced != (tt.bounce != "") || errors.Is(err, outbox.ErrPermanent) != bounced ||
				bounced && b.Code != tt.bounce {
				t.Errorf("%v, want a bounce %q", err, tt.bounce)
			}
			if strings.Contains(err.Error(), "ada@") {
				t.Errorf("the error shows the address: %v", err)
			}
			m.script(nil)
			if tt.step == "greeting" { // the next drain
				out = sender(t, m.at(t, "smtps://"+host))
			}
			if err := out.Deliver(t.Context(), sample(2, "bob@example.com")); err != nil {
				t.Error(err)
			}
			if _, conns := m.got(); conns != tt.conns {
				t.Errorf("%d connections, want %d", conns, tt.conns)
			}
		})
	}
}

// TestAnswer: the outbox learns what the server answered to a mail that it has taken, without addresses.
func TestAnswer(t *testing.T) {
	m := (&mailServer{implicit: true}).start(t)
	tables := schema.New("x-")
	now := func() time.Time { return time.Date(2026, 6, 28, 1, 0, 0, 0, time.UTC) }
	s, err := memstore.Open(tables.All(), now)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), outbox.Write(tables.Outbox.Name, sample(1, "ada@example.com"))); err != nil {
		t.Fatal(err)
	}
	var got []outbox.Outcome
	o := outbox.New(s, tables.Outbox, now, sender(t, m.at(t, "smtps://"+host)), nil).
		Recording(func(_ store.Item, _ outbox.Effect, o outbox.Outcome) []store.Write { got = append(got, o); return nil })
	if _, err := o.Drain(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].End != outbox.Delivered || got[0].Tries != 1 || !strings.HasPrefix(got[0].Answer, "250 ") || len(got[0].Answer) < 8 {
		t.Errorf("%+v", got)
	}
	if text := withoutAddresses("250 2.0.0 <ada@example.com>\r\nqueued"); text != "250 2.0.0 (address) queued" {
		t.Errorf("%q", text)
	}
}

// TestBare550: without an enhanced code, the address is blamed only after the server has taken another.
func TestBare550(t *testing.T) {
	m := (&mailServer{implicit: true}).start(t)
	m.script(func(_ *smtp.Conn, step, to string) error {
		if step == "RCPT" && strings.Contains(to, "ada@") {
			return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.NoEnhancedCode, Message: "no"}
		}
		return nil
	})
	out := sender(t, m.at(t, "smtps://"+host))
	if err := out.Deliver(t.Context(), sample(1, "ada@example.com")); err == nil || errors.Is(err, outbox.ErrPermanent) {
		t.Errorf("before any other: %v", err)
	}
	if err := out.Deliver(t.Context(), sample(2, "bob@example.com")); err != nil {
		t.Fatal(err)
	}
	err := out.Deliver(t.Context(), sample(1, "ada@example.com"))
	if b, ok := errors.AsType[*Bounce](err); !ok || b.Code != "550" {
		t.Errorf("after another: %v", err)
	}
}

// TestCut loses the connection, or waits for an answer that never comes, at every step.
func TestCut(t *testing.T) {
	for _, step := range []string{"greeting", "MAIL", "RCPT", "DATA", "taken"} {
		for _, how := range []string{"cut", "slow", "stopped"} {
			t.Run(step+" "+how, func(t *testing.T) {
				m := (&mailServer{implicit: true}).start(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				stuck := make(chan struct{})
				var reached atomic.Bool // a client on a busy machine may give up earlier
				m.script(func(c *smtp.Conn, at, _ string) error {
					reached.CompareAndSwap(false, at == step)
					switch {
					case at != step:
					case how == "cut":
						_ = c.Conn().Close()
					case how == "stopped":
						cancel()
						<-stuck
						return reply(451, 4, 3, 0, "the client has gone")
					default:
						<-stuck
						return reply(451, 4, 3, 0, "the client has gone")
					}
					return nil
				})
				out := sender(t, m.at(t, "smtps://"+host))
				if how == "slow" {
					out.dial, out.command, out.message = 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond
				}
				e := sample(1, "ada@example.com")
				err := out.Deliver(ctx, e)
				close(stuck)
				if _, bounced := errors.AsType[*Bounce](err); err == nil || bounced {
					t.Errorf("%v, want an error that may pass", err)
				}
				if how == "stopped" && !errors.Is(err, context.Canceled) {
					t.Errorf("%v, want cancelled", err)
				}
				m.script(nil)
				if err := sender(t, m.at(t, "smtps://"+host)).Deliver(t.Context(), e); err != nil {
					t.Fatal(err)
				}
				got, _ := m.got()
				if want := map[bool]int{true: 2, false: 1}[step == "taken" && reached.Load()]; len(got) != want {
					t.Errorf("%d mails, want %d", len(got), want)
				}
				for _, r := range got { // what may come twice is recognised
					if r.message != got[0].message {
						t.Error("the second message differs")
					}
				}
			})
		}
	}
}

// TestOneConnectionForADrain: also after the server has closed it between two mails.
func TestOneConnectionForADrain(t *testing.T) {
	m := (&mailServer{implicit: true}).start(t)
	var closing atomic.Bool
	m.script(func(c *smtp.Conn, step, _ string) error {
		if step == "MAIL" && closing.CompareAndSwap(true, false) {
			return reply(421, 4, 4, 2, "idle for too long")
		}
		return nil
	})
	out := sender(t, m.at(t, "smtps://"+host))
	for i := range 5 {
		closing.Store(i == 3)
		if err := out.Deliver(t.Context(), sample(i, "ada@example.com")); err != nil {
			t.Fatal(err)
		}
	}
	if got, conns := m.got(); len(got) != 5 || conns != 2 {
		t.Errorf("%d mails by %d connections", len(got), conns)
	}
}

// TestFewConnections: a server that takes one connection at a time gets every mail of four workers.
func TestFewConnections(t *testing.T) {
	m := (&mailServer{implicit: true}).start(t)
	var first atomic.Bool
	m.script(func(_ *smtp.Conn, step, _ string) error {
		if step == "greeting" && !first.CompareAndSwap(false, true) {
			return reply(421, 4, 7, 0, "one connection at a time")
		}
		return nil
	})
	out := sender(t, m.at(t, "smtps://"+host))
	if err := out.Deliver(t.Context(), sample(0, "ada@example.com")); err != nil {
		t.Fatal(err)
	}
	var workers sync.WaitGroup
	for i := range 4 {
		workers.Go(func() {
			for j := range 5 {
				if err := out.Deliver(t.Context(), sample(1+i*5+j, "ada@example.com")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	if got, _ := m.got(); len(got) != 21 {
		t.Errorf("%d mails", len(got))
	}
}

// TestDownIsAskedOnce: each mail of a drain is put off, and only the first waits for the server.
func TestDownIsAskedOnce(t *testing.T) {
	m := (&mailServer{implicit: true}).start(t)
	m.script(func(*smtp.Conn, string, string) error { return reply(554, 5, 7, 1, "no") })
	out := sender(t, m.at(t, "smtps://"+host))
	for i := range 3 {
		if err := out.Deliver(t.Context(), sample(i, "ada@example.com")); err == nil || errors.Is(err, outbox.ErrPermanent) {
			t.Errorf("%v", err)
		}
	}
	if _, conns := m.got(); conns != 1 {
		t.Errorf("asked %d times", conns)
	}
}

func TestHeadersOfEveryScript(t *testing.T) {
	m := (&mailServer{implicit: true}).start(t)
	out := sender(t, m.at(t, "smtps://"+host))
	for i, to := range []string{"ada@example.com", "ジョン@example.com", `"odd name"@example.com`} {
		if err := out.Deliver(t.Context(), sample(i, to)); err != nil {
			t.Errorf("%s: %v", to, err)
		}
	}
	for _, to := range []string{"ada@example.com>\r\nRCPT TO:<eve@example.com", "a@b, c@d", ""} {
		if err := out.Deliver(t.Context(), sample(9, to)); !errors.Is(err, outbox.ErrPermanent) {
			t.Errorf("%q: %v", to, err)
		}
	}
	if got, _ := m.got(); len(got) != 3 {
		t.Errorf("%d mails", len(got))
	}
}

func TestBounceNeedsAnAnswer(t *testing.T) {
	for _, err := range []error{nil, errors.New("550 5.1.1"), context.DeadlineExceeded,
		&textproto.Error{Code: 450, Msg: "5.1.1 x"}} {
		if b := bounce(err, true); b != nil {
			t.Errorf("%v: %v", err, b)
		}
	}
}
