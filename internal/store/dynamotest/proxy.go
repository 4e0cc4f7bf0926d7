package dynamotest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Options of a Proxy.
type Options struct {
	Seed  uint64 // decides every draw, together with the number of the request
	Rates Rates  // none: only the faults named by a Hook

	// IndexLag is for how long an index may show an item as it was before a write: a
	// minute, say. 0: IndexMissing and IndexStale do not happen, and no write is
	// looked at, which makes writes cheaper.
	IndexLag time.Duration

	Now func() time.Time // the clock of writes and of IndexLag; nil: the machine's
}

// A Request is the input of a Hook.
type Request struct {
	N         int            // its number among the requests of this Proxy, from 1, in the order of their arrival
	Operation string         // "PutItem"
	Body      map[string]any // as sent, in DynamoDB's JSON; not to be changed
}

// A Hook names the fault of a request: an exclusive one, SmallPage, EmptyPage, or IndexMissing or
// IndexStale, which then apply to every possible row; Pass for none, ByRates for a draw by the
// rates. A fault that cannot happen to the operation does not. It is called in the goroutine of the
// request, before anything is done, and may wait: the request waits with it.
type Hook func(Request) Fault

// A Proxy listens on a port of 127.0.0.1, passes requests on to a DynamoDB endpoint, and
// makes them meet faults. A client cannot tell it from DynamoDB; a process of its own
// can use it too. All methods may be called at any time by several goroutines.
//
// It simulates, beyond the comments of the faults:
//
//   - Faults happen to requests for items, never to requests for tables. A request meets at
//     most one exclusive fault, and any faults of reads besides. The same seed and the same
//     requests in the same order have the same faults.
//   - A lost connection is closed or reset before a byte of the reply, one as often as
//     the other. A reply is never cut in the middle or late.
//   - An index lags item by item. A query of an index may see any state of an item within IndexLag
//     after its write through this proxy: not there yet (IndexMissing), or with its former values
//     in its former place (IndexStale). The states of two items, or of one in two queries or pages,
//     are independent: DynamoDB promises no more. So a moved row may be shown twice or not at all.
//     On one page rows are in their order, and never more than the request's Limit.
//
// It does not simulate a lag for writes past the proxy: they are in every index at once. If two
// requests write the same item at the same moment, a state between them may be lost to the
// indexes; none is invented. Only Query on an index sees the lag, Scan and a count do not. A
// query with a filter or a projection expression may miss rows, and sees no old ones. Eventually
// consistent reads of a table are always up to date. Batches are never partly unprocessed;
// streams, expiry and capacity are DynamoDB Local's.
type Proxy struct {
	t        testing.TB
	endpoint string
	listener net.Listener
	upstream *http.Client
	seed     uint64
	lag      *lag // nil: indexes do not lag

	mu        sync.Mutex
	rates     Rates
	hook      Hook
	forbidden []string
	down      bool
	requests  int
	counts    map[count]int
}

type count struct {
	operation string
	fault     Fault
}

// NewProxy starts a proxy before the endpoint. It ends with the test.
func NewProxy(t testing.TB, endpoint string, o Options) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}
	p := &Proxy{
		t: t, endpoint: endpoint, listener: listener, seed: o.Seed, rates: maps.Clone(o.Rates),
		upstream: &http.Client{Transport: transport}, counts: map[count]int{},
	}
	if o.IndexLag > 0 {
		now := o.Now
		if now == nil {
			now = time.Now
		}
		p.lag = &lag{most: o.IndexLag, now: now, tables: map[string]*description{}, past: map[string]map[string][]version{}}
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(listener); err != http.ErrServerClosed {
			t.Errorf("proxy: %v", err)
		}
	}()
	t.Cleanup(func() {
		p.SetDown(true)
		_ = server.Close()
		<-served
		transport.CloseIdleConnections()
	})
	return p
}

// URL is the endpoint to give to a client.
func (p *Proxy) URL() string { return "http://" + p.listener.Addr().String() }

// Client returns a client of the proxy without retries.
func (p *Proxy) Client() *dynamodb.Client { return ClientAt(p.URL()) }

// locked runs f while nothing else reads or changes the state of the proxy.
func (p *Proxy) locked(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// SetHook replaces the hook from the next request on; nil: the rates alone decide.
func (p *Proxy) SetHook(hook Hook) { p.locked(func() { p.hook = hook }) }

// Forbid answers these operations ("Scan") with AccessDeniedException from the next
// request on, and no others: Forbid() allows everything again.
func (p *Proxy) Forbid(operations ...string) {
	p.locked(func() { p.forbidden = slices.Clone(operations) })
}

// SetDown switches the endpoint off or on. SetDown(true) closes the connection of every request,
// also of requests under way before their reply; these may still be done. SetDown(false) ends that.
func (p *Proxy) SetDown(down bool) { p.locked(func() { p.down = down }) }

func (p *Proxy) isDown() (down bool) {
	p.locked(func() { down = p.down })
	return down
}

// Count returns how often a fault has happened to an operation; "" is any operation. An
// index fault counts once for each row. The fault "" counts the requests.
func (p *Proxy) Count(operation string, fault Fault) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c, times := range p.counts {
		if c.fault == fault && (operation == "" || c.operation == operation) {
			n += times
		}
	}
	return n
}

