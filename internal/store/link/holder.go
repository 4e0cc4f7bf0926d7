package link

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/pebblestore"
)

// Options describe a process. The first three are the same in the holder and in its clients.
type Options struct {
	Version string        // of Duesday
	Tables  []store.Table // the store's
	Names   []string      // attribute names, for short frames
	Clock   string        // the text of the test clock; "": the machine's, or in a client the holder's
	Lasting bool          // this process stays: a holder that does not hands the store over to it
}

const (
	pageRows  = 256
	pageBytes = 256 << 10
	atOnce    = 256 // requests of a connection carried out at the same time
	greetTime = 5 * time.Second
)

// Serve serves the store to one client, until ctx or the connection ends. It closes the connection
// and leaves the store open. At the end of ctx it answers the requests that have come whole, and
// tells the client that no other is carried out.
func Serve(ctx context.Context, conn net.Conn, s store.Store, o Options) error {
	names, err := pebblestore.NewDictionary(o.Names)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	h := &holder{wire: newWire(conn), Store: s, names: names, ended: ctx, claims: map[string]func(){}}
	defer h.releaseAll()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) }) // ends the reading
	defer stop()
	reading, cancel := context.WithCancel(context.WithoutCancel(ctx))
	err = h.serve(reading, o)
	if ctx.Err() == nil {
		cancel()
		h.fail(err)
	}
	h.work.Wait()
	cancel()
	if h.writing != nil && h.send(frame{kind: kindEnd}) {
		<-h.writing
	}
	h.fail(err)
	return err
}

// A holder is the holder's side of one connection.
type holder struct {
	*wire
	store.Store
	names *pebblestore.Dictionary
	ended context.Context // its end stops the reading

	mu     sync.Mutex
	claims map[string]func() // releases of the client's claims, by name; guarded by mu

	work    sync.WaitGroup
	writing chan struct{} // closed when nothing more is written; nil: nothing was
}

// next returns the client's next frame, and the context's error after the end.
func (h *holder) next() (frame, error) {
	f, err := h.receive(true)
	if ended := h.ended.Err(); ended != nil && err != nil {
		err = ended
	}
	return f, err
}

func (h *holder) serve(ctx context.Context, o Options) error {
	timer := time.AfterFunc(greetTime, func() { h.fail(errors.New("the client sent no greeting")) })
	hello, err := h.next()
	timer.Stop()
	if err == nil && hello.kind != kindGreeting {
		err = errFrame
	}
	if err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	h.writing = make(chan struct{})
	go func() {
		defer close(h.writing)
		h.fail(h.write(true))
	}()
	answer := writer{names: h.names}
	refusal := o.refusal(string(hello.body))
	text := o.Clock
	if refusal != nil {
		text = refusal.Error()
	}
	answer.number(slices.IndexFunc(refusals[:], func(r error) bool { return errors.Is(refusal, r) }))
	answer.text(text)
	h.send(frame{hello.request, kindGreeting, answer.b})
	if refusal != nil {
		h.linger()
		return fmt.Errorf("greeting: %w", refusal)
	}
	free := make(chan struct{}, atOnce)
	for {
		f, err := h.next()
		if err != nil {
			return err
		}
		free <- struct{}{}
		h.work.Go(func() {
			defer func() { <-free }()
			a := writer{names: h.names}
			if h.answer(ctx, f, &a) {
				h.send(frame{f.request, f.kind, a.b})
				return
			}
			h.fail(errFrame)
		})
	}
}

// linger waits until the client has read the refusal and has closed the connection.
func (h *holder) linger() {
	timer := time.AfterFunc(greetTime, func() { h.fail(errFrame) })
	defer timer.Stop()
	_, _ = h.receive(true)
}

// answer carries a request out and writes its answer. It returns false if it is no request.
func (h *holder) answer(ctx context.Context, f frame, a *writer) bool {
	r := reader{names: h.names, b: f.body}
	var do func()
	switch f.kind {
	case kindGet:
		table, key := r.text(), r.key()
		do = func() {
			it, err := h.Get(ctx, table, key)
			a.error(err)
			a.item(it)
		}
	case kindQuery:
		q := r.query()
		do = func() { h.page(a, q.Limit, h.Query(ctx, q)) }
	case kindScan:
		s := r.scan()
		do = func() { h.page(a, 0, h.Scan(ctx, s)) }
	case kindCommit:
		writes := make([]store.Write, min(r.count(), store.MaxWrites+1)) // more are refused as too many
		for i := range writes {
			writes[i] = r.write()
		}
		do = func() { a.error(h.Commit(context.WithoutCancel(ctx), writes...)) }
	case kindClaim:
		name, by := r.text(), r.text()
		do = func() { h.claim(ctx, a, name, by) }
	case kindRelease:
		name := r.text()
		do = func() { h.release(name) }
	case kindCheckpoint:
		to := r.text()
		do = func() { a.error(h.checkpoint(ctx, to)) }
	}
	if do == nil || r.err != nil {
		return false
	}
	do()
	return true
}

func (h *holder) checkpoint(ctx context.Context, to string) error {
	s, ok := h.Store.(interface {
		Checkpoint(ctx context.Context, to string) error
	})
	if !ok {
		return fmt.Errorf("%w: the store does not support copies", store.ErrInvalid)
	}
	return s.Checkpoint(ctx, to)
}

// page writes items up to a page, then whether there may be more, and the error.
func (h *holder) page(a *writer, limit int, items iter.Seq2[store.Item, error]) {
	count, more := 0, false
	var failed error
	at := len(a.b)
	a.b = append(a.b, 0, 0)
	for it, err := range items {
		if failed = err; err != nil {
			break
		}
		a.item(it)
		if count++; count == limit {
			break
		}
		if more = count == pageRows || len(a.b)-at > pageBytes; more {
			break
		}
	}
	a.b[at], a.b[at+1] = byte(count>>8), byte(count)
	a.flag(more)
	a.error(failed)
}
