package delivery

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// TestSign is the test vector of the libraries of Standard Webhooks.
func TestSign(t *testing.T) {
	key, err := signingKey(secret.New("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
	if err != nil {
		t.Fatal(err)
	}
	got := sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Error(got)
	}
}

// TestDelivery_Twice: two events of one type in an effect, such as the receipts of a charge and of an
// overpayment, become two messages.
func TestDelivery_Twice(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	w.create(r.URL)
	w.cause("a", "period.paid", "receipt.created", "receipt.created")
	w.drain(w.sender())
	seen := map[string]bool{}
	for _, x := range r.requests() {
		seen[x.id()] = true
	}
	if len(seen) != 3 || w.states()[Delivered] != 3 {
		t.Errorf("%d messages, %v", len(seen), w.states())
	}
}

// TestDelivery: one effect becomes a message for each endpoint and event that it wants, signed and
// recorded.
func TestDelivery(t *testing.T) {
	w := newWorld(t)
	all, some := newReceiver(t, nil), newReceiver(t, nil)
	a := w.create(all.URL + "/all")
	w.create(some.URL, "receipt.*", "run.late")
	w.cause("a", "period.paid", "receipt.created")
	w.cause("b", "period.failed")
	if w.states()[Waiting] != 0 {
		t.Error("an effect is no message")
	}
	w.drain(w.sender())
	got := all.requests()
	if len(got) != 3 || len(some.requests()) != 1 || w.states()[Delivered] != 4 {
		t.Fatal(len(got), len(some.requests()), w.states())
	}
	key, _ := signingKey(a.Secret)
	seen := map[string]bool{}
	for _, r := range got {
		if want := sign(key, r.id(), w.clock(), []byte(r.body)); r.Get("Webhook-Signature") != want || seen[r.id()] {
			t.Errorf("%s: got %s, want %s", r.id(), r.Get("Webhook-Signature"), want)
		}
		seen[r.id()] = true
	}
	paid := slices.IndexFunc(got, func(r request) bool { return strings.Contains(r.body, "period.paid") })
	if want := `{"type":"period.paid","timestamp":"2027-03-01T09:00:20.000Z","data":{"account":"1","version":2}}`; got[paid].body != want {
		t.Errorf("got %s, want %s", got[paid].body, want)
	}
	if n := len(slices.Collect(func(yield func(*Message) bool) {
		for _, m := range w.messages(Filter{Endpoint: a.ID, State: Delivered}) {
			if len(m.Attempts) != 1 || m.Attempts[0].Status != 204 || m.Attempts[0].Code != "" || !seen[m.ID] {
				t.Errorf("%+v", m)
			}
			yield(m)
		}
	})); n != 3 {
		t.Error(n)
	}
}

// TestNoEndpoint: without an endpoint that wants the event, there is no row.
func TestNoEndpoint(t *testing.T) {
	w := newWorld(t)
	for _, types := range [][]string{{"period.paid"}, {}} {
		var events []Event
		for _, kind := range types {
			events = append(events, Event{Type: kind})
		}
		if rows, err := w.Effect(t.Context(), "a", events...); len(rows) != 0 || err != nil {
			t.Error(rows, err)
		}
	}
	w.create("https://example.com", "run.late")
	if rows, err := w.Effect(t.Context(), "a", Event{Type: "period.paid"}); len(rows) != 0 || err != nil {
		t.Error(rows, err)
	}
}

// TestFrom: an event at the time that Create returns reaches the endpoint, whichever process has it.
func TestFrom(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	other := w.service(w.store)
	w.causeBy(other, "early", "period.paid") // it has read the list
	w.create(r.URL)
	w.causeBy(other, "late", "period.paid")
	w.drain(w.sender())
	if len(r.requests()) != 1 {
		t.Error(len(r.requests()))
	}
}

// TestRetry: a message is sent again on the standard's schedule, with the same id and body and a new
// timestamp, and given up after the tenth failure.
func TestRetry(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusInternalServerError) })
	w.create(r.URL)
	w.cause("a", "period.paid")
	x := w.sender()
	began := w.clock()
	for range 10 {
		w.drain(x)
		if m := w.messages(Filter{State: Waiting}); len(m) == 1 {
			w.pass(m[0].Due.Sub(w.clock()))
		}
	}
	last := w.clock()
	got := r.requests()
	if len(got) != 10 || w.states()[Failed] != 1 || w.clock().Sub(began).Round(time.Hour) != 76*time.Hour {
		t.Fatal(len(got), w.states(), w.clock().Sub(began))
	}
	for _, each := range got {
		if each.id() != got[0].id() || each.body != got[0].body {
			t.Error(each)
		}
	}
	if got[0].Get("Webhook-Timestamp") == got[9].Get("Webhook-Timestamp") {
		t.Error("the timestamp is that of the first attempt")
	}
	m := w.messages(Filter{})[0]
	w.healthy(m.Endpoint, Health{Failed: last, Dead: 1})
	if len(m.Attempts) != 10 || m.Attempts[9].Code != "http_500" || m.Attempts[9].Status != 500 {
		t.Errorf("%+v", m)
	}
	if e, err := w.Endpoint(t.Context(), m.Endpoint); err != nil || !e.GaveUp.Equal(w.clock()) || !e.Failing.Equal(began) || !e.Paused.IsZero() {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestGone: an endpoint that answers 410 is paused, its messages fail, and a replay after --resume sends
// them under their ids.
func TestGone(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, func(w http.ResponseWriter, n int) {
		if n == 1 {
			w.WriteHeader(http.StatusGone)
		}
	})
	e := w.create(r.URL)
	w.cause("a", "period.paid")
	x := w.sender()
	w.drain(x)
	w.pass(time.Hour)
	w.cause("b", "period.failed")
	w.drain(x)
	w.healthy(e.ID, Health{Failed: w.clock(), Dead: 2})
	if got, err := w.Endpoint(t.Context(), e.ID); err != nil || got.Reason != ReasonGone || w.states()[Failed] != 2 || len(r.requests()) != 1 {
		t.Fatalf("%+v, %v, %v", got, err, w.states())
	}
	if _, _, err := w.Replay(t.Context(), Filter{Endpoint: e.ID}); !errors.Is(err, ErrState) {
		t.Error(err)
	}
	resumed := false
	if _, err := w.Update(t.Context(), e.ID, Change{Paused: &resumed}); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, m := range w.messages(Filter{}) {
		ids[m.ID] = true
	}
	if n, _, err := w.Replay(t.Context(), Filter{Endpoint: e.ID, From: start}); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	w.healthy(e.ID, Health{Failed: w.clock(), Waiting: 2})
	w.drain(x)
	w.healthy(e.ID, Health{Delivered: w.clock(), Failed: w.clock()})
	for _, got := range r.requests() {
		if !ids[got.id()] {
			t.Error(got)
		}
	}
	if len(r.requests()) != 3 || w.states()[Delivered] != 2 {
		t.Error(len(r.requests()), w.states())
	}
}

