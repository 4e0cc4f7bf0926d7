package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/test/spectest"
)

// TestAPI_ExactlyOnce posts requests of every kind from eight clients to two processes of the real binary that
// share a folder. Each request is sent one to four times with its idempotency key, also at once and to both.
// A proxy cuts requests and answers at random bytes, the processes are killed with SIGKILL again and again,
// and payment runs and deliveries go on meanwhile. In the end no object is there twice, no period was charged
// twice, nothing acknowledged is lost, and every delivery arrived with a valid signature. DUESDAY_SOAK=1
// sends 5,000 requests and kills 200 times.
func TestAPI_ExactlyOnce(t *testing.T) {
	soaktest.Long(t)
	t.Parallel()
	posts, kills := soaktest.Cases(t, 0, 600, 5000), soaktest.Cases(t, 0, 16, 200)
	s := newOnce(t, "pebble:"+filepath.Join(t.TempDir(), "store"))
	s.ledger = filepath.Join(s.dir, "ledger.jsonl")
	s.processor = "sandbox:" + s.ledger + "?latency=2ms&unknown=0.02&lost=0.01&busy=0.01"
	s.storm(soaktest.Start(t), posts, kills)
}

// TestAPI_ExactlyOnce_OnDynamoDB is the same on DynamoDB Local, where the two processes share a store, and with the
// fake of Stripe as the processor, which also has card links. It runs alone: beside others, DynamoDB Local is slow.
// DUESDAY_SOAK=1 sends 500 requests and kills 200 times.
func TestAPI_ExactlyOnce_OnDynamoDB(t *testing.T) {
	soaktest.Long(t)
	store, _ := onDynamo(t)
	posts, kills := soaktest.Cases(t, 0, 100, 500), soaktest.Cases(t, 0, 6, 200)
	s := newOnce(t, store)
	s.processor = "stripe:?rate=1000&return_url=" + url.QueryEscape(thanks)
	s.storm(soaktest.Start(t), posts, kills)
}

// storm sends the requests, kills meanwhile, and audits what was done.
func (s *once) storm(programme *soaktest.Programme, posts, kills int) {
	s.open()
	var clients, beside sync.WaitGroup
	ended := make(chan struct{})
	killed := 0
	beside.Go(func() { // as fast as the requests, so that all kills are among them
		for killed < kills && s.wait(ended, func() bool { return int(s.posted.Load()) > killed*posts/kills }) && programme.Next() {
			s.kill(killed)
			killed++
		}
	})
	beside.Go(func() {
		for on := false; s.wait(ended, after(300*time.Millisecond)); on = !on {
			s.send(s.up(s.intN(2)), http.MethodPut, "/v1/charging", "", fmt.Sprintf(`{"charging":%t}`, on || s.intN(4) > 0))
		}
	})
	for client := range 8 {
		random := rand.New(rand.NewPCG(s.random.Uint64(), uint64(client)))
		clients.Go(func() {
			for n := 0; int(s.posted.Load()) < posts && programme.Whole(); n++ {
				(&customer{once: s, random: random, id: onceCustomer(client, n), shop: n < onceShops}).live(posts)
			}
		})
	}
	clients.Wait()
	close(ended)
	beside.Wait()
	s.calm()
	s.settle()
	if s.audit(); !s.mute.Load() {
		s.end()
	}
	s.t.Logf("%d POSTs in %d sends, %d of them answered in full, and %d kills; %s", s.posted.Load(), s.sends.Load(), s.answers.Load(), killed, s.summary())
}

// A once is a store with two serves, and what was asked of them.
type once struct {
	t         *testing.T
	dir       string
	store     string
	processor string
	ledger    string       // of the sandbox
	clock     *clock.Clock // ten times as fast, so that what a killed process was doing is soon taken over
	key       string
	spec      *spectest.Spec
	nodes     [2]*node
	client    *http.Client
	stripe    *onceStripe
	ear       *onceEar
	endpoint  string // of the ear

	mu     sync.Mutex
	random *rand.Rand
	all    []*onePost
	names  map[string][]string // by account: what its name may be

	posted, sends, answers atomic.Int64
	mute                   atomic.Bool // a request got no answer in calm
	fulfilled              int
}

// A node is a serve behind a cutter.
type node struct {
	cutter
	process *exec.Cmd
}

