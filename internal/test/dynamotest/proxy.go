package dynamotest

import (
	"bytes"
	"encoding/json"
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
}

// A Request is the input of a Hook.
type Request struct {
	N         int            // its number among the requests of this Proxy, from 1, in the order of their arrival
	Operation string         // "PutItem"
	Body      map[string]any // as sent, in DynamoDB's JSON; not to be changed
}

// A Hook names the fault of a request: an exclusive one, SmallPage or EmptyPage; Pass for none,
// ByRates for a draw by the rates. A fault that cannot happen to the operation does not. It is called
// in the goroutine of the request, before anything is done, and may wait: the request waits with it.
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
//
// It does not simulate that indexes lag. Eventually consistent reads are always up to date, batches
// are never partly unprocessed, and streams, expiry and capacity are DynamoDB Local's.
type Proxy struct {
	t        testing.TB
	endpoint string
	listener net.Listener
	upstream *http.Client
	seed     uint64

	mu        sync.Mutex
	rates     Rates
	hook      Hook
	forbidden []string
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
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(listener); err != http.ErrServerClosed {
			t.Errorf("proxy: %v", err)
		}
	}()
	t.Cleanup(func() {
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

// Count returns how often a fault, or with "" a request, has come to an operation, or to any ("").
func (p *Proxy) Count(operation string, fault Fault) (n int) { return p.countsOf(operation)[fault] }

// Counts returns how often each fault has happened, for a report.
func (p *Proxy) Counts() map[Fault]int {
	all := p.countsOf("")
	delete(all, "")
	return all
}

func (p *Proxy) countsOf(operation string) map[Fault]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[Fault]int{}
	for c, times := range p.counts {
		if operation == "" || c.operation == operation {
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
	sent []byte         // the body, as it is passed on
	body map[string]any // the same
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
	x, forbidden := p.meet(operation, sent)
	met := x.one()
	if forbidden {
		met = Forbidden
	}
	abrupt := x.draws.IntN(2) == 0
	actions, _ := x.body["TransactItems"].([]any)
	failed := x.failure(met, len(actions))
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
	case met == ReplyLost:
		p.hangUp(w, abrupt)
	case failed.status != 0:
		write(w, reply{status: failed.status, text: p.encode(failed.body)})
	default:
		write(w, got)
	}
}

// meet counts a request and makes its random source.
func (p *Proxy) meet(operation string, sent []byte) (x *exchange, forbidden bool) {
	p.mu.Lock()
	p.requests++
	n, rates, hook := p.requests, p.rates, p.hook
	forbidden = slices.Contains(p.forbidden, operation)
	p.counts[count{operation, ""}]++
	p.mu.Unlock()

	x = &exchange{sent: sent,
		chance: &chance{draws: rand.New(rand.NewPCG(p.seed, uint64(n))), rates: rates, operation: operation}}
	x.body = decode(sent) // DynamoDB refuses invalid JSON
	if hook != nil {
		x.forced = hook(Request{N: n, Operation: operation, Body: x.body})
	}
	return x, forbidden
}

// pass is the request's way to DynamoDB and back.
func (p *Proxy) pass(r *http.Request, x *exchange) (got reply, err error) {
	if empty, ok := p.page(x); ok {
		return empty, nil
	}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, p.endpoint, bytes.NewReader(x.sent))
	if err != nil {
		return got, err
	}
	request.Header = r.Header.Clone()
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
func decode(text []byte) (body map[string]any) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&body) != nil {
		return nil
	}
	return body
}