// TestFailingForDays: an endpoint is paused after five days of failures, not if one delivery has succeeded.
func TestFailingForDays(t *testing.T) {
	for _, works := range []bool{false, true} {
		w := newWorld(t)
		r := newReceiver(t, func(w http.ResponseWriter, n int) {
			if n == 6 && works {
				return
			}
			w.WriteHeader(http.StatusInternalServerError)
		})
		e := w.create(r.URL)
		x := w.sender()
		for i := range 22 { // every six hours
			w.cause(string(rune('a'+i)), "period.paid")
			w.drain(x)
			w.pass(6 * time.Hour)
		}
		got, err := w.Endpoint(t.Context(), e.ID)
		if err != nil || got.Paused.IsZero() != works || !works && got.Reason != ReasonFailing {
			t.Errorf("works %v: %+v, %v", works, got, err)
		}
	}
}

// TestRotate: during the overlap, messages are signed by both secrets.
func TestRotate(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	e := w.create(r.URL)
	x := w.sender()
	rotated, err := w.Rotate(t.Context(), e.ID, false)
	if err != nil || rotated.Secret.Reveal() == e.Secret.Reveal() {
		t.Fatal(err)
	}
	if _, err := w.Rotate(t.Context(), e.ID, false); !errors.Is(err, ErrState) {
		t.Error(err)
	}
	check := func(secrets ...secret.Text) {
		t.Helper()
		w.cause("at "+stamp(w.clock()), "period.paid")
		w.drain(x)
		last := r.requests()[len(r.requests())-1]
		var want []string
		for _, s := range secrets {
			key, _ := signingKey(s)
			want = append(want, sign(key, last.id(), w.clock(), []byte(last.body)))
		}
		if got := last.Get("Webhook-Signature"); got != strings.Join(want, " ") {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	check(rotated.Secret, e.Secret)
	w.pass(overlap)
	check(rotated.Secret)
	again, err := w.Rotate(t.Context(), e.ID, true)
	if err != nil {
		t.Fatal(err)
	}
	check(again.Secret)
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(again.Secret.Reveal(), "whsec_"))
	if err != nil || len(key) != 32 {
		t.Error(len(key), err)
	}
}

// TestCheck: wrong fields are field.Errors, all at once, and never repeat a value.
func TestCheck(t *testing.T) {
	w := newWorld(t)
	for url, wrong := range map[string]bool{"https://example.com/a?b=c": false, "http://127.0.0.1:8080": false, "ftp://example.com": true,
		"example.com": true, "https://": true, "https://user:secret@example.com": true, "https://example.com#a": true,
		"https://example.com/" + strings.Repeat("a", mostURL): true, "": true, "https://[::1": true} {
		_, _, err := w.Create(t.Context(), url, nil)
		if e, is := errors.AsType[*field.Error](err); is != wrong || is && (e.Field != "url" || strings.Contains(err.Error(), "secret@")) {
			t.Errorf("%.40s: %v", url, err)
		}
	}
	_, _, err := w.Create(t.Context(), "", []string{"period.*", "period.unknown"})
	if err == nil || !strings.Contains(err.Error(), "url: ") || !strings.Contains(err.Error(), "types: entry 2") {
		t.Error(err)
	}
	for _, group := range []string{"*", "period.", "per*", ".*"} {
		if _, _, err := w.Create(t.Context(), "https://example.com", []string{group}); err == nil {
			t.Error(group)
		}
	}
}

// TestDelete: a deleted endpoint gets nothing, and its waiting messages are gone.
func TestDelete(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusInternalServerError) })
	e := w.create(r.URL)
	w.create("http://127.0.0.1:1") // another one
	w.cause("a", "period.paid")
	x := w.sender()
	w.drain(x)
	if err := w.Delete(t.Context(), e.ID); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), e.ID); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	w.pass(10 * time.Second)
	w.drain(x)
	if len(r.requests()) != 1 || len(w.messages(Filter{Endpoint: e.ID})) != 0 {
		t.Error(len(r.requests()))
	}
}

