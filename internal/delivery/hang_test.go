package delivery

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store/memstore"
)

// A network answers by host. A host that hangs never does.
type network struct {
	mu       sync.Mutex
	hangs    map[string]bool // guarded by mu, as all below
	answers  map[string]int  // status; 0: 204
	header   http.Header
	got      map[string]int
	underWay map[string]int
	most     int // requests under way to one host
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Host
	n.mu.Lock()
	n.got[host]++
	n.underWay[host]++
	n.most = max(n.most, n.underWay[host])
	hangs := n.hangs[host]
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.underWay[host]--
	}()
	if hangs {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	rec := httptest.NewRecorder()
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.Copy(rec.Header(), n.header)
	rec.WriteHeader(max(n.answers[host], http.StatusNoContent))
	return rec.Result(), nil
}

func (n *network) count(host string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.got[host]
}

func bubble(t *testing.T) (*world, *Sender, *network) {
	w := &world{T: t, tables: schema.New("")}
	s, err := memstore.Open(w.tables.All(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	w.store = s
	w.Service = New(Options{Store: s, Tables: w.tables, Now: time.Now, Days: func(context.Context) (int, error) { return 30, nil }})
	n := &network{hangs: map[string]bool{}, answers: map[string]int{}, got: map[string]int{}, underWay: map[string]int{}}
	x := w.NewSender(time.Now, true)
	x.client = &http.Client{Transport: n}
	return w, x, n
}

// TestHangs: an endpoint that hangs holds up nobody else's messages, has few requests, uses up few attempts,
// and gets its messages when it works again.
func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x, n := bubble(t)
		n.hangs["slow"] = true
		for _, host := range []string{"slow", "fast"} {
			if _, _, err := w.Create(t.Context(), "http://"+host, nil); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(10 * time.Second)
		const messages = 250
		for i := range messages {
			w.cause(fmt.Sprint(i), "period.paid")
		}
		began := time.Now()
		stop := make(chan struct{})
		go func() {
			for {
				if _, err := x.Drain(t.Context()); err != nil {
					t.Error(err)
				}
				select {
				case <-stop:
					return
				case <-x.Wake():
				case <-time.After(10 * time.Second):
				}
			}
		}()
		for n.count("fast") < messages {
			<-time.After(100 * time.Millisecond)
		}
		if took := time.Since(began); took > time.Second {
			t.Error("the fast endpoint waited for", took)
		}
		<-time.After(2 * time.Hour)
		if got := n.count("slow"); got < 5 || got > 30 {
			t.Error(got, "requests to the slow endpoint")
		}
		tries := 0
		for _, m := range w.messages(Filter{State: Waiting}) {
			tries += len(m.Attempts)
		}
		if got := w.states(); got[Waiting] != messages || got[Delivered] != messages || tries > 30 {
			t.Error(got, tries)
		}
		n.mu.Lock()
		n.hangs["slow"] = false
		n.mu.Unlock()
		<-time.After(3 * time.Hour)
		if got := w.states(); got[Delivered] != 2*messages || n.most > laneWorkers {
			t.Error(got, n.most)
		}
		close(stop)
		x.Close(t.Context())
	})
}

// TestClose: a request under way is given the time of the context, and its message is not counted as failed.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x, n := bubble(t)
		n.hangs["slow"] = true
		if _, _, err := w.Create(t.Context(), "http://slow", nil); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Second)
		w.cause("a", "period.paid")
		if _, err := x.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		x.Close(ctx)
		if m := w.messages(Filter{}); time.Since(began) != 3*time.Second || len(m) != 1 || m[0].State != Waiting || len(m[0].Attempts) != 0 {
			t.Errorf("%s, %+v", time.Since(began), m)
		}
	})
}

// TestRetryAfter: a receiver's word on the next attempt counts, up to an hour.
func TestRetryAfter(t *testing.T) {
	for asked, want := range map[string]time.Duration{"": 5 * time.Second, "120": 2 * time.Minute, "999999999": time.Hour, "-5": 5 * time.Second,
		"Fri, 31 Dec 1999 23:59:59 GMT": 5 * time.Second, strings.Repeat("9", 30): 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w, x, n := bubble(t)
			n.answers["busy"], n.header = http.StatusServiceUnavailable, http.Header{"Retry-After": {asked}}
			if _, _, err := w.Create(t.Context(), "http://busy", nil); err != nil {
				t.Fatal(err)
			}
			<-time.After(10 * time.Second)
			w.cause("a", "period.paid")
			if _, err := x.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			x.running.Wait()
			if m := w.messages(Filter{}); len(m) != 1 || time.Until(m[0].Due) != want {
				t.Errorf("%q: %+v, want %s", asked, m, want)
			}
			x.Close(t.Context())
		})
	}
}
