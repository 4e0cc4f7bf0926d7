package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

// kept are the fields that do not leave the house.
var kept = []string{"Order.Tag", "Order.At", "Purchase.History", "Sale.ClientSecret"}

func filledWorld() *world {
	w := newWorld()
	w.created, w.timeline = &tracking.Created{}, &tracking.Timeline{}
	fill(w.created, kept...)
	w.created.Sale.ClientSecret = secret.New("pi_1_secret_abc")
	for _, v := range []any{w.timeline, &w.purchases, &w.payments, &w.rows, &w.events, &w.accounts, &w.jobs, &w.verdict} {
		fill(v, kept...)
	}
	return w
}

func collect[T any](list iter.Seq2[T, error]) (all []T, err error) {
	for v, e := range list {
		if e != nil {
			return all, e
		}
		all = append(all, v)
	}
	return all, nil
}

func same(t *testing.T, what string, got, want any, err error) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, %v\nwant %+v", what, got, err, want)
	}
}

func TestClient_IsAService(t *testing.T) {
	w := filledWorld()
	c, ctx := w.client(t), t.Context()
	var order tracking.Order
	fill(&order, kept...)
	order.Key = "a key: /of ~ mine"
	created, err := c.CreatePurchase(ctx, order)
	if err != nil {
		t.Fatal(err)
	}
	if got := created.Sale.ClientSecret.Reveal(); got != "pi_1_secret_abc" {
		t.Errorf("got the client secret %q", got)
	}
	created.Sale.ClientSecret = w.created.Sale.ClientSecret // the same text elsewhere
	same(t, "CreatePurchase", created, w.created, nil)
	same(t, "the order", w.order, order, nil)
	purchases, err := collect(c.Purchases(ctx, account))
	same(t, "Purchases", purchases, w.purchases, err)
	payments, err := collect(c.Payments(ctx, account))
	same(t, "Payments", payments, w.payments, err)
	timeline, err := c.Timeline(ctx, "p1")
	same(t, "Timeline", timeline, w.timeline, err)
	payment, err := c.Payment(ctx, "acct_1", "pi_1")
	same(t, "Payment", payment, w.payments[0], err)
	q := tracking.EventQuery{StripeAccount: "acct_1", Subscription: "sub_1", From: w.now.Add(time.Nanosecond),
		To: w.now.AddDate(0, 0, 1), Limit: 2}
	rows, err := collect(c.Events(ctx, q))
	same(t, "Events", rows, w.rows, err)
	same(t, "the query", w.query, q, nil)
	rows, err = collect(c.Events(ctx, tracking.EventQuery{}))
	same(t, "Events", rows, w.rows, err)
	same(t, "the query", w.query, tracking.EventQuery{}, nil)
	event, err := c.Event(ctx, "evt_1")
	same(t, "Event", event, w.events[0], err)
	w.events[0].Body = []byte("{\"a\": \"\\u0000 <é>\"}\n") // a text
	event, err = c.Event(ctx, "evt_1")
	same(t, "Event", event, w.events[0], err)
	waiting, err := collect(c.Waiting(ctx))
	for _, e := range w.events {
		e.Body = nil
	}
	same(t, "Waiting", waiting, w.events, err)
	rebuilt, err := c.Rebuild(ctx, "acct_1")
	if err != nil || rebuilt.StripeAccount != "acct_1" || rebuilt.Events != 3 || len(rebuilt.Differences) != 1 ||
		rebuilt.Differences[0].Folded != "paid" {
		t.Errorf("Rebuild: %+v, %v", rebuilt, err)
	}
	verdict, err := c.Replay(ctx, "evt_1")
	same(t, "Replay", verdict, w.verdict, err)
	accounts, err := collect(c.ConnectedAccounts(ctx))
	same(t, "ConnectedAccounts", accounts, w.accounts, err)
	registered, err := c.Register(ctx, account, "acct_1")
	same(t, "Register", registered, w.accounts[0], err)
	var state tracking.PollState
	fill(&state)
	same(t, "SavePoll", nil, nil, c.SavePoll(ctx, "acct_1", state))
	same(t, "the poll", w.poll, state, nil)
	var object tracking.Object
	fill(&object)
	changed, err := c.Apply(ctx, "", object)
	same(t, "Apply", changed, true, err)
	same(t, "the object", w.object, object, nil)
	jobs, err := collect(c.Jobs(ctx))
	same(t, "Jobs", jobs, w.jobs, err)
	same(t, "ReplayJob", nil, nil, c.ReplayJob(ctx, "fulfil/p 1"))
	same(t, "the job", w.calls()[len(w.calls())-1], "replay job fulfil/p 1", nil)
	if strings.Contains(w.logged(), "_secret_") || strings.Contains(w.logged(), apiKey) {
		t.Errorf("a secret is in the log: %s", w.logged())
	}
}