// TestTypes: the user's page explains every type, and the API's description names it.
func TestTypes(t *testing.T) {
	for _, name := range []string{"../openapi/openapi.json", "../../docs/deliveries.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range Types() {
			_, last, _ := strings.Cut(kind, ".")
			if !strings.Contains(string(text), kind) && !strings.Contains(string(text), "`."+last+"`") {
				t.Errorf("%s does not name %s", name, kind)
			}
		}
	}
}

// TestExpect: a call that expects another version changes nothing.
func TestExpect(t *testing.T) {
	w := newWorld(t)
	e := w.create("https://example.com")
	ctx := call.With(t.Context(), &call.Call{Expect: 7})
	_, updated := w.Update(ctx, e.ID, Change{})
	_, rotated := w.Rotate(ctx, e.ID, false)
	for _, err := range []error{updated, rotated, w.Delete(ctx, e.ID)} {
		if !errors.Is(err, call.ErrVersion) {
			t.Error(err)
		}
	}
	if got, err := w.Update(call.With(t.Context(), &call.Call{Expect: 1}), e.ID, Change{Types: &[]string{"run.*"}}); err != nil || got.Version != 2 {
		t.Error(got, err)
	}
}

// TestFanOut_ManyEvents: an effect whose messages do not fit in one commit holds up no other effect.
func TestFanOut_ManyEvents(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	for range MostEndpoints {
		w.create(r.URL)
	}
	w.cause("a", "subscription.resumed", "subscription.updated", "period.paid", "receipt.created", "receipt.created", "reminder.due")
	w.cause("b", "period.paid")
	w.cause("c", slices.Repeat([]string{"receipt.created"}, 32)...) // of a drain
	w.drain(w.sender())
	if n := w.states()[Delivered]; n != 39*MostEndpoints {
		t.Errorf("%d delivered", n)
	}
}