// Counts returns how often each fault has happened, for a report.
func (p *Proxy) Counts() map[Fault]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[Fault]int{}
	for c, times := range p.counts {
		if c.fault != "" {
			all[c.fault] += times
		}
	}
	return all
}

func (p *Proxy) fired(operation string, fault Fault) {
	p.locked(func() { p.counts[count{operation, fault}]++ })
}

// An exchange is one request on its way.
type exchange struct {
	*chance
	header http.Header
	sent   []byte         // the body, as it is passed on
	body   map[string]any // the same
}

// reply is DynamoDB's answer.
type reply struct {
	status int
	header http.Header
	text   []byte
}

// ServeHTTP is a client's request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	x, forbidden := p.meet(operation, r.Header, sent)
	if x == nil {
		p.fired(operation, Down)
		p.hangUp(w, true)
		return
	}
	met := x.one()
	if forbidden {
		met = Forbidden
	}
	abrupt := x.draws.IntN(2) == 0
	failed := x.failure(met, len(x.actions()))
	if met != "" {
		p.fired(operation, met)
	}
	var got reply
	switch met {
	case RequestLost:
		p.hangUp(w, abrupt)
		return
	case "", ErrorAfter, ReplyLost:
		if got, err = p.pass(r, x); err != nil {
			p.hangUp(w, abrupt) // the client has gone, or the endpoint has
			return
		}
	}
	switch {
	case met == ReplyLost || p.isDown():
		p.hangUp(w, abrupt)
	case failed.status != 0:
		write(w, reply{status: failed.status, text: p.encode(failed.body)})
	default:
		write(w, got)
	}
}

// meet counts a request and makes its random source; nil: the proxy is down.
func (p *Proxy) meet(operation string, header http.Header, sent []byte) (x *exchange, forbidden bool) {
	p.mu.Lock()
	if p.down {
		p.mu.Unlock()
		return nil, false
	}
	p.requests++
	n, rates, hook := p.requests, p.rates, p.hook
	forbidden = slices.Contains(p.forbidden, operation)
	p.counts[count{operation, ""}]++
	p.mu.Unlock()

	x = &exchange{header: header, sent: sent,
		chance: &chance{draws: rand.New(rand.NewPCG(p.seed, uint64(n))), rates: rates, operation: operation}}
	x.body, _ = decode(sent) // DynamoDB refuses invalid JSON
	if hook != nil {
		x.forced = hook(Request{N: n, Operation: operation, Body: x.body})
	}
	return x, forbidden
}

// pass is the request's way to DynamoDB and back.
func (p *Proxy) pass(r *http.Request, x *exchange) (reply, error) {
	if empty, ok := p.page(x); ok {
		return empty, nil
	}
	var before []state
	if p.lag != nil {
		var err error
		if before, err = p.before(x); err != nil {
			return reply{}, err
		}
	}
	got, err := p.send(r.Context(), r.Header, x.sent)
	if err == nil && p.lag != nil && got.status == http.StatusOK {
		p.lag.wrote(before)
		got.text = p.lagging(x, got.text)
	}
	return got, err
}

// call asks DynamoDB itself, with the credentials of a client's request.
func (p *Proxy) call(header http.Header, operation string, body map[string]any, into any) error {
	header = header.Clone()
	header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	header.Del("Content-Length")
	got, err := p.send(context.Background(), header, p.encode(body))
	if err == nil && got.status != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", operation, got.status, got.text)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(got.text, into)
}

func (p *Proxy) send(ctx context.Context, header http.Header, body []byte) (got reply, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.endpoint, bytes.NewReader(body))
	if err != nil {
		return got, err
	}
	request.Header = header.Clone()
	response, err := p.upstream.Do(request)
	if err != nil {
		return got, err
	}
	defer response.Body.Close()
	got = reply{status: response.StatusCode, header: response.Header}
	got.text, err = io.ReadAll(response.Body)
	return got, err
}

func (p *Proxy) encode(body map[string]any) []byte {
	text, err := json.Marshal(body)
	if err != nil {
		p.t.Errorf("proxy: %v", err)
	}
	return text
}

func write(w http.ResponseWriter, r reply) {
	header := w.Header()
	for _, name := range []string{"X-Amzn-Requestid", "Content-Type"} {
		if value := r.header.Get(name); value != "" {
			header.Set(name, value)
		}
	}
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/x-amz-json-1.0")
	}
	header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(r.text)), 10))
	header.Set("Content-Length", strconv.Itoa(len(r.text)))
	w.WriteHeader(r.status)
	_, _ = w.Write(r.text)
}

// hangUp closes the connection without a reply: by a reset if abrupt.
func (p *Proxy) hangUp(w http.ResponseWriter, abrupt bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // closed already
	}
	if tcp, ok := conn.(*net.TCPConn); ok && abrupt {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// decode keeps numbers as they are written.
func decode(text []byte) (body map[string]any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&body)
	return body, err
}