func TestClient_ManyRows(t *testing.T) {
	w := newWorld()
	for i := range 5000 {
		w.rows = append(w.rows, tracking.EventRow{ID: fmt.Sprintf("evt_%d", i), Type: "end"})
	}
	c := w.client(t)
	rows, err := collect(c.Events(t.Context(), tracking.EventQuery{}))
	same(t, "Events", rows, w.rows, err)
	rows, err = collect(c.Events(t.Context(), tracking.EventQuery{Limit: 1234}))
	same(t, "Events", rows, w.rows[:1234], err)
	for range c.Events(t.Context(), tracking.EventQuery{}) {
		break // no more is called for
	}
	w.rows = nil
	rows, err = collect(c.Events(t.Context(), tracking.EventQuery{}))
	same(t, "no events", rows, w.rows, err)
}

// calls are all calls of a client, each with its error.
func clientCalls(ctx context.Context, c *httpapi.Client) map[string]error {
	errs := map[string]error{}
	_, errs["CreatePurchase"] = c.CreatePurchase(ctx, tracking.Order{Key: "k"})
	_, errs["Purchases"] = collect(c.Purchases(ctx, account))
	_, errs["Timeline"] = c.Timeline(ctx, "p1")
	_, errs["Payments"] = collect(c.Payments(ctx, account))
	_, errs["Payment"] = c.Payment(ctx, "acct_1", "pi_1")
	_, errs["Events"] = collect(c.Events(ctx, tracking.EventQuery{}))
	_, errs["Waiting"] = collect(c.Waiting(ctx))
	_, errs["Event"] = c.Event(ctx, "evt_1")
	_, errs["Replay"] = c.Replay(ctx, "evt_1")
	_, errs["Rebuild"] = c.Rebuild(ctx, "acct_1")
	_, errs["ConnectedAccounts"] = collect(c.ConnectedAccounts(ctx))
	_, errs["Register"] = c.Register(ctx, account, "acct_1")
	errs["SavePoll"] = c.SavePoll(ctx, "acct_1", tracking.PollState{})
	_, errs["Apply"] = c.Apply(ctx, "", tracking.Object{})
	_, errs["Jobs"] = collect(c.Jobs(ctx))
	errs["ReplayJob"] = c.ReplayJob(ctx, "fulfil/p1")
	return errs
}

func TestClient_Errors(t *testing.T) {
	for _, filled := range []bool{false, true} { // true: lists have rows before the error
		for _, want := range []error{tracking.ErrUnregistered, tracking.ErrOther, tracking.ErrOrder,
			tracking.ErrDisconnected, store.ErrNotFound} {
			w := newWorld()
			if filled {
				w = filledWorld()
			}
			w.fail = fmt.Errorf("account \"a\": %w", want)
			for call, got := range clientCalls(t.Context(), w.client(t)) {
				if call == "CreatePurchase" && want == store.ErrNotFound {
					continue
				}
				if !errors.Is(got, want) || got.Error() != w.fail.Error() {
					t.Errorf("%s: got %v, want %v", call, got, w.fail)
				}
			}
		}
		w := newWorld()
		w.fail = fmt.Errorf("x: %w", &tracking.FieldError{Field: "amount", Problem: "want: more"})
		for call, got := range clientCalls(t.Context(), w.client(t)) {
			if e, ok := errors.AsType[*tracking.FieldError](got); !ok || e.Field != "amount" ||
				!strings.HasSuffix(e.Problem, "want: more") {
				t.Errorf("%s: got %#v", call, got)
			}
		}
		w.fail = errors.New("private")
		for call, got := range clientCalls(t.Context(), w.client(t)) {
			e, ok := errors.AsType[*httpapi.StatusError](got)
			if !ok || e.Status != 503 || strings.Contains(got.Error(), "private") || errors.Is(got, store.ErrNotFound) {
				t.Errorf("%s: got %v, want a StatusError of 503", call, got)
			}
		}
	}
}

