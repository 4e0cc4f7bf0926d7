package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/web"
)

// ring has a key for each text of the form "SCOPE MERCHANT".
type ring struct{}

func (ring) Find(_ context.Context, text string) (*key.Key, error) {
	scope, merchant, _ := strings.Cut(text, " ")
	return &key.Key{ID: "dd_a", Name: "shop", Scope: key.Scope(scope), Merchant: merchant}, nil
}

// A thing is what the tests create.
type thing struct {
	Name  string `json:"name"`
	Count int    `json:"count,omitempty"`
}

// A factory creates things at most once a key, on a real store.
type factory struct {
	store  store.Store
	table  string
	during func(ctx context.Context) // runs before the commit
	wrong  error                     // refuses the request before the commit
	after  error                     // fails the request after its commit
	none   bool                      // there is nothing to commit
	same   func(*call.Row) error     // compares the row of a command line's key; nil: the change knows none

	mu          sync.Mutex
	made, again int
}

func newFactory(t testing.TB) *factory {
	t.Helper()
	tables := schema.New("")
	s, err := memstore.Open(tables.All(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return &factory{store: s, table: tables.RecurringPayments.Name}
}

func (f *factory) server() *web.Server {
	return web.New(web.Options{Store: f.store, Table: f.table, Keys: ring{}, Routes: []web.Route{
		{Pattern: "POST /v1/things/{id}", Operation: "createThing", Scope: key.Write, Merchants: true, Do: f.create},
		{Pattern: "GET /v1/things", Operation: "listThings", Scope: key.Read, Merchants: true, Do: f.find}}})
}

func (f *factory) create(w http.ResponseWriter, r *web.Request) error {
	var form thing
	if err := r.Read(&form); err != nil {
		return err
	}
	item := store.NewItem()
	item.Set(schema.PK, store.S("THING#"+r.PathValue("id")))
	item.Set(schema.SK, store.S("THING"))
	return r.Server.Once(w, r, web.Change{Object: "things/" + r.PathValue("id"), Asked: form,
		Do: func(ctx context.Context) (int, any, error) {
			if f.during != nil {
				f.during(ctx)
			}
			if f.wrong != nil || f.none {
				return http.StatusOK, form, f.wrong
			}
			if err := call.Commit(ctx, f.store, store.Put(f.table, item)); err != nil {
				return 0, nil, err
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.made++
			return http.StatusCreated, map[string]any{"name": form.Name, "secret": "s"}, f.after
		},
		Again: func(ctx context.Context, row *call.Row) (any, error) {
			if f.same != nil {
				if _, err := call.Begin(ctx, f.store, f.same); err != nil {
					return nil, err
				}
			}
			if err := call.Commit(ctx, f.store, store.Put(f.table, item)); err != nil { // what was cut off; the row is not stored again
				return nil, err
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.again++
			return map[string]string{"now": row.Object}, nil
		}})
}

func (f *factory) find(w http.ResponseWriter, r *web.Request) error {
	values, err := r.Values("idempotency_key")
	if err != nil {
		return err
	}
	c := call.Call{Key: values.Get("idempotency_key"), Caller: r.Key.Merchant, Table: f.table}
	row, err := c.Find(r.Context(), f.store)
	if err == nil || errors.Is(err, store.ErrNotFound) {
		object := ""
		if row != nil {
			object = row.Object
		}
		web.Send(w, http.StatusOK, object)
		return nil
	}
	return err
}

func post(s http.Handler, who, path, key, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+who)
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	a := httptest.NewRecorder()
	s.ServeHTTP(a, r)
	return a
}

func TestOnce(t *testing.T) {
	f := newFactory(t)
	for i, tt := range []struct {
		who, path, key, body string
		status               int
		want                 string // in the answer
		made                 int
	}{
		{"write", "/v1/things/1", "", `{"name":"a"}`, 400, "idempotency_key", 0},
		{"write", "/v1/things/1", "é", `{"name":"a"}`, 400, "idempotency_key", 0},
		{"write", "/v1/things/1?x=1", "k", `{"name":"a"}`, 422, "field", 0},
		{"write", "/v1/things/1", "k", `{"name":"a","count":2}`, 201, `"secret"`, 1},
		{"write", "/v1/things/1", "k", `{"name":"a","count":2}`, 200, `{"now":"things/1"}`, 1},
		{"charge", "/v1/things/1", "k", "{ \"count\": 2,\n \"name\":\"\\u0061\"}", 200, `{"now":"things/1"}`, 1},
		{"read", "/v1/things/1", "k", `{"name":"a","count":2}`, 403, "scope", 1},
		{"write", "/v1/things/1", "k", `{"name":"b","count":2}`, 422, "idempotency_key", 1},
		{"write", "/v1/things/2", "k", `{"name":"a","count":2}`, 422, "idempotency_key", 1},
		{"write m", "/v1/things/1", "k", `{"name":"b"}`, 201, `"secret"`, 2}, // another caller has its own keys
		{"write m", "/v1/things/1", "k", `{"name":"b"}`, 200, `{"now":"things/1"}`, 2},
	} {
		a := post(f.server(), tt.who, tt.path, tt.key, tt.body) // a new server, as after a restart
		replayed := strings.Contains(tt.want, "now")
		if a.Code != tt.status || !strings.Contains(a.Body.String(), tt.want) || f.made != tt.made ||
			(a.Header().Get("Idempotent-Replayed") == "true") != replayed ||
			(a.Header().Get("Location") == "/v1/things/1") != (tt.status == 201) || replayed && strings.Contains(a.Body.String(), "secret") {
			t.Errorf("%d: got %d %s %v, %d made; want %d %s, %d", i, a.Code, a.Body, a.Header(), f.made, tt.status, tt.want, tt.made)
		}
	}
}

// TestOnce_Failures: a refused request leaves its key free. One that failed behind its first commit, or had
// nothing to change, does not.
func TestOnce_Failures(t *testing.T) {
	f := newFactory(t)
	s := f.server()
	f.wrong = field.Wrong("name", "must be another")
	if a := post(s, "write", "/v1/things/1", "k", `{"name":"a"}`); a.Code != 422 {
		t.Fatalf("got %d %s", a.Code, a.Body)
	}
	f.wrong, f.after = nil, errors.New("the reply was lost")
	if a := post(s, "write", "/v1/things/1", "k", `{"name":"b"}`); a.Code != 503 || f.made != 1 {
		t.Fatalf("after a refusal: got %d %s", a.Code, a.Body)
	}
	if a := post(s, "write", "/v1/things/1", "k", `{"name":"b"}`); a.Code != 200 || f.made != 1 || f.again != 1 {
		t.Errorf("after a failure: got %d %s, %d made", a.Code, a.Body, f.made)
	}
	f.none = true
	for _, want := range []string{"", "true"} {
		if a := post(s, "write", "/v1/things/1", "none", `{"name":"b"}`); a.Code != 200 || a.Header().Get("Idempotent-Replayed") != want {
			t.Errorf("nothing to change: got %d %v", a.Code, a.Header())
		}
	}
	if a := post(s, "write", "/v1/things/1", "none", `{"name":"c"}`); a.Code != 422 {
		t.Errorf("nothing to change, and another body: got %d %s", a.Code, a.Body)
	}
}

// TestOnce_KeysOfCommandLines: a key of the command line is the same key, and the change compares what it
// was used for.
func TestOnce_KeysOfCommandLines(t *testing.T) {
	f := newFactory(t)
	ctx := call.With(t.Context(), &call.Call{Actor: "user ann", Key: "k", Object: "things/1", Table: f.table, Now: time.Now})
	if err := call.Commit(ctx, f.store); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		same   func(*call.Row) error
		status int
	}{
		"a change that command lines cannot key": {nil, 422},
		"another request":                        {func(*call.Row) error { return errors.New("it was another amount") }, 422},
		"the same request":                       {func(*call.Row) error { return nil }, 200},
	} {
		f.same = tt.same
		a := post(f.server(), "write", "/v1/things/1", "k", `{"name":"a"}`)
		if a.Code != tt.status || f.made != 0 || (a.Header().Get("Idempotent-Replayed") == "true") != (tt.status == 200) ||
			tt.status == 422 && !strings.Contains(a.Body.String(), `"object":"things/1"`) {
			t.Errorf("%s: got %d %s, %d made", name, a.Code, a.Body, f.made)
		}
	}
}

// TestFindByKey: only the caller finds what its key has made.
func TestFindByKey(t *testing.T) {
	f := newFactory(t)
	s := f.server()
	if a := post(s, "write m", "/v1/things/1", "k", `{"name":"a"}`); a.Code != 201 {
		t.Fatal(a.Code, a.Body)
	}
	for who, want := range map[string]string{"read m": `"things/1"`, "read": `""`, "admin n": `""`} {
		r, a := httptest.NewRequest(http.MethodGet, "/v1/things?idempotency_key=k", nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+who)
		if s.ServeHTTP(a, r); strings.TrimSpace(a.Body.String()) != want {
			t.Errorf("%s: got %s, want %s", who, a.Body, want)
		}
	}
}

// TestIfMatch: a change expects the version of a tag that the server has sent, and never that of another.
func TestIfMatch(t *testing.T) {
	var got int64
	s := web.New(web.Options{Keys: ring{}, Routes: []web.Route{{Pattern: "/v1/x", Scope: key.Read,
		Do: func(_ http.ResponseWriter, r *web.Request) error {
			got = call.Of(r.Context()).Expect
			return fmt.Errorf("x: %w", call.ErrVersion)
		}}}})
	for tag, want := range map[string]int64{"": 0, "*": 0, `"7"`: 7, web.Tag(1 << 40): 1 << 40, "7": -1, `W/"7"`: -1, `"7", "8"`: -1,
		`"x"`: -1, `"-1"`: -1, `"0"`: -1, `"+7"`: -1, `""7""`: -1, `"99999999999999999999"`: -1} {
		for method, want := range map[string]int64{"PATCH": want, "POST": want, "DELETE": want, "GET": 0} {
			r, a := httptest.NewRequest(method, "/v1/x", nil), httptest.NewRecorder()
			r.Header.Set("Authorization", "Bearer read")
			if tag != "" {
				r.Header.Set("If-Match", tag)
			}
			if s.ServeHTTP(a, r); got != want || a.Code != http.StatusPreconditionFailed {
				t.Errorf("%s %s: expects %d, want %d; got %d %s", method, tag, got, want, a.Code, a.Body)
			}
		}
	}
}

// TestOnce_TwoProcesses: requests that are under way in several processes create one thing.
func TestOnce_TwoProcesses(t *testing.T) {
	f := newFactory(t)
	var both sync.WaitGroup
	both.Add(2)
	f.during = func(context.Context) { both.Done(); both.Wait() } // both have found no row
	codes := make(chan string, 2)
	for range 2 {
		go func() {
			a := post(f.server(), "write", "/v1/things/1", "k", `{"name":"a"}`)
			codes <- fmt.Sprint(a.Code, a.Header().Get("Idempotent-Replayed"))
		}()
	}
	if one, two := <-codes, <-codes; f.made != 1 || one == two || len(one+two) != len("200true201") {
		t.Errorf("got %s and %s, %d made", one, two, f.made)
	}
}

// TestOnce_Waits: a repeat waits ten seconds for the request that runs in the same process.
func TestOnce_Waits(t *testing.T) {
	for _, tt := range []struct {
		takes, waits time.Duration
		status       int
	}{{9 * time.Second, 8 * time.Second, 200}, {20 * time.Second, 10 * time.Second, 409}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFactory(t)
			f.during = func(context.Context) { <-time.After(tt.takes) }
			s := f.server()
			first := make(chan int)
			go func() { first <- post(s, "write", "/v1/things/1", "k", `{"name":"a"}`).Code }()
			<-time.After(time.Second)
			begun := time.Now()
			if a := post(s, "write", "/v1/things/1", "other", `{"name":"a"}`); a.Code != 201 || time.Since(begun) != tt.takes {
				t.Errorf("another key: got %d after %v", a.Code, time.Since(begun))
			}
			<-first
			go func() { first <- post(s, "write", "/v1/things/2", "k2", `{"name":"a"}`).Code }()
			<-time.After(time.Second)
			begun = time.Now()
			a := post(s, "write", "/v1/things/2", "k2", `{"name":"a"}`)
			if a.Code != tt.status || time.Since(begun) != tt.waits || (a.Header().Get("Retry-After") != "") != (tt.status == 409) {
				t.Errorf("got %d %s after %v, want %d after %v", a.Code, a.Body, time.Since(begun), tt.status, tt.waits)
			}
			if code := <-first; code != 201 || f.made != 3 {
				t.Errorf("the first got %d, %d made", code, f.made)
			}
			if a := post(s, "write", "/v1/things/2", "k2", `{"name":"a"}`); a.Code != 200 {
				t.Errorf("in the end: got %d %s", a.Code, a.Body)
			}
		})
	}
}