func newOnce(t *testing.T, store string) *once {
	s := &once{t: t, dir: t.TempDir(), store: store, random: rand.New(rand.NewPCG(soaktest.Seed(t), 28)), names: map[string][]string{},
		spec: spectest.New(t), ear: newOnceEar(t),
		client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
	now := time.Now().UTC().Format(time.RFC3339Nano)
	var err error
	if s.clock, err = clock.Parse(now+",10s/s,"+now, time.Now); err != nil {
		t.Fatal(err)
	}
	s.stripe = newOnceStripe(t, s)
	return s
}

// intN is safe for concurrent use.
func (s *once) intN(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

// wait waits until it is time, or returns false when the end comes first.
func (s *once) wait(end <-chan struct{}, itIsTime func() bool) bool {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !itIsTime() {
		select {
		case <-end:
			return false
		case <-tick.C:
		}
	}
	return true
}

func (s *once) command(args ...string) *exec.Cmd {
	c := process(s.t, append(s.stripe.env(), "DUESDAY_CLOCK="+s.clock.String()), append(args, "--json", "--store", s.store, "--mail", filepath.Join(s.dir, "mail"),
		"--processor", s.processor)...)
	c.Stderr = nil
	return c
}

// object runs a command that prints an object.
func (s *once) object(args ...string) (v map[string]any) {
	s.t.Helper()
	out, err := s.command(args...).Output()
	if err != nil || json.Unmarshal(out, &v) != nil {
		s.t.Fatalf("duesday %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return v
}

// open creates the store with a key and an endpoint, and starts both serves.
func (s *once) open() {
	mustRun(s.t, s.command("store", "create"))
	s.key = s.object("key", "create", "storm", "--scope", "admin")["key"].(string)
	made := s.object("endpoint", "create", s.ear.URL)
	s.endpoint = made["id"].(string)
	s.ear.trust(made["secret"].(string))
	for i := range s.nodes {
		s.nodes[i] = &node{cutter: cutter{intN: s.intN}}
		s.nodes[i].listen(s.t)
		s.start(i)
	}
	s.t.Cleanup(func() {
		for _, n := range s.nodes {
			if n.process.ProcessState == nil {
				_ = n.process.Process.Kill()
				_ = n.process.Wait()
			}
		}
	})
}

// start starts a serve, and waits until it serves.
func (s *once) start(i int) {
	c := s.command("serve", "--listen=", "--api", "127.0.0.1:0", "--pages=", "--no-poll", "--allow-private", "--on-fulfil", s.stripe.fulfil())
	said := &bytes.Buffer{}
	c.Stderr = said
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	var v serveView
	if err == nil {
		err = json.NewDecoder(out).Decode(&v)
	}
	if err != nil {
		s.t.Errorf("serve: %v\n%s", err, said)
		return
	}
	s.nodes[i].process = c
	s.nodes[i].to.Store(&v.APIAddress)
}

// kill kills one serve, or both, and starts it again.
func (s *once) kill(n int) {
	hit := []int{s.intN(2)}
	if n%8 == 7 {
		hit = []int{0, 1}
	}
	for _, i := range hit {
		s.nodes[i].to.Store(nil)
		_ = s.nodes[i].process.Process.Kill()
		_ = s.nodes[i].process.Wait() // it was killed
	}
	for _, i := range hit {
		s.start(i)
	}
}

// up returns the node, or the other one if the node is down, or waits until one of them serves.
func (s *once) up(i int) *node {
	for over := after(time.Minute); s.nodes[i].to.Load() == nil && !over(); i = 1 - i {
		time.Sleep(time.Millisecond)
	}
	return s.nodes[i]
}

// calm ends the cuts and the pauses of charging.
func (s *once) calm() {
	for _, n := range s.nodes {
		n.calm.Store(true)
	}
	s.must(http.MethodPut, "/v1/charging", "", `{"charging":true}`, http.StatusOK)
}

// settle has a payment run go to its end, so that what is due is charged even if no run had the time before.
func (s *once) settle() {
	c := &customer{once: s, random: rand.New(rand.NewPCG(s.random.Uint64(), 8)), id: "settle"}
	for over := after(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if p := c.post("run", "/v1/runs", `{"kind":"payments"}`, `{"kind":"payments","date":"2026-01-31"}`); p.last != nil {
			for path := fmt.Sprint("/v1/runs/", p.last.body["id"]); !over(); time.Sleep(100 * time.Millisecond) {
				if s.must(http.MethodGet, path, "", "", http.StatusOK).body["ended_at"] != nil {
					return
				}
			}
		}
		if over() {
			s.t.Error("no payment run came to its end in calm")
			return
		}
	}
}

// A reply is a complete answer.
type reply struct {
	status   int
	replayed bool
	wait     bool // it has Retry-After
	code     string
	body     map[string]any
}

// send sends a request once, and returns the answer, or nil if none arrives in full.
func (s *once) send(n *node, method, path, key, body string, headers ...string) *reply {
	r, err := http.NewRequest(method, "http://"+n.Addr().String()+path, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return nil
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	if method != http.MethodGet {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	s.sends.Add(1)
	answer, err := s.client.Do(r)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil
	}
	s.answers.Add(1)
	a := &reply{status: answer.StatusCode, replayed: answer.Header.Get("Idempotent-Replayed") == "true", wait: answer.Header.Get("Retry-After") != ""}
	if err := json.Unmarshal(text, &a.body); err != nil {
		s.t.Errorf("%s %s: %d %q: %v", method, path, answer.StatusCode, text, err)
	}
	a.code, _ = a.body["code"].(string)
	if err := s.spec.Check(&spectest.Exchange{Request: r, Asked: []byte(body), Status: a.status, Header: answer.Header, Answer: text}); err != nil {
		s.t.Error(err)
	}
	if a.status >= 500 && a.status != http.StatusServiceUnavailable {
		s.t.Errorf("%s %s: %d %s", method, path, a.status, text)
	}
	return a
}

// must sends a request until it is answered, which must be with the status.
func (s *once) must(method, path, key, body string, status int) *reply {
	s.t.Helper()
	a := s.insist(method, path, key, body)
	if a.status != status {
		s.t.Errorf("%s %s with the key %q: %d %v, want %d", method, path, key, a.status, a.body, status)
	}
	return a
}

// insist sends a request until it gets another answer than to wait. After the first request without one, it does not wait.
func (s *once) insist(method, path, key, body string) *reply {
	s.t.Helper()
	for over := after(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if a := s.send(s.up(s.intN(2)), method, path, key, body); a != nil && !a.wait {
			return a
		} else if over() || s.mute.Load() {
			s.mute.Store(true)
			s.t.Errorf("%s %s with the key %q: no answer, but %+v", method, path, key, a)
			return &reply{}
		}
	}
}

// end stops both serves, and audits the store and the ledger.
func (s *once) end() {
	for _, n := range s.nodes {
		if err := n.process.Process.Signal(syscall.SIGTERM); err != nil {
			s.t.Error(err)
		}
		if err := n.process.Wait(); err != nil {
			s.t.Errorf("serve, told to stop: %v", err)
		}
	}
	if out, err := s.command("verify").Output(); err != nil {
		s.t.Errorf("verify: %v\n%s", err, out)
	}
}

// A cutter is a TCP proxy that has an address of its own. Each connection is one request. It cuts some of the
// requests, and many answers, at a random byte.
type cutter struct {
	net.Listener
	intN func(n int) int
	to   atomic.Pointer[string] // nil: nobody answers
	calm atomic.Bool            // cuts nothing
}

func (c *cutter) listen(t *testing.T) {
	var err error
	if c.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		for {
			in, err := c.Accept()
			if err != nil {
				return
			}
			go c.pass(in.(*net.TCPConn))
		}
	}()
}

const uncut = 1 << 40

func (c *cutter) pass(in *net.TCPConn) {
	defer in.Close()
	to := c.to.Load()
	if to == nil {
		return
	}
	out, err := net.Dial("tcp", *to)
	if err != nil {
		return
	}
	defer out.Close()
	asked, answered := int64(uncut), int64(uncut)
	if !c.calm.Load() {
		switch dice := c.intN(100); {
		case dice < 5:
			asked = int64(c.intN(500))
		case dice < 30:
			answered = int64(c.intN(900))
		}
	}
	go func() {
		n, _ := io.CopyN(out, in, asked)
		if n == asked { // the server learns that the rest is missing
			out.Close()
			in.Close()
		}
	}()
	if n, _ := io.CopyN(in, out, answered); n == answered {
		_ = in.SetLinger(0)
	}
}
