package api

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	RetryFor       = 3 * 24 * time.Hour // how long a webhook is tried, by the fake's clock
	retryFirst     = time.Second        // until the second try, by the real clock; twice as long each time
	retryMost      = time.Minute
	webhookTimeout = 10 * time.Second // of one try
)

// A letter is one webhook on its way to one endpoint.
type letter struct {
	event    object
	endpoint object
	payload  []byte
	due      time.Time // by the real clock; zero: at once
	giveUp   time.Time // by the fake's clock
	tries    int
	flushed  int // the last Flush that tried it
}

// A postOffice delivers webhooks: for each endpoint one worker, which sends one at a time.
type postOffice struct {
	f      *Fake
	client *http.Client
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	dice     *rand.Rand      // guarded by mu
	boxes    map[string]*box // guarded by mu; by the endpoint's id
	flushes  int             // guarded by mu; so far
	flushing int             // guarded by mu; how many of them are under way
	rested   chan struct{}   // guarded by mu; closed when a worker has nothing to send
}

// A box has the waiting letters of one endpoint.
type box struct {
	wake    chan struct{} // something has come, or a flush has begun
	letters []*letter     // guarded by postOffice.mu
	sending bool          // guarded by postOffice.mu; a letter is out
}

func newPostOffice(f *Fake) *postOffice {
	ctx, stop := context.WithCancel(context.Background())
	return &postOffice{f: f, ctx: ctx, stop: stop, boxes: map[string]*box{}, dice: newDice(f.Options.Seed + 1),
		rested: make(chan struct{}),
		client: &http.Client{Transport: f.Options.Transport, // a redirect is a failure
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Close stops the sending of webhooks. Webhooks that have not been delivered are lost.
func (f *Fake) Close() error {
	f.post.mu.Lock() // no worker begins from here on
	f.post.stop()
	f.post.mu.Unlock()
	f.post.wg.Wait()
	f.post.client.CloseIdleConnections()
	return nil
}

func (p *postOffice) put(l letter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return
	}
	id := l.endpoint.ID()
	b := p.boxes[id]
	if b == nil {
		b = &box{wake: make(chan struct{}, 1)}
		p.boxes[id] = b
		p.wg.Go(func() { p.work(b) })
	}
	b.letters = append(b.letters, &l)
	b.call()
}

func (b *box) call() {
	select {
	case b.wake <- struct{}{}:
	default: // it is awake
	}
}

// work sends the due letters of a box until the post office closes.
func (p *postOffice) work(b *box) {
	timer := time.NewTimer(retryMost)
	defer timer.Stop()
	for p.ctx.Err() == nil {
		l, pause := p.next(b)
		if l != nil {
			p.try(b, l)
			continue
		}
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-b.wake:
		case <-p.ctx.Done():
		}
	}
}

// next takes a letter out of the box that is due, or that a flush wants tried: the first, or any if
// webhooks are shuffled. Without one it returns the time until one is due.
func (p *postOffice) next(b *box) (*letter, time.Duration) {
	now, pause, shuffle := p.f.Options.Real(), retryMost, p.f.Faults().WebhookShuffle
	p.mu.Lock()
	defer p.mu.Unlock()
	var of []int
	for i, l := range b.letters {
		if left := l.due.Sub(now); left <= 0 || p.flushing > 0 && l.flushed < p.flushes {
			of = append(of, i)
		} else {
			pause = min(pause, left)
		}
	}
	if len(of) == 0 {
		close(p.rested)
		p.rested = make(chan struct{})
		return nil, pause
	}
	i := of[0]
	if shuffle {
		i = of[p.dice.IntN(len(of))]
	}
	l := b.letters[i]
	b.letters, b.sending, l.flushed = slices.Delete(b.letters, i, i+1), true, p.flushes
	return l, 0
}

func (p *postOffice) sent(b *box) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.sending = false
}

// try sends the letter once. It puts the letter back if the endpoint did not accept it.
func (p *postOffice) try(b *box, l *letter) {
	defer p.sent(b)
	ctx, cancel := context.WithTimeout(p.ctx, webhookTimeout)
	defer cancel()
	f := p.f
	f.Mu.Lock()
	now, url, keys := f.Options.Now(), l.endpoint.Str("url"), secrets(l.endpoint, f.time().Unix())
	off := l.endpoint.Yes("deleted") || l.endpoint.Str("status") != "enabled"
	f.Mu.Unlock()
	if off {
		return
	}
	status, err := p.send(ctx, url, Signature(now, l.payload, keys...), l.payload)
	f.Mu.Lock()
	if err == nil && status/100 == 2 {
		accepted(l.event, l.endpoint.ID())
		f.Mu.Unlock()
		return
	}
	late := !f.time().Before(l.giveUp)
	f.Mu.Unlock()
	f.Options.Log.Debug("stripefake: a webhook was not accepted", "endpoint", l.endpoint.ID(), "event", l.event.ID(),
		"status", status, "gives_up", late)
	if late {
		return
	}
	l.tries++
	l.due = f.Options.Real().Add(min(retryMost, retryFirst<<min(l.tries-1, 10)))
	p.mu.Lock()
	defer p.mu.Unlock()
	b.letters = append(b.letters, l)
}

func (p *postOffice) send(ctx context.Context, url, signature string, payload []byte) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(payload))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header.Set("User-Agent", "Stripe/1.0 (a fake; not from stripe.com)")
	r.Header.Set("Stripe-Signature", signature)
	res, err := p.client.Do(r)
	if err != nil {
		return 0, err
	}
	_, _ = io.CopyN(io.Discard, res.Body, MaxBody) // the connection can be used again
	return res.StatusCode, res.Body.Close()
}

func Signature(at time.Time, payload []byte, secrets ...string) string {
	t := strconv.FormatInt(at.Unix(), 10)
	parts := []string{"t=" + t}
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(t + "."))
		mac.Write(payload)
		parts = append(parts, "v1="+hex.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(parts, ",")
}

func (f *Fake) Flush(ctx context.Context) (left int, err error) {
	p := f.post
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flushes++
	p.flushing++
	defer func() { p.flushing-- }()
	for n := p.flushes; p.isUnflushed(n); {
		rested := p.rested
		p.mu.Unlock()
		select {
		case <-rested:
		case <-ctx.Done():
			err = ctx.Err()
		case <-p.ctx.Done():
			err = p.ctx.Err()
		}
		p.mu.Lock()
		if err != nil {
			return 0, fmt.Errorf("webhooks: %w", err)
		}
	}
	for _, b := range p.boxes {
		left += len(b.letters)
	}
	return left, nil
}

// isUnflushed reports whether a letter is under way or untried, and wakes its worker. It needs mu.
func (p *postOffice) isUnflushed(n int) (some bool) {
	for _, b := range p.boxes {
		if b.sending || slices.ContainsFunc(b.letters, func(l *letter) bool { return l.flushed < n }) {
			some = true
			b.call()
		}
	}
	return some
}