// TestUnreadable: a damaged endpoint, also the only one, receives nothing, and its messages are failed until it is
// repaired and they are replayed. The other endpoints are not affected.
func TestUnreadable(t *testing.T) {
	for _, alone := range []bool{true, false} {
		w := newWorld(t)
		bad, good := newReceiver(t, nil), newReceiver(t, nil)
		e := w.create(bad.URL)
		if !alone {
			w.create(good.URL)
		}
		w.cause("before", "period.paid") // in the queue when it is damaged
		set := func(created string) {
			at := store.NewItem(store.Attribute{Name: schema.CreatedDate, Value: store.S(created)})
			if err := w.store.Commit(t.Context(), store.Update(w.table, endpointKey(e.ID), at, nil)); err != nil {
				t.Fatal(err)
			}
			w.pass(fresh)
		}
		set("yesterday")
		w.cause("after", "period.failed")
		w.drain(w.sender())
		want := map[string]int{Failed: 2}
		if !alone {
			want[Delivered] = 2
		}
		if got := w.states(); !maps.Equal(got, want) || len(bad.requests()) > 0 {
			t.Errorf("damaged: %v, want %v", got, want)
		}
		if _, _, err := w.Replay(t.Context(), Filter{Endpoint: e.ID}); !errors.Is(err, ErrState) {
			t.Errorf("replay to a damaged endpoint: %v", err)
		}
		set(stamp(e.Created))
		if n, _, err := w.Replay(t.Context(), Filter{Endpoint: e.ID}); n != 2 || err != nil {
			t.Errorf("replay: %d, %v", n, err)
		}
		w.drain(w.sender())
		if len(bad.requests()) != 2 {
			t.Errorf("repaired: %d requests, %v", len(bad.requests()), w.states())
		}
	}
}

// TestEffect_UnreadableSettings: settings that another tool has damaged stop no commit.
func TestEffect_UnreadableSettings(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	w.create(r.URL)
	w.Service = New(Options{Store: w.store, Tables: w.tables, Now: w.clock, Days: func(context.Context) (int, error) { return 0, errors.New("damaged") }})
	w.cause("a", "period.paid")
	w.drain(w.sender())
	if n := w.states()[Delivered]; n != 1 {
		t.Error(n)
	}
}

// TestLanes: a lane is kept while its endpoint is slow, and no longer than it has messages otherwise.
func TestLanes(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	w.create(r.URL)
	slow := w.create("http://127.0.0.1:1")
	w.cause("a", "period.paid")
	x := w.sender()
	w.drain(x)
	if l := x.lanes[slow.ID]; len(x.lanes) != 1 || l == nil || l.slow != 1 {
		t.Errorf("%d lanes, %+v", len(x.lanes), l)
	}
}
