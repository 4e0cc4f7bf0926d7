package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

const (
	laneWorkers = 2                  // requests to one endpoint at a time
	laneRows    = 100                // messages of one endpoint in memory
	failingFor  = 5 * 24 * time.Hour // after which an endpoint is paused
)

// closedFor is how long the Sender sends an endpoint nothing after it was slow once, twice, ... in a row.
var closedFor = [...]time.Duration{5 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute}

// hints maps error codes to advice.
var hints = map[string]string{codePrivate: ErrPrivate.Error()}

// A Sender sends due messages. Each endpoint has its own lane, so an endpoint that hangs delays only its own
// messages.
type Sender struct {
	*Service
	client  *http.Client
	machine func() time.Time
	wake    chan struct{}

	ctx     context.Context // of the requests
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	lanes  map[string]*lane // by endpoint; mu guards this and the next fields
	taken  map[string]bool  // places of messages in a lane
	done   outbox.Report    // since the last Drain
	failed error            // store error since the last Drain
}

// A lane contains the messages for one endpoint. Sender.mu guards it.
type lane struct {
	endpoint string
	rows     []queued
	full     bool // a row did not fit
	workers  int
	slow     int       // how often in a row the endpoint was slow
	until    time.Time // no requests before this time
}

// queued is a message with its row.
type queued struct {
	*Message
	row store.Item
}

// NewSender returns a Sender. machine is the machine's clock. If allowPrivate is false, the Sender only
// connects to public addresses.
func (s *Service) NewSender(machine func() time.Time, allowPrivate bool) *Sender {
	return s.newSender(machine, allowPrivate, nil)
}

func (s *Service) newSender(machine func() time.Time, allowPrivate bool, r *net.Resolver) *Sender {
	x := &Sender{Service: s, client: newClient(allowPrivate, r), machine: machine, wake: make(chan struct{}, 1),
		lanes: map[string]*lane{}, taken: map[string]bool{}}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	return x
}

// Wake returns a channel that receives a value when Drain should run again.
func (s *Sender) Wake() <-chan struct{} { return s.wake }

// Close lets running requests finish until ctx ends. Waiting messages stay in the outbox.
func (s *Sender) Close(ctx context.Context) {
	s.mu.Lock()
	for _, l := range s.lanes {
		l.rows = nil
	}
	s.mu.Unlock()
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	s.running.Wait()
	s.cancel()
	s.client.CloseIdleConnections()
}

