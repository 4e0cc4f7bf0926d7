package smtp

import (
	"context"
	"errors"
	"fmt"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"github.com/duesday/duesday/internal/mail"
	"github.com/duesday/duesday/internal/outbox"
)

// A Sender delivers effects as mail through a server. It keeps its connections for further messages,
// and is for one drain: a server that could not be reached is not asked again. It is safe for
// concurrent use; each call under way has a connection of its own.
type Sender struct {
	server *Server
	write  *mail.Writer

	dial, command, message time.Duration // limits

	mu   sync.Mutex
	wake *sync.Cond // something below has changed
	idle []*conn    // guarded by mu, as are the others
	live int        // connections, and attempts at one
	down error      // why the last attempt at a connection failed

	taken atomic.Bool // the server has taken a recipient
}

var _ outbox.Deliverer = (*Sender)(nil)

// NewSender returns a Sender without a connection yet.
func NewSender(s *Server, w *mail.Writer) *Sender {
	sender := &Sender{server: s, write: w, dial: dialLimit, command: commandLimit, message: messageLimit}
	sender.wake = sync.NewCond(&sender.mu)
	return sender
}

// Error implements error. It does not show the address.
func (b *Bounce) Error() string {
	return "the mail server permanently rejected the address (" + b.Code + ")"
}

// Unwrap makes the Bounce an outbox.ErrPermanent.
func (b *Bounce) Unwrap() error { return outbox.ErrPermanent }

// Deliver implements outbox.Deliverer. It returns nil once the server has taken the message, and a
// Bounce if it refuses the address for good.
func (s *Sender) Deliver(ctx context.Context, e outbox.Effect) error {
	m, err := s.write.Message(e)
	if err != nil {
		return err
	}
	_, domain, _ := strings.Cut(strings.Trim(m.From, "<>"), "@") // of the sender: the name of this client
	for {
		c, err := s.take(ctx, domain)
		if err != nil {
			return s.explain("connect", err)
		}
		reused := c.used
		step, err := s.send(ctx, c, &m)
		s.give(ctx, c, err)
		if err == nil {
			return nil
		}
		if reused && step == stepSender && lost(err) && ctx.Err() == nil {
			continue // the server had closed the connection between two messages
		}
		if refused := bounce(err, s.taken.Load()); refused != nil && step == stepRecipient {
			return refused
		}
		return s.explain(step, err)
	}
}

// The steps of a message, for errors.
const (
	stepSender    = "sender"
	stepRecipient = "recipient"
	stepMessage   = "message"
)

// send hands one message over, and returns the step of an error.
func (s *Sender) send(ctx context.Context, c *conn, m *mail.Message) (step string, err error) {
	if err = within(ctx, s.command, c.net, func() error { return c.client.Mail(m.From) }); err != nil {
		return stepSender, err
	}
	c.used = true
	if err = within(ctx, s.command, c.net, func() error { return c.client.Rcpt(m.To) }); err != nil {
		return stepRecipient, err
	}
	s.taken.Store(true)
	return stepMessage, within(ctx, s.message, c.net, func() error {
		w, err := c.client.Data()
		if err == nil {
			_, err = w.Write(m.Bytes)
		}
		if err == nil {
			err = w.Close()
		}
		if taken, ok := w.(*smtp.DataCloser); ok && err == nil {
			outbox.Answer(ctx, withoutAddresses("250 "+taken.ServerResponse()))
		}
		return err
	})
}

// take returns an idle connection or a new one, or waits for one if the server takes no more.
func (s *Sender) take(ctx context.Context, domain string) (*conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if n := len(s.idle); n > 0 {
			c := s.idle[n-1]
			s.idle = s.idle[:n-1]
			return c, nil
		}
		switch {
		case s.down == nil:
			if c := s.dialled(ctx, domain); c != nil {
				return c, nil
			}
		case s.live == 0 || ctx.Err() != nil:
			return nil, s.down
		default:
			s.wake.Wait()
		}
	}
}

// dialled makes a connection, with mu unlocked meanwhile. It returns nil and sets down if it cannot.
func (s *Sender) dialled(ctx context.Context, domain string) *conn {
	s.live++
	s.mu.Unlock()
	c, err := s.server.connect(ctx, s.dial, domain)
	s.mu.Lock()
	if err != nil {
		s.live--
		s.down = err
		s.wake.Broadcast()
	}
	return c
}

// give keeps the connection for the next message, if the server still answers on it.
func (s *Sender) give(ctx context.Context, c *conn, err error) {
	if err != nil && !lost(err) {
		err = within(ctx, s.command, c.net, c.client.Reset)
	}
	if err != nil {
		_ = c.net.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.idle = append(s.idle, c)
	} else {
		s.live--
	}
	s.wake.Broadcast()
}

// Close ends the idle connections. No call may be under way.
func (s *Sender) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.idle {
		// The server has taken every message; it need not say goodbye.
		_ = within(context.Background(), time.Second, c.net, c.client.Quit)
		_ = c.net.Close()
	}
	s.idle = nil
}

// lost reports whether the connection is of no further use: the server did not answer, or it closes.
func lost(err error) bool {
	reply, ok := errors.AsType[*textproto.Error](err)
	return !ok || reply.Code == 421
}

// explain names the server and the step. It hides addresses: errors are stored and logged.
func (s *Sender) explain(step string, err error) error {
	if reply, ok := errors.AsType[*textproto.Error](err); ok {
		text := withoutAddresses(fmt.Sprintf("%d %s", reply.Code, reply.Msg))
		return fmt.Errorf("mail server %s, %s: the server answered: %s", s.server, step, text)
	}
	return fmt.Errorf("mail server %s, %s: %w", s.server, step, err)
}

// withoutAddresses returns a server's reply in one line.
func withoutAddresses(reply string) string {
	words := strings.Fields(reply)
	for i, word := range words {
		if strings.Contains(word, "@") {
			words[i] = "(address)"
		}
	}
	return strings.Join(words, " ")
}