func TestClient_WrongKey(t *testing.T) {
	w := fullWorld()
	c, err := httpapi.NewClient(w.serve(t).URL+"/", secret.New("another key that is wrong"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for call, got := range clientCalls(t.Context(), c) {
		if e, ok := errors.AsType[*httpapi.StatusError](got); !ok || e.Status != 401 ||
			strings.Contains(got.Error(), "another key") {
			t.Errorf("%s: got %v, want 401", call, got)
		}
	}
	if got := w.calls(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestClient_IdsThatNoPathCarries(t *testing.T) {
	w := fullWorld()
	c, ctx := w.client(t), t.Context()
	for _, id := range []string{"", ".", "..", "a/b", "a b", "é", strings.Repeat("a", 256)} {
		_, timeline := c.Timeline(ctx, id)
		_, payment := c.Payment(ctx, "acct_1", id)
		_, at := c.Payment(ctx, id, "pi_1")
		_, event := c.Event(ctx, id)
		_, replay := c.Replay(ctx, id)
		for _, err := range []error{timeline, payment, at, event, replay} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%q: got %v", id, err)
			}
		}
		if err := c.SavePoll(ctx, id, tracking.PollState{}); !errors.Is(err, tracking.ErrUnregistered) {
			t.Errorf("%q: got %v", id, err)
		}
	}
	for _, key := range []string{"", "a\nb", "é", strings.Repeat("a", 256)} {
		if _, err := c.CreatePurchase(ctx, tracking.Order{Key: key}); err == nil {
			t.Errorf("the key %q was taken", key)
		}
	}
	if got := w.calls(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// TestClient_CutLists: a list that is not whole never looks like one.
func TestClient_CutLists(t *testing.T) {
	const row = `{"id":"evt_1","at":"2026-11-21T12:00:00Z"}` + "\n"
	for name, tt := range map[string]struct {
		text  string
		abort bool
		rows  int
		want  string // of the error
	}{
		"nothing":          {"", false, 0, "cut off"},
		"no end":           {row + row, false, 2, "cut off"},
		"within a row":     {row + row[:20], false, 1, "cut off"},
		"within the end":   {row + `{"end":tr`, false, 1, "cut off"},
		"broken off":       {row + row, true, 2, "cut off"},
		"broken off early": {"", true, 0, "no answer"},
		"not of this API":  {"<html>\n", false, 0, "cut off"},
		"with an error":    {row + `{"error":"a store is down","code":"unavailable"}` + "\n", false, 1, "a store is down"},
		"whole":            {row + row + `{"end":true}` + "\n", false, 2, ""},
		"whole, no break":  {row + `{"end":true}`, false, 1, ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if tt.text != "" {
				_, _ = io.WriteString(w, tt.text)
				_ = http.NewResponseController(w).Flush()
			}
			if tt.abort {
				panic(http.ErrAbortHandler)
			}
		}))
		c, err := httpapi.NewClient(server.URL, secret.New(apiKey), nil)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := collect(c.Events(t.Context(), tracking.EventQuery{}))
		if len(rows) != tt.rows || (err == nil) != (tt.want == "") ||
			(err != nil && !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %d rows, %v; want %d, %q", name, len(rows), err, tt.rows, tt.want)
		}
		c.Close()
		server.Close()
	}
}

// TestClient_PanicInAList: what the server sends when a list panics is no whole list either.
func TestClient_PanicInAList(t *testing.T) {
	w := newWorld()
	for range 2000 {
		w.rows = append(w.rows, tracking.EventRow{ID: "evt_1"})
	}
	o := w.options()
	o.Ledger = panicking{w, 1500}
	c, err := httpapi.NewClient(newServer(t, mustNew(t, o)), secret.New(apiKey), nil)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := collect(c.Events(t.Context(), tracking.EventQuery{}))
	if err == nil || len(rows) > 1500 {
		t.Errorf("got %d rows, %v", len(rows), err)
	}
}

type panicking struct {
	*world
	after int
}

func (p panicking) Events(ctx context.Context, q tracking.EventQuery) iter.Seq2[tracking.EventRow, error] {
	return func(yield func(tracking.EventRow, error) bool) {
		n := 0
		for row, err := range p.world.Events(ctx, q) {
			if n++; n > p.after {
				panic("poison")
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// TestClient_Silence: a server that says nothing is given up, and a slow reader is not.
func TestClient_Silence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"id":"evt_1"}`+"\n"+`{"id":"evt_2"}`+"\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})}
		go func() { _ = server.Serve(p) }()
		h := p.client()
		c, err := httpapi.NewClient("http://here", secret.New(apiKey), h)
		if err != nil {
			t.Fatal(err)
		}
		begun, rows, pauses := time.Now(), 0, time.Duration(0)
		for _, err = range c.Events(t.Context(), tracking.EventQuery{}) {
			if err == nil {
				rows++
				<-time.After(10 * time.Minute)
				pauses += 10 * time.Minute
			}
		}
		if took := time.Since(begun) - pauses; rows != 2 || err == nil || !strings.Contains(err.Error(), "fell silent") ||
			took != 65*time.Second {
			t.Errorf("got %d rows, %v after %v; want 2 and an error after 65 s", rows, err, took)
		}
		begun = time.Now()
		if _, err := c.Timeline(t.Context(), "p1"); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(begun) != 65*time.Second {
			t.Errorf("got %v after %v, want the deadline after 65 s", err, time.Since(begun))
		}
		c.Close()
		_ = server.Close()
	})
}

func TestNewClient(t *testing.T) {
	for _, base := range []string{"", "here", "ftp://here", "http://", "http://a:password@here",
		"http://here?key=password", "http://here#password", "http://password here"} {
		if _, err := httpapi.NewClient(base, secret.New(apiKey), nil); err == nil ||
			strings.Contains(err.Error(), "password") {
			t.Errorf("%q: got %v", base, err)
		}
	}
	if _, err := httpapi.NewClient("http://here", secret.Text{}, nil); err == nil {
		t.Error("a client without a key")
	}
	asked := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer first.Close()
	c, err := httpapi.NewClient(first.URL, secret.New(apiKey), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Timeline(t.Context(), "p1"); err == nil || asked != 0 {
		t.Errorf("a redirect was followed: got %v, %d requests", err, asked)
	}
	first.Close()
	if _, err := c.Timeline(t.Context(), "p1"); err == nil ||
		!strings.Contains(err.Error(), "no answer of the server at "+first.URL) {
		t.Errorf("no server: got %v", err)
	}
}