// Drain turns effects into messages and starts the due attempts, without waiting for them. It returns what the
// Sender has done since the last call.
func (s *Sender) Drain(ctx context.Context) (outbox.Report, error) {
	err := s.drain(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	r, failed := s.done, s.failed
	s.done, s.failed = outbox.Report{}, nil
	return r, cmp.Or(err, failed)
}

func (s *Sender) drain(ctx context.Context) error {
	if there, err := s.Any(ctx); err != nil || !there {
		return err
	}
	var list []*Endpoint // read after the first effect, so it contains every endpoint that a commit knew
	for it, err := range s.rows.DueRows(ctx) {
		if err != nil {
			return err
		}
		if it.Str(schema.Kind) == kindMessage {
			err = s.enqueue(ctx, it)
		} else {
			if list == nil {
				list, err = s.within(ctx, 0)
			}
			if err == nil {
				err = s.fanOut(ctx, it, list)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fanOut replaces the effect with a message for each endpoint and event, in one commit. If one commit cannot hold all
// messages, fanOut writes some before it. A repeated call writes the same messages.
func (s *Sender) fanOut(ctx context.Context, it store.Item, list []*Endpoint) error {
	effect, err := outbox.Decode(it)
	var events []Event
	if err == nil {
		err = json.Unmarshal([]byte(effect.Data[dataEvents]), &events)
	}
	if err != nil {
		return s.rows.Bury(ctx, it, err)
	}
	writes := []store.Write{s.rows.Gone(it)}
	earlier := map[string]int{}
	for _, x := range events {
		data, _ := json.Marshal(x.Data) // never fails: it was JSON
		for _, e := range list {
			if e.Wants(x.Type) && !effect.Created.Before(e.Created) {
				m := &Message{ID: messageID(effect.ID, x.Type, e.ID, earlier[x.Type]), Endpoint: e.ID, Type: x.Type, Data: data, Created: effect.Created}
				writes = append(writes, m.waiting(s.o.Tables.Outbox.Name, s.now()))
			}
		}
		earlier[x.Type]++
	}
	last := writes[1:]
	for len(last) >= store.MaxWrites && err == nil {
		n := min(store.MaxWrites, len(last)+1-store.MaxWrites)
		err, last = s.o.Store.Commit(ctx, last[:n]...), last[n:]
	}
	if err == nil {
		err = s.o.Store.Commit(ctx, append(writes[:1:1], last...)...)
	}
	if store.Retryable(err) {
		return nil // another process was faster, or the next Drain finds out
	} else if err != nil {
		return fmt.Errorf("write the messages of an effect: %w", err)
	}
	for _, w := range writes[1:] {
		if err := s.enqueue(ctx, w.Item); err != nil {
			return err
		}
	}
	return nil
}

// enqueue puts the message into its endpoint's lane if there is room.
func (s *Sender) enqueue(ctx context.Context, it store.Item) error {
	m, err := decodeMessage(it)
	if err != nil {
		return s.rows.Bury(ctx, it, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lanes[m.Endpoint]
	if l == nil {
		l = &lane{endpoint: m.Endpoint}
		s.lanes[m.Endpoint] = l
	}
	switch {
	case s.taken[m.Place] || s.ctx.Err() != nil:
		return nil
	case len(l.rows) >= laneRows:
		l.full = true
		return nil
	}
	s.taken[m.Place] = true
	l.rows = append(l.rows, queued{m, it})
	if l.workers < laneWorkers {
		l.workers++
		s.running.Go(func() { s.work(l) })
	}
	return nil
}

// work sends the lane's messages until none is left.
func (s *Sender) work(l *lane) {
	for {
		s.mu.Lock()
		if len(l.rows) == 0 || s.ctx.Err() != nil {
			if l.workers--; l.workers == 0 && l.slow == 0 {
				delete(s.lanes, l.endpoint) // which may be deleted, or idle for long
			}
			if l.full && l.workers == 0 {
				l.full = false
				select {
				case s.wake <- struct{}{}:
				default: // already woken
				}
			}
			s.mu.Unlock()
			return
		}
		q := l.rows[0]
		l.rows[0] = queued{} // the array would keep it
		l.rows = l.rows[1:]
		s.mu.Unlock()
		r, err := s.attempt(l, q.row, q.Message)
		s.mu.Lock()
		delete(s.taken, q.Place)
		s.failed = cmp.Or(s.failed, err)
		s.done.Delivered += r.Delivered
		s.done.Dropped += r.Dropped
		s.done.Failed += r.Failed
		s.done.Dead += r.Dead
		s.mu.Unlock()
	}
}

// attempt makes one attempt to send the message, or delays it if its endpoint is slow.
func (s *Sender) attempt(l *lane, it store.Item, m *Message) (r outbox.Report, err error) {
	list, err := s.within(s.ctx, fresh)
	if err != nil {
		return r, err
	}
	i := slices.IndexFunc(list, func(e *Endpoint) bool { return e.ID == m.Endpoint })
	if i < 0 {
		if _, err = s.Endpoint(s.ctx, m.Endpoint); errors.Is(err, store.ErrNotFound) {
			return outbox.Report{Dropped: 1}, s.settle(s.rows.Gone(it))
		}
		return r, err // the endpoint is new or unreadable
	}
	e, now := list[i], s.now()
	s.mu.Lock()
	until, slow := l.until, l.slow
	s.mu.Unlock()
	switch {
	case !e.Paused.IsZero():
		return outbox.Report{Dead: 1}, s.end(it, m, Failed, Attempt{At: now, Code: "paused"})
	case now.Before(until):
		return outbox.Report{Failed: 1}, s.settle(s.rows.Later(it, m.ID, until)...)
	}
	if mine, err := s.rows.ClaimRow(s.ctx, &it); !mine {
		return r, err
	}
	began := s.machine()
	a, err := s.send(s.ctx, e, m)
	if s.ctx.Err() != nil || err != nil {
		return r, err // the server stops; the message has not failed
	}
	s.note(l, slow, a)
	tried := Attempt{At: now, Status: a.status, Millis: s.machine().Sub(began).Milliseconds(), Code: a.code}
	switch due, again := outbox.NextDue(m.tries+1, s.now()); {
	case a.code == "":
		r.Delivered, err = 1, s.end(it, m, Delivered, tried)
	case !again || a.status == http.StatusGone:
		r.Dead, err = 1, s.end(it, m, Failed, tried)
	default:
		r.Failed = 1
		m.tries++
		m.add(tried)
		if asked := s.now().Add(a.wait); due.Before(asked) {
			due = asked
		}
		err = s.settle(s.rows.Gone(it), m.waiting(s.o.Tables.Outbox.Name, due))
	}
	return r, errors.Join(err, s.judge(e, a, r.Dead > 0))
}

// note closes the lane of a slow endpoint, and opens it after any other answer. slow is the lane's count when
// the attempt began, so two concurrent attempts count once.
func (s *Sender) note(l *lane, slow int, a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !a.slow:
		l.slow, l.until = 0, time.Time{}
	case l.slow == slow:
		l.until = s.now().Add(max(a.wait, closedFor[min(l.slow, len(closedFor)-1)]))
		l.slow++
	}
}

func (m *Message) add(a Attempt) {
	m.Attempts = append(m.Attempts, a)
	m.Attempts = m.Attempts[max(0, len(m.Attempts)-mostAttempts):]
}

// end replaces the row with the record of a message that was delivered or failed.
func (s *Sender) end(it store.Item, m *Message, state string, a Attempt) error {
	m.add(a)
	m.State, m.Ended = state, s.now()
	return s.settle(s.rows.Gone(it), m.record(s.table, s.kept()))
}

// settle commits the end of an attempt. It ignores a conflict, because another process has then settled the
// message, and a lost reply, because the next Drain then shows whether to send the message again.
func (s *Sender) settle(writes ...store.Write) error {
	if err := s.o.Store.Commit(context.WithoutCancel(s.ctx), writes...); err != nil && !store.Retryable(err) {
		return fmt.Errorf("settle a message: %w", err)
	}
	return nil
}

// judge records whether the endpoint fails, and pauses it if it is gone or has failed for five days.
func (s *Sender) judge(was *Endpoint, a answer, gaveUp bool) error {
	now := s.now()
	if a.code == "" && was.Failing.IsZero() || a.code != "" && !gaveUp && !was.Failing.IsZero() && now.Sub(was.Failing) < failingFor {
		return nil // nothing changes
	}
	_, err := s.change(s.ctx, was.ID, func(e *Endpoint) error {
		before := e.item()
		switch {
		case a.code == "":
			e.Failing = time.Time{}
		case e.Failing.IsZero():
			e.Failing = now
			s.o.Log.Warn("deliveries to an endpoint fail", "endpoint", e.ID, "code", a.code, "next", hints[a.code])
		}
		if gaveUp {
			e.GaveUp = now
		}
		switch {
		case !e.Paused.IsZero():
		case a.status == http.StatusGone:
			e.Paused, e.Reason = now, ReasonGone
		case !e.Failing.IsZero() && now.Sub(e.Failing) >= failingFor:
			e.Paused, e.Reason = now, ReasonFailing
		}
		if e.item().Equal(before) {
			return errSame
		}
		return nil
	})
	if errors.Is(err, store.ErrNotFound) { // the endpoint was deleted meanwhile
		return nil
	}
	return err
}
